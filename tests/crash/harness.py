"""The side of the tests: workers are started, stopped at a point, killed, and their world is read.

No verdict here rests on a worker's own word that it was killed: the point must have been announced,
it must be the one that was recorded, and the wait status must say SIGKILL. Anything else is
`Misled`, which fails the test.

A `Scene` is a folder with a database and a ledger as a process left them. It is never used up: each
process works on a copy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agent_replay import Json
from crashtests.child import readable
from tests.crash.worker import LEDGER
from tests.crash.worker import Answer as Answer
from tests.crash.world import Entry, Ledger, Point

WAIT_SECONDS_MAX = 60.0
"""How long a worker may take to its next point, on a machine that has much else to do."""

ATTEMPTS_MAX = 20
"""Enough for every death of these tests: where attempts run out, the test says so."""


Acts = Sequence[Sequence[Json]]
"""Each is the name of what a worker can do, and arguments."""


class Misled(AssertionError):
    """What was seen does not show that a process was killed at the point in question."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker is to do, and when it is to wait."""

    acts: Acts
    plan: Json = None
    at_seconds: float = 0
    attempts_max: int = ATTEMPTS_MAX
    stops: Sequence[int | str] = ()
    waits: bool = True
    delays: dict[str, float] = field(default_factory=dict)
    let_out: bool = False
    log_bytes: int = 0
    fresh: bool = False
    hash_seed: str = "0"


class Reached(NamedTuple):
    """A point that a worker has announced, and the rows it had been told of by then."""

    number: int
    point: Point
    told: tuple[tuple[int, str], ...]


class Server:
    """The process that forks the workers. `kills` counts the deaths that were shown to be kills."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        command_end, self._commands = os.pipe()
        self._replies, reply_end = os.pipe()
        module = [sys.executable, "-m", "tests.crash.worker", "serve"]
        with errors.open("wb") as sink:
            self._process = subprocess.Popen(
                [*module, str(command_end), str(reply_end)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=sink,
                pass_fds=(command_end, reply_end),
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        os.close(command_end)
        os.close(reply_end)
        self._received = b""
        self.kills = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(
        self, do: str, *, within_seconds: float = WAIT_SECONDS_MAX, **arguments: object
    ) -> Answer:
        """Have the server do something and return its reply, within a bounded time."""
        with contextlib.suppress(BrokenPipeError):  # then it has ended, and the replies say so
            os.write(self._commands, json.dumps({"do": do, **arguments}).encode() + b"\n")
        deadline = time.monotonic() + within_seconds
        while b"\n" not in self._received:
            left_seconds = max(0.0, deadline - time.monotonic())
            if not readable(self._replies, left_seconds):
                self._process.kill()
                raise Misled(f"the server does not answer {do!r}; {self.errors()}")
            part = os.read(self._replies, 1 << 16)
            if not part:
                raise Misled(f"the server has ended; {self.errors()}")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        reply: Answer = json.loads(line)
        if "unknown" in reply:
            raise Misled(f"the server has no such worker, or has reaped it: {do} {arguments}")
        return reply

    def start(self, folder: Path, order: Order) -> Worker:
        wanted = {**order.__dict__, "folder": str(folder)}
        return Worker(self, int(self.ask("start", order=wanted)["pid"]))

    def errors(self) -> str:
        """Return the end of what the workers wrote to their standard error."""
        text = self._errors.read_text(encoding="utf-8", errors="replace")
        return f"errors: ...{text[-2000:]}" if text else "no errors were written"

    def close(self) -> None:
        """End the server; it kills the workers that are left."""
        os.close(self._commands)
        try:
            self._process.wait(WAIT_SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._replies)


class Worker:
    """A worker that has been started and not yet been reaped."""

    def __init__(self, server: Server, pid: int) -> None:
        self._server = server
        self.pid = pid

    def listen(self, seconds: float = WAIT_SECONDS_MAX) -> Answer:
        """Return what it says next, or that it has ended; raise if it does neither in time."""
        within_seconds = seconds + WAIT_SECONDS_MAX
        reply = self._server.ask(
            "listen", within_seconds=within_seconds, pid=self.pid, seconds=seconds
        )
        if "silent" in reply:
            status = self._server.ask("kill", pid=self.pid)["ended"]
            raise Misled(f"worker {self.pid} said nothing for {seconds} s; ended it: {status}")
        return reply

    def next(self, seconds: float = WAIT_SECONDS_MAX) -> Reached | Answer:
        """Return the point at which it stops next, or its answer once it has ended."""
        reply = self.listen(seconds)
        said = reply.get("said", {})
        if "reached" in said:
            told = tuple((seq, digest) for seq, digest in said["told"])
            return Reached(said["reached"], point_of(said["point"]), told)
        if "outcomes" in said:
            status = self.ended()
            if status != 0:
                raise Misled(f"worker {self.pid} ended with {status}; {self._server.errors()}")
            return {**said, "points": [point_of(point) for point in said["points"]]}
        raise Misled(
            f"worker {self.pid} reached no point and did not finish: {reply}; "
            f"{self._server.errors()}"
        )

    def reached(self, seconds: float = WAIT_SECONDS_MAX) -> Reached:
        """Return the next point at which it stops; raise if it ends, or finishes, before."""
        said = self.next(seconds)
        if not isinstance(said, Reached):
            raise Misled(f"worker {self.pid} finished and did not reach its point: {said}")
        return said

    def release(self) -> None:
        """Let it go on from the point at which it stopped."""
        self._server.ask("release", pid=self.pid)

    def released(self) -> Reached | Answer:
        """Let it go on, and return what it comes to next."""
        self.release()
        return self.next()

    def kill(self) -> None:
        """Kill it and all that it started; raise if it had ended, or had not waited for that."""
        reply = self._server.ask("kill", pid=self.pid)
        if "fooled" in reply:
            raise Misled(reply["fooled"])
        self._server.kills += 1

    def answer(self) -> Answer:
        """Return what came of its acts; raise unless it carried them all out and then ended."""
        said = self.next()
        if isinstance(said, Reached):
            self.kill()
            raise Misled(f"worker {self.pid} did not finish, it stopped: {said}")
        return said

    def ended(self) -> int:
        """Return the termination code of a worker that is to end by itself now."""
        reply = self.listen()
        if "ended" not in reply:
            self._server.ask("kill", pid=self.pid)
            raise Misled(f"worker {self.pid} has not ended: {reply}")
        return int(reply["ended"])


def point_of(said: tuple[str, list[str]]) -> Point:
    place, about = said
    return Point(place, tuple(about))


# --- scenes -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is there when nobody is at work: the rows by the product's reader, and the ledger."""

    sound: bool
    findings: list[str]
    unconfirmed: bool
    no_path: list[str]
    rows: list[dict[str, Any]]
    ledger: list[Entry]
    run: str = ""
    step: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    contracts: dict[str, str] = field(default_factory=dict)

    @property
    def events(self) -> list[str]:
        return [row["event"] for row in self.rows]

    def count(self, what: str, step: str) -> int:
        return sum(1 for one in self.ledger if (one.what, one.step) == (what, step))


