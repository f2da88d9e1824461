"""Processes that do what they are told, for tests of locks and of deaths.

The test asks a `Child` by name for one of the methods of `Actor`, and gets what it returned or the
error that it raised. Every wait is bounded; none of them decides anything.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import cast

import apsw

from agent_replay.errors import DatabaseLocked, ReplayError, WrongProcess
from agent_replay.store import connection, files
from agent_replay.store.lock import WriterLock
from crashtests.child import readable

WAIT_SECONDS_MAX = 30.0
NOBODY = 65534
SHARED_BYTES = (0x40000002, 510)
MARKER = b"here"
MARKER_OFFSET = 132  # four bytes of the wal-index that SQLite does not use


def fill(database: apsw.Connection) -> None:
    """Give a new database one table."""
    database.execute("create table rows (number integer primary key, text text) strict")


def until(condition: Callable[[], bool], what: str) -> None:
    """Return when the condition holds, or fail."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(0.005)


# --- in the test ------------------------------------------------------------------------------


class Failed(Exception):
    """What the actor was asked for raised an error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Child:
    """A process with an `Actor` in it, started when it is first needed."""

    def __init__(self) -> None:
        self._received = b""

    @cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def ask(self, name: str, *arguments: object) -> object:
        """Have it do something, and return the answer or raise `Failed`."""
        self.tell(name, *arguments)
        return self.answer()

    def tell(self, name: str, *arguments: object) -> None:
        """Have it begin something that may take its time."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *arguments]).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> object:
        """Return the answer to what it was told."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while b"\n" not in self._received:
            ready = readable(pipe, deadline - time.monotonic())
            assert ready, "timed out: the child does not answer"
            part = os.read(pipe, 1 << 16)
            assert part, f"the child has ended with {self._process.wait(WAIT_SECONDS_MAX)}"
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        said = json.loads(line)
        if "error" in said:
            raise Failed(said["error"], said["message"])
        return said["value"]

    def number(self, name: str, *arguments: object) -> int:
        """Return an answer that is a number."""
        found = self.ask(name, *arguments)
        assert isinstance(found, int)
        return found

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it, and collect it."""
        self._process.kill()
        assert self._process.wait(WAIT_SECONDS_MAX) == -signal.SIGKILL

    def end(self) -> None:
        """Let it end, if it was started and has not ended."""
        if "_process" not in vars(self):
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(WAIT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def children(count: int) -> Iterator[list[Child]]:
    """Give a number of children, and end them."""
    started: list[Child] = []
    try:
        started.extend(Child() for _ in range(count))
        yield started
    finally:
        for child in started:
            child.end()


def waits_for_the_writer(path: Path) -> bool:
    """Return whether somebody waits in the kernel for the writer's lock of a file."""
    inode = f":{path.stat().st_ino}"
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and inode in line and str(1 << 62) in line for line in lines)


# --- in the child -----------------------------------------------------------------------------


