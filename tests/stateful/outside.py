"""The world outside of a stateful test: time, clocks that may lie, and tools that keep a ledger.

Nothing here knows the runtime. A world can be copied, so that the runtime and the reference meet
equal ones. What a call does is written in the script of its step, a word for each attempt, the last
one for all later ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

SECOND = 10**9
WINDOW = 1000 * SECOND
LANDS = 100 * SECOND
BOUND = 60 * SECOND

CONTRACT_OF = {
    "look": "read_only",
    "keyed": "idempotent",
    "windowed": "idempotent",
    "asked": "queryable",
    "dark": "opaque",
}
DEEDS = ("ok", "refuse", "refuse_key", "unsent", "lost", "late", "interrupt", "unstorable", "large")
LOOKS = ("ok", "raise", "nonsense")

Place = tuple[str, str]
"""Run and step."""


class Died(BaseException):
    """The process is no more; whoever catches this on the way has no right to do anything."""


class Interrupted(BaseException):
    """The tool was interrupted, and the process lives on."""


class Seen(NamedTuple):
    """What the clocks show."""

    wall: int
    boot: int
    boot_id: str


@dataclass
class Time:
    """Time as it is, and clocks: the one since boot is true, the wall clock may be set."""

    true: int = 1_800_000_000 * SECOND
    wall_error: int = 0
    boots: int = 1
    booted: int = 1_799_950_000 * SECOND
    set_back: bool = False
    """Whether the wall clock was ever set back."""

    def read(self) -> Seen:
        return Seen(self.true + self.wall_error, self.true - self.booted, f"boot-{self.boots}")

    def pass_by(self, seconds: int) -> None:
        self.true += seconds * SECOND

    def jump(self, seconds: int) -> None:
        """Set the wall clock."""
        self.wall_error += seconds * SECOND
        self.set_back = self.set_back or seconds < 0

    def reboot(self, off_seconds: int) -> None:
        self.true += off_seconds * SECOND
        self.boots, self.booted = self.boots + 1, self.true - 5 * SECOND


@dataclass(frozen=True)
class Landing:
    """Something that was sent and has not arrived; after `until` it never does."""

    place: Place
    tool: str
    until: int | None


@dataclass
class Outside:
    """What really happened."""

    time: Time = field(default_factory=Time)
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    effects: Counter[Place] = field(default_factory=Counter)
    arrived: dict[Place, int] = field(default_factory=dict)
    landings: list[Landing] = field(default_factory=list)
    looks: Counter[Place] = field(default_factory=Counter)

    def copy(self) -> Outside:
        """Return an equal world that goes its own way."""
        return Outside(
            time=replace(self.time),
            calls=list(self.calls),
            effects=Counter(self.effects),
            arrived=dict(self.arrived),
            landings=list(self.landings),
            looks=Counter(self.looks),
        )

    def call(self, place: Place, tool: str, script: list[str], attempt: int) -> tuple[str, object]:
        """Do what the script says, and return the news of it with a value."""
        self.calls.append((*place, attempt))
        deed = script[min(attempt, len(script)) - 1]
        if deed in ("refuse", "refuse_key"):
            whole = deed == "refuse_key" and not self.may_have_happened(place)
            return "refused_key" if whole else "refused", None
        if deed == "unsent":
            return "raised", None
        if deed == "late":
            until = {"asked": BOUND, "windowed": LANDS}.get(tool)
            self.landings.append(
                Landing(place, tool, None if until is None else self.time.true + until)
            )
            return "raised", None
        value = self.happen(place, tool)
        word = {"lost": "raised", "interrupt": "interrupted"}.get(deed, "replied")
        return word, (value if deed == "ok" else deed) if word == "replied" else None

    def happen(self, place: Place, tool: str) -> object:
        """Arrive at the tool: have the effect, unless the tool knows the key already."""
        if tool == "look":
            return {"looked": True}
        known = place in self.arrived and tool in ("keyed", "windowed")
        if tool == "windowed" and known and self.time.true - self.arrived[place] > WINDOW:
            known = False  # the tool has forgotten the key
        if not known:
            self.effects[place] += 1
            self.arrived.setdefault(place, self.time.true)
        return {"receipt": f"{place[1]}-{self.effects[place]}"}

    def look_up(self, place: Place, script: list[str]) -> tuple[str, object]:
        """Answer a probe, and return the news of it with a value."""
        self.looks[place] += 1
        look = script[min(self.looks[place], len(script)) - 1]
        if look != "ok":
            return "silent", look
        if self.effects[place]:
            return "present", {"receipt": f"{place[1]}-{self.effects[place]}"}
        return "absent", None

    def land(self, landing: Landing) -> None:
        """Let something arrive that was sent earlier, if it still can."""
        self.landings.remove(landing)
        if landing.until is None or self.time.true <= landing.until:
            self.happen(landing.place, landing.tool)

    def may_land(self, place: Place) -> bool:
        return any(
            one.place == place and (one.until is None or self.time.true <= one.until)
            for one in self.landings
        )

    def may_have_happened(self, place: Place) -> bool:
        return bool(self.effects[place]) or self.may_land(place)
