"""The process that is killed: runs or resumes one plan of one step, and stops where it is told to.

    python -m crashtests.worker FOLDER SUBJECT ACT [--stop CHECKPOINT]

At its checkpoint it announces where it is, and waits. It never goes on from there: either it is
killed, or the harness has died, and it ends. What it came to is said in the same way.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from agent_replay import Event, Evidence, Json, Outcome, Request, Runtime
from crashtests.cases import AFTER_ACKNOWLEDGEMENT, AFTER_EFFECT, AFTER_REQUEST, IN_RECOVERY
from crashtests.child import REPORTS_ON, WAITS_ON, Line
from crashtests.subjects import (
    DATABASE,
    FOLDER_VARIABLE,
    RUN,
    SUBJECTS,
    Subject,
    adapter_of,
    described,
    named,
    plan,
    watched,
)

LINE = Line(REPORTS_ON, WAITS_ON)
STEP = "act"
NAMESPACE = "crash-matrix"
SETTLING_SECONDS_MAX = 30.0
MISLED = 9
"""Exit code of a worker that the harness has left alone."""


class Stop:
    """The checkpoint at which this process is to be killed."""

    def __init__(self, checkpoint: str | None) -> None:
        self._checkpoint = checkpoint

    def reach(self, checkpoint: str, **about: Json) -> None:
        """Announce the checkpoint and wait there, if it is the one."""
        if checkpoint == self._checkpoint:
            LINE.say(checkpoint=checkpoint, pid=os.getpid(), **about)
            LINE.wait()
            os._exit(MISLED)


def reach_around(stop: Stop) -> Callable[[str, Request], None]:
    """Return what is told around each call, and reaches the checkpoints there."""
    checkpoints = {"call": AFTER_REQUEST, "reply": AFTER_EFFECT}

    def reach(place: str, request: Request) -> None:
        if place in checkpoints:
            stop.reach(checkpoints[place], attempt=request.attempt, key=request.key)

    return reach


def on_event(act: str, stop: Stop) -> Callable[[str, Event], None]:
    """Return the hook that knows which rows are durable."""

    def hook(_run: str, event: Event) -> None:
        about: dict[str, Json] = {"attempt": event.attempt, "seq": event.seq, "event": event.event}
        if event.event == "acknowledge":
            stop.reach(AFTER_ACKNOWLEDGEMENT, **about)
        if act == "resume":
            stop.reach(IN_RECOVERY, **about)

    return hook


def settled(resume: Callable[[], Outcome]) -> Outcome:
    """Resume, and again from the moment at which a probe's answer counts, if that is near."""
    deadline = time.monotonic() + SETTLING_SECONDS_MAX
    while True:
        outcome = resume()
        not_before = outcome.in_doubt[0].not_before if outcome.in_doubt else None
        if not_before is None or not_before > time.time() + SETTLING_SECONDS_MAX:
            return outcome
        if time.monotonic() > deadline:
            return outcome
        time.sleep(max(0.0, not_before - time.time()) + 0.005)


def inspect_and_reconcile(runtime: Runtime, subject: Subject, folder: str) -> Outcome:
    """Play the person's part: look into the ledger, and confirm what is there.

    This is an automated inspection without human review, and the evidence says so.
    """
    outcome = runtime.outcome(RUN)
    (doubt,) = outcome.in_doubt
    effects = named(subject.counts)(folder, doubt.key)
    if effects != 1:
        return outcome
    evidence = Evidence(
        run=RUN,
        step=doubt.step,
        attempt=doubt.attempt,
        key=doubt.key,
        kind="ledger",
        content={"effects": effects},
        who="crashtests: automated inspection, no human review",
        why="the ledger holds one effect for this key",
    )
    return runtime.confirm(evidence, result={"effects": effects})


def work(folder: str, name: str, act: str, checkpoint: str | None) -> None:
    """Carry the act out on the case's database."""
    subject = SUBJECTS[name]
    stop = Stop(checkpoint)
    with Runtime(
        os.path.join(folder, DATABASE),
        adapters=[watched(adapter_of(subject), reach_around(stop))],
        namespace=NAMESPACE,
        on_event=on_event(act, stop),
        log_bytes=0,
    ) as runtime:
        if act == "reconcile":
            outcome = inspect_and_reconcile(runtime, subject, folder)
        elif act == "resume":
            outcome = settled(lambda: runtime.run(RUN, plan(subject, [STEP])))
        else:
            outcome = runtime.run(RUN, plan(subject, [STEP]))
        stop.reach(IN_RECOVERY if act == "resume" else "", event="outcome")
        LINE.say(finished=act, pid=os.getpid(), outcome=described(outcome))


def work_blindly(folder: str, checkpoint: str | None) -> None:
    """The baseline: do it, and after a crash do it again. No history, no key that counts."""
    subject = SUBJECTS["opaque"]
    stop = Stop(checkpoint)
    request = Request(RUN, STEP, "baseline", 1, subject.arguments, None)
    adapter_of(subject).call(request)
    stop.reach(AFTER_EFFECT, attempt=1, key=request.key)
    LINE.say(finished="run", pid=os.getpid(), outcome={"state": "completed"})


def main() -> int:
    """Read what to do, and do it."""
    parser = argparse.ArgumentParser(prog="python -m crashtests.worker")
    parser.add_argument("folder")
    parser.add_argument("subject", choices=[*SUBJECTS, "baseline"])
    parser.add_argument("act", choices=["run", "resume", "reconcile"])
    parser.add_argument("--stop")
    options = parser.parse_args()
    os.environ[FOLDER_VARIABLE] = options.folder
    if options.subject == "baseline":
        work_blindly(options.folder, options.stop)
    else:
        work(options.folder, options.subject, options.act, options.stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
