"""Descriptors, locks and processes at the level of the kernel's own structures."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path

import pytest

from agent_replay.errors import DatabaseLocked, StorageError, UnusableDatabase
from agent_replay.store import files, holder, log
from agent_replay.store.holder import WRITER_BYTE, Blocker, Identity, LockCommands
from agent_replay.store.lock import WriterLock
from tests.storage.actors import fill


@pytest.fixture
def place(tmp_path: Path) -> str:
    path = files.check_path(tmp_path / "runs.db")
    assert files.create(path, fill)
    return path


# --- descriptors and claims -------------------------------------------------------------------


def test_what_is_given_back_is_lent_again_for_the_same_access(place: str) -> None:
    identity = holder.identity_of(place)
    reading = holder.borrow(place, os.O_RDONLY)
    writing = holder.borrow(place, os.O_RDWR)
    assert holder.identity_of_descriptor(reading) == identity
    assert os.get_inheritable(reading) is False
    holder.give_back(reading)
    holder.give_back(writing)
    assert holder.borrow(place, os.O_RDWR) == writing
    assert holder.borrow(place, os.O_RDONLY) == reading
    other = holder.borrow(place, os.O_RDONLY)
    assert other not in (reading, writing)
    for descriptor in (reading, writing, other):
        holder.give_back(descriptor)
    holder.close_aside(identity)
    for descriptor in (reading, writing, other):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
        holder.close_shielded(descriptor)  # once more does nothing
        holder.give_back(descriptor)
    with pytest.raises(FileNotFoundError):
        holder.borrow(f"{place}.none", os.O_RDONLY)


def test_a_claim_is_made_once_until_it_is_withdrawn() -> None:
    identity = Identity(-1, -1)
    assert not holder.is_claimed(identity)
    assert holder.claim(identity) is True
    assert holder.claim(identity) is False
    assert holder.is_claimed(identity)
    holder.withdraw(identity)
    holder.withdraw(identity)
    assert not holder.is_claimed(identity)


# --- the kernel's structures ------------------------------------------------------------------


def test_each_platform_has_its_commands_and_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        assert holder.lock_commands("linux") == LockCommands(
            fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW, fcntl.F_OFD_GETLK, "hhqqi0q"
        )
        assert holder.lock_commands("darwin") == LockCommands(
            fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_GETLK, "hhqqi0q"
        )
    monkeypatch.setattr(sys, "platform", "darwin")
    assert holder.lock_commands("darwin").layout == "qqihhi0q"


LINUX = LockCommands(36, 37, 38, "hhqqi0q")
DARWIN = LockCommands(8, 9, 7, "qqihhi0q")


@pytest.mark.parametrize(
    ("commands", "answer", "asked"),
    [
        (LINUX, (fcntl.F_WRLCK, 0, 7, 8, 99), (fcntl.F_RDLCK, os.SEEK_SET, 5, 6, 0)),
        (DARWIN, (7, 8, 99, fcntl.F_WRLCK, 0, 0), (5, 6, 0, fcntl.F_RDLCK, os.SEEK_SET, 0)),
    ],
)
def test_a_lock_is_asked_for_and_read_in_the_layout_of_the_platform(
    monkeypatch: pytest.MonkeyPatch,
    commands: LockCommands,
    answer: tuple[int, ...],
    asked: tuple[int, ...],
) -> None:
    calls: list[tuple[int, int, tuple[int, ...]]] = []
    free = tuple(fcntl.F_UNLCK if value == fcntl.F_WRLCK else value for value in answer)
    answers = [answer, free]

    def kernel(descriptor: int, command: int, request: bytes) -> bytes:
        calls.append((descriptor, command, struct.unpack(commands.layout, request)))
        return struct.pack(commands.layout, *(answers.pop(0) if answers else answer))

    monkeypatch.setattr(fcntl, "fcntl", kernel)
    assert holder.find_blocker(commands, 3, fcntl.F_RDLCK, 5, 6) == Blocker(fcntl.F_WRLCK, 99)
    assert holder.find_blocker(commands, 3, fcntl.F_RDLCK, 5, 6) is None
    assert holder.set_lock(commands, 3, fcntl.F_RDLCK, 5, 6, wait=False)
    assert holder.set_lock(commands, 3, fcntl.F_RDLCK, 5, 6, wait=True)
    made = [commands.get, commands.get, commands.set, commands.wait]
    assert calls == [(3, command, asked) for command in made]


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EACCES, errno.EIO])
def test_a_lock_that_another_holds_is_no_error_and_every_other_one_is(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def kernel(*_: object) -> bytes:
        raise OSError(code, "so it is")

    monkeypatch.setattr(fcntl, "fcntl", kernel)
    if code == errno.EIO:
        with pytest.raises(OSError, match="so it is"):
            holder.set_lock(LINUX, 3, fcntl.F_RDLCK, 5, 6, wait=False)
    else:
        assert holder.set_lock(LINUX, 3, fcntl.F_RDLCK, 5, 6, wait=False) is False


# --- who it is --------------------------------------------------------------------------------


def texts(monkeypatch: pytest.MonkeyPatch, **found: str) -> None:
    """Let /proc say this of process 42, and nothing else."""
    by_path = {f"/proc/42/{name}": text for name, text in found.items()}
    by_path["/proc/stat"] = "cpu 1 2\nbtime 1000\nprocesses 9\n"
    monkeypatch.setattr(holder, "_text", lambda path: by_path.get(path, ""))
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_CLK_TCK": 100}[name])


STAT = "42 (a ) b) S " + " ".join(str(number) for number in range(4, 22)) + " 6000 23 24"


def test_a_process_is_named_by_its_number_its_first_words_and_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts(monkeypatch, cmdline=f"python\0{'x' * 50}\0\0-m\0more\0", stat=STAT)
    assert holder.describe_process(42) == (
        f"process 42 (python {'x' * 40}), running since 1970-01-01T00:17:40Z"
    )
    texts(monkeypatch, cmdline="a\x1bb\0c\0d\0e\0")
    assert holder.describe_process(42) == "process 42 (a?b c d)"
    texts(monkeypatch, stat="42 (a) S 1 2 3")
    assert holder.describe_process(42) == "process 42"
    texts(monkeypatch, stat=STAT.removesuffix(" 23 24"))
    assert holder.describe_process(42) == "process 42, running since 1970-01-01T00:17:40Z"
    texts(monkeypatch, stat=STAT.removesuffix(" 6000 23 24"))
    assert holder.describe_process(42) == "process 42"


def test_a_process_that_cannot_be_looked_at_is_its_number() -> None:
    assert holder._text("/proc/none") == ""
    assert holder._listed("/proc/none") == []
    assert holder.describe_process(2**30) == f"process {2**30}"


def test_the_writers_of_a_file_are_those_that_lock_its_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = [11, 12, 13, 14]
    monkeypatch.setattr(holder, "_listed", lambda folder: ["self", "11", "12", "13", "14", "x9"])
    monkeypatch.setattr(holder, "_holds", lambda pid, identity: pid in held)
    monkeypatch.setattr(holder, "describe_process", lambda pid: f"process {pid}")
    identity = Identity(1, 2)
    assert holder.writers_of(identity) == "process 11 and process 12 and process 13"
    held[:] = [14]
    assert holder.writers_of(identity) == "process 14"
    held.clear()
    assert holder.writers_of(identity) == ""


@pytest.mark.parametrize(
    ("line", "locks"),
    [
        (f"lock:\t1: OFDLCK  ADVISORY  WRITE -1 00:1:2 {WRITER_BYTE} {WRITER_BYTE}", True),
        (f"lock:\t1: POSIX  ADVISORY  WRITE 7 00:1:2 {WRITER_BYTE} {WRITER_BYTE}", True),
        (f"lock:\t1: OFDLCK  ADVISORY  READ -1 00:1:2 {WRITER_BYTE} {WRITER_BYTE}", False),
        (f"lock:\t1: OFDLCK  ADVISORY  WRITE -1 00:1:2 {WRITER_BYTE} EOF", False),
        ("lock:\t1: OFDLCK  ADVISORY  WRITE -1 00:1:2 0 EOF", False),
        (f"block:\t1: OFDLCK  ADVISORY  WRITE -1 00:1:2 {WRITER_BYTE} {WRITER_BYTE}", False),
    ],
)
def test_a_lock_on_the_writers_byte_is_known_by_its_line(
    monkeypatch: pytest.MonkeyPatch, line: str, locks: bool
) -> None:
    asked: list[str] = []
    text = f"pos:\t0\nflags:\t0100002\n{line}\n"

    def read(path: str) -> str:
        asked.append(path)
        return text

    monkeypatch.setattr(holder, "_text", read)
    assert holder._locks_writer_byte(42, "7") is locks
    assert asked == ["/proc/42/fdinfo/7"]


def test_a_holder_is_found_among_all_its_descriptors(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after one that has been closed meanwhile, and never by another file's lock."""
    identity, other = holder.identity_of(place), Identity(1, 1)
    found = {"3": other, "5": identity, "6": identity}

    def identity_of(path: str) -> Identity:
        name = path.removeprefix("/proc/42/fd/")
        if name not in found:
            raise FileNotFoundError(path)
        return found[name]

    locked = {"3", "6"}
    monkeypatch.setattr(holder, "_listed", lambda folder: ["3", "4", "5", "6"])
    monkeypatch.setattr(holder, "identity_of", identity_of)
    monkeypatch.setattr(holder, "_locks_writer_byte", lambda pid, name: name in locked)
    assert holder._holds(42, identity)
    locked.remove("6")
    assert not holder._holds(42, identity)


