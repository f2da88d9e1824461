"""The one factory of SQLite connections, and the one place where SQLite's errors become ours.

No other module opens a connection or sets a pragma. Every setting is made on every connection and
then read back, because most of them are not stored in the file, and SQLite ignores silently what it
cannot do.

For those who use a connection: `execute` runs a script only up to the first statement that returns
a row; iterate to the end of the result to run the rest.
"""

from __future__ import annotations

import array
import os
import sys
from collections.abc import Iterable

import apsw

from agent_replay.errors import (
    DamagedHistory,
    DatabaseLocked,
    Fenced,
    IllegalMove,
    ReplayError,
    StorageError,
    UnsafeSQLite,
    UnusableDatabase,
)
from agent_replay.store import holder

APPLICATION_ID = 0x41675270  # "AgRp"
"""What the header of a database says about whose it is."""

SCHEMA_VERSION = 2
"""What the header says about its tables (`user_version`)."""

BUSY_MILLISECONDS = 5000
"""How long SQLite waits for a lock that another program has for a moment."""

_STATEMENTS_CACHED_MAX = 256
_FULL = 2

Setting = tuple[str, int]

_WAIT: Setting = ("busy_timeout", BUSY_MILLISECONDS)
_SETTINGS: tuple[Setting, ...] = (
    ("synchronous", _FULL),
    ("wal_autocheckpoint", 0),  # it would swallow errors; the writer checkpoints
    ("foreign_keys", 1),
    ("recursive_triggers", 1),  # else REPLACE deletes without firing delete triggers
    ("trusted_schema", 0),
    ("cell_size_check", 1),
)
_DARWIN_SETTINGS: tuple[Setting, ...] = (
    # There, fsync alone leaves data in the cache of the drive.
    ("fullfsync", 1),
    ("checkpoint_fullfsync", 1),
)
_READER_SETTINGS: tuple[Setting, ...] = (("query_only", 1),)


# --- the version ------------------------------------------------------------------------------

_STRICT_SINCE = (3, 37, 0)
_RESET_FAULT_LAST = (3, 51, 2)
_RESET_FAULT_FIXED = frozenset({(3, 44, 6), (3, 50, 7)})


