"""Who holds a database file, and the descriptors that this process has on one.

Two things about locks decide what is in here:

- Closing *any* descriptor of a file drops every POSIX lock that the process has on that file, those
  of its SQLite too. So a descriptor that this package opens on a database or on its wal-index is
  never simply closed: it is lent by `borrow` and put aside by `give_back`, and closed only when the
  writer's lock is released, at which time no connection is open any more.
- A lock of an open file description lives as long as any process has that description. So a forked
  child closes its copies of all of them at once, before any other code of it runs.

Nothing here knows SQLite's format, and nothing here raises for a database in use: callers do.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import threading
import time
from typing import NamedTuple

from agent_replay.errors import UnusableDatabase

try:
    import fcntl
except ImportError:
    raise UnusableDatabase(
        f"the locks that keep a history safe exist on Linux and macOS, and this is {sys.platform}: "
        "run agent-replay on one of those (on Windows, in WSL)"
    ) from None

WRITER_BYTE = 1 << 62
"""The byte of the database file that its writer locks, far outside what SQLite locks or stores."""

_COMMAND_WORDS_MAX = 3
_WORD_LENGTH_MAX = 40
_NAMED_MAX = 3


class Identity(NamedTuple):
    """A file, however it is spelled."""

    device: int
    inode: int


def located(path: str | os.PathLike[str]) -> str:
    """Return the path with its directories made absolute and free of links, its last part as it is.

    A history keeps its place when the process changes its directory or a link is moved.
    """
    text = os.fspath(path)
    return os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))


def identity_of(path: str) -> Identity:
    """Return which file a path leads to; raises `OSError`."""
    return _identity(os.stat(path))


def is_still(path: str, identity: Identity) -> bool:
    """Return whether a path leads to that file, and not to another or nowhere."""
    try:
        return identity_of(path) == identity
    except OSError:
        return False


def identity_of_descriptor(descriptor: int) -> Identity:
    """Return which file a descriptor is of."""
    return _identity(os.fstat(descriptor))


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino)


# --- descriptors ------------------------------------------------------------------------------

_mutex = threading.RLock()
_opened: set[int] = set()
_aside: dict[tuple[Identity, int], list[int]] = {}
_claimed: set[Identity] = set()
_forks = 0


def borrow(path: str, access: int) -> int:
    """Return a close-on-exec descriptor of a file, for `os.O_RDONLY` or `os.O_RDWR`.

    Raises `OSError`, for a symbolic link too. Hand it to `give_back`, never to `os.close`.
    """
    with _mutex:
        try:
            aside = _aside.get((identity_of(path), access))
        except FileNotFoundError:
            aside = None
        if aside:
            return aside.pop()
        return open_shielded(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)


def give_back(descriptor: int) -> None:
    """Put a borrowed descriptor aside without closing it."""
    with _mutex:
        if descriptor in _opened:  # else this is a forked child, which has closed it
            access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
            key = (identity_of_descriptor(descriptor), access)
            _aside.setdefault(key, []).append(descriptor)


def open_shielded(path: str, flags: int) -> int:
    """Return a close-on-exec descriptor that a forked child loses at once; raises `OSError`."""
    with _mutex:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        _opened.add(descriptor)
        return descriptor


def close_shielded(descriptor: int) -> None:
    """Close a descriptor for good, and with it drop this process's POSIX locks on its file."""
    with _mutex:
        if descriptor in _opened:
            _opened.remove(descriptor)
            os.close(descriptor)


def close_aside(identity: Identity) -> None:
    """Close what is put aside for a file. No connection of this process may be open on it."""
    with _mutex:
        for access in (os.O_RDONLY, os.O_RDWR):
            for descriptor in _aside.pop((identity, access), []):
                close_shielded(descriptor)


# --- claims of this process -------------------------------------------------------------------


def claim(identity: Identity) -> bool:
    """Note that this process becomes the writer of a file; False if it is that already."""
    with _mutex:
        if identity in _claimed:
            return False
        _claimed.add(identity)
        return True


def withdraw(identity: Identity) -> None:
    """Note that this process is no longer the writer of a file."""
    with _mutex:
        _claimed.discard(identity)


def is_claimed(identity: Identity) -> bool:
    """Return whether this process is, or is about to be, the writer of a file."""
    with _mutex:
        return identity in _claimed


def process_mark() -> tuple[int, int]:
    """Return what differs between this process and each process forked from it.

    The process id alone may be given again after the parent has died, and the count alone does not
    see a fork that Python was not told of.
    """
    return os.getpid(), _forks


