"""What an archive is that no row of a database refers to, as far as its content shows.

A process that dies between writing a file and letting its runs leave leaves such a file. But it can
also be the only copy of runs, where a database was put back from a backup; so nothing is said to be
superfluous before every run in it was found elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apsw

from agent_replay.errors import ReplayError
from agent_replay.store.archive.checking import ArchiveCheck
from agent_replay.store.archive.record import find_archived
from agent_replay.store.schema import read_identity
from agent_replay.store.sql import QUERIES


class Leftover(NamedTuple):
    """A file to which no row refers, and what it is, in words."""

    file: str
    says: str


def judged(
    connection: apsw.Connection, orphans: Iterable[str], *, at_work: bool
) -> Iterator[Leftover]:
    """Yield what each of these archives is, to which no row refers; they are gone through.

    `at_work` says that a writer holds the database: then a file may just be in the making.
    """
    for path in orphans:
        says = _in_words(connection, path)
        if at_work:
            says += ". A process holds the database: leave the file alone until that has ended"
        yield Leftover(path, says)


def _in_words(connection: apsw.Connection, path: str) -> str:
    check = ArchiveCheck(path, database=str(connection.filename))
    try:
        finding = next(check.findings(), None)
    except ReplayError as error:
        finding = str(error)
    if finding is not None:
        return (
            "it is not a whole archive, as after the end of a process that wrote it; keep it "
            f"unless each of its runs is in the database ({finding})"
        )
    identity = read_identity(connection)
    if check.identity != identity:
        return "it is an archive of another database: keep it for that one"
    unknown, left = [], 0
    for run, (registration, _) in check.runs.items():
        left += find_archived(connection, run) is not None
        if list(connection.execute(QUERIES["run_hash"], (run,))) != [(registration.hash,)]:
            unknown.append(registration.id)
    if unknown:
        return (
            f"it holds {len(unknown)} runs that the database does not have, as {unknown[0]}: keep "
            "it. The database may have been put back from an older copy"
        )
    if left:
        return (
            "its runs are in the database or in archives that it names: nothing is lost with it "
            "if verify finds those sound"
        )
    return (
        "its runs are still in the database: a process ended before they had left. The next "
        "archive of the same runs takes it"
    )
