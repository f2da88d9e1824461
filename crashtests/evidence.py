"""What is read, after the processes are dead, by somebody who was not there: history and ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_replay.store.reader import Reader
from crashtests.subjects import LEDGER
from crashtests.worker import DATABASE

Rows = dict[str, Any]

_TABLES = {
    "writer": "writers",
    "run": "runs",
    "step": "steps",
    "event": "events",
    "chain": "chains",
}


def database_of(folder: Path) -> Rows | None:
    """Return all rows of the history, whole; None where there is none (the baseline has none)."""
    if not (folder / DATABASE).exists():
        return None
    rows: Rows = {table: [] for table in _TABLES.values()}
    with Reader(folder / DATABASE) as reader:
        for table, values, columns in reader.export():
            row = {name: _plain(value) for name, value in zip(columns, values, strict=True)}
            if table in _TABLES:
                rows[_TABLES[table]].append(row)
            else:
                rows[table] = row
    return rows


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def ledger_of(folder: Path) -> Rows:
    """Return the rows of the effect store; it is read with SQLite alone, and the runtime never
    opens it.
    """
    path = folder / LEDGER
    if not path.exists():
        return {"effects": [], "receipts": []}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [dict(row) for row in connection.execute(f"select * from {table} order by 1")]  # noqa: S608
            for table in ("effects", "receipts")
        }
