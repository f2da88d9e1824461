"""What files, locks and connections say when they refuse: the thing, what was found, what to do."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from agent_replay import (
    DatabaseLocked,
    Event,
    Fenced,
    IllegalMove,
    InvalidInput,
    ReplayError,
    Runtime,
    StorageError,
    UnsafeSQLite,
    UnusableDatabase,
)
from agent_replay.store import connection as connections
from agent_replay.store import files, holder, inserts
from agent_replay.store.commits import Commits
from agent_replay.store.connection import APPLICATION_ID, SCHEMA_VERSION, connect_writer, gate
from agent_replay.store.database import Database
from agent_replay.store.lock import WriterLock
from tests.outside import Ledger, ManualClock, plan_of, tools
from tests.storage.actors import fill
from tests.storage.histories import every_head, forger

USER = os.geteuid()


def said(act: Callable[[], object], kind: type[ReplayError] = UnusableDatabase) -> str:
    with pytest.raises(ReplayError) as caught:
        act()
    assert type(caught.value) is kind
    return str(caught.value)


def raises(error: OSError) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Return where a database is that nobody has open."""
    path = files.check_path(tmp_path / "runs.db")
    assert files.create(path, fill)
    return path


# --- which file -------------------------------------------------------------------------------


def test_a_path_that_cannot_hold_a_history(tmp_path: Path, place: str) -> None:
    assert said(lambda: files.check_path(place, platform="win32")) == (
        "a history needs locks that Windows does not have; run agent-replay on Linux or macOS "
        "(on Windows, in WSL)"
    )
    for name in (f"{tmp_path}/", f"{tmp_path}/a\0b"):
        assert said(lambda name=name: files.check_path(name), InvalidInput) == (  # type: ignore[misc]
            f"{name!r} does not name a file; give the path of a database"
        )
    odd = f"{tmp_path}/\udcff.db"
    assert said(lambda: files.check_path(odd), InvalidInput) == (
        f"{odd!r} is not UTF-8, and SQLite opens no other names; rename the file or directory"
    )


def test_a_file_that_is_no_plain_one(tmp_path: Path, place: str) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(place)
    assert said(lambda: files.check_path(link)) == (
        f"{link}: is a symbolic link, to {place}; the log is found by the name of the database, so "
        "name the file itself (links to directories are fine)"
    )
    (tmp_path / "folder").mkdir(mode=0o700)
    assert said(lambda: files.check_path(tmp_path / "folder")) == (
        f"{tmp_path}/folder: is not a plain file (drwx------); name another file"
    )
    os.link(place, tmp_path / "second.db")
    assert said(lambda: files.check_path(place)) == (
        f"{place}: has 2 names (hard links); the log is found by the name of the database, so "
        "remove the other names"
    )


def test_a_file_that_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    assert said(lambda: files.check_path(path)) == (
        f"{path}: is empty; name another file, or move this one away"
    )
    path.write_bytes(b"SQLite format 3\0" + bytes(55))
    assert said(lambda: files.check_path(path)) == (
        f"{path}: is not an SQLite database; name another file, or move this one away"
    )
    path.write_bytes(b"SQLite format 2\0" + bytes(84))
    assert "is not an SQLite database" in said(lambda: files.check_path(path))
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("create table theirs (a)")
    other.execute("pragma application_id=77")
    other.commit()
    assert said(lambda: files.check_path(path)) == (
        f"{path}: this SQLite database belongs to another program (application id 77, not "
        f"{APPLICATION_ID}); name another file"
    )
    other.execute(f"pragma application_id={APPLICATION_ID}")
    other.commit()
    other.close()
    assert said(lambda: files.check_path(path)) == (
        f"{path}: another program has taken this history out of WAL mode; put it back: sqlite3 "
        f"'{path}' 'PRAGMA journal_mode=wal'"
    )


def test_what_lies_beside_a_database(place: str) -> None:
    Path(f"{place}-journal").touch()
    assert said(lambda: files.check_path(place)) == (
        f"{place}-journal: this rollback journal is another program's, since a history has none; "
        "find out which program writes to the database, and let it finish"
    )


def test_a_file_that_cannot_be_read(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "borrow", raises(BROKEN))
    assert said(lambda: files.check_path(place)) == (
        f"{place}: cannot be read by user {USER}: Input/output error; check the path and who may "
        "use it"
    )


# --- creating ---------------------------------------------------------------------------------


def test_a_database_that_cannot_be_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/runs.db"
    monkeypatch.setattr(os, "rename", raises(FULL))
    assert said(lambda: files.create(path, fill), StorageError) == (
        f"{path}: cannot be created by user {USER}: No space left on device; check who may write "
        f"to {tmp_path} and how much space it has"
    )
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    missing = f"{tmp_path}/none/runs.db"
    assert said(lambda: files.create(missing, fill)) == (
        f"{missing}: the directory {tmp_path}/none does not exist; make it first: mkdir -p -m 700 "
        f"'{tmp_path}/none'"
    )
    monkeypatch.setattr(holder, "open_shielded", raises(BROKEN))
    assert said(lambda: files.create(path, fill)) == (
        f"{tmp_path}: cannot be opened by user {USER}: Input/output error; check the path and who "
        "may use it"
    )


