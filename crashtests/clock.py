"""A clock for processes that are killed: it stands where it was set, the same in each of them."""

from __future__ import annotations

from agent_replay.clock import NANOSECONDS, Reading

_WALL_SECONDS = 1_800_000_000
_BOOT_SECONDS = 50_000
_BOOT_ID = "00000000-0000-4000-8000-000000000000"


class SetClock:
    """A clock that stands where it was set, in seconds since a fixed moment of one boot."""

    def __init__(self, at_seconds: float) -> None:
        self.at_seconds = at_seconds

    def read(self) -> Reading:
        """Return the time that it shows."""
        passed_ns = round(self.at_seconds * NANOSECONDS)
        wall_ns = _WALL_SECONDS * NANOSECONDS + passed_ns
        return Reading(wall_ns, _BOOT_SECONDS * NANOSECONDS + passed_ns, _BOOT_ID)

    def pass_until(self, wall_seconds: float) -> None:
        """Let time pass until the wall clock shows that, and a moment more."""
        self.at_seconds = max(self.at_seconds, wall_seconds - _WALL_SECONDS + 0.001)
