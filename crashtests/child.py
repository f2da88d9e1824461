"""A process that is made to be killed: what it says, how it is held, killed and reaped.

A child leads a process group of its own, so that what it started is killed with it. It has two
pipes: on one it says things, a line of JSON each; from the other it reads a byte when it is to
wait, so that it ends by itself where its parent has died. Nothing here sleeps, and every wait is
bounded. What does not show what it was meant to show is `Fooled`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

WAIT_SECONDS_MAX = 60.0
"""How long a child may be silent, on a machine that has much else to do."""

ORPHANED = 71
"""Exit status of a child whose parent has gone."""
BROKEN = 72
"""Exit status of a child that failed by itself; the traceback is on its standard error."""

Said = dict[str, Any]


class Fooled(Exception):
    """What was seen does not show what it was meant to show."""


def readable(descriptor: int, seconds: float) -> bool:
    """Wait until something can be read; say whether it can. `select` knows no number over 1023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


class Line:
    """The child's own end: it says things, and waits to be let go on."""

    def __init__(self, report: int, control: int) -> None:
        self._report = report
        self._control = control

    @property
    def descriptors(self) -> tuple[int, int]:
        """The child's ends of the pipes, which no child of its own may inherit."""
        return self._report, self._control

    def say(self, **said: object) -> None:
        """Tell the parent something, a JSON object."""
        left = json.dumps(said).encode() + b"\n"
        while left:
            left = left[os.write(self._report, left) :]

    def wait(self) -> None:
        """Wait until the parent lets go on; end if it has gone."""
        if not os.read(self._control, 1):
            os._exit(ORPHANED)


class Child:
    """The parent's view of a child that was started and not yet reaped."""

    def __init__(self, pid: int, report: int, control: int) -> None:
        self.pid = pid
        self.termination: int | None = None
        self._report = report
        self._control = control
        self._received = b""

    def fileno(self) -> int:
        """Return the descriptor on which it says things, for `select`."""
        return self._report

    @property
    def descriptors(self) -> tuple[int, int]:
        """The parent's ends of the pipes, which no other child may inherit."""
        return self._report, self._control

    def hear(self, seconds: float = WAIT_SECONDS_MAX) -> Said | None:
        """Return what it says next, or None if it has ended; raise `Fooled` if it is silent."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            left_seconds = max(0.0, deadline - time.monotonic())
            if not readable(self._report, left_seconds):
                raise Fooled(f"process {self.pid} said nothing for {seconds} seconds")
            part = os.read(self._report, 1 << 16)
            if not part:
                return None
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        said = json.loads(line)
        if not isinstance(said, dict):
            raise Fooled(f"process {self.pid} said {said!r}")
        return said

    def release(self) -> None:
        """Let it go on from where it waits."""
        os.write(self._control, b"!")

    def is_dead(self) -> bool:
        """Say whether it has ended; it is not reaped by that."""
        if self.termination is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def kill(self) -> int:
        """Kill it, with all that it started, while it waits; return its termination code.

        Raises `Fooled` if it had ended, or had gone on: then it was not killed where it waited.
        """
        was_dead = self.is_dead()
        os.killpg(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        more = self._received or (readable(self._report, 0) and os.read(self._report, 1))
        termination = self.reap()
        if was_dead or termination != -signal.SIGKILL:
            raise Fooled(f"process {self.pid} ended with {termination} before it was killed")
        if more:
            raise Fooled(f"process {self.pid} did not wait until it was killed")
        return termination

    def reap(self) -> int:
        """Wait for its end, end what it has left in its group, and return its termination code."""
        if self.termination is None:
            self._wait(WAIT_SECONDS_MAX)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(
                    self.pid, signal.SIGKILL
                )  # not reaped yet, so the number is nobody else's
            self.termination = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._report)
            os.close(self._control)
        return self.termination

    def _wait(self, seconds: float) -> None:
        """Return when it is dead; raise `Fooled` if that takes too long."""
        descriptor = os.pidfd_open(self.pid)
        try:
            if not readable(descriptor, seconds):
                raise Fooled(f"process {self.pid} did not end within {seconds} seconds")
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Leave no process behind."""
        if self.termination is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self.reap()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


REPORTS_ON = 9
WAITS_ON = 0
"""The descriptors of a child that is an interpreter of its own: `Line(REPORTS_ON, WAITS_ON)`."""


def spawn(arguments: Sequence[str], *, path: Sequence[str], errors: Path) -> Child:
    """Start an interpreter with these arguments; what it prints goes to the end of a file.

    `path` is where it finds modules.
    """
    report, report_end = os.pipe()
    control_end, control = os.pipe()
    sink = os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    moved = ((control_end, WAITS_ON), (sink, 1), (sink, 2), (report_end, REPORTS_ON))
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments],
            {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in path if part)},
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in moved],
            setpgroup=0,
        )
    finally:
        for descriptor in (report_end, control_end, sink):
            os.close(descriptor)
    return Child(pid, report, control)


def fork(work: Callable[[Line], None], closes: Iterable[int] = ()) -> Child:
    """Start a child that does `work` and then ends with 0; or with BROKEN where that raised.

    `closes` are the descriptors that it must not inherit: those of its siblings, whose lines would
    else stay open when they end. Only for a process without threads.
    """
    report, report_end = os.pipe()
    control_end, control = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(work, Line(report_end, control_end), [report, control, *closes])
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)  # as the child does; whoever is first
    os.close(report_end)
    os.close(control_end)
    return Child(pid, report, control)


def _become(work: Callable[[Line], None], line: Line, closes: Iterable[int]) -> NoReturn:
    """Be the child: no error may lead it back into what its parent was doing."""
    try:
        os.setpgid(0, 0)
        for descriptor in closes:
            os.close(descriptor)
        work(line)
        os._exit(0)
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # its parent has gone, or goes for the same reason
    except BaseException:  # noqa: BLE001 - whatever it is, it ends here
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(BROKEN)