class Scene(NamedTuple):
    """What processes have left behind, the points they passed, and the rows they were told of."""

    folder: Path
    points: tuple[Point, ...] = ()
    told: tuple[tuple[int, str], ...] = ()


class Finished(NamedTuple):
    """What a worker that was left alone came to."""

    scene: Scene
    outcomes: list[Answer]
    points: list[Point]


class Killed(NamedTuple):
    """A scene as a kill has left it, and where the kill was."""

    at: str
    scene: Scene


class Sent(NamedTuple):
    """A worker on its way to a point, and the points that it is to pass, the last one included."""

    scene: Scene
    worker: Worker
    number: int
    points: tuple[Point, ...]

    def arrive(self) -> Scene:
        """Wait until it is there; return the scene as it is then."""
        number, point, told = self.worker.reached()
        if (number, point) != (self.number, self.points[-1]):
            self.worker.kill()
            raise Misled(f"reached {number}, {point}, in place of {self.number}, {self.points[-1]}")
        scene = self.scene
        return Scene(scene.folder, (*scene.points, *self.points), (*scene.told, *told))

    def kill(self) -> Scene:
        """Kill it there and return what it has left."""
        scene = self.arrive()
        self.worker.kill()
        return scene


class Lab:
    """Scenes and workers of one test."""

    def __init__(self, server: Server, folder: Path, empty: Path) -> None:
        self.server = server
        self._folder = folder
        self._numbers = itertools.count(1)
        self.empty = Scene(empty)

    def copy(self, scene: Scene) -> Scene:
        folder = self._folder / str(next(self._numbers))
        shutil.copytree(scene.folder, folder)
        return scene._replace(folder=folder)

    def drop(self, *scenes: Scene) -> None:
        """Remove scenes that are no longer needed, since a test may make a thousand."""
        for scene in scenes:
            shutil.rmtree(scene.folder)

    def start(self, scene: Scene, order: Order) -> Worker:
        """Start a worker on this very scene."""
        return self.server.start(scene.folder, order)

    def finish(self, scene: Scene, order: Order) -> Finished:
        """Let a worker do all of its acts on a copy."""
        copy = self.copy(scene)
        answer = self.start(copy, order).answer()
        points = answer["points"]
        left = copy._replace(points=(*scene.points, *points))
        return Finished(left, answer["outcomes"], points)

    def record(self, scene: Scene, order: Order, *, writes: bool = True) -> list[Point]:
        """Return the points that a worker passes when nobody disturbs it."""
        finished = self.finish(scene, order)
        self.drop(finished.scene)
        if writes and not any(point.place == "after_commit" for point in finished.points):
            raise Misled(f"nothing was written, so there is nothing to kill: {finished}")
        return finished.points

    def kill(self, scene: Scene, order: Order, number: int, points: Sequence[Point]) -> Scene:
        """Kill a worker at the point of that number, on a copy."""
        return self.send(scene, order, number, points).kill()

    def send(self, scene: Scene, order: Order, number: int, points: Sequence[Point]) -> Sent:
        """Start a worker that is to stop at the point of that number, on a copy."""
        copy = self.copy(scene)
        worker = self.start(copy, dataclasses.replace(order, stops=[number]))
        return Sent(copy, worker, number, tuple(points[: number + 1]))

    def sweep(
        self, scene: Scene, order: Order, places: Sequence[str] = (), *, writes: bool = True
    ) -> Iterator[Killed]:
        """Kill a worker at each recorded point in turn, or at those of some places.

        Nothing is left out: it ends with an error if a point could not be reached, or if there is
        none and there is something to write. What is yielded is dropped afterwards.
        """
        points = self.record(scene, order, writes=writes)
        numbers = [n for n, point in enumerate(points) if not places or point.place in places]
        if writes and not numbers:
            raise Misled(f"no point is at {places}: {points}")
        for number in numbers:
            left = self.kill(scene, order, number, points)
            yield Killed(
                f"{number} {' '.join([points[number].place, *points[number].about])}", left
            )
            self.drop(left)

    def see(self, *scenes: Scene) -> list[Seen]:
        """Look at scenes, in a process of its own, beside whoever is at work there."""
        acts = [["inspect", str(scene.folder)] for scene in scenes]
        looked = self.start(scenes[0], Order(acts=acts)).answer()["outcomes"]
        return [
            Seen(**one, ledger=Ledger(scene.folder / LEDGER).entries())
            for scene, one in zip(scenes, looked, strict=True)
        ]

    def check(self, *scenes: Scene) -> list[Seen]:
        """Return what is seen, after what must hold of every scene was found to hold."""
        views = self.see(*scenes)
        for scene, seen in zip(scenes, views, strict=True):
            assert seen.sound, seen.findings
            assert seen.no_path == [], "the history is no path of the model"
            assert seen.events == written(scene.points), "a transaction is there in part or not"
            rows = {(row["seq"], row["hash"]) for row in seen.rows}
            assert rows.issuperset(scene.told), "a row was told of, and is gone"
            check_the_order(scene.points)
            check_invariants(seen)
        return views


