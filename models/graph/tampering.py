"""Statements that change, replace or remove what is in a database, all of which it must refuse.

For each table: every row changed, every row removed, every row inserted over itself, and one more
row beside it; and writers and runs that come out of turn. The columns are read from the shipped
schema, so that a table or a column that is added is offered too.
"""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.store.connection import connect_memory
from agent_replay.store.sql import text_of


def tables() -> dict[str, list[str]]:
    """Return the columns of each table of the shipped schema."""
    connection = connect_memory()
    try:
        connection.execute(text_of("tables.sql"))
        names = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_schema where type = 'table' order by name"
            )
        ]
        return {
            name: [row[1] for row in connection.execute(f"pragma table_info({name})")]
            for name in names
        }
    finally:
        connection.close()


def _statements() -> Iterator[str]:
    columns = tables()
    for table in columns:
        yield f"delete from {table}"
        for column in columns[table]:
            yield f"update {table} set {column} = {column}"
        yield f"insert or replace into {table} select * from {table}"
        # A row with another key and all else as it is in a row that is there.
        key, *rest = columns[table]
        if table != "writers":  # a writer may come
            yield (
                f"insert or replace into {table} select max({key}) + 1, {', '.join(rest)} "
                f"from {table}"
            )
    yield _with("writers", columns["writers"], epoch="epoch + 2")
    yield _with("writers", columns["writers"], epoch="epoch + 1", spec="'another'")
    yield _with("runs", columns["runs"], run="run + 1", id="'another'", epoch="epoch - 1")
    yield _with("runs", columns["runs"], run="run + 1", id="'another'", writer="zeroblob(16)")
    yield _with("runs", columns["runs"], run="run + 2", id="'another'")


def _with(table: str, columns: list[str], **others: str) -> str:
    """Return a statement that inserts the last row of a table again, with other values in some
    columns."""
    key = columns[0]
    values = ", ".join(others.get(column, column) for column in columns)
    return f"insert into {table} select {values} from {table} order by {key} desc limit 1"


STATEMENTS = tuple(_statements())
