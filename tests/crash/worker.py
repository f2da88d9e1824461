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

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import apsw

from agent_replay import Evidence, Outcome, ReplayError, Runtime
from agent_replay.errors import NoSuchRun
from agent_replay.events import Event
from agent_replay.lifecycles.step import Contract
from agent_replay.machine import run_lifecycle, step_lifecycle
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.crash.world import Ledger, Point, SetClock, World, tools

RUN = "r"
NAMESPACE = "crash tests"
DATABASE = "runs.db"
LEDGER = "ledger"

ORPHANED = 71
"""Exit status of a worker whose server has gone."""
BROKEN = 72
"""Exit status of a worker that failed by itself; the traceback is on its standard error."""

WORLD = World()
TOOLS = tools(WORLD)

Order = dict[str, Any]
Answer = dict[str, Any]


class Line:
    """A worker's line to whoever stops it: it counts points, and waits at those it was told of."""

    def __init__(self, report: int, control: int, order: Order) -> None:
        self._report = report
        self._control = control
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
            self.say({"reached": number, "point": point, "told": self._told})
            if self._waits and not os.read(self._control, 1):
                os._exit(ORPHANED)

    def tell(self, _run: str, row: Event) -> None:
        """Note what the runtime tells of, which must be durable by then (the `on_event` hook)."""
        self._told.append((row.seq, row.hash.hex()))
        self.reach(Point("told", (row.event,)))

    def say(self, said: Answer) -> None:
        left = json.dumps(said).encode() + b"\n"
        while left:
            left = left[os.write(self._report, left) :]


def watch(connection: apsw.Connection, line: Line) -> None:
    """Reach a point before BEGIN, before the commit takes place, and after COMMIT has returned."""
    rows: list[str] = []

    def trace(_cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        words = statement.split(maxsplit=3)
        if words[0] == "begin":
            rows.clear()
            line.reach(Point("before_begin"))
        elif words[:3] == ["insert", "into", "runs"]:
            rows.append("register")
        elif words[:3] == ["insert", "into", "events"]:
            rows.append(bindings[2])
        return True

    def committing() -> bool:
        line.reach(Point("before_commit", tuple(rows)))
        return False

    def ended(statement: dict[str, Any]) -> None:
        if statement["sql"].strip() == "commit":
            line.reach(Point("after_commit", tuple(rows)))

    connection.exec_trace = trace
    connection.set_commit_hook(committing)
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ended)


# --- a worker ---------------------------------------------------------------------------------


class Worker:
    """One process with at most one runtime, which is opened by the first act that needs it."""

    def __init__(self, order: Order, line: Line) -> None:
        self._order = order
        self._line = line
        self._path = os.path.join(order["folder"], DATABASE)
        self._clock = SetClock(order["at_seconds"])
        ledger = Ledger(os.path.join(order["folder"], LEDGER))
        WORLD.enter(ledger, self._clock, line.reach, self._cancel_beside)
        self._opened: Runtime | None = None
        self._kept: list[object] = []

    def work(self) -> Answer:
        """Carry the order out and return what came of each act."""
        apsw.connection_hooks.append(self._watch)
        try:
            outcomes = [self._act(*act) for act in self._order["acts"]]
            if self._opened is not None:
                self._opened.close()
                self._line.reach(Point("closed"))
        finally:
            apsw.connection_hooks.remove(self._watch)
        return {"outcomes": outcomes, "points": self._line.points}

    def _watch(self, connection: apsw.Connection) -> None:
        if os.path.basename(connection.filename) == DATABASE:
            watch(connection, self._line)

    def _act(self, name: str, *arguments: Any) -> Answer:
        try:
            came: Answer = getattr(self, name)(*arguments) or {}
        except ReplayError as error:
            return {"error": type(error).__name__, "message": str(error)}
        except BaseException as error:
            if self._order["let_out"]:
                raise
            return {"raised": type(error).__name__}
        self._line.reach(Point("returned", (name,)))
        return came

    @property
    def _runtime(self) -> Runtime:
        if self._opened is None:
            self._opened = Runtime(
                self._path,
                adapters=TOOLS,
                attempts_max=self._order["attempts_max"],
                namespace=NAMESPACE,
                on_event=self._line.tell,
                clock=self._clock,
                log_bytes=self._order["log_bytes"],
            )
            self._line.reach(Point("opened"))
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
        self._line.reach(Point("barrier"))

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


def work(report: int, control: int, order: Order) -> None:
    """Carry an order out and say what came of it."""
    line = Line(report, control, order)
    line.say(Worker(order, line).work())