class Actor:
    """What a child can be asked for."""

    def __init__(self) -> None:
        self._path = ""
        self._lock: WriterLock | None = None
        self._connection: apsw.Connection | None = None
        self._kept: list[object] = []

    # the product's ways

    def create(self, path: str) -> bool:
        return files.create(files.check_path(path), fill)

    def acquire(self, path: str, wait: bool = False, platform: str = sys.platform) -> None:
        self._lock = WriterLock.acquire(path, wait=wait, platform=platform)
        self._path = files.check_path(path)

    def acquire_quickly(self, path: str) -> None:
        self._lock = WriterLock.acquire(path, busy_seconds=0.05)

    def confirm(self) -> None:
        self._held().confirm()

    def release(self) -> None:
        self._held().release()

    def connect(self, hold: bool = True) -> None:
        files.sync_log(self._path)
        self._connection = connection.connect_writer(self._path)
        if hold:
            self._held().hold_shared_memory()

    def connect_without_a_lock(self, path: str) -> None:
        self._path = path
        self._connection = connection.connect_writer(path)

    def close(self) -> None:
        self._open().close()

    def add(self, count: int) -> None:
        for _ in range(count):
            self._open().execute("insert into rows (text) values (?)", ("x" * 3000,))

    def begin(self) -> None:
        self._open().execute("begin immediate")

    def commit(self) -> None:
        self._open().execute("commit")

    def count(self) -> int:
        ((count,),) = self._open().execute("select count(*) from rows")
        return int(count)

    def read_with_the_product(self, path: str) -> int:
        reader = connection.connect_reader(path)
        ((count,),) = reader.execute("select count(*) from rows")
        reader.close()
        return int(count)

    def unconfirmed(self, path: str) -> bool:
        return files.unconfirmed(path)

    def _held(self) -> WriterLock:
        assert self._lock is not None
        return self._lock

    def _open(self) -> apsw.Connection:
        assert self._connection is not None
        return self._connection

    # what tools and people do

    def sniff(self, path: str) -> None:
        with open(path, "rb") as file:
            file.read(16)

    def visit(self, path: str) -> int:
        """Open, read and close the database with the SQLite of the distribution."""
        visitor = sqlite3.connect(path, timeout=1)
        ((count,),) = visitor.execute("select count(*) from rows")
        visitor.close()
        return int(count)

    def visit_in_a_thread(self, path: str) -> None:
        thread = threading.Thread(target=self.visit, args=(path,))
        thread.start()
        thread.join()

    def lock_all(self, path: str) -> None:
        """Do to the file what a program does that checkpoints with a lock on all of it."""
        descriptor = os.open(path, os.O_RDWR)
        self._kept.append(descriptor)
        lock = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, *SHARED_BYTES, 0)
        fcntl.fcntl(descriptor, fcntl.F_SETLK, lock)

    def mark_index(self, path: str) -> None:
        """Write into the wal-index what is gone once somebody truncates it."""
        descriptor = os.open(f"{path}-shm", os.O_RDWR)
        os.pwrite(descriptor, MARKER, MARKER_OFFSET)
        os.close(descriptor)

    def drop_privileges(self) -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    def set_umask(self, mask: int) -> None:
        os.umask(mask)

    def allow_file_size(self, size_bytes: int) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))

    def grow_log(self, size_bytes: int) -> None:
        files.grow_log(self._path, size_bytes)

    # children of its own

    def fork_and_misuse(self) -> str:
        """Fork a child that closes and releases everything, and ends as every program does."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            said = "no error"
            try:
                self._held().check_process()
            except WrongProcess as error:
                said = str(error)
            self._held().release()
            self._connection = None
            self._lock = None
            gc.collect()
            os.write(writing, said.encode())
            os.close(writing)
            os.close(sys.stdin.fileno())
            sys.exit(0)  # with every handler and finalizer
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        _, status = os.waitpid(pid, 0)
        assert status == 0
        self._held().check_process()
        return said

    def fork_and_acquire(self, path: str) -> str:
        """Return what a forked child is told that wants to be the writer itself."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                WriterLock.acquire(path)
            except DatabaseLocked as error:
                os.write(writing, str(error).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            return pipe.read()

    def fork_and_release(self, other: str) -> str:
        """Return what befalls a forked child's own lock when it releases its parent's."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            own = WriterLock.acquire(other)  # in the place of the descriptor that was closed
            self._held().release()
            try:
                own.confirm()
                os.write(writing, b"held")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            return pipe.read()

    def fork_and_list_descriptors(self, path: str) -> list[str]:
        """Return what a forked child has open of the database besides what SQLite has."""
        before = self._descriptors(path)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writing, json.dumps(self._descriptors(path)).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            after = cast("list[str]", json.load(pipe))
        assert set(after) < set(before)
        return after

    def _descriptors(self, path: str) -> list[str]:
        found = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{name}").startswith(path):
                    found.append(name)
        return found

    def leave_a_fork(self) -> int:
        pid = os.fork()
        if pid == 0:
            _idle()
        return pid

    def leave_a_program(self) -> int:
        code = "import signal; signal.pause()"
        program = subprocess.Popen(
            [sys.executable, "-c", code], close_fds=False, stdin=subprocess.DEVNULL
        )
        self._kept.append(program)
        return program.pid

    def leave_a_worker(self) -> int:
        worker = multiprocessing.get_context("fork").Process(target=_idle)
        worker.start()
        self._kept.append(worker)
        return worker.pid or 0

    # deaths

    def die_while_creating(self, path: str) -> list[int]:
        """Create the database again and again, each time killed one call into C later.

        Returns how many deaths left no database, a whole one, and something else.
        """
        outcomes = [0, 0, 0]
        step = 0
        while True:
            step += 1
            if not _is_killed(lambda: self.create(path), step):
                return outcomes
            whole = os.path.exists(path)
            wrong = any(os.path.exists(path + suffix) for suffix in ("-wal", "-shm", "-journal"))
            wrong |= any(os.stat(name).st_mode & 0o077 for name in _beside(path))
            self.create(path)
            wrong |= self.read_with_the_product(path) != 0
            wrong |= any(".new-" in name for name in _beside(path))
            outcomes[2 if wrong else int(whole)] += 1
            for name in _beside(path):
                os.unlink(name)


def _beside(path: str) -> list[str]:
    directory = os.path.dirname(path)
    return [os.path.join(directory, name) for name in os.listdir(directory)]


def _is_killed(act: Callable[[], object], step: int) -> bool:
    """Run it in a forked child that is killed at its call number `step` of a function of C."""
    pid = os.fork()
    if pid == 0:
        left = step

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal left
            if event == "c_call":
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        act()
        sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status in (0, signal.SIGKILL), f"the creation failed with {status}"
    return status != 0


def _idle() -> None:
    """Live on without the pipes, until killed."""
    for descriptor in (0, 1):
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        signal.pause()


def _serve() -> None:
    actor = Actor()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            said = {"value": getattr(actor, name)(*arguments)}
        except (ReplayError, apsw.Error, sqlite3.Error, OSError, KeyboardInterrupt) as error:
            said = {"error": type(error).__name__, "message": str(error)}
        os.write(1, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    _serve()
