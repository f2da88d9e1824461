"""Why a run has not ended, and what a person can do about it.

It tells what the decision function and the commands would do; it decides nothing itself. In each
unfinished run there is at least one next act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent_replay.clock import Reading, window_is_open
from agent_replay.events import Writer
from agent_replay.history import RunHistory
from agent_replay.lifecycles.run import TERMINAL, RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.outcome import doubt_of, terms_of
from agent_replay.report import commands
from agent_replay.report.commands import Act, Caller, Subject
from agent_replay.report.words import RECOVERY, detail_in_words, utc_of_seconds, why_in_words


class Standing(StrEnum):
    """How a run stands for somebody who looks at it; the ended states are the run's own."""

    PAUSED = "paused"
    """It waits for evidence."""
    CANCELLING = "cancelling"
    """A cancel was asked, and the step in doubt waits for evidence."""
    RUNNING = "running"
    """A process holds the database, and may be at work on it."""
    INTERRUPTED = "interrupted"
    """A request is open, and no process is at work on it."""
    READY = "ready"
    """The next step may be requested, and no process is at work on it."""
    DAMAGED = "damaged"
    """What is stored of it is not what the runtime writes."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Writing(NamedTuple):
    """Who writes to the database: whether somebody holds it now, who, and who wrote last."""

    at_work: bool
    holder: str
    last: Writer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """How an unfinished run stands, why, and what to do; the first act is the one to try first."""

    run: str
    standing: Standing
    run_state: RunState
    step: str
    number: int
    steps: int
    state: StepState
    contract: Contract
    attempt: int
    key: str
    why: tuple[str, ...]
    not_before: float | None
    acts: tuple[Act, ...]


def standing_of(run_state: str | None, state: str | None, *, in_hand: bool) -> Standing:
    """Return how a run stands, from the states of its head; None where the head is missing.

    `in_hand` says that a process holds the database and may be at work on this run.
    """
    try:
        run_now, step_now = RunState(run_state or ""), StepState(state or "")
    except ValueError:
        return Standing.DAMAGED
    if run_now in TERMINAL or run_now is RunState.PAUSED:
        return Standing(run_now.value)
    if step_now is StepState.IN_DOUBT:
        return Standing.CANCELLING
    if in_hand:
        return Standing.RUNNING
    return Standing.INTERRUPTED if step_now is StepState.REQUESTED else Standing.READY


def archived_standing(run_state: str | None) -> Standing:
    """Return how a run stands that is in an archive: it has ended, or the database is damaged."""
    ended = {state.value for state in TERMINAL}
    return Standing(run_state) if run_state in ended else Standing.DAMAGED


def diagnose(
    history: RunHistory, *, caller: Caller, writing: Writing, now: Reading, boots: Mapping[int, str]
) -> Diagnosis:
    """Return why an unfinished run has not ended; `boots` has the boot id of each epoch."""
    head, step = history.head, history.open_step
    last = writing.last
    in_hand = writing.at_work and last is not None and last.epoch == head.epoch
    standing = standing_of(head.run_state, head.state, in_hand=in_hand)
    doubt = doubt_of(history) if head.state == StepState.IN_DOUBT else None
    if doubt is not None:
        why, acts = _in_doubt(history, caller, window_open=_window_is_open(history, now, boots))
    elif in_hand:
        why, acts = _in_hand(history, caller, writing)
    else:
        why, acts = _left_alone(history, caller)
    return Diagnosis(
        run=history.registration.id,
        standing=standing,
        run_state=history.run_state,
        step=step.id,
        number=step.step,
        steps=head.steps,
        state=StepState(head.state),
        contract=Contract(step.contract),
        attempt=head.attempt,
        key=step.key,
        why=tuple(why),
        not_before=None if doubt is None else doubt.not_before,
        acts=tuple(acts),
    )


def _in_hand(history: RunHistory, caller: Caller, writing: Writing) -> tuple[list[str], list[Act]]:
    holder = writing.holder or "a process"
    why = [f"{holder} holds the database, and may be at work on this run"]
    return why, [_resume(history, caller, "wait for that process, then go on with it", wait=True)]


def _left_alone(history: RunHistory, caller: Caller) -> tuple[list[str], list[Act]]:
    """Return what there is to say of a run that no process is at work on, and is not in doubt."""
    if history.head.state == StepState.REQUESTED:
        rule = RECOVERY[Contract(history.open_step.contract)]
        if history.run_state is RunState.CANCELLING:
            rule = "a cancel was asked: resume settles what is open and sends nothing"
        why = ["its process ended between the request and the answer", rule]
    else:
        why = ["nothing of the step is under way: resume requests it"]
    return why, [_resume(history, caller, "go on with it")]


def _in_doubt(
    history: RunHistory, caller: Caller, *, window_open: bool
) -> tuple[list[str], list[Act]]:
    doubt = doubt_of(history)
    subject = Subject(history.registration.id, doubt.step, doubt.attempt, doubt.key)
    why = [why_in_words(doubt.why)] if doubt.why else []
    if doubt.detail is not None:
        why.append(f"on record is {detail_in_words(doubt.detail)}")
    if history.run_state is RunState.CANCELLING:
        why.append("a cancel was asked, and the run ends as soon as the step is settled")
    acts = []
    if doubt.contract is Contract.QUERYABLE:
        acts.append(_resume(history, caller, "ask the tool for the key"))
    if doubt.not_before is not None:
        when = utc_of_seconds(doubt.not_before)
        why.append(f"that the tool does not know the key says nothing before {when}")
    if doubt.contract is Contract.IDEMPOTENT and history.run_state is RunState.PAUSED:
        if window_open:
            do = "send it once more with the same key, which the tool treats as the same request"
            acts.append(commands.resend(caller, subject, history.registration.hint, do))
        else:
            why.append("its key window has lapsed, so it is not sent again")
    acts += [
        commands.confirm(caller, subject),
        commands.refute(caller, subject),
        commands.abandon(caller, subject),
    ]
    return why, acts


def _resume(history: RunHistory, caller: Caller, do: str, *, wait: bool = False) -> Act:
    return commands.resume(
        caller, history.registration.id, history.registration.hint, do, wait=wait
    )


def _window_is_open(history: RunHistory, now: Reading, boots: Mapping[int, str]) -> bool:
    terms = terms_of(history.registration)[history.open_step.adapter]
    first = history.open.first
    if first is None or terms.key_window_ns is None:
        return True
    since = Reading(first.wall_ns, first.boot_ns, boots.get(first.epoch, ""))
    return window_is_open(
        since, now, window_ns=terms.key_window_ns, lands_ns=terms.lands_within_ns or 0
    )