def gate(version: str | tuple[int, ...]) -> None:
    """Raise `UnsafeSQLite` if that version of SQLite may not hold a history."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    numbers = tuple(int(part) for part in text.split(".")[:3])
    if numbers < _STRICT_SINCE:
        problem = "has no STRICT tables, which came with 3.37.0"
    elif numbers <= _RESET_FAULT_LAST and numbers not in _RESET_FAULT_FIXED:
        problem = (
            "can lose acknowledged commits in WAL mode (the WAL-reset fault of 3.7.0 to 3.51.2, "
            "mended in 3.44.6 and 3.50.7)"
        )
    else:
        return
    raise UnsafeSQLite(
        f"SQLite {text} {problem}; install an apsw that carries 3.51.3 or later: "
        "pip install --upgrade 'apsw>=3.53'"
    )


# --- connections ------------------------------------------------------------------------------


def connect_writer(path: str, *, platform: str = sys.platform) -> apsw.Connection:
    """Return a connection that may write to an existing database.

    The caller holds the writer's lock and has called `files.sync_log`. The log is kept on close,
    and no checkpoint takes place then: the writer makes its own, so that an error of it is seen.
    """
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE)
    return _settled(connection, path, _for_platform(_SETTINGS, platform))


def connect_reader(path: str, *, platform: str = sys.platform) -> apsw.Connection:
    """Return a connection that only reads, beside a living writer or without one.

    It never checkpoints, and it leaves the log as it is.
    """
    connection = _open(path, apsw.SQLITE_OPEN_READONLY)
    settings = _for_platform((*_SETTINGS, *_READER_SETTINGS), platform)
    return _settled(connection, path, settings)


def connect_new(path: str, *, platform: str = sys.platform) -> apsw.Connection:
    """Return a connection on an empty file, which it turns into a database in WAL mode.

    For `files.create` only: the close of this one checkpoints and removes the log.
    """
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        _enter_wal_mode(connection, path)
        apply_settings(connection, path, _for_platform(_SETTINGS, platform))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
    except apsw.Error as error:
        connection.close()
        raise storage_error(error, path=path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _enter_wal_mode(connection: apsw.Connection, path: str) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise UnusableDatabase(
            f"{path}: its file system cannot hold a database in WAL mode (SQLite answers "
            f"{mode!r}); put the database on a local disk"
        )


def connect_memory() -> apsw.Connection:
    """Return a connection on a new database in memory, for those who judge the schema."""
    gate(apsw.sqlite_lib_version())
    connection = apsw.Connection(":memory:", statementcachesize=_STATEMENTS_CACHED_MAX)
    apply_settings(connection, ":memory:", (_WAIT, *_SETTINGS))
    return connection


def apply_settings(connection: apsw.Connection, path: str, settings: Iterable[Setting]) -> None:
    """Make each setting and read it back; a difference is `UnusableDatabase`."""
    for name, wanted in settings:
        connection.pragma(name, wanted)
        found = connection.pragma(name)
        if found != wanted:
            raise UnusableDatabase(
                f"{path}: SQLite {apsw.sqlite_lib_version()} answers {name}={found} where {wanted} "
                "was set; without it a history is not safe, so use another build of apsw"
            )


def _for_platform(settings: tuple[Setting, ...], platform: str) -> tuple[Setting, ...]:
    return settings + _DARWIN_SETTINGS if platform == "darwin" else settings


def _open(path: str, access: int) -> apsw.Connection:
    gate(apsw.sqlite_lib_version())
    try:
        # Without SQLITE_OPEN_URI, so that a file may be called anything.
        connection = apsw.Connection(
            holder.located(path),
            flags=access | apsw.SQLITE_OPEN_NOFOLLOW,
            statementcachesize=_STATEMENTS_CACHED_MAX,
        )
    except apsw.CantOpenError as error:
        if os.path.lexists(path):
            raise _forbidden(error, path) from error
        raise UnusableDatabase(f"{path}: there is no database here; check the path") from error
    except apsw.Error as error:
        raise storage_error(error, path=path) from error
    try:
        # Before anything is read: after a crash another program may be rebuilding the wal-index.
        apply_settings(connection, path, (_WAIT,))
    except BaseException:
        connection.close()
        raise
    return connection


def _forbidden(error: apsw.Error, path: str) -> UnusableDatabase:
    """Say what SQLite says of a file that it may not open; nothing has happened yet."""
    return UnusableDatabase(
        f"{path}: user {os.geteuid()} cannot open it together with its -wal and -shm: {error} "
        f"({_code_of(error)}); check who may use them and the directory"
    )


def _settled(
    connection: apsw.Connection, path: str, settings: tuple[Setting, ...]
) -> apsw.Connection:
    """Return the connection with its settings made, or close it and raise."""
    try:
        _keep_log(connection, path)
        _check_header(connection, path)
        apply_settings(connection, path, settings)
    except apsw.NotADBError as error:
        connection.close()
        raise UnusableDatabase(
            f"{path}: this is not an SQLite database; name another file, it was left as it is"
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        connection.close()
        raise _forbidden(error, path) from error
    except apsw.Error as error:
        connection.close()
        raise storage_error(error, path=path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_log(connection: apsw.Connection, path: str) -> None:
    """Let the close of this connection neither checkpoint nor remove the log.

    First of all, so that this holds for a file too that turns out to be somebody else's.
    """
    if connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) != 1:
        raise UnusableDatabase(f"{path}: SQLite cannot be told to leave the log alone on close")
    flag = array.array("i", [1])
    address, _ = flag.buffer_info()
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, address)
    flag[0] = -1  # asks
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, address)
    if flag[0] != 1:
        raise UnusableDatabase(f"{path}: SQLite cannot be told to keep the log on close")


def _check_header(connection: apsw.Connection, path: str) -> None:
    """Raise `UnusableDatabase` unless the header says that it is a history that we can read."""
    owner = connection.pragma("application_id")
    if owner != APPLICATION_ID:
        raise UnusableDatabase(
            f"{path}: this SQLite database belongs to another program (application id {owner}, "
            f"not {APPLICATION_ID}); name another file, it was left as it is"
        )
    version = connection.pragma("user_version")
    if version != SCHEMA_VERSION:
        raise UnusableDatabase(
            f"{path}: its tables have version {version}, and this program knows version "
            f"{SCHEMA_VERSION}; use the release that wrote it"
        )
    mode = connection.pragma("journal_mode")
    if mode != "wal":
        raise UnusableDatabase(
            f"{path}: another program has taken it out of WAL mode (found {mode!r}); "
            "put it back: sqlite3 FILE 'PRAGMA journal_mode=wal'"
        )


def damages(connection: apsw.Connection) -> list[str]:
    """Return what SQLite itself finds wrong with a file, at most ten things."""
    found = [str(message) for (message,) in connection.execute("pragma integrity_check(10)")]
    return [] if found == ["ok"] else found


# --- errors -----------------------------------------------------------------------------------

_DAMAGED = frozenset({apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB})
_LOCKED = frozenset({apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED, apsw.SQLITE_PROTOCOL})
_NEXT_ACT = {
    apsw.SQLITE_FULL: "free space on its volume, then open the store again",
    apsw.SQLITE_IOERR: "look into the log of the system for the disk, then open the store again",
    apsw.SQLITE_NOMEM: "free memory, then open the store again",
    apsw.SQLITE_READONLY: "check who may write to the file and its directory",
    apsw.SQLITE_CANTOPEN: "check who may read and write the file, its -wal and -shm, and the "
    "directory",
    apsw.SQLITE_CORRUPT: "stop, keep a copy of it and of its -wal, and do not repair it",
    apsw.SQLITE_NOTADB: "stop, keep a copy of it and of its -wal, and do not repair it",
    apsw.SQLITE_BUSY: "find the program that has it open, and wait for it or stop it",
}


def reading_error(error: apsw.Error | UnicodeDecodeError) -> ReplayError:
    """Return the library's error for one that came while rows were read."""
    if isinstance(error, UnicodeDecodeError):
        return DamagedHistory(
            "a text in the database is not UTF-8, and the runtime never wrote that; "
            "keep a copy of the file and run verify on it"
        )
    return storage_error(error)


