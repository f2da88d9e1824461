"""The world outside of the runtime, for processes that are killed: tools, a ledger, a clock.

The ledger is the witness. It is a file of lines, each synced before the tool goes on, and the
runtime never opens it; every verdict counts what is written there. The tools keep what their
contract promises, and no more: a tool that forgets a key acts again when the key comes again.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agent_replay import (
    Absent,
    Adapter,
    Found,
    Json,
    Request,
    adapter,
    idempotent,
    opaque,
    queryable,
    read_only,
)
from crashtests.clock import SetClock

WINDOW_SECONDS = 1000
LANDS_SECONDS = 100
SETTLES_SECONDS = 60


class Point(NamedTuple):
    """A place at which a process can be killed, and what it is about: rows, or a step."""

    place: str
    about: tuple[str, ...] = ()


Reach = Callable[[Point], None]


class Entry(NamedTuple):
    """One line of the ledger: a call, a probe, an effect, or a mark of work in progress."""

    what: str
    step: str
    attempt: int
    key: str
    at_seconds: float
    pid: int


class Ledger:
    """What happened outside, kept by the tools."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def note(self, what: str, request: Request, at_seconds: float = 0) -> None:
        """Write a line; durable when it returns."""
        entry = Entry(what, request.step, request.attempt, request.key, at_seconds, os.getpid())
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, json.dumps(entry).encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write(self, entries: list[Entry]) -> None:
        """Replace it all: what the world would say if it had gone another way."""
        self._path.write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")

    def entries(self, what: str = "", key: str = "") -> list[Entry]:
        """Return the lines, or those of one kind or of one key."""
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        every = [Entry(*json.loads(line)) for line in text.splitlines()]
        return [one for one in every if what in ("", one.what) and key in ("", one.key)]


class InProgress(Exception):
    """The service works on this key already, or so it says."""


class World:
    """What a tool can see: the ledger, the time, and where it may be killed.

    The tools of a process are made before there is a ledger, because that takes a while; `enter`
    shows them the one that they are to keep.
    """

    def __init__(self) -> None:
        self.ledger = Ledger(os.devnull)
        self.clock = SetClock(0)
        self._reach: Reach = lambda point: None
        self._cancel: Callable[[], None] = lambda: None

    def enter(
        self, ledger: Ledger, clock: SetClock, reach: Reach, cancel: Callable[[], None]
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self._reach = reach
        self._cancel = cancel

    def receipt(self, request: Request, *, number: int = 1) -> Json:
        return {"receipt": f"{request.step}-{number}"}

    def call(
        self, request: Request, *, remembers_seconds: float = 0, has_effect: bool = True
    ) -> Json:
        """Do what a tool does, and then what the arguments say for this attempt.

        {"do": ["lose", "ok"]}: the last word stands for all later attempts. A key that the tool
        remembers is answered as at first.
        """
        self.ledger.note("call", request, self.clock.at_seconds)
        if self._deed(request) == "die_before":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._deed(request) == "be_cancelled":
            self._cancel()
        self._reach(Point("before_effect", (request.step,)))
        result: Json = {"looked": True}
        if has_effect:
            result = self._happen(request, remembers_seconds)
        self._reach(Point("after_effect", (request.step,)))
        self._behave(self._deed(request))
        return result

    def _happen(self, request: Request, remembers_seconds: float) -> Json:
        earlier = self.ledger.entries("effect", request.key)
        if earlier and self.clock.at_seconds - earlier[0].at_seconds < remembers_seconds:
            return self.receipt(request)
        self.ledger.note("effect", request, self.clock.at_seconds)
        return self.receipt(request, number=len(earlier) + 1)

    @staticmethod
    def _deed(request: Request) -> str:
        assert isinstance(request.arguments, dict)
        script = request.arguments.get("do", ["ok"])
        assert isinstance(script, list)
        return str(script[min(request.attempt, len(script)) - 1])

    @staticmethod
    def _behave(deed: str) -> None:
        if deed == "lose":
            raise TimeoutError("no reply")
        if deed == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if deed == "CancelledError":
            import asyncio  # here, because it is large, and every worker would carry it

            raise asyncio.CancelledError
        if deed == "SystemExit":
            raise SystemExit(7)
        if deed not in ("ok", "die_before", "be_cancelled"):
            raise getattr(builtins, deed)

    def call_marked(self, request: Request) -> Json:
        """Do it once for each key, with a mark of work in progress that outlives a caller.

        {"busy": 2}: a key that has the mark is turned away twice, then done.
        """
        self.ledger.note("call", request)
        assert isinstance(request.arguments, dict)
        busy = request.arguments["busy"]
        assert isinstance(busy, int)
        key = request.key
        if self.ledger.entries("begun", key) and len(self.ledger.entries("busy", key)) < busy:
            self.ledger.note("busy", request)
            raise InProgress(f"409: {key} is in progress")
        self.ledger.note("begun", request)
        self._reach(Point("before_effect", (request.step,)))
        if not self.ledger.entries("effect", key):
            self.ledger.note("effect", request)
        return self.receipt(request)

    def find(self, request: Request) -> Found | Absent:
        """Look a key up, as a probe does."""
        self.ledger.note("probe", request, self.clock.at_seconds)
        self._reach(Point("before_probe", (request.step,)))
        known = self.ledger.entries("effect", request.key)
        self._reach(Point("after_probe", (request.step,)))
        return Found(self.receipt(request)) if known else Absent()


def tools(world: World) -> list[Adapter]:
    """Return a tool for each contract, and two with more of a memory, or less, than others."""

    @adapter(name="look", contract=read_only())
    def look(request: Request) -> Json:
        return world.call(request, has_effect=False)

    @adapter(name="keyed", contract=idempotent())
    def keyed(request: Request) -> Json:
        return world.call(request, remembers_seconds=float("inf"))

    @adapter(
        name="windowed", contract=idempotent(key_window=WINDOW_SECONDS, lands_within=LANDS_SECONDS)
    )
    def windowed(request: Request) -> Json:
        return world.call(request, remembers_seconds=WINDOW_SECONDS)

    @adapter(name="marked", contract=idempotent())
    def marked(request: Request) -> Json:
        return world.call_marked(request)

    @adapter(name="asked", contract=queryable(settles_within=SETTLES_SECONDS), probe=world.find)
    def asked(request: Request) -> Json:
        return world.call(request)

    @adapter(name="dark", contract=opaque())
    def dark(request: Request) -> Json:
        return world.call(request)

    return [look, keyed, windowed, marked, asked, dark]


CONTRACTS = {
    "look": "read_only",
    "keyed": "idempotent",
    "windowed": "idempotent",
    "marked": "idempotent",
    "asked": "queryable",
    "dark": "opaque",
}


def plan_of(tool: str, *steps: str, arguments: dict[str, Json] | None = None) -> Json:
    """Return a plan whose steps all go to one tool; `arguments` has those of some steps."""
    return {
        "plan": 1,
        "steps": [
            {
                "id": step,
                "adapter": f"{tool}@1",
                "contract": CONTRACTS[tool],
                "arguments": (arguments or {}).get(step, {}),
            }
            for step in steps
        ],
    }