# --- the server -------------------------------------------------------------------------------


class Slot(NamedTuple):
    """A worker that has not been reaped, with the server's ends of its two pipes."""

    pid: int
    report: int
    control: int
    received: bytearray


class Server:
    """Forks workers and does to them what it is told."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands = commands
        self._replies = replies
        self._slots: dict[int, Slot] = {}

    def serve(self) -> None:
        """Answer each line until there are no more, and leave no worker behind."""
        try:
            with os.fdopen(os.dup(self._commands), encoding="utf-8") as lines:
                for line in lines:
                    reply = self._answer(**json.loads(line))
                    os.write(self._replies, json.dumps(reply).encode() + b"\n")
        finally:
            for pid in list(self._slots):
                self.kill(pid)

    def _answer(self, do: str, **arguments: Any) -> Answer:
        if arguments.get("pid", 0) not in {0, *self._slots}:
            return {"unknown": True}
        does: Callable[..., Answer] = getattr(self, do)
        return does(**arguments)

    def start(self, order: Order) -> Answer:
        report, report_end = os.pipe()
        control_end, control = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_a_worker(report_end, control_end, [report, control], order)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)  # as the worker does; whoever is first
        os.close(report_end)
        os.close(control_end)
        self._slots[pid] = Slot(pid, report, control, bytearray())
        return {"pid": pid}

    def _become_a_worker(
        self, report: int, control: int, ours: list[int], order: Order
    ) -> NoReturn:
        try:
            os.setpgid(0, 0)
            # Else one worker would hold another's line open, and would not see its own end.
            for slot in self._slots.values():
                ours += [slot.report, slot.control]
            for descriptor in [*ours, self._commands, self._replies]:
                os.close(descriptor)
            if order["fresh"]:
                become_an_interpreter(report, control, order)
            work(report, control, order)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - no error may lead a worker back into the server
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(BROKEN)

    def listen(self, pid: int, seconds: float) -> Answer:
        """Tell what the worker says next: a line, its end with the wait status, or nothing yet."""
        slot = self._slots[pid]
        deadline = time.monotonic() + seconds
        while b"\n" not in slot.received:
            left_seconds = max(0.0, deadline - time.monotonic())
            if not select.select([slot.report], [], [], left_seconds)[0]:
                return {"silent": True}
            part = os.read(slot.report, 1 << 16)
            if not part:
                return {"ended": self._reap(pid)}
            slot.received.extend(part)
        line, _, rest = bytes(slot.received).partition(b"\n")
        slot.received[:] = rest
        return {"said": json.loads(line)}

    def release(self, pid: int) -> Answer:
        os.write(self._slots[pid].control, b"!")
        return {}

    def kill(self, pid: int) -> Answer:
        """Kill the worker with all that it started.

        Tells its wait status, whether it was dead before, and whether it had said more.
        """
        report = self._slots[pid].report
        dead = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        os.killpg(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        more = bool(self._slots[pid].received)
        if not more and select.select([report], [], [], 0)[0]:
            more = bool(os.read(report, 1))  # else it is the end of the pipe
        return {"ended": self._reap(pid), "dead": dead, "more": more}

    def _reap(self, pid: int) -> int:
        """Wait for the worker's end, and end what it has left in its group."""
        slot = self._slots.pop(pid)
        os.close(slot.report)
        os.close(slot.control)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.killpg(pid, signal.SIGKILL)  # while it is not reaped, its number is nobody else's
        _, status = os.waitpid(pid, 0)
        return status


def become_an_interpreter(report: int, control: int, order: Order) -> NoReturn:
    """Go on as a worker in a new interpreter, where hashes of texts are others."""
    for descriptor in (report, control):
        os.set_inheritable(descriptor, True)
    module = [sys.executable, "-m", "tests.crash.worker"]
    arguments = ["work", str(report), str(control), json.dumps(order)]
    os.execve(
        sys.executable, module + arguments, {**os.environ, "PYTHONHASHSEED": order["hash_seed"]}
    )


def warm_up() -> None:
    """Make what the runtime makes when it is first needed, lest each worker makes it anew."""
    run_lifecycle()
    for contract in Contract:
        step_lifecycle(contract)


def main(role: str, *arguments: str) -> None:
    """Be a server or a worker."""
    if role == "work":
        report, control, order = arguments
        work(int(report), int(control), json.loads(order))
        return
    warm_up()
    gc.collect()
    gc.freeze()
    Server(*map(int, arguments)).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
