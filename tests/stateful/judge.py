"""Judges of a history file that are not the runtime: each yields what cannot be.

`crashtests.independent` replays the rows through the spec's tables and computes the chains anew.
`models.conform` checks each row as a step of the spec's product, and as one
that the decision function can have asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crashtests.evidence import database_of
from crashtests.independent import history
from crashtests.independent.lifecycle import Lifecycle
from models import conform

Database = Mapping[str, Any]

DATABASE = "runs.db"


@cache
def lifecycle() -> Lifecycle:
    """Return the lifecycles as the spec says them."""
    return Lifecycle()


def rows_in(folder: Path) -> Database:
    """Return all rows of the history in a folder, read beside its writer."""
    database = database_of(folder)
    assert database is not None, f"there is no history in {folder}"
    return database


def complaints(path: Path, database: Database) -> Iterator[str]:
    """Yield what is no path of the model in a history; `database` has its rows."""
    yield from history.complaints(database, lifecycle())
    yield from (finding.text() for finding in conform.findings(path))
