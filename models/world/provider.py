"""The tool on the other side, and time.

A request lands at any later time or never. What a landing does is what the contract promises (A1);
that nothing lands after its bound is A3. Time has two readings that matter: whether the key window
of the open step is open, and whether the settle bound has passed since its latest suspend.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import News
from models.language.expressions import (
    TRUE,
    Choice,
    Constant,
    Expression,
    Read,
    both,
    negated,
    plus,
    up_to_most,
)
from models.language.program import Command
from models.world.rows import Becomes, command
from models.world.state import (
    A1,
    A3,
    ALIVE,
    ANSWERED,
    CLOSED,
    LAPSED,
    OPEN,
    PROBES,
    WAITS,
    Worker,
    World,
)

PROVIDER, TIME = "provider", "time"


def commands(world: World) -> Iterator[Command]:
    """Yield everything that the tool does."""
    for step in world.setting.steps:
        yield from _late(world, step)
        for worker in world.workers.values():
            yield from _answers(world, worker, step)
            if world.setting.contract(step) is Contract.QUERYABLE:
                yield from _probed(world, worker, step)
    for worker in world.workers.values():
        yield from _replies(world, worker)


def landed(world: World, step: int) -> Becomes:
    """Return what one landing of a step's request does."""
    contract = world.setting.contract(step)
    effects = world.effects[step]
    keeps = world.setting.assumes(A1)
    if contract is Contract.READ_ONLY and keeps:
        return {}
    if contract is not Contract.IDEMPOTENT or not keeps:
        return {effects: up_to_most(effects)}
    if "the attempt is part of the key" in world.setting.variants:
        return {effects: up_to_most(effects)}
    known = world.remembered[step].is_(1)
    return {
        effects: Choice(known, Read(effects), up_to_most(effects)),
        world.remembered[step]: Constant(1),
    }


def _late(world: World, step: int) -> Iterator[Command]:
    """Yield what becomes of a request that nobody waits for any more."""
    abroad = world.abroad[step]
    under_way = negated(abroad.is_(0))
    yield command(
        PROVIDER,
        f"a late request of step {step} lands",
        (under_way,),
        {**landed(world, step), abroad: plus(abroad, -1)},
    )
    yield command(
        PROVIDER,
        f"a late request of step {step} is lost, or refused",
        (under_way,),
        {abroad: plus(abroad, -1)},
    )


def _answers(world: World, worker: Worker, step: int) -> Iterator[Command]:
    """Yield what becomes of a request that a process waits for.

    A process that is stopped or dead does not hinder the tool; a dead one's request is `late`.
    """
    waits = (worker.driver.is_(WAITS), worker.about.is_(step))
    refusal: Becomes = {worker.driver: worker.driver.to(News.REFUSAL)}
    yield command(
        PROVIDER,
        f"the request of step {step} lands",
        waits,
        {**landed(world, step), worker.driver: worker.driver.to(ANSWERED)},
    )
    yield command(
        PROVIDER,
        f"the tool refuses this call of step {step}",
        waits,
        refusal,
    )
    if not world.setting.assumes(A1):
        yield command(
            PROVIDER,
            f"the tool says that it refuses this call of step {step}, and does it",
            waits,
            {**landed(world, step), **refusal},
        )
    yield command(
        PROVIDER,
        f"the tool says that no call with the key of step {step} had an effect",
        (*waits, _true_of_the_key(world, worker, step)),
        {worker.driver: worker.driver.to(News.REFUSAL_OF_KEY)},
    )


def _true_of_the_key(world: World, worker: Worker, step: int) -> Expression:
    """Return the condition under which a tool may refuse the key, and not this call alone.

    No call with the key had an effect, and none can still have one: a tool that looks at the past
    alone may refuse while an earlier request is under way.
    """
    if not world.setting.assumes(A1):
        return TRUE
    if "a refusal of the key speaks of the past alone" in world.setting.variants:
        return world.effects[step].is_(0)
    others = (one for one in world.workers.values() if one is not worker)
    return both(
        world.effects[step].is_(0),
        world.abroad[step].is_(0),
        *(negated(both(one.driver.is_(WAITS), one.about.is_(step))) for one in others),
    )


def _replies(world: World, worker: Worker) -> Iterator[Command]:
    """Yield how a reply arrives, or is lost."""
    answered = (worker.life.is_(ALIVE), worker.driver.is_(ANSWERED))
    for says, news in (
        (f"the reply reaches {worker.name}", News.REPLY),
        (f"the reply to {worker.name} is lost", News.FAILURE),
    ):
        yield command(PROVIDER, says, answered, {worker.driver: worker.driver.to(news)})


def _probed(world: World, worker: Worker, step: int) -> Iterator[Command]:
    """Yield the answers of a probe; it answers what is so at this moment."""
    asked = (worker.life.is_(ALIVE), worker.driver.is_(PROBES), worker.about.is_(step))
    nothing = world.effects[step].is_(0)
    yield command(
        PROVIDER,
        f"the probe finds the key of step {step}",
        (*asked, negated(nothing)),
        {worker.driver: worker.driver.to(News.PRESENT)},
    )
    yield command(
        PROVIDER,
        f"the probe does not find the key of step {step}",
        (*asked, nothing),
        {worker.driver: worker.driver.to(News.ABSENT)},
    )
    yield command(
        "storage",
        f"the probe of step {step} does not answer",
        (*asked, world.faults.is_not(world.setting.bounds.faults_max)),
        {worker.driver: worker.driver.to(News.NO_ANSWER), world.faults: plus(world.faults, 1)},
        harm=True,
    )


# --- time ---------------------------------------------------------------------------------------


def time(world: World) -> Iterator[Command]:
    """Yield how time passes, as far as anybody can tell."""
    for step in world.setting.steps:
        if world.setting.contract(step) is Contract.IDEMPOTENT:
            yield from _window(world, step)
        if world.setting.contract(step) is Contract.QUERYABLE:
            yield _bound(world, step)


def _window(world: World, step: int) -> Iterator[Command]:
    """The window of the open step lapses for sending; later the provider forgets the key.

    By then whatever was sent in time has landed or never will (A3).
    """
    asked = (
        world.step[step].is_(StepState.REQUESTED, StepState.IN_DOUBT),
        world.is_open(step),
    )
    yield command(
        TIME,
        f"the key window of step {step} lapses",
        (*asked, world.window.is_(OPEN)),
        {world.window: world.window.to(LAPSED)},
    )
    settled: Becomes = {world.abroad[step]: Constant(0)} if world.setting.assumes(A3) else {}
    yield command(
        TIME,
        f"the provider forgets the key of step {step}" + _never_lands(world),
        (*asked, world.window.is_(LAPSED), world.nobody_waits(step)),
        {
            **settled,
            world.window: world.window.to(CLOSED),
            world.remembered[step]: Constant(0),
        },
    )


def _bound(world: World, step: int) -> Command:
    """The settle bound passes: what was sent before the latest suspend has landed or never will."""
    counts_from_request = "the settle bound counts from the request" in world.setting.variants
    states = [StepState.IN_DOUBT]
    settled: Becomes = {world.abroad[step]: Constant(0)}
    if counts_from_request:
        states.append(StepState.REQUESTED)
    if counts_from_request or not world.setting.assumes(A3):
        settled = {}
    return command(
        TIME,
        f"the settle bound of step {step} passes" + (_never_lands(world) if settled else ""),
        (world.step[step].is_(*states), world.is_open(step), world.bound.is_(0)),
        {**settled, world.bound: Constant(1)},
    )


def _never_lands(world: World) -> str:
    return "; what has not landed never will" if world.setting.assumes(A3) else ""
