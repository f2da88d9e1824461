"""The processes that are killed, and the small process that forks, kills and reaps them.

A worker carries out an order: acts of the shipped runtime, on a database, with the tools of
`world`. At each point that is seen from outside it counts; at those it was told to stop at, it
announces the point on a pipe and waits for a byte. The shipped code has no hook for this: the
points are SQLite's own (statement trace, commit hook), the `on_event` hook that every caller has,
and the tools.

The server is there because a fork is quick where nothing has to be imported, and because only a
parent can reap. It judges nothing: it tells what a worker said, and the raw wait status.

    python -m tests.crash.worker serve COMMANDS REPLIES
    python -m tests.crash.worker work REPORT CONTROL ORDER    (an interpreter of its own)
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import apsw

from agent_replay import Evidence, Outcome, ReplayError, Runtime
from agent_replay.errors import NoSuchRun
from agent_replay.events import Event
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from crashtests.child import Child, Fooled, Line, fork
from crashtests.clock import SetClock
from crashtests.subjects import warm_up
from models import conform
from tests.crash.world import Ledger, Point, World, tools

RUN = "r"
NAMESPACE = "crash tests"
DATABASE = "runs.db"
LEDGER = "ledger"

WORLD = World()
TOOLS = tools(WORLD)

Order = dict[str, Any]
Answer = dict[str, Any]


class Course:
    """What a worker passes: it counts points, and waits at those it was told of."""

    def __init__(self, line: Line, order: Order) -> None:
        self._line = line
        self._stops = order["stops"]
        self._waits = order["waits"]
        self._delays = order["delays"]
        self._told: list[tuple[int, str]] = []
        self.points: list[Point] = []

    def reach(self, point: Point) -> None:
        """Count a point; stop there if that is wanted."""
        number = len(self.points)
        self.points.append(point)
        if delay_seconds := self._delays.get(point.place):
            time.sleep(delay_seconds)
        if number in self._stops or point.place in self._stops:
            self._line.say(reached=number, point=point, told=self._told)
            if self._waits:
                self._line.wait()

    def tell(self, _run: str, row: Event) -> None:
        """Note what the runtime tells of, which must be durable by then (the `on_event` hook)."""
        self._told.append((row.seq, row.hash.hex()))
        self.reach(Point("told", (row.event,)))


def watch(connection: apsw.Connection, course: Course) -> None:
    """Reach a point before BEGIN, before the commit takes place, and after COMMIT has returned."""
    rows: list[str] = []

    def trace(_cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        words = statement.split(maxsplit=3)
        if words[0] == "begin":
            rows.clear()
            course.reach(Point("before_begin"))
        elif words[:3] == ["insert", "into", "runs"]:
            rows.append("register")
        elif words[:3] == ["insert", "into", "events"]:
            rows.append(bindings[2])
        return True

    def committing() -> bool:
        course.reach(Point("before_commit", tuple(rows)))
        return False

    def ended(statement: dict[str, Any]) -> None:
        if statement["sql"].strip() == "commit":
            course.reach(Point("after_commit", tuple(rows)))

    connection.exec_trace = trace
    connection.set_commit_hook(committing)
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ended)


# --- a worker ---------------------------------------------------------------------------------


class Worker:
    """One process with at most one runtime, which is opened by the first act that needs it."""

    def __init__(self, order: Order, course: Course) -> None:
        self._order = order
        self._course = course
        self._path = os.path.join(order["folder"], DATABASE)
        self._clock = SetClock(order["at_seconds"])
        ledger = Ledger(os.path.join(order["folder"], LEDGER))
        WORLD.enter(ledger, self._clock, course.reach, self._cancel_beside)
        self._opened: Runtime | None = None
        self._kept: list[object] = []

    def work(self) -> Answer:
        """Carry the order out and return what came of each act."""
        apsw.connection_hooks.append(self._watch)
        try:
            outcomes = [self._act(*act) for act in self._order["acts"]]
            if self._opened is not None:
                self._opened.close()
                self._course.reach(Point("closed"))
        finally:
            apsw.connection_hooks.remove(self._watch)
        return {"outcomes": outcomes, "points": self._course.points}

    def _watch(self, connection: apsw.Connection) -> None:
        if os.path.basename(connection.filename) == DATABASE:
            watch(connection, self._course)

    def _act(self, name: str, *arguments: Any) -> Answer:
        try:
            came: Answer = getattr(self, name)(*arguments) or {}
        except ReplayError as error:
            return {"error": type(error).__name__, "message": str(error)}
        except BaseException as error:
            if self._order["let_out"]:
                raise
            return {"raised": type(error).__name__}
        self._course.reach(Point("returned", (name,)))
        return came

    @property
    def _runtime(self) -> Runtime:
        if self._opened is None:
            self._opened = Runtime(
                self._path,
                adapters=TOOLS,
                attempts_max=self._order["attempts_max"],
                namespace=NAMESPACE,
                on_event=self._course.tell,
                clock=self._clock,
                log_bytes=self._order["log_bytes"],
            )
            self._course.reach(Point("opened"))
        return self._opened

    # acts of the runtime

    def open(self) -> None:
        _ = self._runtime

    def run(self) -> Answer:
        return said(self._runtime.run(RUN, self._order["plan"]))

    def resume(self) -> Answer:
        return said(self._runtime.resume(RUN))

    def resume_all(self) -> Answer:
        outcomes, refused = self._runtime.resume_all()
        assert not refused, refused
        return said(outcomes[0]) if outcomes else {}

    def confirm(self, result: Any) -> Answer:
        return said(self._runtime.confirm(self._evidence(), result=result))

    def refute(self) -> Answer:
        return said(self._runtime.refute(self._evidence()))

    def abandon(self) -> Answer:
        return said(self._runtime.abandon(self._evidence()))

    def resend(self) -> Answer:
        return said(self._runtime.resend(self._evidence()))

    def cancel(self) -> Answer:
        return said(self._runtime.cancel(RUN, who="an operator", why="no longer needed"))

    def _cancel_beside(self) -> None:
        """Cancel from another thread, as somebody does while a tool works."""
        thread = threading.Thread(target=self.cancel)
        thread.start()
        thread.join()

    def _evidence(self) -> Evidence:
        """Return evidence about what the history says of the open step, in doubt or not."""
        with Reader(self._path) as reader:
            history, _ = reader.read(RUN)
        step = history.open_step
        return Evidence(
            run=RUN,
            step=step.id,
            attempt=history.head.attempt,
            key=step.key,
            kind="ledger",
            content={"looked": True},
            who="an operator",
            why="the ledger was read",
            no_request_can_land=True,
        )

    # acts of others

    def barrier(self) -> None:
        self._course.reach(Point("barrier"))

    def pass_by(self, seconds: float) -> Answer:
        self._clock.at_seconds += seconds
        return {"passed": True}

    def inspect(self, folder: str) -> Answer:
        """Look at a database with the product's reader and verifier, without opening a runtime."""
        path = os.path.join(folder, DATABASE)
        verdict = verify(path)
        with Reader(path) as reader:
            seen: Answer = {
                "sound": verdict.sound,
                "findings": verdict.findings,
                "unconfirmed": reader.unconfirmed,
                "no_path": [finding.text() for finding in conform.findings(path)],
                "rows": [],
            }
            try:
                history, rows = reader.read(RUN)
            except NoSuchRun:
                return seen
        seen["rows"] = [
            {**row._asdict(), "writer": row.writer.hex(), "hash": row.hash.hex()} for row in rows
        ]
        seen["keys"] = {step.id: step.key for step in history.steps}
        seen["contracts"] = {step.id: step.contract for step in history.steps}
        seen["run"] = history.head.run_state
        seen["step"] = history.head.state
        return seen

    def interpreter(self) -> Answer:
        return {"pid": os.getpid(), "hash": hash("a text"), "argv": sys.argv[1:2]}

    def leave(self, *command: str) -> None:
        """Start a program with the descriptors of this process, and do not wait for it."""
        self._kept.append(subprocess.Popen(command, close_fds=False))

    def leave_a_fork(self) -> None:
        if os.fork() == 0:
            self.hang()

    def hold(self, name: str) -> None:
        """Lock a file for as long as this process, or any that it starts from now on, lives."""
        descriptor = os.open(os.path.join(self._order["folder"], name), os.O_RDWR | os.O_CREAT)
        os.set_inheritable(descriptor, True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def exit(self, status: int) -> NoReturn:
        os._exit(status)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self) -> None:
        while True:
            signal.pause()


