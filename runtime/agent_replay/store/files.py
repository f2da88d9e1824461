"""The files of a database: what may be opened, how one is made, and what is made durable.

A history is a database file with two files beside it, named after it: `-wal`, the log, and `-shm`,
the wal-index. This module judges them, creates them, and syncs and grows the log. What is in them
is the business of others.

The writer opens a database in this order: `check_path`, `create` if there is none,
`WriterLock.acquire`, `sync_log`, `connect_writer`, `WriterLock.hold_shared_memory`, `grow_log`,
`sync_directory`. A reader: `check_path`, `unconfirmed`, `connect_reader`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator

import apsw

from agent_replay.errors import DatabaseLocked, InvalidInput, StorageError, UnusableDatabase
from agent_replay.store import holder
from agent_replay.store.connection import APPLICATION_ID, connect_new, storage_error
from agent_replay.store.log import unconfirmed as unconfirmed  # it is a question about files

LOG = "-wal"
INDEX = "-shm"
ROLLBACK = "-journal"

CREATOR_SECONDS = 30.0
"""How long to wait for another process that creates a database in the same directory."""

_PAUSE_SECONDS = 0.01
_MODE = 0o600
_ZEROS = bytes(1 << 18)
_HEADER = struct.Struct(">16sHBB48xI")  # magic, page size, write and read version, application id
MAGIC = b"SQLite format 3\0"
_WAL_VERSION = 2


# --- judging ----------------------------------------------------------------------------------


def check_path(path: str | os.PathLike[str], *, platform: str = sys.platform) -> str:
    """Return the path under which the database is to be opened; raise if it may not be.

    Its directories are absolute and free of links in it. Nothing has to be there yet. What is there
    must be a history of its own: a plain file, under one name only, with nothing strange beside it.
    Nothing is changed.
    """
    if platform == "win32":
        raise UnusableDatabase(
            "a history needs locks that Windows does not have; run agent-replay on Linux or macOS "
            "(on Windows, in WSL)"
        )
    place = _checked_text(holder.located(path))
    status = _status(place)
    if status is None:
        return place
    _check_plain(place, status)
    for name in (place + LOG, place + INDEX):
        beside = _status(name)
        if beside is not None:
            _check_plain(name, beside)
    if _status(place + ROLLBACK) is not None:
        raise UnusableDatabase(
            f"{place}{ROLLBACK}: this rollback journal is another program's, since a history has "
            "none; find out which program writes to the database, and let it finish"
        )
    _check_header(place)
    return place


def _checked_text(place: str) -> str:
    if "\0" in place or not os.path.basename(place):
        raise InvalidInput(f"{place!r} does not name a file; give the path of a database")
    try:
        place.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{place!r} is not UTF-8, and SQLite opens no other names; rename the file or directory"
        ) from None
    return place


def _status(place: str) -> os.stat_result | None:
    try:
        return os.lstat(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(place, "cannot be looked at", error) from error


def _unusable(place: str, problem: str, error: OSError) -> UnusableDatabase:
    return UnusableDatabase(
        f"{place}: {problem} by user {os.geteuid()}: {error.strerror}; "
        "check the path and who may use it"
    )


def _check_plain(place: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnusableDatabase(
            f"{place}: is a symbolic link, to {os.readlink(place)}; the log is found by the name "
            "of the database, so name the file itself (links to directories are fine)"
        )
    if not stat.S_ISREG(status.st_mode):
        raise UnusableDatabase(
            f"{place}: is not a plain file ({stat.filemode(status.st_mode)}); name another file"
        )
    if status.st_nlink != 1:
        raise UnusableDatabase(
            f"{place}: has {status.st_nlink} names (hard links); the log is found by the name of "
            "the database, so remove the other names"
        )


def _check_header(place: str) -> None:
    """Raise unless the file says that it is a history; before SQLite opens it and adds files."""
    try:
        descriptor = holder.borrow(place, os.O_RDONLY)
    except OSError as error:
        raise _unusable(place, "cannot be read", error) from error
    header = os.pread(descriptor, _HEADER.size, 0)
    holder.give_back(descriptor)
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        found = "is empty" if not header else "is not an SQLite database"
        raise UnusableDatabase(f"{place}: {found}; name another file, or move this one away")
    _, _, writing, reading, owner = _HEADER.unpack(header)
    if owner != APPLICATION_ID:
        raise UnusableDatabase(
            f"{place}: this SQLite database belongs to another program (application id {owner}, "
            f"not {APPLICATION_ID}); name another file"
        )
    if (writing, reading) != (_WAL_VERSION, _WAL_VERSION):
        raise UnusableDatabase(
            f"{place}: another program has taken this history out of WAL mode; "
            f"put it back: sqlite3 '{place}' 'PRAGMA journal_mode=wal'"
        )


# --- creating ---------------------------------------------------------------------------------


def create(path: str, fill: Callable[[apsw.Connection], None]) -> bool:
    """Make a database under another name, fill it, and give it its name; durable when it returns.

    False if there is one by now: then the caller opens that. Only one process creates in a
    directory at a time. If it dies, at most a file under that other name is left, and the next
    creation removes it. The directory must exist.
    """
    path = holder.located(path)
    directory, name = os.path.split(path)
    with _only_creator(directory, path) as directory_descriptor:
        try:
            _remove_unfinished(directory, name)
            if os.path.lexists(path):
                return False
            _refuse_left_over_log(path)
            unfinished = os.path.join(directory, f"{_unfinished_prefix(name)}{os.getpid()}")
            try:
                _make(unfinished, fill)
                os.rename(unfinished, path)
            except BaseException:
                _remove_unfinished(directory, name)
                raise
            sync(directory_descriptor)
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be created by user {os.geteuid()}: {error.strerror}; check who "
                f"may write to {directory} and how much space it has"
            ) from error
    return True


def _unfinished_prefix(name: str) -> str:
    return f".{name}.new-"


def _refuse_left_over_log(path: str) -> None:
    for suffix in (LOG, INDEX, ROLLBACK):
        if os.path.lexists(path + suffix):
            raise UnusableDatabase(
                f"{path}: the database is gone, and {path}{suffix} of it is still here, which may "
                "hold the last events that were acknowledged; put the database back beside it, or "
                "move it away to begin a new history"
            )


@contextlib.contextmanager
def _only_creator(directory: str, path: str) -> Iterator[int]:
    """Hold the directory itself under a lock that ends with this process; there is no lock file."""
    try:
        descriptor = holder.open_shielded(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise UnusableDatabase(
            f"{path}: the directory {directory} does not exist; make it first: "
            f"mkdir -p -m 700 '{directory}'"
        ) from error
    except OSError as error:
        raise _unusable(directory, "cannot be opened", error) from error
    try:
        deadline = time.monotonic() + CREATOR_SECONDS
        while not _locked_whole(descriptor):
            if time.monotonic() > deadline:
                raise DatabaseLocked(
                    f"{directory}: another process has locked it for {CREATOR_SECONDS:g} seconds; "
                    f"find it with `fuser -v '{directory}'`, and try again when it is done"
                )
            time.sleep(_PAUSE_SECONDS)
        yield descriptor
    finally:
        holder.close_shielded(descriptor)


def _locked_whole(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_unfinished(directory: str, name: str) -> None:
    """Remove what a creation left that did not end. The directory is locked, so none is at work."""
    prefix = _unfinished_prefix(name)
    for found in os.listdir(directory):
        number, _, suffix = found.removeprefix(prefix).partition("-")
        ours = number.isdecimal() and suffix in ("", "wal", "shm", "journal")
        if found.startswith(prefix) and ours:
            os.unlink(os.path.join(directory, found))


def _make(unfinished: str, fill: Callable[[apsw.Connection], None]) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(unfinished, flags, _MODE)
    try:
        os.fchmod(descriptor, _MODE)  # whatever the umask takes away
    finally:
        os.close(descriptor)
    connection = connect_new(unfinished)
    try:
        fill(connection)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error as error:
        raise storage_error(error, path=unfinished) from error
    finally:
        connection.close()
    _check_whole(unfinished)
    descriptor = os.open(unfinished, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def _check_whole(unfinished: str) -> None:
    """Raise if part of the new database is still beside it, where a rename would lose it."""
    for suffix in (LOG, INDEX, ROLLBACK):
        if os.path.lexists(unfinished + suffix):
            raise StorageError(
                f"{unfinished}: SQLite left {suffix} beside it when it was closed; try again, and "
                "report it if it comes back"
            )


# --- making durable ---------------------------------------------------------------------------


def sync_log(path: str) -> None:
    """Make durable what an earlier writer left in the log, before SQLite opens the database.

    A writer may have died between writing a row and syncing it. Its successor must not act on the
    row, or return it, as long as a power loss could take it away. The names of the files are made
    durable too, and the log and wal-index are closed to whom the database is closed.
    """
    _close_to_others(path)
    with contextlib.suppress(FileNotFoundError), _open_log(path, os.O_RDWR, "synced") as descriptor:
        _sync_content(descriptor)
    sync_directory(path)


def _close_to_others(path: str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        allowed = os.stat(path).st_mode & 0o777
        for name in (path + LOG, path + INDEX):
            mode = os.lstat(name).st_mode & 0o777
            if mode & ~allowed:
                os.chmod(name, mode & allowed)


def sync_directory(path: str) -> None:
    """Make the names of the files in the database's directory durable."""
    directory = os.path.dirname(holder.located(path))
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(
            f"{directory}: cannot be synced: {error.strerror}; look into the log of the system for "
            "the disk, then open the store again"
        ) from error


