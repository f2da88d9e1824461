"""The store itself: what it says after an error, what a reopen finds, and its statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agent_replay.errors import Fenced, ReplayError, StorageError
from agent_replay.store import sql
from agent_replay.store.database import Database
from agent_replay.store.writer import Store
from tests.outside import Ledger, ManualClock
from tests.storage.histories import PLANS, open_runtime


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database that an earlier writer has written to."""
    path = tmp_path / "runs.db"
    with open_runtime(path, Ledger(), ManualClock()) as runtime:
        runtime.run("earlier", PLANS["refused"])
    return path


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database(path, clock=ManualClock(), log_bytes=0) as opened:
        yield opened


class Failing:
    """A connection that raises at some statements, or when it is closed."""

    def __init__(self, real: apsw.Connection, *statements: str) -> None:
        self.real = real
        self.statements = statements
        self.closed: list[dict[str, object]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def execute(self, statement: str, *arguments: object) -> object:
        if statement in self.statements:
            raise apsw.IOError(f"disk I/O error at {statement}")
        return self.real.execute(statement, *arguments)  # type: ignore[arg-type]

    def close(self, **how: object) -> None:
        self.closed.append(how)
        raise apsw.IOError("disk I/O error at the close")


def failing(store: Store, *statements: str) -> Failing:
    found = Failing(store.connection, *statements)
    store.connection = found  # type: ignore[assignment]
    return found


def write_nothing() -> None:
    """Stand for the rows of a run."""


@pytest.mark.fault("B04")
@pytest.mark.parametrize("ahead", [0, 1], ids=["the same epoch", "the next epoch"])
def test_who_was_taken_over_while_its_storage_failed_is_told_so_by_the_reopen(
    path: Path, database: Database, ahead: int
) -> None:
    assert database.store.epoch == 2
    other = apsw.Connection(str(path))
    other.execute(
        "insert into writers select epoch + 1 + ?, zeroblob(16), spec, boot_id, opened_ns, 77, "
        "host, hash from writers",
        (0,),
    )
    for _ in range(ahead):
        other.execute(
            "insert into writers select epoch + 1, zeroblob(16), spec, boot_id, opened_ns, 77, "
            "host, hash from writers order by epoch desc limit 1"
        )
    other.close()
    told = rf"another writer \(epoch {2 + ahead}, process 77\) has taken the database over$"
    with pytest.raises(Fenced, match=told):
        database.reopen()


def test_a_writer_whose_first_commit_was_lost_announces_itself_after_the_reopen(
    path: Path, database: Database
) -> None:
    failing(database.store, "commit")
    with pytest.raises(StorageError):
        database.store._commits.commit(write_nothing)
    database.store.connection = database.store.connection.real  # type: ignore[attr-defined]
    database.reopen()
    database.store._commits.commit(write_nothing)
    ((epochs,),) = database.store.connection.execute("select group_concat(epoch) from writers")
    assert epochs == "1,2"


def test_a_connection_that_was_abandoned_is_closed_by_force_and_writes_no_more(
    database: Database,
) -> None:
    connection = failing(database.store)
    database.store.abandon_connection()
    assert connection.closed == [{"force": True}]
    assert database.store.failed
    with pytest.raises(StorageError, match="error: the connection was closed; reopen it"):
        database.store.check_working()
    database.store.connection = connection.real


def test_the_first_error_is_the_one_that_a_store_goes_on_telling(database: Database) -> None:
    connection = failing(database.store, "commit")
    with pytest.raises(StorageError, match="at commit"):
        database.store._commits.commit(write_nothing)
    database.store.abandon_connection()
    with pytest.raises(StorageError, match=r"disk I/O error at commit.*; reopen it"):
        database.store.check_working()
    database.store.connection = connection.real


def test_a_rollback_that_fails_stops_the_store(database: Database) -> None:
    """A refusal is about one run, but what was written of it may still be in the transaction."""

    def refused() -> None:
        raise ReplayError("not this one")

    connection = failing(database.store, sql.QUERIES["rollback"])
    with pytest.raises(ReplayError, match="not this one"):
        database.store._commits.commit(refused)
    assert database.store.failed
    with pytest.raises(StorageError, match="disk I/O error at rollback"):
        database.store.check_working()
    database.store.connection = connection.real


def test_statements_are_found_by_the_names_before_them() -> None:
    text = "-- a comment\n-- name: first\nselect 1,\n  2\n\n-- name: second \nselect 3\n"
    assert sql._blocks(text) == {"first": "select 1,\n  2", "second": "select 3"}
    assert sql._blocks(sql.text_of("queries.sql")) == sql.QUERIES
    assert sql.QUERIES["rollback"] == "rollback"
