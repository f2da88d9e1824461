"""Broken models with names: each must be caught, by the invariant that it is meant for.

A property that no mutant breaks would say nothing. Every one here is a mistake that such a system
has been made with, or that the spec's own words rule out. Generated mutants come on top of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agent_replay.lifecycles.coupling import Key, Permitted
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from agent_replay.recovery import NOTHING_OWED, Acts, Append, News, Situation, Why
from models.bounds import IDEMPOTENT, OPAQUE, QUERYABLE, Bounds
from models.tables import SHIPPED, Tables, with_decisions, with_rows
from models.world.state import A5, ASSUMPTIONS, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A setting that is broken on purpose, and the invariant that must say so."""

    name: str
    breaks: str
    bounds: Bounds
    tables: Callable[[], Tables] = lambda: SHIPPED
    variants: frozenset[str] = frozenset()
    assumptions: frozenset[str] = ASSUMPTIONS

    def setting(self) -> Setting:
        """Return the setting that the mutant is searched in."""
        return Setting(
            bounds=self.bounds,
            tables=self.tables(),
            assumptions=self.assumptions,
            variants=self.variants,
        )

    def whole(self) -> Setting:
        """Return the same setting with nothing broken in it."""
        return Setting(bounds=self.bounds, assumptions=self.assumptions)


def _small(*steps: Contract, **more: int | bool) -> Bounds:
    return Bounds(
        name="mutant of " + " and ".join(steps),
        why="the smallest in which the mistake shows",
        steps=steps,
        **more,  # type: ignore[arg-type]
    )


# --- decisions ----------------------------------------------------------------------------------


def _refusal_is_final(situation: Situation, acts: Acts) -> Acts:
    if situation.state is StepState.REQUESTED and situation.news is News.REFUSAL:
        return (Append(StepEvent.REJECT, Actor.RUNTIME, Why.REFUSED),) if acts else acts
    return acts


def _absence_always_counts(situation: Situation, acts: Acts) -> Acts:
    asked = situation.contract is Contract.QUERYABLE and situation.state is StepState.IN_DOUBT
    waits = situation.run_state in (RunState.PAUSED, RunState.CANCELLING)
    if asked and waits and situation.news is News.ABSENT:
        return (Append(StepEvent.REFUTE, Actor.PROBE, Why.PROBE_ABSENT),)
    return acts


def _absence_never_counts(_: Situation, acts: Acts) -> Acts:
    refuted = any(isinstance(act, Append) and act.event is StepEvent.REFUTE for act in acts)
    return NOTHING_OWED if refuted else acts


def _no_exhaust(_: Situation, acts: Acts) -> Acts:
    exhausted = any(isinstance(act, Append) and act.event is StepEvent.EXHAUST for act in acts)
    return NOTHING_OWED if exhausted else acts


def _orphan_is_left(situation: Situation, acts: Acts) -> Acts:
    orphan = situation.state is StepState.REQUESTED and situation.news is News.FOUND_OPEN
    return NOTHING_OWED if orphan else acts


def _failure_is_a_reply(situation: Situation, acts: Acts) -> Acts:
    if situation.state is StepState.REQUESTED and situation.news is News.FAILURE and acts:
        return (Append(StepEvent.ACKNOWLEDGE, Actor.RUNTIME, Why.ANSWERED),)
    return acts


def _doubt_though_it_may_resend(situation: Situation, acts: Acts) -> Acts:
    resends = any(isinstance(act, Append) and act.event is StepEvent.RESEND for act in acts)
    if resends and situation.contract is Contract.IDEMPOTENT:
        actor = Actor.RECOVERY if situation.news is News.FOUND_OPEN else Actor.RUNTIME
        return (Append(StepEvent.SUSPEND, actor, Why.DIED),)
    return acts


def _second_recovery_rejects(situation: Situation, acts: Acts) -> Acts:
    again = situation.news is News.FOUND_OPEN and situation.earlier_unresolved
    orphan = situation.state is StepState.REQUESTED and situation.contract is Contract.IDEMPOTENT
    if again and orphan and acts:
        return (Append(StepEvent.REJECT, Actor.RECOVERY, Why.DIED),)
    return acts


def _blind_retry(situation: Situation, acts: Acts) -> Acts:
    open_ = situation.state is StepState.REQUESTED and situation.run_state is RunState.RUNNING
    died = situation.news is News.FOUND_OPEN and situation.attempts_left
    if open_ and died and situation.contract is Contract.OPAQUE:
        return (Append(StepEvent.RESEND, Actor.RECOVERY, Why.DIED),)
    return acts


