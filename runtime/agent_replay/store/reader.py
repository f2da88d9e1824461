"""The reading side: looks at a database beside its writer, and never writes, locks or checkpoints.

Each question is one read transaction, which ends with the answer, so that a reader that waits does
not keep the log from being reused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import apsw

from agent_replay.events import Event, Registration, StepRow, Writer
from agent_replay.history import RunHistory
from agent_replay.store import files, rows
from agent_replay.store.connection import connect_reader, reading_error
from agent_replay.store.log import unconfirmed, writer_at_work
from agent_replay.store.schema import Identity, check_spec, read_identity
from agent_replay.store.sql import QUERIES

if TYPE_CHECKING:
    from agent_replay.store.archive.leftover import Leftover
    from agent_replay.store.archive.reading import Archived


class Summary(NamedTuple):
    """One line about a run, from its head; `run_state` is None if the head is missing."""

    run: int
    id: str
    run_state: str | None
    step: int | None
    steps: int | None
    state: str | None
    attempt: int | None
    seq: int | None
    registered_ns: int
    archive: str | None = None
    """The file that a run has left for; then the rest is as it was when it ended."""


class Reader:
    """A read-only view of a database.

    `unconfirmed` says that no writer is at work and that the log holds rows which no writer has
    made sure of: a power loss could still take them away. The next writer confirms them when it
    opens.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        files.check_path(self.path)
        self.unconfirmed = unconfirmed(self.path)
        self.connection = connect_reader(self.path)
        try:
            with self._reading():
                self.identity: Identity = read_identity(self.connection)
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def check_spec(self) -> None:
        """Raise `SpecMismatch` if the histories are of another spec, which this program cannot
        judge."""
        check_spec(self.identity)

    def summaries(self, *, after: int = 0, limit: int = 1000) -> list[Summary]:
        """Return a line for each run with a number above `after`, at most `limit`."""
        with self._reading():
            return [
                Summary(*row)
                for row in self.connection.execute(QUERIES["summaries"], (after, limit))
            ]

    def steps(self, run_id: str) -> list[StepRow]:
        """Return the steps of a run as they are stored; raises `NoSuchRun`."""
        with self._reading(), self._snapshot():
            return rows.read_steps(self.connection, rows.known_run(self.connection, run_id).run)

    def step(self, run: int, step: int) -> StepRow | None:
        """Return one step of a run, or None if there is no such step."""
        with self._reading():
            return rows.read_step(self.connection, run, step)

    def read(
        self, run_id: str, *, after: int = 0, limit: int = -1
    ) -> tuple[RunHistory, list[Event]]:
        """Return a run as its validated history tells it, and its events with a number above
        `after`, at most `limit` if that is not negative; raises `NoSuchRun` or `DamagedHistory`.

        All is of one moment. The whole history is gone through, and only these events are kept.
        """
        self.check_spec()
        with self._reading(), self._snapshot():  # a writer may be at work beside it
            registration = rows.known_run(self.connection, run_id)
            archived = rows.where_archived(self.connection, registration)
            if archived is None:
                history = rows.read_history(self.connection, registration)
                asked = (registration.run, after, limit)
                stored = self.connection.execute(QUERIES["events_after"], asked)
                return history, list(map(Event._make, stored))
        told = archived.read(after=after, limit=limit)
        return told.history, told.events

    def archived(self, registration: Registration) -> Archived | None:
        """Return where a run is that has left the database, or None if it has not."""
        with self._reading():
            return rows.where_archived(self.connection, registration)

    def archived_count(self) -> int:
        """Return how many runs are in archives."""
        with self._reading():
            chain = self.connection.execute(QUERIES["chain"], ("archived",))
            return sum(int(count) for count, _ in chain)

    def orphans(self) -> list[str]:
        """Return the archives beside the database that it does not refer to."""
        from agent_replay.store.archive import place  # here: most commands need none of it

        with self._reading():
            referred = [str(file) for (file,) in self.connection.execute(QUERIES["archived_files"])]
        return place.orphans(self.path, referred)

    def leftovers(self) -> list[Leftover]:
        """Return the same archives, each with what it is; they are gone through."""
        from agent_replay.store.archive import leftover  # here: most commands need none of it

        with self._reading():
            at_work = self.writer_at_work() is not None
            return list(leftover.judged(self.connection, self.orphans(), at_work=at_work))

    def unfinished(self, *, after: int = 0, limit: int = 500) -> list[tuple[int, str]]:
        """Return number and id of unfinished runs with a number above `after`, in order.

        A run whose head is missing counts, too.
        """
        with self._reading():
            found = list(self.connection.execute(QUERIES["unfinished"], (after, limit)))
            found += self.connection.execute(QUERIES["headless"], (after, limit))
            return sorted(found)[:limit]

    def writers_of(self, history: RunHistory) -> list[Writer]:
        """Return the writers that have written the rows of a run."""
        registration = history.registration
        archived = self.archived(registration)
        if archived is not None:
            epochs_there = archived.read().epochs
            with self._reading():
                return list(rows.read_writers(self.connection, epochs_there))
        with self._reading():
            found = self.connection.execute(QUERIES["epochs"], (registration.run,))
            epochs = {registration.epoch, *(epoch for (epoch,) in found)}
            return list(rows.read_writers(self.connection, sorted(epochs)))

    def boot_of(self, epoch: int) -> str:
        """Return the boot id of the writer of an epoch, or an empty text if there is none."""
        with self._reading():
            for (boot_id,) in self.connection.execute(QUERIES["boot"], (epoch,)):
                return str(boot_id)
        return ""

    def writers(self) -> list[Writer]:
        """Return all that have written here, in order."""
        with self._reading():
            return list(rows.read_writers(self.connection))

    def writer_at_work(self) -> str | None:
        """Return who holds the database as its writer just now, or None if nobody does."""
        return writer_at_work(self.path)

    def last_writer(self) -> Writer | None:
        """Return the writer that wrote last, or None if nobody did."""
        with self._reading():
            return rows.last_writer(self.connection)

    def export(self) -> Iterator[tuple[str, tuple[object, ...], tuple[str, ...]]]:
        """Yield every row of the history as (table, values, column names), in one read
        transaction."""
        with self._reading(), self._snapshot():
            for table, query in (("identity", "identity"), ("writer", "writers"), ("run", "runs")):
                columns = _COLUMNS[table]
                for row in self.connection.execute(QUERIES[query]):
                    yield table, row[: len(columns)], columns
            for (run,) in list(self.connection.execute(QUERIES["run_numbers"])):
                for step in self.connection.execute(QUERIES["steps"], (run,)):
                    yield "step", step, _COLUMNS["step"]
                for event in self.connection.execute(QUERIES["events"], (run,)):
                    yield "event", event, _COLUMNS["event"]
            for row in self.connection.execute(QUERIES["archived_by_number"]):
                yield "archived", row, _COLUMNS["archived"]
            for chain in self.connection.execute(QUERIES["chains"]):
                yield "chain", chain, _COLUMNS["chain"]

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """See one moment of the database from the first read to the last."""
        with self.connection:
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, UnicodeDecodeError) as error:
            raise reading_error(error) from error


_COLUMNS: dict[str, tuple[str, ...]] = {
    "identity": Identity._fields,
    "writer": Writer._fields,
    "run": Registration._fields,
    "step": ("run", "step", "id", "adapter", "contract", "arguments", "key"),
    "event": Event._fields,
    "archived": (
        *("run", "number", "plan", "run_state", "seq", "head", "file", "file_digest"),
        *("epoch", "writer", "archived_ns", "hash"),
    ),
    "chain": ("name", "count", "hash"),
}
