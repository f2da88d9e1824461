"""What is owed next: a pure function from a situation to acts.

A situation is finite: contract, state of the open step and of the run, what has just been learnt,
and four yes-or-no readings. So the function can be tabulated, compared with the models row by row,
and reviewed as a table. It appends nothing and calls nothing; it returns a list of acts, in order:

- `Append`: a row to be judged by the machine and written;
- `Act.CALL`: the tool is to be called, now, with the request that is durable;
- `Act.PROBE`: the tool is to be asked for the key.

No acts: nothing is owed. The run has ended, or it waits for evidence. An act after an append is
carried out only when the append is durable.
"""

from enum import StrEnum
from functools import cache
from typing import NamedTuple, assert_never

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState


class News(StrEnum):
    """What has just been learnt of the open step."""

    NOTHING = "nothing"
    """The step is come to in the course of a run."""
    FOUND_OPEN = "found_open"
    """The step is come to after a process ended; a request that is open has no live driver."""
    READY = "ready"
    """The request is durable, made by this process, and the call has not begun."""
    REPLY = "reply"
    """The tool answered."""
    REFUSAL = "refusal"
    """The tool says that this call had no effect."""
    REFUSAL_OF_KEY = "refusal_of_key"
    """The tool says that no call with this key had an effect, or can still have one."""
    FAILURE = "failure"
    """The call raised: whether it had an effect is unknown."""
    PRESENT = "present"
    """The probe knows the key, and its result."""
    ABSENT = "absent"
    """The probe does not know the key."""
    NO_ANSWER = "no_answer"
    """The probe did not answer."""


class Why(StrEnum):
    """The reason that is written with a move."""

    ANSWERED = "answered"
    DIED = "died"
    RAISED = "raised"
    REFUSED = "refused"
    REFUSED_AFTER_UNRESOLVED = "refused_after_unresolved"
    WINDOW_LAPSED = "window_lapsed"
    ATTEMPTS_USED_UP = "attempts_used_up"
    CANCEL_ASKED = "cancel_asked"
    NOT_SENT = "not_sent"
    PROBE_PRESENT = "probe_present"
    PROBE_ABSENT = "probe_absent"
    NONE = ""


class Act(StrEnum):
    """What is to be done outside of the history."""

    CALL = "call"
    PROBE = "probe"


class Append(NamedTuple):
    """A row to be written."""

    event: StepEvent
    actor: Actor
    why: Why = Why.NONE


class Situation(NamedTuple):
    """All that the decision rests on.

    `attempts_left`: limit + operator's refutes and resends - requests and resends, above 0.
    `window_open`: a request that leaves now lands inside the key window (true where there is none).
    `bound_passed`: the settle bound had passed before the probe was called.
    `earlier_unresolved`: since the last refute, a request or resend precedes the current one.
    """

    contract: Contract
    state: StepState
    run_state: RunState
    news: News
    attempts_left: bool
    window_open: bool
    bound_passed: bool
    earlier_unresolved: bool


Acts = tuple[Append | Act, ...]
NOTHING_OWED: Acts = ()


@cache
def decide(situation: Situation) -> Acts:
    """Return what is owed, in order. Of the few situations there are, each is thought out once."""
    if situation.run_state not in (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLING):
        return NOTHING_OWED
    match situation.state:
        case StepState.PLANNED:
            return _planned(situation)
        case StepState.REQUESTED:
            return _requested(situation)
        case StepState.IN_DOUBT:
            return _in_doubt(situation)
        case StepState.SUCCEEDED | StepState.FAILED | StepState.ABANDONED:
            return NOTHING_OWED
        case _:
            assert_never(situation.state)


