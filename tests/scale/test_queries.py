"""What is asked of a large database is found by its keys, and costs the same at any size."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.live import LiveRun
from agent_replay.store.database import Database
from agent_replay.store.sql import QUERIES
from agent_replay.store.verify import verify
from tests.outside import ManualClock
from tests.scale.many import Shape, make

SCANS = {
    *("integrity", "runs", "run_numbers", "writers", "permitted", "chains", "identity", "schema"),
    *("archived_by_number", "archived_by_run", "archived_files"),
}
"""What `verify` and `export` go through from end to end, and tables of a few rows."""
STRAYS = {"stray_steps", "stray_events", "stray_heads", "stray_archived", "headless"}
"""Only `verify` and `doctor` look for these."""


def reads(name: str) -> bool:
    return QUERIES[name].startswith("select")


@pytest.mark.parametrize("name", sorted(filter(reads, QUERIES.keys() - SCANS - STRAYS)))
def test_no_question_goes_through_a_whole_table(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=3, steps=1))
    with closing(apsw.Connection(str(path))) as connection:
        count = QUERIES[name].count("?")
        plan = connection.execute(f"explain query plan {QUERIES[name]}", (1,) * count)
        steps = [str(row[3]) for row in plan]
    assert steps
    for step in steps:
        assert not step.startswith("SCAN") or name == "last_writer", steps


def test_unfinished_runs_are_found_by_their_index(tmp_path: Path) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=3, steps=1))
    with closing(apsw.Connection(str(path))) as connection:
        plan = list(connection.execute(f"explain query plan {QUERIES['unfinished']}", (0, 1)))
        ((sql,),) = connection.execute(
            "select sql from sqlite_schema where name = 'heads_unfinished'"
        )
    assert "heads_unfinished" in plan[0][3]
    for state in {to.run_target for to in PERMITTED.values()}:
        assert (f"'{state}'" in sql) == (state in TERMINAL)
        assert (f"'{state}'" in QUERIES["unfinished"]) == (state in TERMINAL)


def pages_written(log: Path, start: int) -> list[int]:
    """Return the numbers of the pages in a log from an offset on."""
    data = log.read_bytes()
    (page_bytes,) = struct.unpack_from(">I", data, 8)
    salt = data[16:24]
    pages = []
    for offset in range(start, len(data), 24 + page_bytes):
        if data[offset + 8 : offset + 16] != salt:
            break
        pages.append(struct.unpack_from(">I", data, offset)[0])
    return pages


def test_an_event_that_leaves_the_state_of_its_run_alone_leaves_the_index_alone(
    tmp_path: Path,
) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=40, steps=2, waits_each=2))
    log = tmp_path / "runs.db-wal"
    with Database(path, clock=ManualClock(), log_bytes=0) as database:
        root_of = "select rootpage from sqlite_schema where name = 'heads_unfinished'"
        ((root,),) = database.store.connection.execute(root_of)
        live = LiveRun(database.store, database.store.read("run-000002"), ManualClock(), None)
        touched = []
        for event, actor in (
            (StepEvent.REFUTE, Actor.OPERATOR),  # from paused to running
            (StepEvent.REQUEST, Actor.RUNTIME),
            (StepEvent.ACKNOWLEDGE, Actor.RUNTIME),  # the end of the run
        ):
            before = max(log.stat().st_size, 32)
            live.draft(event, actor, '{"result":1}')
            live.commit()
            touched.append(root in pages_written(log, before))
        assert touched == [True, False, True]
        assert "run-000002" not in dict(database.store.unfinished(after=0, limit=9)).values()
    assert verify(path).sound
