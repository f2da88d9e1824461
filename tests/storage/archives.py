"""Databases with archived runs, for the tests of archives."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import apsw

from agent_replay import Runtime
from agent_replay.store.archive.record import ArchivedRow, archived_by_number
from tests.outside import Ledger, ManualClock
from tests.storage.histories import copy_of, every_kind, open_runtime

ENDED = (
    *("done", "died", "refused", "looked-up", "absent", "found", "never", "closed"),
    *("cancelled", "cancelling", "gave-up", "exhausted", "exhausted-later", "granted"),
)
"""Runs of `every_kind` that may have ended; those that did are archived by `archived`."""
FIRST = ("done", "refused")
"""Runs that have an archive for themselves."""


def opened(path: Path, ledger: Ledger | None = None) -> Runtime:
    """Return a runtime on a database, with tools whose calls the ledger counts."""
    return open_runtime(path, ledger or Ledger(), ManualClock())


def archived(path: Path) -> None:
    """Make a database with every kind of event, and archive what has ended into two files."""
    every_kind(path)
    with opened(path) as runtime:
        runtime.archive(FIRST)
        runtime.archive()


def copy_with_archives(folder: Path) -> Path:
    """Return a fresh database whose finished runs are archived, with the archives."""
    path = copy_of(every_kind, folder)
    with opened(path) as runtime:
        runtime.archive(FIRST)
        runtime.archive()
    return path


def archives_of(path: Path) -> list[Path]:
    """Return the archives beside a database."""
    return sorted(Path(f"{path}.archive").glob("*"))


def rows_of_archived(path: Path) -> list[ArchivedRow]:
    """Return the rows of `archived`."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return list(archived_by_number(connection))


def taken_away(path: Path) -> Path:
    """Move the archives of a database elsewhere, and return where they are."""
    folder = Path(f"{path}.archive")
    return Path(shutil.move(folder, folder.with_name("elsewhere")))
