"""What may be concluded from two stored readings of the clocks: the design's rules, written anew.

In one boot the key window takes the larger of the two differences, the settle bound the smaller.
Over a boot the window takes the larger of wall difference and uptime, the bound needs both. A clock
that shows an earlier time than was recorded: the window has lapsed, and the bound has not passed.
"""

from __future__ import annotations

from models.conform.rows import Stamp


def window_is_open(since: Stamp, now: Stamp, window_ns: int, lands_ns: int) -> bool:
    """Return whether a request that leaves now lands before the key's window ends."""
    passed = _passed(since, now)
    return passed is not None and max(passed) + lands_ns <= window_ns


def bound_has_passed(since: Stamp, now: Stamp, bound_ns: int) -> bool:
    """Return whether more than the settle bound has surely passed."""
    passed = _passed(since, now)
    return passed is not None and min(passed) > bound_ns


def _passed(since: Stamp, now: Stamp) -> tuple[int, int] | None:
    """Return the two durations that the clocks give, or None if one of them went back."""
    same_boot = since.boot == now.boot
    by_wall = now.wall_ns - since.wall_ns
    by_boot = now.boot_ns - since.boot_ns if same_boot else now.boot_ns
    if by_wall < 0 or (same_boot and by_boot < 0):
        return None
    return by_wall, by_boot
