"""What happens in the middle of an act, to the runtime and to the reference alike."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from agent_replay import Evidence, Outcome, ReplayError, Runtime
from agent_replay.lifecycles.step import StepEvent
from agent_replay.store.reader import Reader
from tests.stateful import invariants
from tests.stateful.outside import Died
from tests.stateful.points import ENDS, Doing, Point
from tests.stateful.records import StorageFailed

if TYPE_CHECKING:
    from tests.stateful.lab import Lab

RESULT = {"by": "hand"}
"""What a person says was the result."""


def give(runtime: Runtime, event: str, evidence: Evidence) -> Outcome:
    """Give evidence for a move."""
    match event:
        case "confirm":
            return runtime.confirm(evidence, result=RESULT)  # type: ignore[arg-type]
        case "refute":
            return runtime.refute(evidence)
        case "abandon":
            return runtime.abandon(evidence)
        case _:
            return runtime.resend(evidence)


def really(lab: Lab, doing: Doing, point: Point) -> None:
    """Let something happen to the runtime."""
    assert lab.process is not None
    runtime = lab.process.runtime
    if doing.what in ENDS:
        if doing.what == "tear":
            lab.process.mortal.tear()
        lab.process.mortal.dead = True
        raise Died
    if doing.what == "fail":
        raise apsw.IOError("disk I/O error")
    if doing.what == "jump":
        lab.outside.time.jump(doing.amount)
    elif doing.what == "read":
        with Reader(lab.path) as reader:
            lab.read.append(
                [(line.id, line.run_state, line.step, line.state) for line in reader.summaries()]
            )
    elif doing.what == "cancel":
        with suppress(ReplayError):
            runtime.cancel(lab.acted_on, who="ann", why="no longer wanted")
    else:
        _settle(lab, runtime, doing.what)


def _settle(lab: Lab, runtime: Runtime, event: str) -> None:
    """Let a person settle the step whose probe is under way."""
    run = lab.acted_on
    with suppress(ReplayError):
        for doubt in runtime.outcome(run).in_doubt:
            subject = run, doubt.step, doubt.attempt, doubt.key
            lab.note_untruth(run, doubt.step, event)
            give(runtime, event, Evidence(*subject, "ledger", 7, "ann", "looked it up"))


def rehearsed(lab: Lab, doing: Doing, point: Point) -> None:
    """Let the same happen to the reference."""
    rehearsal, name = lab.rehearsal, lab.acted_on
    if doing.what in ENDS:
        raise Died
    if doing.what == "fail":
        rehearsal.stopped = True
        raise StorageFailed
    if doing.what == "jump":
        rehearsal.outside.time.jump(doing.amount)
    elif doing.what == "read":
        lab.read.append(invariants.as_listed(rehearsal.runs.values()))
    elif doing.what == "cancel":
        with suppress(StorageFailed):
            rehearsal.cancel(name)
    else:
        event, attempt = StepEvent(doing.what), rehearsal.runs[name].open.attempt
        with suppress(StorageFailed):
            rehearsal.settle(name, event, fits=True, attempt=attempt, result=RESULT)
