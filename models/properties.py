"""The invariants of the spec as conditions on the model's states, each with its witnesses.

S1, S5, S6, S7, S8, S10 and S12 are also claimed of single events, where these are made: in
models/world/. S9, S14 and L4 speak of edges and paths: models/paths.py. S11 is about the text of
the key, which no model has.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import TERMINAL as STEP_TERMINAL
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import News
from models.language.expressions import (
    Expression,
    both,
    either,
    implied,
    negated,
)
from models.language.program import Claim, Eventually, Witness
from models.world.state import DEAD, WAITS, World

UNSETTLED = (StepState.REQUESTED, StepState.IN_DOUBT)
CLOSED_BADLY = (StepState.FAILED, StepState.ABANDONED)


def invariants(world: World) -> tuple[Claim, ...]:
    """Return what must hold in every state."""
    return (
        *_of_effects(world),
        *_of_states(world),
    )


def _with_effects(world: World) -> list[int]:
    return [s for s in world.setting.steps if world.setting.contract(s) is not Contract.READ_ONLY]


def _of_effects(world: World) -> Iterator[Claim]:
    for step in world.setting.steps:
        untouched = both(
            world.step[step].is_(StepState.PLANNED),
            either(negated(world.is_open(step)), world.attempt.is_(0)),
            world.restored.is_(0),
        )
        nothing_sent = both(world.effects[step].is_(0), world.abroad[step].is_(0))
        yield Claim("S1", "no effect without a request on record", implied(untouched, nothing_sent))
        if world.setting.contract(step) is Contract.READ_ONLY:
            yield Claim("S2", "a read-only step has no effect", world.effects[step].is_(0))
    for step in _with_effects(world):
        effects = world.effects[step]
        yield Claim("S2", f"step {step} has at most one effect", effects.is_(0, 1))
        succeeded = world.step[step].is_(StepState.SUCCEEDED)
        yield Claim(
            "S3",
            f"if step {step} succeeded it had exactly one effect",
            implied(succeeded, effects.is_(1)),
        )
        again = both(
            world.step[step].is_(StepState.PLANNED),
            world.is_open(step),
            negated(world.attempt.is_(0)),
        )
        yield Claim(
            "S4",
            f"if step {step} failed or is planned again, nothing happened and nothing can land",
            implied(
                either(world.step[step].is_(StepState.FAILED), again),
                world.nothing_happened(step),
            ),
        )


def _of_states(world: World) -> Iterator[Claim]:
    def some(*states: StepState) -> Expression:
        return either(*(step.is_(*states) for step in world.step.values()))

    run = world.run
    unsettled, badly = some(*UNSETTLED), some(*CLOSED_BADLY)
    for state, coupled in (
        (RunState.RUNNING, both(some(StepState.PLANNED, StepState.REQUESTED), negated(badly))),
        (RunState.CANCELLING, both(unsettled, negated(badly))),
        (RunState.COMPLETED, world.earlier_succeeded(len(world.step) + 1)),
        (RunState.FAILED, both(badly, negated(unsettled))),
        (RunState.CANCELLED, negated(unsettled)),
    ):
        yield Claim(
            "S6", f"a {state} run has the steps that it may have", implied(run.is_(state), coupled)
        )
    doubt = some(StepState.IN_DOUBT)
    paused = equal_truth(run.is_(RunState.PAUSED), both(doubt, run.is_not(RunState.CANCELLING)))
    yield Claim(
        "S6", "a run is paused just where a step is in doubt and no cancel was asked", paused
    )
    for step in list(world.setting.steps)[1:]:
        moved = negated(world.step[step].is_(StepState.PLANNED))
        before = world.step[step - 1].is_(StepState.SUCCEEDED)
        yield Claim(
            "S15", f"step {step} moves only after step {step - 1} succeeded", implied(moved, before)
        )
    settled = sorted(STEP_TERMINAL)
    for step in world.setting.steps:
        yield Claim(
            "S13",
            f"step {step} is not lost: where it is open and settled, the run has ended",
            implied(both(world.is_open(step), world.step[step].is_(*settled)), world.ended()),
        )
    read_only = [s for s in world.setting.steps if s not in _with_effects(world)]
    for step in read_only:
        yield Claim(
            "S10",
            f"step {step}, which is read-only, is never in doubt",
            world.step[step].is_not(StepState.IN_DOUBT),
        )


def equal_truth(one: Expression, other: Expression) -> Expression:
    """Return the condition that both conditions hold or neither does."""
    return either(both(one, other), both(negated(one), negated(other)))


# --- witnesses ----------------------------------------------------------------------------------


def witnesses(world: World) -> tuple[Witness, ...]:
    """Return the situations that must occur within the bounds, for the invariants to say
    something."""
    return (
        *_witnesses_of_effects(world),
        *_witnesses_of_states(world),
        *_witnesses_of_harm(world),
    )


def _witnesses_of_effects(world: World) -> Iterator[Witness]:
    bounds = world.setting.bounds
    for step in _with_effects(world):
        contract = world.setting.contract(step)
        happened = world.effects[step].is_(1)
        requested = world.step[step].is_(StepState.REQUESTED)
        yield Witness("S1", f"step {step} has its effect", happened)
        if bounds.kills_max:
            all_dead = both(*(one.life.is_(DEAD) for one in world.workers.values()))
            yield Witness(
                "S8",
                f"a process dies between the effect of step {step} and its acknowledgement",
                both(requested, happened, all_dead),
            )
        if contract is Contract.IDEMPOTENT:
            yield Witness(
                "S2",
                f"a request of step {step} is under way after another had its effect",
                both(happened, negated(world.abroad[step].is_(0))),
            )
        failed = world.step[step].is_(StepState.FAILED)
        yield Witness(
            "S4", f"step {step} was sent, and failed", both(failed, negated(world.attempt.is_(0)))
        )
        if contract is Contract.QUERYABLE or bounds.operator:
            again = both(
                world.step[step].is_(StepState.PLANNED),
                world.is_open(step),
                negated(world.attempt.is_(0)),
            )
            yield Witness("S4", f"step {step} is planned again", again)
            doubt = world.step[step].is_(StepState.IN_DOUBT)
            yield Witness("S3", f"step {step} is in doubt and happened", both(doubt, happened))


def _witnesses_of_states(world: World) -> Iterator[Witness]:
    yield Witness("S5", "the run completes", world.run.is_(RunState.COMPLETED))
    yield Witness("L1", "the run fails", world.run.is_(RunState.FAILED))
    if world.setting.bounds.cancels:
        yield Witness("S6", "the run is cancelling", world.run.is_(RunState.CANCELLING))
        yield Witness("S13", "the run is cancelled", world.run.is_(RunState.CANCELLED))
    for step in _with_effects(world):
        yield Witness("S10", f"step {step} is in doubt", world.step[step].is_(StepState.IN_DOUBT))
    last = len(world.step)
    if last > 1:
        yield Witness(
            "S15", "the last step is requested", world.step[last].is_(StepState.REQUESTED)
        )


def _witnesses_of_harm(world: World) -> Iterator[Witness]:
    bounds = world.setting.bounds
    workers = world.workers.values()
    requested = either(*(step.is_(StepState.REQUESTED) for step in world.step.values()))
    if bounds.kills_max:
        yield Witness(
            "S7", "a second writer has taken the run over", negated(world.epoch.is_(0, 1))
        )
    if bounds.kills_max and {Contract.READ_ONLY, Contract.IDEMPOTENT} & set(bounds.steps):
        yield Witness(
            "S14",
            "a process dies in recovery, its resend written and not sent",
            both(
                requested,
                world.unresolved.is_(2),
                *(one.life.is_(DEAD) for one in workers),
            ),
        )
    if bounds.faults_max:
        yield Witness(
            "S12",
            "a store has failed while a call waits, or a reply is held",
            either(
                *(
                    both(
                        one.broken.is_(1), either(one.known.is_(News.REPLY), one.driver.is_(WAITS))
                    )
                    for one in workers
                )
            ),
        )


# --- liveness -----------------------------------------------------------------------------------


def eventually(world: World) -> tuple[Eventually, ...]:
    """Return the liveness properties; they hold under weak fairness of every actor.

    The harm that may be done is finite in every model. L2 is without a person; L3 is with one who
    gives true evidence, and no abandon.
    """
    bounds = world.setting.bounds
    doubts = [step.is_(StepState.IN_DOUBT) for step in world.step.values()]
    stands = either(world.ended(), *doubts)
    found = [
        Eventually(
            "L1",
            "the run ends, or waits with a step in doubt",
            world.unfinished(),
            stands,
            for_good=not bounds.operator,
        )
    ]
    for step in _with_effects(world):
        contract = world.setting.contract(step)
        doubt = world.step[step].is_(StepState.IN_DOUBT)
        if contract is Contract.QUERYABLE and not bounds.operator:
            says = f"step {step} leaves the doubt without a person"
            found.append(Eventually("L2", says, doubt, negated(doubt)))
        if bounds.operator and not bounds.abandons:
            says = f"evidence takes step {step} out of doubt"
            granted = world.grants.is_not(bounds.grants_max)
            found.append(Eventually("L3", says, both(doubt, granted), negated(doubt)))
    return tuple(found)
