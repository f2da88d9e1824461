"""The histories in a report, checked as paths of the spec and of the decision function."""

from __future__ import annotations

from typing import Any

from models.conform import findings_in
from models.conform.rows import histories

_TABLES = {"writers": "writer", "runs": "run", "steps": "step", "events": "event"}
_BLOBS = {"writer", "hash"}


def no_paths(database: dict[str, Any]) -> list[str]:
    """Return what in a history, as a report has it, is no path."""
    tables = {
        name: [
            {
                column: bytes.fromhex(value) if column in _BLOBS else value
                for column, value in row.items()
            }
            for row in database[table]
        ]
        for table, name in _TABLES.items()
    }
    found = findings_in(histories({**tables, "identity": [database["identity"]]}))
    return [finding.text() for finding in found]