def test_a_directory_that_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CREATOR_SECONDS", 0.02)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert said(lambda: files.create(f"{tmp_path}/runs.db", fill), DatabaseLocked) == (
        f"{tmp_path}: another process has locked it for 0.02 seconds; find it with `fuser -v "
        f"'{tmp_path}'`, and try again when it is done"
    )
    os.close(other)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_what_is_left_of_a_database_that_is_gone(tmp_path: Path, suffix: str) -> None:
    path = f"{tmp_path}/runs.db"
    Path(path + suffix).touch()
    assert said(lambda: files.create(path, fill)) == (
        f"{path}: the database is gone, and {path}{suffix} of it is still here, which may hold the "
        "last events that were acknowledged; put the database back beside it, or move it away to "
        "begin a new history"
    )
    assert said(lambda: files._check_whole(path), StorageError) == (
        f"{path}: SQLite left {suffix} beside it when it was closed; try again, and report it if "
        "it comes back"
    )


# --- making durable ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "act"),
    [
        (errno.ENOSPC, "free space on its volume"),
        (errno.EDQUOT, "free space on its volume"),
        (errno.EFBIG, "free space on its volume"),
        (errno.EIO, "look into the system's log for the disk"),
    ],
)
def test_a_log_that_cannot_be_synced_or_grown(
    place: str, monkeypatch: pytest.MonkeyPatch, code: int, act: str
) -> None:
    Path(f"{place}-wal").touch()
    monkeypatch.setattr(os, "fdatasync", raises(OSError(code, "it is so")))
    assert said(lambda: files.sync_log(place), StorageError) == (
        f"{place}-wal: cannot be synced: it is so; {act}, then open the store again"
    )
    assert said(lambda: files.grow_log(place, 1000), StorageError) == (
        f"{place}-wal: cannot be grown: it is so; {act}, then open the store again"
    )


