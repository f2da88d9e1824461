"""What a database says of its archived runs, checked without looking into an archive."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

import apsw

from agent_replay.events import RUN_STATES, Registration
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.store.archive.record import (
    ArchivedRow,
    archived_by_number,
    archived_by_run,
    archived_link,
)
from agent_replay.store.sql import QUERIES


class Inventory:
    """The archived runs, for runs that are asked for in order."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows = archived_by_run(connection)
        self._next = next(self._rows, None)

    def take(self, run: int) -> ArchivedRow | None:
        """Return where a run is archived, or None if it is not."""
        while self._next is not None and self._next.run < run:
            self._next = next(self._rows, None)  # it belongs to no run
        if self._next is None or self._next.run != run:
            return None
        found, self._next = self._next, next(self._rows, None)
        return found

    def findings(self, registration: Registration, row: ArchivedRow) -> Iterator[str]:
        """Yield what is wrong with an archived run: it has ended, and no row of it is left."""
        place = f"run {registration.run} ({registration.id})"
        if row.plan != registration.plan:
            yield f"{place}: it is archived with another plan than it was registered with"
        if RUN_STATES.get(row.run_state) not in TERMINAL or row.seq < 1:
            yield f"{place}: it is archived, and has not ended ({row.run_state}, seq {row.seq})"
        asked = (registration.run,) * 3
        for table, count in self._connection.execute(QUERIES["rows_left"], asked):
            if count:
                yield f"{place}: it is archived, and {count} rows of it are left in {table}"


def chain_findings(
    connection: apsw.Connection, link: bytes, writers: Mapping[int, bytes]
) -> Generator[str, None, tuple[int, bytes]]:
    """Yield what is wrong with the chain of archived runs; return its length and end."""
    count = 0
    for row in archived_by_number(connection):
        count += 1
        if row.number != count:
            yield f"archived: number {count} is missing before number {row.number}"
            count = row.number
        if archived_link(link, row) != row.hash:
            yield f"run {row.run} (archived as number {row.number}): the row does not fit its hash"
        if writers.get(row.epoch) != row.writer:
            yield (
                f"run {row.run} (archived as number {row.number}): archived by a writer that epoch "
                f"{row.epoch} does not name"
            )
        link = row.hash
    return count, link
