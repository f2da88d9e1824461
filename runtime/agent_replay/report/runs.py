"""The lines of `list`: one for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent_replay.report.diagnosis import Standing
from agent_replay.report.words import aligned, safe, utc


class Listed(NamedTuple):
    """A run as `list` shows it; from `step` to `key`: the open step of an unfinished run.

    `archive` is the file that an archived run is in.
    """

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
    archive: str | None = None


def list_lines(runs: Sequence[Listed]) -> list[str]:
    """Return a line for each run, with its open step and key if it has not ended."""
    rows = [
        (
            str(run.run),
            run.id,
            run.standing.value,
            _place(run),
            utc(run.registered_ns),
            _open_step(run) if run.archive is None else f"archived in {safe(run.archive)}",
        )
        for run in runs
    ]
    return aligned(rows) if rows else []


def _place(run: Listed) -> str:
    if run.steps is None:
        return ""
    return f"{run.steps} steps" if run.number is None else f"step {run.number}/{run.steps}"


def _open_step(run: Listed) -> str:
    if run.step is None:
        return ""
    attempt = f", attempt {run.attempt}" if run.attempt else ""
    return f"{run.step}: {run.state}{attempt}, key {run.key}"