def _planned(situation: Situation) -> Acts:
    if situation.run_state is not RunState.RUNNING:
        return NOTHING_OWED
    if situation.attempts_left or situation.contract is not Contract.QUERYABLE:
        # A contract without a probe is planned again by an operator only, whose refute grants an
        # attempt.
        return (Append(StepEvent.REQUEST, Actor.RUNTIME),)
    actor = Actor.RECOVERY if situation.news is News.FOUND_OPEN else Actor.RUNTIME
    return (Append(StepEvent.EXHAUST, actor, Why.ATTEMPTS_USED_UP),)


def _requested(situation: Situation) -> Acts:
    match situation.news:
        case News.READY:
            return _before_the_call(situation)
        case News.REPLY:
            return (Append(StepEvent.ACKNOWLEDGE, Actor.RUNTIME, Why.ANSWERED),)
        case News.REFUSAL | News.REFUSAL_OF_KEY:
            return _refused(situation)
        case News.FAILURE:
            return _unanswered(situation, Actor.RUNTIME, Why.RAISED)
        case News.FOUND_OPEN:
            return _unanswered(situation, Actor.RECOVERY, Why.DIED)
        case News.NOTHING | News.PRESENT | News.ABSENT | News.NO_ANSWER:
            return NOTHING_OWED
        case _:
            assert_never(situation.news)


def _refused(situation: Situation) -> Acts:
    if situation.news is News.REFUSAL_OF_KEY or _nothing_else_is_open(situation):
        return (Append(StepEvent.REJECT, Actor.RUNTIME, Why.REFUSED),)
    # The refusal speaks of this call alone; an earlier one may have had its effect.
    return (Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.REFUSED_AFTER_UNRESOLVED),)


def _nothing_else_is_open(situation: Situation) -> bool:
    """Return whether the current call is all of the step that could have had an effect."""
    return situation.contract is Contract.READ_ONLY or not situation.earlier_unresolved


def _before_the_call(situation: Situation) -> Acts:
    if situation.run_state is RunState.CANCELLING:
        # A call that was not begun is not begun; this one had no effect.
        if _nothing_else_is_open(situation):
            return (Append(StepEvent.REJECT, Actor.RUNTIME, Why.NOT_SENT),)
        return (Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.CANCEL_ASKED),)
    if situation.contract is Contract.IDEMPOTENT and not situation.window_open:
        return (Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.WINDOW_LAPSED),)
    return (Act.CALL,)


def _unanswered(situation: Situation, actor: Actor, cause: Why) -> Acts:
    """Return what is owed when a request was sent, or may have been, and no reply is known."""
    repeatable = situation.contract in (Contract.READ_ONLY, Contract.IDEMPOTENT)
    if situation.run_state is RunState.CANCELLING:
        why = Why.CANCEL_ASKED
    elif repeatable and not situation.window_open:
        why = Why.WINDOW_LAPSED
    elif repeatable and not situation.attempts_left:
        why = Why.ATTEMPTS_USED_UP
    elif repeatable:
        return (Append(StepEvent.RESEND, actor, cause),)
    else:
        why = cause
    if situation.contract is Contract.READ_ONLY:
        return (Append(StepEvent.REJECT, actor, why),)
    return (Append(StepEvent.SUSPEND, actor, why),)


def _in_doubt(situation: Situation) -> Acts:
    if situation.contract is not Contract.QUERYABLE:
        return NOTHING_OWED
    match situation.news:
        case News.PRESENT:
            return (Append(StepEvent.CONFIRM, Actor.PROBE, Why.PROBE_PRESENT),)
        case News.ABSENT:
            # Before the bound has passed, what was sent may still land: absence says nothing yet.
            if situation.bound_passed:
                return (Append(StepEvent.REFUTE, Actor.PROBE, Why.PROBE_ABSENT),)
            return NOTHING_OWED
        case News.NO_ANSWER:
            return NOTHING_OWED
        case (
            News.NOTHING
            | News.FOUND_OPEN
            | News.READY
            | News.REPLY
            | News.REFUSAL
            | News.REFUSAL_OF_KEY
            | News.FAILURE
        ):
            return (Act.PROBE,)
        case _:
            assert_never(situation.news)