def test_a_directory_that_cannot_be_synced(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", raises(BROKEN))
    assert said(lambda: files.sync_directory(place), StorageError) == (
        f"{os.path.dirname(place)}: cannot be synced: Input/output error; look into the log of the "
        "system for the disk, then open the store again"
    )


# --- the lock ---------------------------------------------------------------------------------


def test_a_lock_that_this_process_has(place: str) -> None:
    held = WriterLock.acquire(place)
    assert said(lambda: WriterLock.acquire(place), DatabaseLocked) == (
        f"{place}: this process is its writer already; use the Runtime that has it open, or close "
        "that first (one that was dropped unclosed holds it until the process ends)"
    )
    held.release()
    assert said(held.confirm, DatabaseLocked) == (
        f"{place}: this process no longer holds it; open it anew"
    )


def test_a_lock_on_something_else(tmp_path: Path, place: str) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(place)
    assert said(lambda: WriterLock.acquire(link)) == (
        f"{link}: is a symbolic link; name the file that it leads to"
    )
    os.link(place, tmp_path / "second.db")
    assert said(lambda: WriterLock.acquire(place)) == (
        f"{place}: is not a plain file under one name only (-rw-------, 2 names); the log is found "
        "by the name of the database"
    )
    assert not holder.is_claimed(holder.identity_of(place))


def test_a_file_that_was_replaced_again_and_again(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, "is_still", lambda _place, _identity: False)
    assert said(lambda: WriterLock.acquire(place)) == (
        f"{place}: the file was replaced 100 times while it was being locked; find out which "
        "program does that"
    )
    assert not holder.is_claimed(holder.identity_of(place))


def test_a_file_that_is_gone_under_its_writer(place: str) -> None:
    held = WriterLock.acquire(place)
    os.rename(place, f"{place}.old")
    assert said(held.confirm) == (
        f"{place}: the file that this process writes to is no longer there, or another was put in "
        "its place; stop, and put it back before anything else is written"
    )
    held.release()


def test_a_wal_index_that_cannot_be_locked(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = WriterLock.acquire(place)
    opened = connect_writer(place)
    opened.execute("select * from rows")
    with monkeypatch.context() as patched:
        patched.setattr(holder, "borrow", raises(BROKEN))
        assert said(held.hold_shared_memory, StorageError) == (
            f"{place}-shm: cannot be locked: Input/output error; close the store and open it again"
        )
        patched.undo()
        patched.setattr(holder, "set_lock", lambda *_, **__: False)
        assert said(held.hold_shared_memory, DatabaseLocked) == (
            f"{place}-shm: another program is rebuilding it; open the store again"
        )
    opened.close()
    held.release()


# --- connections and rows ---------------------------------------------------------------------


def test_a_version_of_sqlite_that_is_not_safe() -> None:
    act = "install an apsw that carries 3.51.3 or later: pip install --upgrade 'apsw>=3.53'"
    kind = UnsafeSQLite
    assert said(lambda: gate("3.36.0"), kind) == (
        f"SQLite 3.36.0 has no STRICT tables, which came with 3.37.0; {act}"
    )
    assert said(lambda: gate("3.51.2"), kind) == (
        "SQLite 3.51.2 can lose acknowledged commits in WAL mode (the WAL-reset fault of 3.7.0 to "
        f"3.51.2, mended in 3.44.6 and 3.50.7); {act}"
    )
    gate("3.51.3.1")


def test_a_header_that_says_something_else(place: str) -> None:
    other = apsw.Connection(place)
    other.pragma("user_version", 9)
    assert said(lambda: connect_writer(place)) == (
        f"{place}: its tables have version 9, and this program knows version {SCHEMA_VERSION}; use "
        "the release that wrote it"
    )
    other.pragma("application_id", 77)
    assert said(lambda: connect_writer(place)) == (
        f"{place}: this SQLite database belongs to another program (application id 77, not "
        f"{APPLICATION_ID}); name another file, it was left as it is"
    )
    other.pragma("application_id", APPLICATION_ID)
    other.pragma("user_version", SCHEMA_VERSION)
    other.pragma("journal_mode", "delete")
    other.close()
    assert said(lambda: connect_writer(place)) == (
        f"{place}: another program has taken it out of WAL mode (found 'delete'); put it back: "
        "sqlite3 FILE 'PRAGMA journal_mode=wal'"
    )


def test_a_file_that_sqlite_does_not_open(tmp_path: Path) -> None:
    missing = f"{tmp_path}/none.db"
    assert said(lambda: connect_writer(missing)) == (
        f"{missing}: there is no database here; check the path"
    )
    notes = tmp_path / "notes.txt"
    notes.write_text("To do: buy milk\n" * 500)
    assert said(lambda: connect_writer(str(notes))) == (
        f"{notes}: this is not an SQLite database; name another file, it was left as it is"
    )


def test_a_row_that_a_strange_trigger_swallows(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        connection = runtime._store.connection
        connection.execute(
            "create temp trigger swallow before insert on events begin select raise(ignore); end"
        )
        told = said(lambda: runtime.run("r", plan_of(("a", "dark"))), IllegalMove)
        assert told == (
            "the database did not take run 1, seq 1; run verify on it, which names what was added "
            "to its schema"
        )
        several = [inserts.Rows(connection, [row] * 8) for row in _rows_of_another(tmp_path)]
        assert said(lambda: inserts.carry_out(connection, several), IllegalMove) == (
            "the database did not take all rows of several runs"
        )


def _rows_of_another(folder: Path) -> list[Event]:
    other = folder / "other.db"
    every_head(other)
    with forger(other) as connection:
        return [Event._make(row) for row in connection.execute("select * from events limit 2")]


def test_a_refusal_by_the_database_says_which_kind_it_is() -> None:
    told = connections.refusal(apsw.ConstraintError("another writer has taken over"))
    assert (type(told), str(told)) == (
        Fenced, "the database refuses this writer: another writer has taken over"
    )  # fmt: skip
    told = connections.refusal(apsw.ConstraintError("it is of another epoch"))
    assert type(told) is Fenced
    told = connections.refusal(apsw.ConstraintError("no such move"))
    assert (type(told), str(told)) == (
        IllegalMove, "the database refuses the row: no such move"
    )  # fmt: skip


# --- the whole --------------------------------------------------------------------------------


def test_a_namespace_that_cannot_be_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def opened(namespace: str) -> Database:
        return Database(path, clock=ManualClock(), namespace=namespace, log_bytes=0)

    for wrong in ("", "x" * 201, "a\nb"):
        assert said(lambda wrong=wrong: opened(wrong), InvalidInput) == (  # type: ignore[misc]
            f"namespace: use 1 to 200 printable characters, not {wrong!a}"
        )
    assert not path.exists()
    opened("x" * 200).close()
    assert said(lambda: opened("y"), InvalidInput) == (
        f"{path} has the namespace {'x' * 200!r}, not 'y'; leave it out, or open another file"
    )


def test_a_log_that_is_gone_under_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Database(path, clock=ManualClock(), log_bytes=0) as database:
        database.store.check_files()
        os.rename(f"{path}-wal", f"{path}-old")
        assert said(database.store.check_files) == (
            f"{path}-wal: the log that this process writes to is no longer there, or another was "
            "put in its place; stop, and put it back before anything else is written"
        )
        os.rename(f"{path}-old", f"{path}-wal")


def test_a_thread_that_writes_already_is_told_what_to_do() -> None:
    def transaction(writes: object, done: Callable[[], None], *, once_more: bool = False) -> None:
        commits.commit(lambda: None)

    commits = Commits(threading.RLock(), transaction)
    assert said(lambda: commits.commit(lambda: None), InvalidInput) == (
        "this thread is at work in the store just now: a signal handler cannot write; let it set a "
        "flag, and act on that later"
    )
