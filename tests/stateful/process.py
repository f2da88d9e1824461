"""The runtime on a real file, in this process, with points at which it can die.

A death here is a `BaseException` that is raised at a point; from then on the connection refuses
everything, so that no clean-up of the runtime reaches the file. The connection is closed without a
checkpoint, the locks are let go, as the kernel does it for a dead process, and the next one finds
the file as it is. A torn commit leaves the first half of what the commit wrote to the log.

What this does not show: what a kill between two system calls leaves. The sweep, and the tests that
kill processes, show that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import apsw

from agent_replay import (
    Absent,
    Adapter,
    Event,
    Found,
    Json,
    Request,
    Runtime,
    ToolRejected,
    adapter,
    idempotent,
    queryable,
    read_only,
)
from agent_replay.clock import Reading
from agent_replay.store.sql import QUERIES
from agent_replay.values.limits import RESULT_BYTES_MAX
from tests.stateful.outside import BOUND, LANDS, SECOND, WINDOW, Died, Outside

At = Callable[[str, str], None]
NAMESPACE = "stateful"
LARGE = "x" * RESULT_BYTES_MAX  # and two quotes, which is too much


class Host(Protocol):
    """Where tools live: the world, the points, and the keys that went out, by run and step."""

    outside: Outside
    at: At
    keys: dict[tuple[str, str], set[str]]


class WorldClock:
    """The clocks of the world, as the runtime reads them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self) -> Reading:
        return Reading(*self._host.outside.time.read())


class Mortal:
    """A connection that passes points, and refuses everything once its process is dead."""

    def __init__(self, real: apsw.Connection, at: At, log: Path | None) -> None:
        self.real = real
        self.dead = False
        self._at = at
        self._log = log
        self._rows: list[str] = []
        self._before: bytes | None = None

    def __getattr__(self, name: str) -> object:
        if self.dead:
            raise Died
        return getattr(self.real, name)

    def execute(self, statement: str, *arguments: object) -> object:
        """Execute a statement of the store; those that begin and end a transaction are points."""
        if self.dead:
            raise Died
        if statement == QUERIES["begin"]:
            self._at("before", "")
            self._rows = []
        elif statement == QUERIES["add_run"]:
            self._rows.append("start")
        elif statement == QUERIES["add_event"]:
            (row,) = arguments
            assert isinstance(row, Event)
            self._rows.append(f"{row.event} by {row.actor}")
        elif statement == QUERIES["commit"]:
            self._commit()
            return None
        return self.real.execute(statement, *arguments)  # type: ignore[arg-type]

    def _commit(self) -> None:
        about = ", ".join(self._rows)
        self._at("inside", about)
        self.real.execute(QUERIES["commit"])
        self._at("after", about)

    def tear(self) -> None:
        """Commit, and keep what is needed to leave but the first half of it."""
        assert self._log is not None, "a database in memory has no log"
        self._before = self._log.read_bytes()
        self.real.execute(QUERIES["commit"])

    def die(self) -> None:
        """Close the file as the kernel does it."""
        self.dead = True
        self.real.close(force=True)
        if self._before is not None and self._log is not None:
            _leave_half(self._log, self._before)


def _leave_half(log: Path, before: bytes) -> None:
    """Undo the second half of what was written to the log: the frame that commits is the last."""
    after = log.read_bytes()
    before = before.ljust(len(after), b"\0")
    changed = [at for at in range(0, len(after), 8) if after[at : at + 8] != before[at : at + 8]]
    middle = changed[len(changed) // 2]
    with log.open("r+b") as file:
        file.seek(middle)
        file.write(before[middle:])


class Process:
    """A process that holds the database: a runtime whose connection is mortal."""

    def __init__(self, path: Path, outside: Outside, at: At, *, limit: int) -> None:
        self.outside = outside
        self.at = at
        self.limit = limit
        self.keys: dict[tuple[str, str], set[str]] = {}
        self.runtime = Runtime(
            path,
            adapters=tools(self),
            attempts_max=limit,
            namespace=NAMESPACE,
            clock=WorldClock(self),
            log_bytes=0,
            on_event=lambda _run, row: self.at("told", f"{row.event} by {row.actor}"),
        )
        self.mortal = Mortal(
            self.runtime._store.connection, lambda *point: self.at(*point), Path(f"{path}-wal")
        )
        self.runtime._store.connection = self.mortal  # type: ignore[assignment]

    def reopen(self) -> None:
        """Go on after a storage error, as the same writer."""
        self.runtime.reopen()
        self.mortal = Mortal(self.runtime._store.connection, self.mortal._at, self.mortal._log)
        self.runtime._store.connection = self.mortal  # type: ignore[assignment]

    def die(self) -> None:
        """Leave the file as it is, and let go of the locks."""
        self.mortal.die()
        self.runtime._database._lock.release()

    def close(self) -> None:
        self.runtime.close()


def tools(host: Host) -> list[Adapter]:
    """Return an adapter for each contract, and one whose tool forgets keys."""

    def call(request: Request) -> Json:
        tool, script = _given(request)["tool"], _given(request)["do"]
        assert isinstance(tool, str)
        assert isinstance(script, list)
        host.keys.setdefault((request.run, request.step), set()).add(request.key)
        about = f"{request.run} {request.step} {request.attempt}"
        host.at("call", about)
        place = request.run, request.step
        news, value = host.outside.call(
            place, tool, [str(deed) for deed in script], request.attempt
        )
        host.at("called", about)
        return _told(news, value)

    def probe(request: Request) -> Found | Absent:
        script = _given(request)["look"]
        assert isinstance(script, list)
        about = f"{request.run} {request.step} {request.attempt}"
        host.at("probe", about)
        looks = [str(look) for look in script]
        news, value = host.outside.look_up((request.run, request.step), looks)
        host.at("probed", about)
        if value == "raise":
            raise ConnectionError("no answer")
        if news == "silent":
            return "perhaps"  # type: ignore[return-value]
        return Found(value) if news == "present" else Absent()  # type: ignore[arg-type]

    window = idempotent(key_window=WINDOW // SECOND, lands_within=LANDS // SECOND)
    settles = BOUND // SECOND
    return [
        adapter(name="look", contract=read_only())(call),
        adapter(name="keyed", contract=idempotent())(call),
        adapter(name="windowed", contract=window)(call),
        adapter(name="asked", contract=queryable(settles_within=settles), probe=probe)(call),
        adapter(name="dark")(call),
    ]


def _given(request: Request) -> dict[str, Json]:
    assert isinstance(request.arguments, dict)
    return request.arguments


def _told(news: str, value: object) -> Json:
    """Return or raise what the caller of the tool gets."""
    if news.startswith("refused"):
        raise ToolRejected("no", covers_key=news == "refused_key")
    if news == "raised":
        raise TimeoutError("no reply")
    if news == "interrupted":
        raise KeyboardInterrupt
    if value == "unstorable":
        return {"file": b"raw"}  # type: ignore[dict-item]
    return LARGE if value == "large" else value  # type: ignore[return-value]
