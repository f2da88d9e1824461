"""The lines of `list`: one for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent_replay.report.diagnosis import Standing
from agent_replay.report.words import aligned, utc


class Listed(NamedTuple):
    """A run as `list` shows it; `step` and what follows: the open step of an unfinished run."""

    run: int
    id: str
    standing: Standing
    registered_ns: int
    number: int | None
    steps: int | None
    seq: int | None
    step: str | None
    state: str | None
    attempt: int | None
    key: str | None


def list_lines(runs: Sequence[Listed]) -> list[str]:
    """Return a line for each run, with its open step and key if it has not ended."""
    rows = [
        (
            str(run.run),
            run.id,
            run.standing.value,
            "" if run.steps is None else f"step {run.number}/{run.steps}",
            utc(run.registered_ns),
            _open_step(run),
        )
        for run in runs
    ]
    return aligned(rows) if rows else []


def _open_step(run: Listed) -> str:
    if run.step is None:
        return ""
    attempt = f", attempt {run.attempt}" if run.attempt else ""
    return f"{run.step}: {run.state}{attempt}, key {run.key}"
