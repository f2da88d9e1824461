"""A database, a ledger and a clock for each test of the runtime."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_replay import Event, Evidence, Json, Outcome, Runtime
from agent_replay.store.reader import Reader
from tests.outside import Ledger, ManualClock, tools


class World:
    """What a test of the runtime needs: it opens runtimes on one database, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.db"
        self.clock = ManualClock()
        self.ledger = Ledger()

    def open(self, **options: object) -> Runtime:
        """Return a runtime that is a new writer, as a new process would be."""
        given = {"adapters": tools(self.ledger), "clock": self.clock, "log_bytes": 0, **options}
        return Runtime(self.path, **given)  # type: ignore[arg-type]

    def interrupted(self, run_id: str, plan: Json) -> None:
        """Run a plan whose tool is interrupted, and leave the database as a killed process does."""
        with self.open() as runtime, pytest.raises(KeyboardInterrupt):
            runtime.run(run_id, plan)

    def resume(self, run_id: str, **options: object) -> Outcome:
        """Resume a run as a new writer."""
        with self.open(**options) as runtime:
            return runtime.resume(run_id)

    def dump(self) -> list[str]:
        """Return all that the database holds, as text, to compare it with later."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            return list(connection.iterdump())

    def events(self, run_id: str = "r") -> list[Event]:
        """Return the rows of a run."""
        with Reader(self.path) as reader:
            return reader.read(run_id)[1]


def give(runtime: Runtime, move: str, evidence: Evidence, result: Json = None) -> Outcome:
    """Give evidence for the move of that name."""
    if move == "confirm":
        return runtime.confirm(evidence, result=result)
    moved = getattr(runtime, move)(evidence)
    assert isinstance(moved, Outcome)
    return moved


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def evidence_for(outcome: Outcome, **changes: object) -> Evidence:
    """Return evidence that names exactly what is in doubt, with the given fields changed."""
    (doubt,) = outcome.in_doubt
    fields: dict[str, object] = {
        "run": outcome.run,
        "step": doubt.step,
        "attempt": doubt.attempt,
        "key": doubt.key,
        "kind": "ledger",
        "content": {"line": 7},
        "who": "ada",
        "why": "looked it up",
        "no_request_can_land": True,
    }
    return Evidence(**{**fields, **changes})  # type: ignore[arg-type]
