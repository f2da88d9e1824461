"""Judges of a history file that are not the runtime: each yields what cannot be.

`crashtests.independent` replays the rows through the spec's tables and computes the chains anew.
`models.conform`, where it is there, checks each row as a step of the spec's product, and as one
that the decision function can have asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from crashtests.evidence import database_of
from crashtests.independent import history
from crashtests.independent.lifecycle import Lifecycle

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
    conform = conformance()
    if conform is not None:
        yield from (finding.text() for finding in conform.findings(path))


@cache
def conformance() -> ModuleType | None:
    """Return `models.conform`, or None where the checkout has no models."""
    if find_spec("models") is None or find_spec("models.conform") is None:
        return None
    return import_module("models.conform")
