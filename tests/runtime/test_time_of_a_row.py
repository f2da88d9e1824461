"""A row carries the time at which it was decided, however long its process is stopped then."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_replay import Json, Request, Runtime, adapter, idempotent
from agent_replay.clock import Reading
from models.conform import findings
from tests.outside import ManualClock

WINDOW_SECONDS = 60.0
LANDS_SECONDS = 10.0
STEP_SECONDS = 3.0
PLAN: Json = {
    "plan": 1,
    "steps": [{"id": "one", "adapter": "keyed@1", "contract": "idempotent", "arguments": {}}],
}
READS = range(4, 24)
"""Reads after which the process is stopped: at some of them the window is about to lapse."""


@dataclass
class StoppingClock(ManualClock):
    """A clock of a process that is stopped after one of its readings, for longer than a window."""

    stops_after: int
    reads: int = field(default=0)

    def __post_init__(self) -> None:
        super().__init__()

    def read(self) -> Reading:
        now = super().read()
        self.reads += 1
        self.pass_by(STEP_SECONDS if self.reads != self.stops_after else WINDOW_SECONDS)
        return now


@pytest.mark.invariant("S2")
@pytest.mark.parametrize("stops_after", READS)
def test_no_row_contradicts_its_own_clock(tmp_path: Path, stops_after: int) -> None:
    """A resend that was decided inside its window and written after it would be one."""

    @adapter(
        name="keyed", contract=idempotent(key_window=WINDOW_SECONDS, lands_within=LANDS_SECONDS)
    )
    def keyed(request: Request) -> Json:
        raise TimeoutError("no reply")

    path = tmp_path / "runs.db"
    clock = StoppingClock(stops_after)
    with Runtime(path, adapters=[keyed], clock=clock, attempts_max=10) as runtime:
        outcome = runtime.run("r", PLAN)
    assert outcome.in_doubt[0].why == "window_lapsed"
    assert findings(path) == []