def _in_forked_child() -> None:
    global _mutex, _forks
    _mutex = threading.RLock()
    _forks += 1
    for descriptor in _opened:
        try:
            os.close(descriptor)
        except OSError:
            continue  # a hook must not raise, and there is nothing else to do about it
    _opened.clear()
    _aside.clear()
    _claimed.clear()


# The mutex is held over a fork, so that no descriptor is open and not yet noted in the child.
os.register_at_fork(
    before=lambda: _mutex.acquire(),
    after_in_parent=lambda: _mutex.release(),
    after_in_child=_in_forked_child,
)


# --- locks ------------------------------------------------------------------------------------


class LockCommands(NamedTuple):
    """The kernel's commands for one kind of lock on a range of a file."""

    set: int
    wait: int
    get: int
    layout: str


def lock_commands(platform: str) -> LockCommands:
    """Return the best kind of range lock that a platform has.

    Linux has locks that belong to an open file description. Elsewhere there are only POSIX record
    locks, which belong to the process, so that any close of the file by it drops them.
    """
    if platform == "linux":
        # l_type, l_whence, l_start, l_len, l_pid, in the order of this kernel
        return LockCommands(fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW, fcntl.F_OFD_GETLK, "hhqqi0q")
    layout = "hhqqi0q" if sys.platform == "linux" else "qqihhi0q"
    return LockCommands(fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_GETLK, layout)


def set_lock(
    commands: LockCommands, descriptor: int, kind: int, start: int, length: int, *, wait: bool
) -> bool:
    """Lock or unlock a range of a file; False if another holds it and `wait` is false.

    Waiting takes place in the kernel. In the main thread Ctrl-C ends it.
    """
    request = _packed(commands, kind, start, length)
    try:
        fcntl.fcntl(descriptor, commands.wait if wait else commands.set, request)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


class Blocker(NamedTuple):
    """A lock that is in the way; the kernel names no process for a lock of a description (-1)."""

    kind: int
    pid: int


def find_blocker(
    commands: LockCommands, descriptor: int, kind: int, start: int, length: int
) -> Blocker | None:
    """Return the lock that would refuse a lock of that kind, or None."""
    answer = fcntl.fcntl(descriptor, commands.get, _packed(commands, kind, start, length))
    fields = struct.unpack(commands.layout, answer)
    found, pid = (fields[0], fields[4]) if commands.layout[0] == "h" else (fields[3], fields[2])
    return None if found == fcntl.F_UNLCK else Blocker(found, pid)


def _packed(commands: LockCommands, kind: int, start: int, length: int) -> bytes:
    if commands.layout[0] == "h":
        return struct.pack(commands.layout, kind, os.SEEK_SET, start, length, 0)
    return struct.pack(commands.layout, start, length, 0, kind, os.SEEK_SET, 0)


# --- who it is --------------------------------------------------------------------------------


def writers_of(identity: Identity) -> str:
    """Return the processes that hold a file as its writer, in words; "" if none can be seen.

    The kernel does not tell who holds the lock of a description, but on Linux it lists the locks of
    each descriptor for those who may look. For messages only: nothing is decided by it.
    """
    pids = [int(name) for name in _listed("/proc") if name.isdecimal()]
    found = [describe_process(pid) for pid in pids if _holds(pid, identity)]
    return " and ".join(found[:_NAMED_MAX])


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # not Linux, another user's process, or one that has just ended
        return []


def _holds(pid: int, identity: Identity) -> bool:
    folder = f"/proc/{pid}/fd"
    for name in _listed(folder):
        try:
            if identity_of(f"{folder}/{name}") == identity and _locks_writer_byte(pid, name):
                return True
        except OSError:
            continue
    return False


def _locks_writer_byte(pid: int, descriptor: str) -> bool:
    for line in _text(f"/proc/{pid}/fdinfo/{descriptor}").splitlines():
        words = line.split()
        if words[:1] == ["lock:"] and "WRITE" in words and words[-2:] == [str(WRITER_BYTE)] * 2:
            return True
    return False


def describe_process(pid: int) -> str:
    """Return a process as a message names it: number, first words of its command, when it began."""
    name = f"process {pid}"
    words = _text(f"/proc/{pid}/cmdline").split("\0")[:_COMMAND_WORDS_MAX]
    command = " ".join(word[:_WORD_LENGTH_MAX] for word in words if word)
    if command:
        name += f" ({''.join(c if c.isprintable() else '?' for c in command)})"
    began = _began_seconds(pid)
    if began is None:
        return name
    return f"{name}, running since {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(began))}"


def _began_seconds(pid: int) -> float | None:
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    boot = [line for line in _text("/proc/stat").splitlines() if line.startswith("btime ")]
    if len(fields) < 20 or not boot:
        return None
    return int(boot[0].split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
