"""The world outside of the runtime, for tests: a clock that is set by hand, and tools that keep a
ledger.

The ledger is the witness: it counts calls and effects by itself, and no verdict rests on what the
runtime says of them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from agent_replay import (
    Absent,
    Adapter,
    Found,
    Json,
    Request,
    ToolRejected,
    adapter,
    idempotent,
    queryable,
    read_only,
)
from agent_replay.clock import NANOSECONDS, Reading

SETTLES_SECONDS = 60
WINDOW_SECONDS = 1000
LANDS_SECONDS = 100


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.wall_ns = 1_800_000_000 * NANOSECONDS
        self.boot_ns = 50_000 * NANOSECONDS
        self.boot_id = "boot-1"

    def read(self) -> Reading:
        return Reading(self.wall_ns, self.boot_ns, self.boot_id)

    def pass_by(self, seconds: float) -> None:
        """Let time pass, as it does."""
        self.wall_ns += round(seconds * NANOSECONDS)
        self.boot_ns += round(seconds * NANOSECONDS)

    def reboot(self, *, off_seconds: float, boot_id: str = "boot-2") -> None:
        """Start the machine anew."""
        self.wall_ns += round(off_seconds * NANOSECONDS)
        self.boot_ns = 5 * NANOSECONDS
        self.boot_id = boot_id


@dataclass
class Ledger:
    """What really happened outside."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    results: dict[str, Json] = field(default_factory=dict)

    def call(self, request: Request) -> None:
        self.calls.append((request.step, request.attempt))
        self.keys.append(request.key)

    def happen(self, request: Request, *, once: bool) -> Json:
        """Have the effect, and return the receipt."""
        if not once or request.step not in self.effects:
            self.effects[request.step] += 1
            self.results[request.step] = {"receipt": f"{request.step}-{self.effects[request.step]}"}
        return self.results[request.step]

    def called(self, step: str) -> int:
        return sum(1 for called, _ in self.calls if called == step)


def _behave(ledger: Ledger, request: Request, *, has_effect: bool, once: bool) -> Json:
    """Do what the step's arguments say for this attempt: {"do": ["lost", "ok"]}, the last one for "
    "all later ones."""
    ledger.call(request)
    assert isinstance(request.arguments, dict)
    script = request.arguments.get("do", ["ok"])
    assert isinstance(script, list)
    deed = script[min(request.attempt, len(script)) - 1]
    if deed == "refuse":
        raise ToolRejected("no")
    if deed == "refuse_key":
        raise ToolRejected("no, and never", covers_key=True)
    if deed == "unsent":
        raise ConnectionError("nothing left")
    result: Json = ledger.happen(request, once=once) if has_effect else {"looked": True}
    if deed == "lost":
        raise TimeoutError("no reply")
    if deed == "interrupt":
        raise KeyboardInterrupt
    if deed == "unstorable":
        return {"file": object()}  # type: ignore[dict-item]
    if deed == "large":
        return "x" * 400_000
    assert deed == "ok", deed
    return request.arguments.get("result", result)


def tools(ledger: Ledger) -> list[Adapter]:
    """Return one adapter for each contract, and one whose keys are forgotten after a while."""

    @adapter(name="look", contract=read_only())
    def look(request: Request) -> Json:
        return _behave(ledger, request, has_effect=False, once=False)

    @adapter(name="keyed", contract=idempotent())
    def keyed(request: Request) -> Json:
        return _behave(ledger, request, has_effect=True, once=True)

    @adapter(
        name="windowed", contract=idempotent(key_window=WINDOW_SECONDS, lands_within=LANDS_SECONDS)
    )
    def windowed(request: Request) -> Json:
        return _behave(ledger, request, has_effect=True, once=True)

    def find(request: Request) -> Found | Absent:
        if request.step in ledger.results:
            return Found(ledger.results[request.step])
        return Absent()

    @adapter(name="asked", contract=queryable(settles_within=SETTLES_SECONDS), probe=find)
    def asked(request: Request) -> Json:
        return _behave(ledger, request, has_effect=True, once=False)

    @adapter(name="dark")
    def dark(request: Request) -> Json:
        return _behave(ledger, request, has_effect=True, once=False)

    return [look, keyed, windowed, asked, dark]


CONTRACTS = {
    "look": "read_only",
    "keyed": "idempotent",
    "windowed": "idempotent",
    "asked": "queryable",
    "dark": "opaque",
}


def plan_of(*steps: tuple[str, str] | tuple[str, str, Json]) -> dict[str, Json]:
    """Return a plan document: each step is (id, adapter name) and, if need be, its arguments."""
    return {
        "plan": 1,
        "steps": [
            {
                "id": step[0],
                "adapter": f"{step[1]}@1",
                "contract": CONTRACTS[step[1]],
                "arguments": step[2] if len(step) == 3 else {},
            }
            for step in steps
        ],
    }


def plain(value: object) -> str:
    """Return a name for a test with this parameter, by which pytest finds it again."""
    return re.sub(r"\W+", "_", ascii(value))[:60]