def written(points: Sequence[Point]) -> list[str]:
    """Return the rows of the transactions whose commit had returned, whole ones, in order."""
    about = [event for place, events in points if place == "after_commit" for event in events]
    return [event for event in about if event != "register"]


def check_the_order(points: Sequence[Point]) -> None:
    """Find what was done outside while the row that permits it was not durable yet."""
    last = ""
    for place, about in points:
        if place == "after_commit":
            last = [last, *(event for event in about if event not in ("adopt", "ask_cancel"))][-1]
        elif place == "before_effect":
            assert last in SENDS, f"S1: a call after {last!r}"
        elif place == "before_probe":
            assert last == "suspend", f"S8: a probe after {last!r}"


def check_invariants(seen: Seen) -> None:
    """Compare the history with the ledger: what must hold after every death."""
    sent = {(row["step"], row["attempt"]) for row in seen.rows if row["event"] in SENDS}
    numbers = {step: number for number, step in enumerate(seen.keys, start=1)}
    calls = [one for one in seen.ledger if one.what == "call"]
    for call in calls:
        assert (numbers.get(call.step), call.attempt) in sent, f"S1: no durable request of {call}"
        assert call.key == seen.keys[call.step], f"S11: another key: {call}"
    assert len({(one.step, one.attempt) for one in calls}) == len(calls), "an attempt called twice"
    succeeded = {row["step"] for row in seen.rows if row["state"] == "succeeded"}
    for step, number in numbers.items():
        effects = seen.count("effect", step)
        assert effects <= 1, f"S2: {effects} effects of {step}"
        if number in succeeded and seen.contracts[step] != "read_only":
            assert effects == 1, f"S3: {step} succeeded without an effect"
        if (number, 1) in sent and number > 1:
            before = [row["step"] for row in seen.rows if row["state"] == "succeeded"]
            requested = next(r["seq"] for r in seen.rows if r["step"] == number)
            assert number - 1 in before, f"S15: {step} was requested too early"
            assert requested > max(row["seq"] for row in seen.rows if row["step"] == number - 1), (
                f"S15: {step} was requested too early"
            )
    assert seen.events[-1:] != ["adopt"], "an adopt was written alone"


SENDS = ("request", "resend")