def _written_twice(situation: Situation, acts: Acts) -> Acts:
    ended = situation.run_state is RunState.COMPLETED and situation.news is News.NOTHING
    if ended and situation.state is StepState.SUCCEEDED:
        return (Append(StepEvent.ACKNOWLEDGE, Actor.RUNTIME, Why.ANSWERED),)
    return acts


# --- rows ---------------------------------------------------------------------------------------


def _no_pause(key: Key, outcome: Permitted) -> Permitted | None:
    if key[2] is StepEvent.SUSPEND and key[4] is RunState.RUNNING:
        return Permitted(outcome.target, (), RunState.RUNNING)
    return outcome


def _no_row_for_suspend(key: Key, outcome: Permitted) -> Permitted | None:
    return None if key[2] is StepEvent.SUSPEND and key[3] is Actor.RECOVERY else outcome


def _evidence_is_ignored(key: Key, outcome: Permitted) -> Permitted | None:
    if key[2] in (StepEvent.CONFIRM, StepEvent.REFUTE) and key[3] is Actor.OPERATOR:
        return Permitted(StepState.IN_DOUBT, (), key[4])
    return outcome


def _success_does_not_complete(key: Key, outcome: Permitted) -> Permitted | None:
    if RunEvent.COMPLETE in outcome.coupled:
        return Permitted(outcome.target, (), RunState.RUNNING)
    return outcome


def _also(rows: dict[Key, Permitted], tables: Tables) -> Tables:
    return Tables({**tables.permitted, **rows}, tables.decisions)


def _rows(
    contract: Contract,
    move: tuple[StepState, StepEvent, Actor],
    run_state: RunState,
    outcome: Permitted,
) -> dict[Key, Permitted]:
    return {(contract, *move, run_state, last): outcome for last in (False, True)}


_REJECTED_BY_RECOVERY = _rows(
    Contract.IDEMPOTENT,
    (StepState.REQUESTED, StepEvent.REJECT, Actor.RECOVERY),
    RunState.RUNNING,
    Permitted(StepState.FAILED, (RunEvent.FAIL,), RunState.FAILED),
)
_RESENT_WHILE_OPAQUE = _rows(
    Contract.OPAQUE,
    (StepState.REQUESTED, StepEvent.RESEND, Actor.RECOVERY),
    RunState.RUNNING,
    Permitted(StepState.REQUESTED, (), RunState.RUNNING),
)
_ANSWERED_AGAIN = _rows(
    Contract.OPAQUE,
    (StepState.SUCCEEDED, StepEvent.ACKNOWLEDGE, Actor.RUNTIME),
    RunState.COMPLETED,
    Permitted(StepState.SUCCEEDED, (), RunState.COMPLETED),
)


# --- the list -----------------------------------------------------------------------------------


def _by_decision(changed: Callable[[Situation, Acts], Acts]) -> Callable[[], Tables]:
    return partial(with_decisions, SHIPPED, changed)


def _by_row(changed: Callable[[Key, Permitted], Permitted | None]) -> Callable[[], Tables]:
    return partial(with_rows, SHIPPED, changed)


def _by_both(
    changed: Callable[[Situation, Acts], Acts], rows: dict[Key, Permitted]
) -> Callable[[], Tables]:
    return lambda: _also(rows, with_decisions(SHIPPED, changed))


