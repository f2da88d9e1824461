"""Readings of the clocks, and what may be concluded from two of them.

Two questions rest on time: may a key still be sent again, and has the settle bound of a probe
passed. Clocks jump, so each event keeps a wall clock, a clock that counts since boot (also while
the machine sleeps) and the id of the boot. Every rule here answers on the safe side: a window is
said to have lapsed too early rather than too late, a bound to have passed too late rather than too
early. Durations and instants are integers in nanoseconds.
"""

import os
import time
from typing import NamedTuple, Protocol

NANOSECONDS = 1_000_000_000


class Reading(NamedTuple):
    """What the clocks showed at one moment."""

    wall_ns: int
    boot_ns: int
    boot_id: str


class Clock(Protocol):
    """Whatever can be asked for a reading; tests hand in their own."""

    def read(self) -> Reading:
        """Return what the clocks show now."""


class SystemClock:
    """The clocks of this machine.

    Where the kernel gives no boot id (outside Linux), each process counts as a boot of its own:
    then windows lapse earlier and bounds pass later than they could, never the other way round.
    """

    def __init__(self) -> None:
        self._boot_id = _boot_id()
        self._since_boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def read(self) -> Reading:
        """Return what the clocks show now."""
        return Reading(time.time_ns(), time.clock_gettime_ns(self._since_boot), self._boot_id)


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.urandom(16).hex()


def went_back(since: Reading, now: Reading) -> bool:
    """Return whether a clock shows an earlier time than was recorded, so that nothing follows
    from it."""
    same_boot = since.boot_id == now.boot_id
    return now.wall_ns < since.wall_ns or (same_boot and now.boot_ns < since.boot_ns)


def elapsed_at_most(since: Reading, now: Reading) -> int | None:
    """Return the largest time that may have passed, or None if the clocks cannot say."""
    if went_back(since, now):
        return None
    wall_ns = now.wall_ns - since.wall_ns
    if since.boot_id == now.boot_id:
        return max(wall_ns, now.boot_ns - since.boot_ns)
    return max(wall_ns, now.boot_ns)


def elapsed_at_least(since: Reading, now: Reading) -> int | None:
    """Return the smallest time that has surely passed, or None if the clocks cannot say."""
    if went_back(since, now):
        return None
    wall_ns = now.wall_ns - since.wall_ns
    if since.boot_id == now.boot_id:
        return min(wall_ns, now.boot_ns - since.boot_ns)
    return min(wall_ns, now.boot_ns)


def window_is_open(since: Reading, now: Reading, *, window_ns: int | None, lands_ns: int) -> bool:
    """Return whether a request that leaves now lands before the key's window ends.

    `window_ns` is None for a window without end. The window starts with the first request since the
    last refute; a resend never moves that start.
    """
    if window_ns is None:
        return True
    elapsed_ns = elapsed_at_most(since, now)
    return elapsed_ns is not None and elapsed_ns + lands_ns <= window_ns


def bound_has_passed(since: Reading, now: Reading, *, bound_ns: int) -> bool:
    """Return whether more than the settle bound has surely passed."""
    elapsed_ns = elapsed_at_least(since, now)
    return elapsed_ns is not None and elapsed_ns > bound_ns