# --- the writer's lock ------------------------------------------------------------------------


class Kernel:
    """Locks that are taken or not as a test wants it, and what was asked of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **free: bool) -> None:
        self.asked: list[tuple[int, int, int, bool]] = []
        self.free = free
        monkeypatch.setattr(holder, "set_lock", self.set_lock)

    def set_lock(
        self, _commands: LockCommands, _descriptor: int, kind: int, start: int, length: int,
        *, wait: bool,
    ) -> bool:  # fmt: skip
        self.asked.append((kind, start, length, wait))
        name = {fcntl.F_WRLCK: "byte", fcntl.F_RDLCK: "shared", fcntl.F_UNLCK: "let_go"}[kind]
        return self.free.get(name, True)


SHARED = (0x40000002, 510)
LET_GO = [(fcntl.F_UNLCK, WRITER_BYTE, 1, False), (fcntl.F_UNLCK, *SHARED, False)]


def acquired(place: str, platform: str = "linux", *, wait: bool = False) -> str:
    """Return what is said of a lock that is refused."""
    with pytest.raises(DatabaseLocked) as caught:
        WriterLock.acquire(place, busy_seconds=0.02, platform=platform, wait=wait)
    assert not holder.is_claimed(holder.identity_of(place))
    return str(caught.value)


def test_a_writer_that_is_there_is_named_or_said_to_be_out_of_sight(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(monkeypatch, byte=False)
    monkeypatch.setattr(holder, "writers_of", lambda identity: "process 7")
    assert acquired(place) == (
        f"{place}: another writer holds it: process 7; wait with --wait, or stop that process"
    )
    assert kernel.asked == [(fcntl.F_WRLCK, WRITER_BYTE, 1, False), *LET_GO]
    monkeypatch.setattr(holder, "writers_of", lambda identity: "")
    assert acquired(place) == (
        f"{place}: another writer holds it: a process that cannot be seen from here (another user "
        "or container); wait with --wait, or stop that process"
    )


def test_a_program_that_has_the_whole_file_is_named_after_the_wait(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(monkeypatch, shared=False)
    said = f"{place}: another program has had the whole file for itself for 0.02 seconds: "
    act = "; stop it, or wait until it is done"
    monkeypatch.setattr(holder, "describe_process", lambda pid: f"process {pid}")
    for blocker, by in (
        (Blocker(fcntl.F_WRLCK, 7), "process 7"),
        (Blocker(fcntl.F_WRLCK, -1), "unknown"),
        (Blocker(fcntl.F_WRLCK, 0), "unknown"),
        (None, "unknown"),
    ):
        monkeypatch.setattr(holder, "find_blocker", lambda *_, found=blocker: found)
        kernel.asked.clear()
        assert acquired(place) == said + by + act
        tries = kernel.asked[1:-2]
        assert tries == [(fcntl.F_RDLCK, *SHARED, False)] * len(tries)
        assert len(tries) >= 2
        assert kernel.asked[-2:] == LET_GO


@pytest.mark.skipif(sys.platform != "linux", reason="the locks of Linux")
@pytest.mark.parametrize("wait", [False, True])
def test_the_locks_of_a_writer_are_its_byte_and_those_that_sqlite_takes_last(
    place: str, monkeypatch: pytest.MonkeyPatch, wait: bool
) -> None:
    kernel = Kernel(monkeypatch)
    held = WriterLock.acquire(place, wait=wait)
    assert kernel.asked == [
        (fcntl.F_WRLCK, WRITER_BYTE, 1, wait),
        (fcntl.F_RDLCK, *SHARED, wait),
    ]
    assert held.path == place
    assert held.identity == holder.identity_of(place)
    kernel.asked.clear()
    held.confirm()
    assert kernel.asked == []
    Path(f"{place}-shm").touch()
    held.hold_shared_memory()
    held.hold_shared_memory()
    assert kernel.asked == [(fcntl.F_RDLCK, 128, 1, False)]
    held.release()
    held.release()
    weak = WriterLock.acquire(place, platform="darwin")
    kernel.asked.clear()
    weak.confirm()
    weak.hold_shared_memory()
    assert kernel.asked == [(fcntl.F_WRLCK, WRITER_BYTE, 1, False)]
    kernel.free["byte"] = False
    with pytest.raises(DatabaseLocked, match="no longer holds it"):
        weak.confirm()
    weak.release()


# --- the log, read without SQLite -------------------------------------------------------------

SALT = b"saltsalt"
PAGE = 512


def frame(page: int, content: bytes, salt: bytes = SALT) -> bytes:
    return page.to_bytes(4) + bytes(4) + salt + bytes(8) + content.ljust(PAGE, b"\0")


def header(magic: int = 0x377F0682, version: int = 3007000) -> bytes:
    numbers = (magic, version, PAGE)
    return b"".join(n.to_bytes(4) for n in numbers) + bytes(4) + SALT + bytes(8)


@pytest.mark.parametrize(
    ("written", "ahead"),
    [
        (header() + frame(1, b"one") + frame(2, b"two"), False),
        (header(0x377F0683) + frame(2, b"new"), True),
        (header() + frame(2, b"new"), True),
        (header() + frame(2, b"new") + frame(2, b"two"), False),
        (header() + frame(2, b"two") + frame(2, b"new"), True),
        (header() + frame(1, b"one") + frame(3, b"more"), True),
        (header() + frame(1, b"one") + frame(2, b"new", b"oldsalts"), False),
        (header() + frame(1, b"one") + frame(0, b"") + frame(2, b"new"), False),
        (header() + frame(2, b"new")[:20], False),
        (header(magic=0x377F0684) + frame(2, b"new"), False),
        (header(version=3007001) + frame(2, b"new"), False),
        (header()[:31], False),
    ],
)
def test_a_log_is_ahead_if_the_last_version_of_a_page_is_not_in_the_file(
    tmp_path: Path, written: bytes, ahead: bool
) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"one".ljust(PAGE, b"\0") + b"two".ljust(PAGE, b"\0"))
    Path(f"{path}-wal").write_bytes(written)
    before = len(os.listdir("/dev/fd"))
    assert files.unconfirmed(str(path)) is ahead
    holder.close_aside(holder.identity_of(str(path)))
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), UnusableDatabase),
        (OSError(errno.EIO, "Input/output error"), StorageError),
    ],
)
def test_a_log_that_cannot_be_looked_at_is_told_with_who_may_not(
    place: str, monkeypatch: pytest.MonkeyPatch, error: OSError, kind: type[Exception]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(holder, "open_shielded", fail)
    with pytest.raises(kind) as caught:
        files.unconfirmed(place)
    assert str(caught.value) == (
        f"{place}: user {os.geteuid()} cannot compare its -wal with it: {error.strerror}; check "
        "who may read both"
    )


def test_who_is_at_work_is_told_by_the_claim_or_by_the_lock(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log.writer_at_work(place) is None
    held = WriterLock.acquire(place)
    assert f"process {os.getpid()} (" in str(log.writer_at_work(place))
    held.release()
    asked: list[tuple[object, ...]] = []

    def blocker(*given: object) -> Blocker:
        asked.append(given[2:])
        return Blocker(fcntl.F_WRLCK, -1)

    monkeypatch.setattr(holder, "find_blocker", blocker)
    monkeypatch.setattr(holder, "writers_of", lambda identity: f"those of {identity.inode}")
    assert log.writer_at_work(place) == f"those of {os.stat(place).st_ino}"
    assert asked == [(fcntl.F_WRLCK, WRITER_BYTE, 1)]
    assert not files.unconfirmed(place)
    assert WRITER_BYTE == 1 << 62
    holder.close_aside(holder.identity_of(place))


def test_a_writer_of_this_process_is_known_where_its_locks_are_not_seen(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process does not meet its own POSIX locks."""
    page = b"new".ljust(PAGE, b"\0")
    Path(place).write_bytes(bytes(2 * PAGE))
    Path(f"{place}-wal").write_bytes(header() + frame(2, page))
    assert files.unconfirmed(place)
    monkeypatch.setattr(holder, "find_blocker", lambda *_: None)
    held = WriterLock.acquire(place)
    assert not files.unconfirmed(place)
    held.release()
    holder.close_aside(holder.identity_of(place))


def test_whoever_looks_takes_one_descriptor_and_not_one_each_time(place: str) -> None:
    log.writer_at_work(place)
    before = len(os.listdir("/dev/fd"))
    log.writer_at_work(place)
    files.unconfirmed(place)
    assert len(os.listdir("/dev/fd")) == before
    holder.close_aside(holder.identity_of(place))


def test_without_a_log_nothing_is_ahead_and_a_link_is_none(place: str) -> None:
    assert not os.path.lexists(f"{place}-wal")
    assert not files.unconfirmed(place)
    Path(place).write_bytes(bytes(2 * PAGE))
    Path(f"{place}-elsewhere").write_bytes(header() + frame(2, b"new"))
    os.symlink(f"{place}-elsewhere", f"{place}-wal")
    with pytest.raises(StorageError, match="cannot compare its -wal with it"):
        files.unconfirmed(place)
    holder.close_aside(holder.identity_of(place))


def test_a_text_that_is_not_utf_8_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "name"
    path.write_bytes(b"ab\xff")
    assert holder._text(str(path)) == "ab\ufffd"