SAFETY = (
    Mutant(
        name="a request is sent before it is durable",
        breaks="S1",
        bounds=_small(OPAQUE),
        variants=frozenset({"a request is sent before it is durable"}),
    ),
    Mutant(
        name="an opaque step is sent again after a crash",
        breaks="S2",
        bounds=_small(OPAQUE),
        tables=_by_both(_blind_retry, _RESENT_WHILE_OPAQUE),
    ),
    Mutant(
        name="the attempt is part of the key",
        breaks="S2",
        bounds=_small(IDEMPOTENT),
        variants=frozenset({"the attempt is part of the key"}),
    ),
    Mutant(
        name="a resend begins the key window anew",
        breaks="S2",
        bounds=_small(IDEMPOTENT),
        variants=frozenset({"a resend begins the key window anew"}),
    ),
    Mutant(
        name="an error is taken for a reply",
        breaks="S3",
        bounds=_small(OPAQUE),
        tables=_by_decision(_failure_is_a_reply),
    ),
    Mutant(
        name="a refusal settles the step, whatever was sent before",
        breaks="S4",
        bounds=_small(IDEMPOTENT),
        tables=_by_decision(_refusal_is_final),
    ),
    Mutant(
        name="a refusal of the key speaks of the past alone",
        breaks="S4",
        bounds=_small(IDEMPOTENT, kills_max=0),
        variants=frozenset({"a refusal of the key speaks of the past alone"}),
    ),
    Mutant(
        name="an absence counts before the settle bound has passed",
        breaks="S4",
        bounds=_small(QUERYABLE, kills_max=0),
        tables=_by_decision(_absence_always_counts),
    ),
    Mutant(
        name="the settle bound counts from the request",
        breaks="S4",
        bounds=_small(QUERYABLE),
        variants=frozenset({"the settle bound counts from the request"}),
    ),
    Mutant(
        name="a result is written twice",
        breaks="S5",
        bounds=_small(OPAQUE),
        tables=_by_both(_written_twice, _ANSWERED_AGAIN),
    ),
    Mutant(
        name="a suspend does not pause the run",
        breaks="S6",
        bounds=_small(OPAQUE),
        tables=_by_row(_no_pause),
    ),
    Mutant(
        name="recovery owes a suspend that the spec has not",
        breaks="S6",
        bounds=_small(OPAQUE),
        tables=_by_row(_no_row_for_suspend),
    ),
    Mutant(
        name="a replaced writer may write",
        breaks="S7",
        bounds=_small(OPAQUE, workers=2),
        variants=frozenset({"a replaced writer may write"}),
        assumptions=ASSUMPTIONS - {A5},
    ),
    Mutant(
        name="opening does not make the log durable",
        breaks="S8",
        bounds=_small(OPAQUE),
        variants=frozenset({"opening does not make the log durable"}),
    ),
    Mutant(
        name="a step is put in doubt though it may be sent again",
        breaks="S10",
        bounds=_small(IDEMPOTENT),
        tables=_by_decision(_doubt_though_it_may_resend),
    ),
    Mutant(
        name="recovery leaves an orphan requested",
        breaks="S10",
        bounds=_small(OPAQUE),
        tables=_by_decision(_orphan_is_left),
    ),
    Mutant(
        name="a call begins after a storage error",
        breaks="S12",
        bounds=_small(IDEMPOTENT, faults_max=1),
        variants=frozenset({"a call begins after a storage error"}),
    ),
    Mutant(
        name="the last success does not complete the run",
        breaks="S13",
        bounds=_small(OPAQUE),
        tables=_by_row(_success_does_not_complete),
    ),
    Mutant(
        name="a step does not wait for the one before",
        breaks="S15",
        bounds=_small(OPAQUE, OPAQUE),
        variants=frozenset({"a step does not wait for the one before"}),
    ),
)
"""Caught by the search, as a state or an event that breaks the invariant."""

LIVENESS = (
    Mutant(
        name="recovery leaves an orphan requested for ever",
        breaks="L1",
        bounds=_small(OPAQUE, operator=False, cancels=False),
        tables=_by_decision(_orphan_is_left),
    ),
    Mutant(
        name="an absence never counts",
        breaks="L2",
        bounds=_small(QUERYABLE, operator=False, cancels=False),
        tables=_by_decision(_absence_never_counts),
    ),
    Mutant(
        name="evidence is ignored",
        breaks="L3",
        bounds=_small(OPAQUE, abandons=False, cancels=False),
        tables=_by_row(_evidence_is_ignored),
    ),
)
"""Caught by Spin, as a run of the model that goes on for ever and never comes to it."""

PATHS = (
    Mutant(
        name="an operator's resend is no grant on record",
        breaks="S9",
        bounds=_small(IDEMPOTENT),
        variants=frozenset({"an operator's resend grants nothing"}),
    ),
    Mutant(
        name="a second recovery fails the step",
        breaks="S14",
        bounds=_small(IDEMPOTENT, kills_max=2, operator=False, cancels=False),
        tables=_by_both(_second_recovery_rejects, _REJECTED_BY_RECOVERY),
    ),
    Mutant(
        name="nothing is owed when the last attempt was refuted",
        breaks="L4",
        bounds=_small(QUERYABLE, cancels=False),
        tables=_by_decision(_no_exhaust),
    ),
)
"""Caught in the graph of a whole search (models/paths.py)."""


def named(name: str) -> Mutant:
    """Return a mutant by its name."""
    return next(one for one in (*SAFETY, *LIVENESS, *PATHS) if one.name == name)
