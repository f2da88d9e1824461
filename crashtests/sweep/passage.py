"""Where a process is on its way through the operations, and its stop at one of them."""

from __future__ import annotations

import mmap
import struct
from typing import Any

from agent_replay.events import Event
from crashtests.child import Line
from crashtests.vfs import Operation

_COUNT = struct.Struct("=q")


class Passage:
    """Counts the operations of this process from `begin` on, and waits at the one it was told.

    There is one of them, made before the fork: what watches the operations is installed there too.
    How many were passed stands in memory that is shared with the parent, which so sees after a kill
    that nothing was done after the announcement.
    """

    def __init__(self) -> None:
        self._count = mmap.mmap(-1, _COUNT.size)
        self._line: Line | None = None
        self._stop: int | None = None
        self._passed: list[Operation] = []
        self._told: list[tuple[int, str]] = []

    def share(self) -> None:
        """Begin at 0, in memory that this process shares with its children, and no others."""
        self._count = mmap.mmap(-1, _COUNT.size)

    def passed(self) -> int:
        """Return how many operations a child has come to, dead or alive."""
        return int(_COUNT.unpack_from(self._count)[0])

    def begin(self, line: Line, stop: int | None) -> None:
        """Count from now on, and wait before operation `stop`, the first being 0."""
        self._line = line
        self._stop = stop
        _COUNT.pack_into(self._count, 0, 0)

    def watch(self, operation: Operation) -> None:
        """Take note of an operation that is about to be carried out."""
        if self._line is None:
            return
        number = len(self._passed)
        self._passed.append(operation)
        _COUNT.pack_into(self._count, 0, number + 1)
        if number == self._stop:
            self._line.say(reached=number, operation=operation, told=self._told)
            self._line.wait()

    def tell(self, _run: str, row: Event) -> None:
        """Take note of a row that the runtime tells of, which must be durable by then."""
        self._told.append((row.seq, row.hash.hex()))

    def end(self, outcome: Any) -> None:
        """Say what it has come to, and count no longer."""
        line, self._line = self._line, None
        if line is not None:
            line.say(finished=outcome, passed=self._passed, told=self._told)


PASSAGE = Passage()
