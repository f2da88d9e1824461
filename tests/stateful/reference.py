"""A second runtime, as short as it can be: what the rules say, in plain Python.

It shares nothing with the runtime but the generated words. `owed` says what comes next, `accepts`
which evidence counts, `after` what a row changes. `rehearsal` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from tests.stateful.outside import BOUND, LANDS, WINDOW, Seen
from tests.stateful.records import Run, Step

PLANNED, REQUESTED, IN_DOUBT, SUCCEEDED, FAILED, ABANDONED = StepState
TARGETS = {
    **dict.fromkeys((StepEvent.REQUEST, StepEvent.RESEND), REQUESTED),
    **dict.fromkeys((StepEvent.ACKNOWLEDGE, StepEvent.CONFIRM), SUCCEEDED),
    **dict.fromkeys((StepEvent.REJECT, StepEvent.EXHAUST), FAILED),
    **{StepEvent.SUSPEND: IN_DOUBT, StepEvent.REFUTE: PLANNED, StepEvent.ABANDON: ABANDONED},
}
UNFINISHED = (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLING)

Move = tuple[StepEvent, Actor]


def state_of(run: Run) -> RunState:
    """Return the state of a run, which follows from its open step and an asked cancel."""
    state = run.open.state
    if run.cancel_asked:
        return RunState.CANCELLING if state in (REQUESTED, IN_DOUBT) else RunState.CANCELLED
    ends = {SUCCEEDED: RunState.COMPLETED, FAILED: RunState.FAILED, ABANDONED: RunState.FAILED}
    return ends.get(state, RunState.PAUSED if state is IN_DOUBT else RunState.RUNNING)


def elapsed(since: Seen, now: Seen, choose: Callable[[int, int], int]) -> int | None:
    """Return the time between two readings, or None if the clocks cannot say."""
    same = since.boot_id == now.boot_id
    if now.wall < since.wall or (same and now.boot < since.boot):
        return None
    return choose(now.wall - since.wall, now.boot - (since.boot if same else 0))


def lapsed(step: Step, now: Seen) -> bool:
    """Return whether the tool may have forgotten the key before a request of now arrives."""
    past = elapsed(step.first, now, max) if step.tool == "windowed" and step.first else 0
    return past is None or past + LANDS > WINDOW


def passed(step: Step, probed: Seen) -> bool:
    """Return whether all that was sent had arrived, or was lost, before the probe."""
    past = None if step.suspended is None else elapsed(step.suspended, probed, min)
    return past is not None and past > BOUND


def after(run: Run, event: StepEvent | RunEvent, actor: Actor, now: Seen, result: object) -> Run:
    """Return the run after a row."""
    run = replace(run, steps=[replace(step) for step in run.steps])
    if isinstance(event, RunEvent):
        run.cancel_asked = run.cancel_asked or event is RunEvent.ASK_CANCEL
        return run
    step, by_hand = run.open, actor is Actor.OPERATOR
    step.state = TARGETS[event]
    if step.state is REQUESTED:
        step.attempt, step.unresolved = step.attempt + 1, step.unresolved + 1
        step.first, step.granted = step.first or now, step.granted + by_hand
    elif step.state is PLANNED:
        step.unresolved, step.first, step.suspended = 0, None, None
        step.granted += by_hand
    elif step.state is IN_DOUBT:
        step.suspended = now
    step.result = result
    return run


def accepts(run: Run, event: StepEvent, attempt: int, now: Seen) -> bool:
    """Return whether evidence counts that names run, step and key rightly."""
    step = run.open
    if step.state is not IN_DOUBT or not 1 <= attempt <= step.attempt:
        return False
    if event is StepEvent.RESEND:
        sends = step.contract is Contract.IDEMPOTENT and not run.cancel_asked
        return sends and attempt == step.attempt and not lapsed(step, now)
    return event is StepEvent.CONFIRM or attempt == step.attempt


def owed(run: Run, news: str, now: Seen, probed: Seen) -> Move | str:
    """Return the row that is owed, or "call" or "probe", or "" if nothing is."""
    if state_of(run) not in UNFINISHED:
        return ""
    if run.open.state is IN_DOUBT:
        return _to_settle(run.open, news, probed)
    left = run.limit + run.open.granted > run.open.attempt
    by = Actor.RECOVERY if news == "found" else Actor.RUNTIME
    if run.open.state is PLANNED:
        is_used_up = run.open.contract is Contract.QUERYABLE and not left
        return (StepEvent.EXHAUST, by) if is_used_up else (StepEvent.REQUEST, Actor.RUNTIME)
    return _to_end(run, news, by, left=left, late=lapsed(run.open, now))


def _to_settle(step: Step, news: str, probed: Seen) -> Move | str:
    if step.contract is not Contract.QUERYABLE or news == "silent":
        return ""
    if news == "present":
        return StepEvent.CONFIRM, Actor.PROBE
    if news == "absent":
        return (StepEvent.REFUTE, Actor.PROBE) if passed(step, probed) else ""
    return "probe"


def _to_end(run: Run, news: str, by: Actor, *, left: bool, late: bool) -> Move | str:
    step, reads = run.open, run.open.contract is Contract.READ_ONLY
    is_alone = reads or step.unresolved <= 1
    if news == "replied":
        return StepEvent.ACKNOWLEDGE, by
    if news == "refused_key" or (is_alone and news == "refused"):
        return StepEvent.REJECT, by
    if news == "ready" and not run.cancel_asked and not late:
        return "call"
    if news == "ready" and run.cancel_asked and is_alone:
        return StepEvent.REJECT, by
    repeats = reads or step.contract is Contract.IDEMPOTENT
    if news in ("raised", "found") and repeats and left and not late and not run.cancel_asked:
        return StepEvent.RESEND, by
    return (StepEvent.REJECT if reads else StepEvent.SUSPEND), by
