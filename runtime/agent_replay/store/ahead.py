"""The rows of many short runs, read with few statements.

For a run of ten events the statement that finds them costs as much as the rows. What is read ahead
is bounded in rows and in bytes. Where it can't be read as it should be, the runs are asked for one
by one, so that what is wrong is found where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

ROWS_MAX = 250
BYTES_MAX = 1024 * 1024
RUNS_ALONE = 50
"""Runs that are asked for one by one after reading ahead was of no use."""
_NO_END = 2**63


class Ahead:
    """The rows of a table, run by run, for runs that are asked for in order.

    `ahead` is a statement for the rows from a run on, and at most so many; `alone` one for those of
    a run. Column `text` of a row is the one that can be long.
    """

    def __init__(self, connection: apsw.Connection, *, ahead: str, alone: str, text: int) -> None:
        self._connection = connection
        self._ahead = ahead
        self._alone = alone
        self._text = text
        self._rows: dict[int, list[tuple[Any, ...]]] = {}
        self._known = range(0)
        """The runs whose rows are all in `_rows`."""
        self._alone_until = 0

    def of(self, run: int) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a run."""
        if run not in self._known and run >= self._alone_until:
            self._read(run)
        if run not in self._known:
            return iter(self._connection.execute(self._alone, (run,)))
        return iter(self._rows.pop(run, ()))

    def _read(self, first: int) -> None:
        rows: dict[int, list[tuple[Any, ...]]] = {}
        end, size, count = _NO_END, 0, 0
        try:
            for row in self._connection.execute(self._ahead, (first, ROWS_MAX)):
                rows.setdefault(row[0], []).append(row)
                count += 1
                size += len(row[self._text])
                if size > BYTES_MAX or count == ROWS_MAX:
                    end = row[0] + 0  # of this run there may be more
                    break
        except (apsw.Error, UnicodeDecodeError, TypeError):
            end = first
        self._rows, self._known = rows, range(first, int(end))
        if end <= first:
            self._rows, self._alone_until = {}, first + RUNS_ALONE