def said(outcome: Outcome) -> Answer:
    """Return an outcome as JSON can carry it; the results as the text that they are."""
    return {
        "state": outcome.state,
        "results": {step: json.dumps(outcome.results[step]) for step in outcome.results},
        "in_doubt": [
            {"step": one.step, "attempt": one.attempt, "key": one.key, "why": one.why}
            for one in outcome.in_doubt
        ],
        "failure": None
        if outcome.failure is None
        else {
            "step": outcome.failure.step,
            "state": outcome.failure.state,
            "why": outcome.failure.why,
        },
    }


def work(order: Order, line: Line) -> None:
    """Carry an order out and say what came of it."""
    line.say(**Worker(order, Course(line, order)).work())


# --- the server -------------------------------------------------------------------------------


class Server:
    """Forks workers and does to them what it is told."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands = commands
        self._replies = replies
        self._children: dict[int, Child] = {}

    def serve(self) -> None:
        """Answer each line until there are no more, and leave no worker behind."""
        try:
            with os.fdopen(os.dup(self._commands), encoding="utf-8") as lines:
                for line in lines:
                    reply = self._answer(**json.loads(line))
                    os.write(self._replies, json.dumps(reply).encode() + b"\n")
        finally:
            for child in self._children.values():
                child.close()

    def _answer(self, do: str, **arguments: Any) -> Answer:
        if arguments.get("pid", 0) not in {0, *self._children}:
            return {"unknown": True}
        does: Callable[..., Answer] = getattr(self, do)
        return does(**arguments)

    def start(self, order: Order) -> Answer:
        # Else one worker would hold another's line open, and would not see its own end.
        closes = [self._commands, self._replies]
        for child in self._children.values():
            closes += child.descriptors
        begin = become_an_interpreter if order["fresh"] else work
        child = fork(lambda line: begin(order, line), closes)
        self._children[child.pid] = child
        return {"pid": child.pid}

    def listen(self, pid: int, seconds: float) -> Answer:
        """Tell what the worker says next: a line, its end with the code, or nothing yet."""
        try:
            said = self._children[pid].hear(seconds)
        except Fooled:
            return {"silent": True}
        return {"ended": self._children.pop(pid).reap()} if said is None else {"said": said}

    def release(self, pid: int) -> Answer:
        self._children[pid].release()
        return {}

    def kill(self, pid: int) -> Answer:
        """Kill the worker with all that it started; tell its termination, and if it was no kill."""
        child = self._children.pop(pid)
        try:
            return {"ended": child.kill()}
        except Fooled as problem:
            return {"ended": child.termination, "fooled": str(problem)}


def become_an_interpreter(order: Order, line: Line) -> NoReturn:
    """Go on as a worker in a new interpreter, where hashes of texts are others."""
    for descriptor in line.descriptors:
        os.set_inheritable(descriptor, True)
    module = [sys.executable, "-m", "tests.crash.worker"]
    arguments = ["work", *map(str, line.descriptors), json.dumps(order)]
    os.execve(
        sys.executable, module + arguments, {**os.environ, "PYTHONHASHSEED": order["hash_seed"]}
    )


def main(role: str, *arguments: str) -> None:
    """Be a server or a worker."""
    if role == "work":
        report, control, order = arguments
        work(json.loads(order), Line(int(report), int(control)))
        return
    warm_up()
    gc.collect()
    gc.freeze()
    Server(*map(int, arguments)).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
