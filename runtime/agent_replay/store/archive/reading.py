"""One run read out of its archive, and believed only if the whole file is the one on record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from agent_replay.errors import DamagedHistory
from agent_replay.events import Event, Registration
from agent_replay.follow import EventRow, fold
from agent_replay.history import RunHistory
from agent_replay.store import rows
from agent_replay.store.archive import place
from agent_replay.store.archive.content import Content
from agent_replay.store.archive.lines import Input, of_run
from agent_replay.store.archive.record import ArchivedRow, find_archived
from agent_replay.store.schema import read_identity


class Archived(NamedTuple):
    """A run that has left the database: its registration, and what its archive must say of it.

    `before` is the link before the registration, `namespace` that of the database.
    """

    registration: Registration
    row: ArchivedRow
    before: bytes
    namespace: str
    database: str

    @property
    def path(self) -> str:
        """Return where its archive is, or would have to be."""
        return place.found(self.database, self.row.file)

    def read(self, *, after: int = 0, limit: int = 0) -> ArchivedRun:
        """Return the run, each row checked against the one before it, and its events with a number
        above `after`, at most `limit` if that is not negative.

        Raises `ArchiveError` if the archive is not where it should be, and `DamagedHistory` if it
        is not the one that was written. The whole file is gone through.
        """
        path = self.path
        with place.opened(path, database=self.database) as descriptor:
            file = Input(descriptor, path)
            starts = of_run(self.registration.run)
            content = Content(line for line in file.lines() if line.startswith(starts))
            told = _told(self, content, after, limit)
            if file.digest != self.row.file_digest:
                raise DamagedHistory("it is not the file that was written: its SHA-256 is another")
        return told


class ArchivedRun(NamedTuple):
    """A run as its archive tells it, some of its events, and the epochs of those who wrote it."""

    history: RunHistory
    events: list[Event]
    epochs: list[int]


def archived_run(connection: apsw.Connection, registration: Registration) -> Archived:
    """Return what is to be known of an archived run to read it, without the database."""
    row = find_archived(connection, registration.run)
    assert row is not None, "the caller has looked"
    before = rows.link_before(connection, registration.run)
    namespace = read_identity(connection).namespace
    return Archived(registration, row, before, namespace, str(connection.filename))


def _told(archived: Archived, content: Content, after: int, limit: int) -> ArchivedRun:
    row, registration = archived.row, archived.registration
    if [found for found, _ in content.runs()] != [registration]:
        raise DamagedHistory(f"run {registration.run} ({registration.id}) is not in it")
    steps = rows.steps_of(registration.run, content.steps.of(registration.run))
    rows.check_steps(registration, steps)
    for problem in rows.key_problems(registration, steps, archived.namespace):
        raise DamagedHistory(problem)
    kept = _Kept(after, limit)
    events = kept.passing(content.events.of(registration.run))
    try:
        history = fold(registration, steps, events, previous=archived.before)
    except UnicodeEncodeError as error:
        raise DamagedHistory(f"a text in it cannot be UTF-8: {error}") from error
    end = history.head
    if content.head(registration.run) != end or not history.ended or registration.plan != row.plan:
        raise DamagedHistory(f"run {registration.run} ({registration.id}) has not ended in it")
    if (end.run_state, end.seq, end.hash) != (row.run_state, row.seq, row.head):
        raise DamagedHistory(
            f"run {registration.run} ({registration.id}): the database says that it ended otherwise"
        )
    content.check_end()
    return ArchivedRun(history, kept.events, sorted({registration.epoch, *kept.epochs}))


class _Kept:
    """What is kept of events that pass by."""

    def __init__(self, after: int, limit: int) -> None:
        self._after = after
        self._limit = limit
        self.events: list[Event] = []
        self.epochs: set[int] = set()

    def passing(self, found: Iterator[EventRow]) -> Iterator[EventRow]:
        """Yield the rows that are found."""
        for row in found:
            yield row  # and it has been found right when the next one is asked for
            event = Event._make(row)
            self.epochs.add(event.epoch)
            if event.seq > self._after and len(self.events) != self._limit:
                self.events.append(event)
