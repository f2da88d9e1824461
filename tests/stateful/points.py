"""The points that a process passes, and what happens at some of them.

The runtime and the reference are each given a schedule with the same doings, so that the same
happens to both at the same point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

COMMITS = ("before", "inside", "after")
"""Around a transaction: before it begins, when all is in it but the commit, after the commit."""
CALLS = ("call", "called", "probe", "probed")
"""Around what is asked of a tool: before it has any effect, and after."""
KINDS = (*COMMITS, "told", *CALLS)
"""`told` is the moment at which a hook is told of a row that is durable."""

_OUTSIDE = frozenset({"told", *CALLS})
FITS = {
    "die": frozenset(KINDS),
    "tear": frozenset({"inside"}),
    "fail": frozenset(COMMITS),
    "read": frozenset(KINDS),
    "cancel": _OUTSIDE,
    "jump": _OUTSIDE,
    "confirm": frozenset({"probe", "probed"}),
    "abandon": frozenset({"probe", "probed"}),
}
"""Where each doing has a meaning; elsewhere it waits for the next point where it has."""
ENDS = ("die", "tear")


class Doing(NamedTuple):
    """Something that happens at the n-th point of an act, from 0, or at the next where it fits."""

    at: int
    what: str
    amount: int = 0


class Point(NamedTuple):
    """A point that was passed: `about` has the rows, the call, or nothing that is known yet."""

    kind: str
    about: str


class Schedule:
    """What happens at the points of one act, and a record of those that were passed."""

    def __init__(self, doings: Iterable[Doing], hand: Callable[[Doing, Point], None]) -> None:
        self._waiting = sorted(doings)
        self._hand = hand
        self.passed: list[Point] = []
        self.done: list[tuple[Doing, Point]] = []

    def at(self, kind: str, about: str) -> None:
        """Pass a point."""
        point = Point(kind, about)
        number = len(self.passed)
        self.passed.append(point)
        while (
            self._waiting and self._waiting[0].at <= number and kind in FITS[self._waiting[0].what]
        ):
            doing = self._waiting.pop(0)
            self.done.append((doing, point))
            self._hand(doing, point)

    def trace(self) -> list[Point]:
        """Return the points as both sides can know them.

        The runtime does not say which rows are to come before it begins a transaction, and the
        reference alone says of which contract a row is.
        """
        return [
            Point(kind, "" if kind == "before" else re.sub("/[a-z_]+", "", about))
            for kind, about in self.passed
        ]
