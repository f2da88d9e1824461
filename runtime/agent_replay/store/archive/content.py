"""The rows of an archive in the order in which they must come, as the values of `events`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent_replay.errors import ArchiveError, DamagedHistory
from agent_replay.events import Head, Registration, Writer
from agent_replay.store import rows
from agent_replay.store.archive.lines import FORMAT, Row, decode
from agent_replay.store.schema import Identity

_WRITER = (int, bytes, str, str, int, int, str, bytes, bytes)
_REGISTRATION = (int, str, str, int, int, str, str, int, bytes, int, int, bytes, bytes)
_HEAD = (int, int, bytes, str, int, str, int, int, int)
_IDENTITY = (str, int, str)


class Content:
    """Rows that are taken one after the other, from lines that are read as they are needed.

    Whoever takes a row of a kind that does not come next gets none, or a `DamagedHistory`.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._rows = map(decode, lines)
        self._next: tuple[str, Row] | None = None
        self._advance()
        self.steps = RowsOfRuns(self, "step")
        self.events = RowsOfRuns(self, "event")

    def _advance(self) -> None:
        self._next = next(self._rows, None)

    def take(self, table: str, run: int | None = None) -> Row | None:
        """Return the next row if it is of this table, and of this run."""
        if self._next is None or self._next[0] != table:
            return None
        row = self._next[1]
        if run is not None and row[0] != run:
            return None
        self._advance()
        return row

    def check_format(self) -> None:
        """Take the first line; raise `ArchiveError` if this program cannot read such archives."""
        row = self.take("archive")
        if row is None:
            raise DamagedHistory("its first line is not that of an archive")
        if row != (FORMAT,):
            raise ArchiveError(
                f"the archive has format {row[0]!a}, and this program reads {FORMAT}; use the "
                "release that wrote it"
            )

    def identity(self) -> Identity:
        """Return the identity of the database whose runs these are."""
        for row in self._typed("identity", _IDENTITY):
            return Identity._make(row)
        raise DamagedHistory("the identity of its database is missing")

    def writers(self) -> Iterator[tuple[Writer, bytes]]:
        """Yield the writers of the rows, each with the link on which its own hangs."""
        for row in self._typed("writer", _WRITER):
            yield Writer._make(row[:-1]), row[-1]

    def runs(self) -> Iterator[tuple[Registration, bytes]]:
        """Yield the registrations, each with the link before it; the rows of a run come next."""
        for row in self._typed("run", _REGISTRATION):
            yield Registration._make(row[:-1]), row[-1]

    def head(self, run: int) -> Head | None:
        """Return where a run ended, once its events were taken."""
        row = self.take("head", run)
        for typed in rows.typed("head of run", [] if row is None else [row], _HEAD):
            return Head._make(typed)
        return None

    def _typed(self, table: str, kinds: tuple[type, ...]) -> Iterator[Row]:
        while (row := self.take(table)) is not None:
            yield from rows.typed(table, [row], kinds)

    def check_end(self) -> None:
        """Raise `DamagedHistory` if there is a row left."""
        if self._next is not None:
            raise DamagedHistory(f"a row of {self._next[0]} is not in its place")


class RowsOfRuns:
    """The rows of a table, run by run, as they come."""

    def __init__(self, content: Content, table: str) -> None:
        self._content = content
        self._table = table

    def of(self, run: int) -> Iterator[Row]:
        """Yield the rows of a run that come next."""
        while (row := self._content.take(self._table, run)) is not None:
            yield row
