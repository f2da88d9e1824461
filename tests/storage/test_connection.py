"""Every connection has every setting, and every error of SQLite has one of ours."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from agent_replay.errors import (
    DamagedHistory,
    DatabaseLocked,
    StorageError,
    UnsafeSQLite,
    UnusableDatabase,
)
from agent_replay.store import connection, files
from agent_replay.store.connection import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    connect_memory,
    connect_new,
    connect_reader,
    connect_writer,
    gate,
    storage_error,
)
from tests.storage.actors import Failed, children, fill

ON_EVERY_CONNECTION = {
    "synchronous": 2,
    "wal_autocheckpoint": 0,
    "foreign_keys": 1,
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "busy_timeout": 5000,
}

Connect = Callable[[str], apsw.Connection]


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = files.check_path(tmp_path / "runs.db")
    assert files.create(path, fill)
    return path


@pytest.fixture
def hook() -> Iterator[list[Callable[[apsw.Connection], None]]]:
    """Give the list of what is done to each new connection before we see it."""
    before = list(apsw.connection_hooks)
    yield apsw.connection_hooks
    apsw.connection_hooks[:] = before


def add(writer: apsw.Connection, count: int = 1) -> None:
    for _ in range(count):
        writer.execute("insert into rows (text) values ('x')")


def settings_of(opened: apsw.Connection) -> dict[str, object]:
    return {name: opened.pragma(name) for name in ON_EVERY_CONNECTION}


# --- the version ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("3.6.23", "no STRICT tables"),
        ("3.36.0", "no STRICT tables"),
        ("3.37.0", "WAL-reset"),
        ("3.40.1", "WAL-reset"),
        ("3.44.5", "WAL-reset"),
        ((3, 44, 7), "WAL-reset"),
        ((3, 50, 6), "WAL-reset"),
        ("3.51.2", "WAL-reset"),
    ],
)
def test_an_unsafe_sqlite_is_refused(version: str | tuple[int, ...], problem: str) -> None:
    name = version if isinstance(version, str) else ".".join(map(str, version))
    with pytest.raises(UnsafeSQLite, match=rf"SQLite {name} .*{problem}.*; install an apsw"):
        gate(version)


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", (3, 52, 0), "4.0.0", "3.100.0"])
def test_a_safe_sqlite_is_accepted(version: str | tuple[int, ...]) -> None:
    gate(version)


@pytest.mark.parametrize("connect", [connect_writer, connect_reader, connect_new])
def test_the_gate_is_before_every_connection(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.40.1")
    with pytest.raises(UnsafeSQLite):
        connect(database)
    with pytest.raises(UnsafeSQLite):
        connect_memory()


# --- settings ---------------------------------------------------------------------------------


def new_database(path: str) -> apsw.Connection:
    new = f"{path}.new"
    Path(new).touch()
    return connect_new(new)


@pytest.mark.fault("E15")
@pytest.mark.parametrize("connect", [connect_writer, connect_reader, new_database])
def test_every_connection_has_every_setting(
    database: str, connect: Connect, hook: list[Callable[[apsw.Connection], None]]
) -> None:
    """Even with a build, or a hook of the program around us, that has other defaults."""

    def weaken(opened: apsw.Connection) -> None:
        for name in ("synchronous", "recursive_triggers", "foreign_keys", "cell_size_check"):
            opened.pragma(name, 0)
        opened.pragma("trusted_schema", 1)
        opened.pragma("wal_autocheckpoint", 1000)

    hook.append(weaken)
    opened = connect(database)
    assert opened.pragma("journal_mode") == "wal"
    assert settings_of(opened) == ON_EVERY_CONNECTION
    assert opened.pragma("query_only") == (connect is connect_reader)
    opened.close()


def test_a_database_in_memory_has_the_settings_too() -> None:
    memory = connect_memory()
    assert settings_of(memory) == ON_EVERY_CONNECTION
    memory.close()


@pytest.mark.fault("E15")
@pytest.mark.parametrize("name", ON_EVERY_CONNECTION)
@pytest.mark.parametrize("connect", [connect_writer, connect_reader, new_database])
def test_a_setting_that_does_not_hold_is_noticed(
    database: str, connect: Connect, name: str, hook: list[Callable[[apsw.Connection], None]]
) -> None:
    """SQLite ignores without a word what it cannot do; here it is made to."""

    def weaken(opened: apsw.Connection) -> None:
        other = 1 if name == "trusted_schema" else 0
        opened.pragma(name, other if name != "wal_autocheckpoint" else 1000)
        opened.authorizer = ignore

    def ignore(action: int, first: str | None, second: str | None, *_: object) -> int:
        setting = action == apsw.SQLITE_PRAGMA and first == name and second is not None
        return apsw.SQLITE_IGNORE if setting else apsw.SQLITE_OK

    hook.append(weaken)
    with pytest.raises(UnusableDatabase, match=f"answers {name}="):
        connect(database)


@pytest.mark.fault("E16")
@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_on_macos_the_drive_is_flushed(
    database: str, connect: Callable[..., apsw.Connection]
) -> None:
    for platform, wanted in (("linux", 0), ("darwin", 1)):
        opened = connect(database, platform=platform)
        assert opened.pragma("fullfsync") == wanted
        assert opened.pragma("checkpoint_fullfsync") == wanted
        opened.close()


@pytest.mark.fault("E16")
@pytest.mark.parametrize("name", ["fullfsync", "checkpoint_fullfsync"])
def test_a_drive_that_would_not_be_flushed_is_noticed(
    database: str, name: str, hook: list[Callable[[apsw.Connection], None]]
) -> None:
    def ignore(action: int, first: str | None, *_: object) -> int:
        return apsw.SQLITE_IGNORE if (action, first) == (apsw.SQLITE_PRAGMA, name) else 0

    hook.append(lambda opened: setattr(opened, "authorizer", ignore))
    with pytest.raises(UnusableDatabase, match=f"answers {name}="):
        connect_writer(database, platform="darwin")
    connect_writer(database, platform="linux").close()


@pytest.mark.fault("E13")
def test_a_file_system_without_wal_mode_is_refused(
    tmp_path: Path, hook: list[Callable[[apsw.Connection], None]]
) -> None:
    def ignore(action: int, first: str | None, *_: object) -> int:
        setting = (action, first) == (apsw.SQLITE_PRAGMA, "journal_mode")
        return apsw.SQLITE_IGNORE if setting else 0

    hook.append(lambda opened: setattr(opened, "authorizer", ignore))
    with pytest.raises(UnusableDatabase, match="cannot hold a database in WAL mode"):
        files.create(str(tmp_path / "runs.db"), fill)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
@pytest.mark.fault("F02")
def test_sqlites_descriptors_are_closed_on_exec(database: str) -> None:
    writer = connect_writer(database)
    found = {}
    for name in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{name}"
        if os.path.exists(link) and os.readlink(link).startswith(database):
            found[os.readlink(link)] = os.get_inheritable(int(name))
    writer.close()
    for suffix in ("", "-wal", "-shm"):
        assert found[database + suffix] is False


# --- the log ----------------------------------------------------------------------------------


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_a_last_close_keeps_the_log_and_checkpoints_nothing(
    database: str, connect: Connect
) -> None:
    writer = connect_writer(database)
    add(writer, 3)
    log, main = Path(f"{database}-wal").read_bytes(), Path(database).read_bytes()
    writer.close()
    opened = connect(database)
    assert opened.execute("select count(*) from rows").get == 3
    opened.close()
    assert Path(f"{database}-wal").read_bytes() == log
    assert Path(database).read_bytes() == main


@pytest.mark.fault("E10")
def test_the_log_is_never_checkpointed_by_itself(database: str) -> None:
    writer = connect_writer(database)
    main = Path(database).read_bytes()
    add(writer, 1500)  # SQLite's default would be every thousand pages
    assert Path(database).read_bytes() == main
    writer.close()


def test_a_reader_cannot_write(database: str) -> None:
    reader = connect_reader(database)
    with pytest.raises(apsw.ReadOnlyError):
        add(reader)
    reader.pragma("query_only", 0)
    with pytest.raises(apsw.ReadOnlyError):
        add(reader)
    reader.close()


def test_a_script_does_not_end_a_transaction(database: str) -> None:
    writer = connect_writer(database)
    writer.execute("begin")
    writer.execute("create table a (b); create table c (d)")
    assert writer.in_transaction
    writer.execute("rollback")
    assert not writer.table_exists(None, "a")
    writer.close()


# --- which file -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "what?.db", "a#b.db", "it's.db", ":memory:"])
def test_a_file_may_be_called_anything(tmp_path: Path, name: str) -> None:
    path = files.check_path(tmp_path / name)
    assert files.create(path, fill)
    writer = connect_writer(path)
    add(writer)
    writer.close()
    assert {found.name for found in tmp_path.iterdir()} == {name, f"{name}-wal", f"{name}-shm"}


def test_a_link_to_a_directory_is_fine(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path, target_is_directory=True)
    connect_writer(str(linked / "runs.db")).close()
    monkeypatch.chdir(tmp_path)
    connect_reader("linked/runs.db").close()


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_a_missing_database_is_not_made(tmp_path: Path, connect: Connect) -> None:
    with pytest.raises(UnusableDatabase, match="there is no database here"):
        connect(str(tmp_path / "runs.db"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_a_link_is_not_followed(database: str, tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "link.db").symlink_to(database)
    with pytest.raises(UnusableDatabase, match="unable to open database file"):
        connect(str(tmp_path / "link.db"))


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("To do: buy milk\n" * 500)
    with pytest.raises(UnusableDatabase, match=r"notes\.txt: this is not an SQLite database"):
        connect(str(path))
    assert path.read_text() == "To do: buy milk\n" * 500


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
@pytest.mark.parametrize(
    ("owner", "version", "problem"),
    [
        (77, SCHEMA_VERSION, "belongs to another program"),
        (APPLICATION_ID, SCHEMA_VERSION + 1, "use the release that wrote it"),
        (APPLICATION_ID, SCHEMA_VERSION, "out of WAL mode"),
    ],
)
def test_another_database_is_refused(
    tmp_path: Path, connect: Connect, owner: int, version: int, problem: str
) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("create table theirs (a)")
    other.execute(f"pragma application_id={owner}")
    other.execute(f"pragma user_version={version}")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(UnusableDatabase, match=problem):
        connect(str(path))
    assert path.read_bytes() == before


def test_a_user_who_may_only_look_can_read_beside_the_writer(public_folder: Path) -> None:
    """Where nobody has the database open, SQLite would have to make the files beside it."""
    path = str(public_folder / "runs.db")
    assert files.create(path, fill)
    os.chmod(path, 0o644)
    public_folder.chmod(0o555)
    with children(2) as (owner, stranger):
        stranger.ask("drop_privileges")
        with pytest.raises(Failed, match=r"UnusableDatabase: .*together with its -wal and -shm"):
            stranger.ask("read_with_the_product", path)
        public_folder.chmod(0o755)
        owner.ask("acquire", path)
        owner.ask("connect")
        owner.ask("add", 3)
        if os.geteuid() == 0:
            assert stranger.ask("read_with_the_product", path) == 3
        for name in (f"{path}-wal", path):
            os.chmod(name, 0)
            with pytest.raises(Failed, match=r"UnusableDatabase: "):
                stranger.ask("read_with_the_product", path)
    os.chmod(path, 0o600)


# --- errors -----------------------------------------------------------------------------------


def error_of(act: Callable[[], object]) -> apsw.Error:
    with pytest.raises(apsw.Error) as caught:
        act()
    return caught.value


@pytest.mark.fault("E01")
def test_a_full_disk_is_named_and_more_room_makes_it_work_again(database: str) -> None:
    writer = connect_writer(database)
    writer.pragma("max_page_count", 10)
    writer.execute("begin")
    text = "insert into rows (text) values (hex(zeroblob(30000)))"
    error = error_of(lambda: writer.execute(text))
    assert not writer.in_transaction, "SQLite has rolled back by itself"
    found = storage_error(error, path=database)
    assert type(found) is StorageError
    assert str(found).startswith(
        f"{database}: database or disk is full (SQLITE_FULL, code 13); free"
    )
    assert not found.outcome_unknown
    writer.pragma("max_page_count", 1000)
    writer.execute(text)
    writer.close()


def test_a_read_only_connection_is_named(database: str) -> None:
    reader = connect_reader(database)
    found = storage_error(error_of(lambda: add(reader)))
    assert type(found) is StorageError
    assert "attempt to write a readonly database (SQLITE_READONLY, code 8)" in str(found)
    reader.close()


def test_a_busy_database_is_locked_and_at_a_commit_unknown(database: str) -> None:
    first, second = connect_writer(database), connect_writer(database)
    second.set_busy_timeout(1)
    first.execute("begin immediate")
    error = error_of(lambda: second.execute("begin immediate"))
    assert type(storage_error(error)) is DatabaseLocked
    assert "database is locked (SQLITE_BUSY, code 5)" in str(storage_error(error))
    unknown = storage_error(error, outcome_unknown=True)
    assert isinstance(unknown, StorageError)
    assert unknown.outcome_unknown
    first.close()
    second.close()


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
@pytest.mark.parametrize("page", [0, 1])
def test_a_damaged_file_is_named(database: str, connect: Connect, page: int) -> None:
    """The first page is read when a connection is opened, the others when they are needed."""
    with open(database, "r+b") as file:
        file.seek(page * 4096 + (100 if page == 0 else 0))
        file.write(b"\xff" * 3000)

    def read() -> None:
        opened = connect(database)
        try:
            opened.execute("select * from rows")
        except apsw.Error as error:
            raise storage_error(error, path=database) from error
        finally:
            opened.close()

    with pytest.raises(DamagedHistory) as caught:
        read()
    assert f"{database}: database disk image is malformed (SQLITE_CORRUPT" in str(caught.value)
    assert "keep a copy" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        (apsw.IOError, apsw.SQLITE_IOERR_FSYNC, StorageError),
        (apsw.NoMemError, apsw.SQLITE_NOMEM, StorageError),
        (apsw.CantOpenError, apsw.SQLITE_CANTOPEN, StorageError),
        (apsw.NotADBError, apsw.SQLITE_NOTADB, DamagedHistory),
        (apsw.CorruptError, apsw.SQLITE_CORRUPT_INDEX, DamagedHistory),
        (apsw.BusyError, apsw.SQLITE_BUSY_SNAPSHOT, DatabaseLocked),
        (apsw.ProtocolError, apsw.SQLITE_PROTOCOL, DatabaseLocked),
        (apsw.SQLError, apsw.SQLITE_ERROR, StorageError),
    ],
)
def test_every_error_keeps_its_extended_code(
    kind: type[apsw.Error], code: int, expected: type[Exception]
) -> None:
    error = kind("its own words")
    vars(error).update(result=code & 0xFF, extendedresult=code)
    found = storage_error(error)
    assert type(found) is expected
    assert "its own words" in str(found)
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes[code]
    assert f"({name}, code {code})" in str(found)


def test_an_error_of_apsw_itself_is_a_storage_error(database: str) -> None:
    writer = connect_writer(database)
    writer.close()
    assert type(storage_error(error_of(lambda: add(writer)))) is StorageError


def test_a_refusal_by_the_schema_is_no_storage_error(database: str) -> None:
    writer = connect_writer(database)
    writer.execute(
        "create trigger refuse before insert on rows begin select raise(abort, 'not so'); end"
    )
    error = error_of(lambda: add(writer))
    with pytest.raises(apsw.ConstraintError, match="not so"):
        storage_error(error)
    writer.close()


def test_a_connection_that_is_refused_is_closed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SCHEMA_VERSION", 99)
    before = len(os.listdir("/dev/fd"))
    for connect in (connect_writer, connect_reader):
        with pytest.raises(UnusableDatabase):
            connect(database)
    assert len(os.listdir("/dev/fd")) == before


REBUILDER = """
import fcntl, sys
with open(sys.argv[1], "a+b") as index:
    fcntl.lockf(index, fcntl.LOCK_SH, 1, 128)
    index.truncate(32768)
    for byte in (120, 122):
        fcntl.lockf(index, fcntl.LOCK_EX, 1, byte)
    print("held", flush=True)
    sys.stdin.readline()
"""
"""Has a wal-index open, and holds the locks of a writer and of who rebuilds it after a crash."""


@pytest.mark.parametrize("connect", [connect_writer, connect_reader])
def test_a_program_that_rebuilds_the_index_just_now_is_waited_for(
    database: str, connect: Connect
) -> None:
    """A reader that comes first after a crash must not turn the next writer away."""
    with (
        subprocess.Popen(
            [sys.executable, "-c", REBUILDER, f"{database}-shm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        opened = pool.submit(connect, database)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.3)
        holder.communicate("\n", timeout=20)
        opened.result(timeout=20).close()