def storage_error(
    error: apsw.Error, *, path: str = "the database", outcome_unknown: bool = False
) -> ReplayError:
    """Return the library's error for one of SQLite's, with SQLite's own words and code in it.

    `DatabaseLocked` or `DamagedHistory` where it is that, else `StorageError`. A refusal by a
    constraint or a trigger is about the caller's rows and not about storage: it is raised again.
    """
    if isinstance(error, apsw.ConstraintError):
        raise error
    result = getattr(error, "result", apsw.SQLITE_ERROR)  # apsw's own errors have no code
    act = _NEXT_ACT.get(apsw.SQLITE_BUSY if result in _LOCKED else result, "open the store again")
    message = f"{path}: {error} ({_code_of(error)}); {act}"
    if outcome_unknown:
        message += "; whether the rows were written is unknown until then"
    if result in _DAMAGED:
        return DamagedHistory(message)
    if result in _LOCKED and not outcome_unknown:
        return DatabaseLocked(message)
    return StorageError(message, outcome_unknown=outcome_unknown)


_FENCED = ("another writer", "another epoch")


def refusal(error: apsw.ConstraintError) -> ReplayError:
    """Return the library's error for a row that a constraint or a trigger has refused."""
    message = str(error)
    if any(part in message for part in _FENCED):
        return Fenced(f"the database refuses this writer: {message}")
    return IllegalMove(f"the database refuses the row: {message}")


def _code_of(error: apsw.Error) -> str:
    result = getattr(error, "result", apsw.SQLITE_ERROR)
    code = getattr(error, "extendedresult", result)
    names = apsw.mapping_result_codes if code == result else apsw.mapping_extended_result_codes
    return f"{names.get(code, 'SQLite')}, code {code}"
