"""What the processes do that are killed: a run, its recovery, or the baseline's.

They are forks of one process in which everything is imported and nothing is open. The world is made
the same for each process of a stage, so that equal files mean equal futures: the clock is set, and
random numbers and the number of the process come from the stage. The runtime and its SQLite are as
they are shipped, but for being watched.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable
from typing import NamedTuple

import apsw

from agent_replay import Adapter, Json, Outcome, Request, Runtime
from crashtests import subjects, vfs
from crashtests.child import Line
from crashtests.clock import SetClock
from crashtests.subjects import DATABASE, RUN, Subject
from crashtests.sweep.passage import PASSAGE
from crashtests.sweep.scenarios import Scenario

NAMESPACE = "crash-sweep"
ATTEMPTS_MAX = 10
"""More than the processes of any path, so that no attempt is ever missing."""
LOG_BYTES = 1 << 15
"""The log is grown, as by default, but to less, since it is copied for each kill."""
ROUNDS_MAX = 3
"""How often a patient supervisor comes again; once for each step is enough."""
LATE_SECONDS = 3600.0
"""How long after the process before it one comes in a late scenario: past the adapter's window."""

_STAGE_SECONDS = 1.0
_FIRST_RUN = 1
"""Stage of the first run; the process before it has made the database."""
_stage = 0


class Order(NamedTuple):
    """What one process is to do: `stage` counts the processes before it, `stop` is an operation.

    With `opens_only` it opens the database, made first if there is none, and closes it.
    """

    scenario: Scenario
    subject: Subject
    folder: str
    stage: int
    stop: int | None = None
    opens_only: bool = False


def prepare() -> None:
    """Have this process and its forks watched; once, before anything is open."""
    vfs.install(PASSAGE.watch, seed=lambda: _stage)
    subjects.warm_up()


def work(order: Order, line: Line) -> None:
    """Be the process: do what is ordered, and say what came of it."""
    _enter(order)
    PASSAGE.begin(line, order.stop)
    outcome = _run_blindly(order) if not order.scenario.contract else _run(order)
    PASSAGE.end(outcome)


def _enter(order: Order) -> None:
    """Make the world that of the order's stage."""
    global _stage
    _stage = order.stage + 1
    draws = itertools.count()

    def draw(size: int) -> bytes:
        return hashlib.shake_128(f"{order.stage} {next(draws)}".encode()).digest(size)

    os.urandom = draw
    os.getpid = lambda: 1000 + order.stage
    os.environ[subjects.FOLDER_VARIABLE] = order.folder
    is_late = order.scenario.late and order.stage > _FIRST_RUN
    os.environ[subjects.FORGETS_VARIABLE] = "1" if is_late else ""


def _reach(place: str) -> None:
    PASSAGE.watch(vfs.Operation(place, "tool"))


def _run(order: Order) -> Json:
    """Run the plan, or resume the run, as a supervisor of the scenario would."""
    scenario = order.scenario
    between_seconds = LATE_SECONDS if scenario.late else _STAGE_SECONDS
    clock = SetClock(order.stage * between_seconds)
    adapter = subjects.adapter_of(order.subject)
    with Runtime(
        os.path.join(order.folder, DATABASE),
        adapters=[subjects.watched(adapter, lambda place, _request: _reach(place))],
        attempts_max=ATTEMPTS_MAX,
        namespace=NAMESPACE,
        on_event=PASSAGE.tell,
        clock=clock,
        log_bytes=LOG_BYTES,
    ) as runtime:
        if order.opens_only:
            return {"state": "opened"}
        plan = subjects.plan(order.subject, scenario.steps)
        outcome = runtime.run(RUN, plan)
        if scenario.patient and order.stage > _FIRST_RUN:
            outcome = _settled(outcome, clock, lambda: runtime.resume(RUN))
    return subjects.described(outcome)


def _settled(outcome: Outcome, clock: SetClock, resume: Callable[[], Outcome]) -> Outcome:
    """Come again from each moment at which a probe's answer counts."""
    for _ in range(ROUNDS_MAX):
        not_before = outcome.in_doubt[0].not_before if outcome.in_doubt else None
        if not_before is None:
            break
        clock.pass_until(not_before)
        outcome = resume()
    return outcome


# --- the baseline -------------------------------------------------------------------------------


def _run_blindly(order: Order) -> Json:
    """Keep each result once it is there, and make again what has none: a retry that asks nobody.

    The storage is the runtime's, with the same durability; what is missing is the request that is
    durable before the call.
    """
    adapter = subjects.adapter_of(order.subject)
    connection = apsw.Connection(os.path.join(order.folder, DATABASE))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("create table if not exists results (step text primary key, result text)")
    known = dict(connection.execute("select step, result from results"))
    for step in order.scenario.steps:
        if step not in known:
            known[step] = _call_blindly(adapter, order.subject, step)
            connection.execute("insert into results values (?, ?)", (step, known[step]))
    connection.close()
    return {"state": "completed", "results": known, "in_doubt": []}


def _call_blindly(adapter: Adapter, subject: Subject, step: str) -> str:
    _reach("call")
    result = adapter.call(Request(RUN, step, blind_key(step), 1, subject.arguments, None))
    _reach("reply")
    return str(result)


def blind_key(step: str) -> str:
    """Return under which key the baseline's effects are counted."""
    return f"{NAMESPACE} {step}"
