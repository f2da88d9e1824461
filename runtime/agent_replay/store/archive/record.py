"""The rows of `archived`: which runs have left the database, and for which file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apsw

from agent_replay.chain import link
from agent_replay.store import rows
from agent_replay.store.sql import QUERIES


class ArchivedRow(NamedTuple):
    """A run that is in an archive, column by column as it is stored.

    `number` counts the archived runs; `plan`, `run_state`, `seq` and `head` say what the run came
    to. `file` is a path from the folder of the database, or an absolute one; `file_digest` is the
    SHA-256 of that file.
    """

    run: int
    number: int
    plan: str
    run_state: str
    seq: int
    head: bytes
    file: str
    file_digest: bytes
    epoch: int
    writer: bytes
    archived_ns: int
    hash: bytes


_KINDS = (int, int, str, str, int, bytes, str, bytes, int, bytes, int, bytes)


def archived_link(previous: bytes, row: ArchivedRow) -> bytes:
    """Return the link of a row in the chain of archived runs; `hash` of the row is ignored."""
    return link(previous, "archived", row[:-1])


def find_archived(connection: apsw.Connection, run: int) -> ArchivedRow | None:
    """Return where a run is archived, or None if it is not."""
    for row in _typed(connection.execute(QUERIES["archived"], (run,))):
        return row
    return None


def archived_by_number(connection: apsw.Connection) -> Iterator[ArchivedRow]:
    """Yield all rows in the order in which the runs left, which is that of their chain."""
    return _typed(connection.execute(QUERIES["archived_by_number"]))


def archived_by_run(connection: apsw.Connection) -> Iterator[ArchivedRow]:
    """Yield all rows in the order in which the runs were registered."""
    return _typed(connection.execute(QUERIES["archived_by_run"]))


def _typed(found: Iterable[rows.Row]) -> Iterator[ArchivedRow]:
    return map(ArchivedRow._make, rows.typed("archived: run", found, _KINDS))
