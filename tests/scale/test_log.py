"""The write-ahead log stays bounded while readers come and go."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agent_replay.events import Head
from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.live import LiveRun
from agent_replay.store.database import Database
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import ManualClock
from tests.scale.many import Shape, make

PAGES_MAX = 40
"""Pages after which the writer moves the log into the database."""
PAGES_A_COMMIT_MAX = 8
HELD_COMMITS = 12
"""Commits for which a reader holds the moment that it sees."""
PAUSE_COMMITS = 4
"""Commits from one reader to the next."""


class Writer:
    """Writes one event a commit, as long as it is asked to."""

    def __init__(self, database: Database) -> None:
        self._store = database.store
        self._live = LiveRun(self._store, self._store.read("run-000001"), ManualClock(), None)

    @property
    def head(self) -> Head:
        return self._live.head

    def commit(self, count: int) -> None:
        for _ in range(count):
            if self._live.head.state == "in_doubt":
                self._live.draft(StepEvent.REFUTE, Actor.OPERATOR, "{}")
            elif self._live.head.state == "planned":
                self._live.draft(StepEvent.REQUEST, Actor.RUNTIME, "{}")
            else:
                self._live.draft(StepEvent.SUSPEND, Actor.RUNTIME, "{}")
            self._live.commit()
            self._store.checkpoint_if_due()


def pages_of(log: Path) -> int:
    """Return how many pages a log has room for: as many as it ever held, for it is never cut."""
    data = log.read_bytes()
    page_bytes = int.from_bytes(data[8:12], "big")
    return (len(data) - 32) // (24 + page_bytes)


@pytest.mark.parametrize("readers_at_once", [0, 1, 3])
def test_the_log_is_bounded_while_readers_hold_a_moment_and_go(
    tmp_path: Path, readers_at_once: int
) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=20, steps=2, waits_each=1))
    log = tmp_path / "runs.db-wal"
    rounds = 25
    with Database(path, clock=ManualClock(), log_bytes=0, log_pages_max=PAGES_MAX) as database:
        writer = Writer(database)
        for _ in range(rounds):
            with ExitStack() as readers:
                for _ in range(readers_at_once):
                    reader = readers.enter_context(Reader(path))
                    readers.enter_context(reader.connection)  # a read transaction, which begins
                    seen = reader.summaries(limit=1)[0].seq  # with the first row that is read
                    assert seen == writer.head.seq
                    writer.commit(HELD_COMMITS // readers_at_once)
                    assert reader.summaries(limit=1)[0].seq == seen
            writer.commit(PAUSE_COMMITS if readers_at_once else HELD_COMMITS + PAUSE_COMMITS)
        pages = pages_of(log)
        assert writer.head.seq > rounds * HELD_COMMITS
    held = HELD_COMMITS if readers_at_once else 0
    assert pages <= PAGES_MAX + PAGES_A_COMMIT_MAX * (held + 1), pages
    assert pages < writer.head.seq  # far less than was written, which is several pages a commit
    assert verify(path).sound


def test_while_a_reader_stays_the_log_grows_and_after_it_the_log_is_used_again(
    tmp_path: Path,
) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=20, steps=2, waits_each=1))
    log = tmp_path / "runs.db-wal"
    with Database(path, clock=ManualClock(), log_bytes=0, log_pages_max=PAGES_MAX) as database:
        writer = Writer(database)
        with closing(Reader(path)) as reader, reader.connection:
            reader.summaries(limit=1)
            writer.commit(5 * PAGES_MAX)
        grown = pages_of(log)
        assert grown > 5 * PAGES_MAX
        writer.commit(20 * PAGES_MAX)
        assert pages_of(log) <= grown + PAGES_A_COMMIT_MAX
    assert verify(path).sound
