"""What is read, after the processes are dead, by somebody who was not there: history and ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from agent_replay.store.reader import Reader
from crashtests.child import Fooled
from crashtests.subjects import DATABASE, LEDGER

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


def rows_of(path: Path) -> Rows:
    """Return all rows of a history, read with the SQLite that Python brings along, and alone.

    For a copy that nobody else has open: the close may move the log into the database. Raises
    `Fooled` if it cannot be read.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            return _tables(connection)
    except sqlite3.Error as error:
        raise Fooled(f"{path}: what a process left cannot be read: {error}") from error


def _tables(connection: sqlite3.Connection) -> Rows:
    (identity,) = _table(connection, "identity")
    del identity["one"]  # the number of the only row, which no export has and no chain covers
    rows: Rows = {"identity": identity}
    for name in ("writers", "runs", "chains"):
        rows[name] = _table(connection, f"{name} order by 1")
    for name in ("steps", "events"):
        rows[name] = _table(connection, f"{name} order by 1, 2")
    return rows


def _table(connection: sqlite3.Connection, source: str) -> list[Rows]:
    found = connection.execute(f"select * from {source}")  # noqa: S608 - our own words
    return [{name: _plain(row[name]) for name in row.keys()} for row in found]  # noqa: SIM118


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