def grow_log(path: str, size_bytes: int) -> None:
    """Make the log at least so large, with zeros behind its end; durable when it returns.

    A file that keeps its size is synced twice as fast as one that grows. Zeros are no frame, so
    SQLite takes them for the end of the log; what is in the log stays as it is.
    """
    with _open_log(path, os.O_RDWR | os.O_APPEND, "grown") as descriptor:
        end = os.fstat(descriptor).st_size
        if end >= size_bytes:
            return
        # A truncation must be durable before zeros are: else a power loss could leave the first
        # part of the old log with nothing valid behind it, and SQLite would go back to that.
        _sync_content(descriptor)
        try:
            _append_zeros(descriptor, size_bytes - end)
            _sync_content(descriptor)
        except OSError:
            _take_zeros_back(descriptor, end)
            raise


def _append_zeros(descriptor: int, missing: int) -> None:
    while missing > 0:
        missing -= os.write(descriptor, _ZEROS[:missing])


def _take_zeros_back(descriptor: int, end: int) -> None:
    """Leave the last space of a full volume to others, unless there is more than zeros by now."""
    added = os.pread(descriptor, os.fstat(descriptor).st_size - end, end)
    if not any(added):
        os.ftruncate(descriptor, end)


@contextlib.contextmanager
def _open_log(path: str, flags: int, purpose: str) -> Iterator[int]:
    """Open the log for a moment. SQLite has no locks on it that the close could drop."""
    name = path + LOG
    try:
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        act = "free space on its volume" if full else "look into the system's log for the disk"
        raise StorageError(
            f"{name}: cannot be {purpose}: {error.strerror}; {act}, then open the store again"
        ) from error


def _sync_content(descriptor: int) -> None:
    if sys.platform == "darwin":
        sync(descriptor)
    else:
        os.fdatasync(descriptor)


def sync(descriptor: int) -> None:
    """Make a file or directory durable, in the drive too where fsync alone does not."""
    if sys.platform == "darwin":
        with contextlib.suppress(OSError):  # a file system that does not know it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)
