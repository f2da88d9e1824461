"""The lock by which a database has one writer, tied by the kernel to the living process.

On Linux it is a lock of an open file description, on a byte of the database's own file. So there is
no lock file that could be deleted and no process id that could be reused; the kernel drops it when
the process dies, and no close of the file elsewhere in the process drops it. Two more locks of the
same kind guard SQLite's files against what would drop SQLite's own POSIX locks, which is any close
of the file in this process, by a tool or by another SQLite library:

- a shared one on the bytes that SQLite locks exclusively for the checkpoint of a last close, so
  that no other process takes itself for the last one and unlinks the log;
- a shared one on the byte of the wal-index by which SQLite knows that somebody uses it, so that no
  other process takes itself for the first one and truncates it under us.

A child forked through Python loses its copy of the descriptor before it runs anything. A fork that
a library makes behind Python's back, without an exec, would keep the lock as long as that child
lives.

Elsewhere (macOS, the BSDs) there are only POSIX record locks. This is weaker: any close of the
database file in this process drops the lock, SQLite's own last close too, and nothing guards the
log and the wal-index. A second writer in the same process is still refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time

from agent_replay.errors import DatabaseLocked, StorageError, UnusableDatabase, WrongProcess
from agent_replay.store import holder
from agent_replay.store.holder import WRITER_BYTE, Identity, LockCommands

BUSY_SECONDS = 5.0
"""How long to wait for a foreign program that holds the whole file for a moment."""

_SHARED_BYTES = (0x40000002, 510)  # SHARED_FIRST, SHARED_SIZE in SQLite's os.h
_INDEX_IN_USE_BYTE = 128  # UNIX_SHM_DMS in SQLite's os_unix.c
_REPLACEMENTS_MAX = 100
_PAUSE_SECONDS = 0.01


class WriterLock:
    """This process is the one writer of a database, until `release`."""

    __slots__ = ("_commands", "_descriptor", "_index_descriptor", "_mark", "identity", "path")

    def __init__(self, path: str, descriptor: int, commands: LockCommands) -> None:
        self.path = path
        self.identity = holder.identity_of_descriptor(descriptor)
        self._descriptor = descriptor
        self._index_descriptor = -1
        self._commands = commands
        self._mark = holder.process_mark()

    @classmethod
    def acquire(
        cls,
        path: str | os.PathLike[str],
        *,
        wait: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        platform: str = sys.platform,
    ) -> WriterLock:
        """Become the writer of an existing database, before SQLite opens it.

        Raises `DatabaseLocked`, which names the writer where that can be seen. With `wait` it waits
        for the other process instead, in the kernel; in the main thread Ctrl-C ends that. A second
        lock in one process is refused in either case.
        """
        place = holder.located(path)
        commands = holder.lock_commands(platform)
        for _ in range(_REPLACEMENTS_MAX):
            descriptor = _try(place, commands, busy_seconds, wait=wait)
            if descriptor is not None:
                return cls(place, descriptor, commands)
        raise UnusableDatabase(
            f"{place}: the file was replaced {_REPLACEMENTS_MAX} times while it was being locked; "
            "find out which program does that"
        )

    def check_process(self) -> None:
        """Raise `WrongProcess` in a process forked from the one that took the lock."""
        if self._mark != holder.process_mark():
            raise WrongProcess(
                f"{self.path}: it was opened by process {self._mark[0]}, and this is process "
                f"{os.getpid()}, forked from it; open the database anew here, after the other has "
                "closed it"
            )

    def confirm(self) -> None:
        """Raise unless the lock is held and the path still leads to the locked file.

        Where locks are weak this takes the lock again if a close has dropped it.
        """
        self.check_process()
        if not holder.is_still(self.path, self.identity):
            raise UnusableDatabase(
                f"{self.path}: the file that this process writes to is no longer there, or another "
                "was put in its place; stop, and put it back before anything else is written"
            )
        held = self._descriptor >= 0 and (
            _is_exact(self._commands) or _lock_writer_byte(self._commands, self._descriptor)
        )
        if not held:
            raise DatabaseLocked(f"{self.path}: this process no longer holds it; open it anew")

    def hold_shared_memory(self) -> None:
        """Keep other processes from rebuilding the wal-index that this one has mapped.

        Call it after a connection has read from the database, not before: then SQLite could not
        rebuild a wal-index that an earlier crash has left behind.
        """
        if not _is_exact(self._commands) or self._index_descriptor >= 0:
            return
        name = f"{self.path}-shm"
        try:
            descriptor = holder.borrow(name, os.O_RDONLY)
            held = holder.set_lock(
                self._commands, descriptor, fcntl.F_RDLCK, _INDEX_IN_USE_BYTE, 1, wait=False
            )
        except OSError as error:
            raise StorageError(
                f"{name}: cannot be locked: {error.strerror}; close the store and open it again"
            ) from error
        self._index_descriptor = descriptor
        if not held:
            raise DatabaseLocked(f"{name}: another program is rebuilding it; open the store again")

    def release_shared_memory(self) -> None:
        """Undo `hold_shared_memory`, before the database is opened again after an error.

        Every connection of this process on the database must be closed.
        """
        if self._index_descriptor >= 0 and self._mark == holder.process_mark():
            index = self._index_descriptor
            self._index_descriptor = -1
            identity = holder.identity_of_descriptor(index)
            holder.close_shielded(index)
            holder.close_aside(identity)

    def release(self) -> None:
        """Let another process write. Every connection of this process must be closed before.

        A second release does nothing, and so does one in a forked child.
        """
        if self._descriptor < 0 or self._mark != holder.process_mark():
            return
        self.release_shared_memory()
        descriptor, self._descriptor = self._descriptor, -1
        holder.close_shielded(descriptor)
        holder.close_aside(self.identity)
        holder.withdraw(self.identity)


def _try(place: str, commands: LockCommands, busy_seconds: float, *, wait: bool) -> int | None:
    """Return a descriptor that holds the lock, or None if the path leads elsewhere by now."""
    identity = _writable_file(place)
    if not holder.claim(identity):
        raise DatabaseLocked(
            f"{place}: this process is its writer already; use the Runtime that has it open, or "
            "close that first (one that was dropped unclosed holds it until the process ends)"
        )
    descriptor = -1
    try:
        descriptor = _borrow(place)
        _lock(place, commands, descriptor, busy_seconds, wait=wait)
        if (
            holder.is_still(place, identity)
            and holder.identity_of_descriptor(descriptor) == identity
        ):
            _check_plain(place, descriptor)
            return descriptor
    except BaseException:
        _let_go(commands, descriptor, identity)
        raise
    _let_go(commands, descriptor, identity)
    return None


def _writable_file(place: str) -> Identity:
    try:
        return holder.identity_of(place)
    except OSError as error:
        raise _unusable(place, error) from error


def _borrow(place: str) -> int:
    try:
        return holder.borrow(place, os.O_RDWR)
    except OSError as error:
        raise _unusable(place, error) from error


def _unusable(place: str, error: OSError) -> UnusableDatabase:
    if error.errno == errno.ELOOP:
        return UnusableDatabase(f"{place}: is a symbolic link; name the file that it leads to")
    return UnusableDatabase(
        f"{place}: user {os.geteuid()} cannot open it for writing: {error.strerror}; "
        "check the path and who owns the file"
    )


def _check_plain(place: str, descriptor: int) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise UnusableDatabase(
            f"{place}: is not a plain file under one name only ({stat.filemode(status.st_mode)}, "
            f"{status.st_nlink} names); the log is found by the name of the database"
        )


def _lock(
    place: str, commands: LockCommands, descriptor: int, busy_seconds: float, *, wait: bool
) -> None:
    if not _lock_writer_byte(commands, descriptor, wait=wait):
        others = holder.writers_of(holder.identity_of_descriptor(descriptor))
        others = others or "a process that cannot be seen from here (another user or container)"
        raise DatabaseLocked(
            f"{place}: another writer holds it: {others}; wait with --wait, or stop that process"
        )
    if _is_exact(commands):
        _lock_shared_bytes(place, commands, descriptor, busy_seconds, wait=wait)


def _lock_writer_byte(commands: LockCommands, descriptor: int, *, wait: bool = False) -> bool:
    return holder.set_lock(commands, descriptor, fcntl.F_WRLCK, WRITER_BYTE, 1, wait=wait)


def _lock_shared_bytes(
    place: str, commands: LockCommands, descriptor: int, busy_seconds: float, *, wait: bool
) -> None:
    deadline = time.monotonic() + busy_seconds
    while not holder.set_lock(commands, descriptor, fcntl.F_RDLCK, *_SHARED_BYTES, wait=wait):
        if time.monotonic() > deadline:
            blocker = holder.find_blocker(commands, descriptor, fcntl.F_RDLCK, *_SHARED_BYTES)
            by = holder.describe_process(blocker.pid) if blocker and blocker.pid > 0 else "unknown"
            raise DatabaseLocked(
                f"{place}: another program has had the whole file for itself for {busy_seconds:g} "
                f"seconds: {by}; stop it, or wait until it is done"
            )
        time.sleep(_PAUSE_SECONDS)


def _let_go(commands: LockCommands, descriptor: int, identity: Identity) -> None:
    if descriptor >= 0:
        holder.set_lock(commands, descriptor, fcntl.F_UNLCK, WRITER_BYTE, 1, wait=False)
        if _is_exact(commands):
            holder.set_lock(commands, descriptor, fcntl.F_UNLCK, *_SHARED_BYTES, wait=False)
        holder.give_back(descriptor)
    holder.withdraw(identity)


def _is_exact(commands: LockCommands) -> bool:
    return commands.set != fcntl.F_SETLK
