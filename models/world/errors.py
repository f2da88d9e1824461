"""What errors do to a process: a commit that raises, a call that is interrupted, a lost fight for
the database. The process lives on, and what it knows of an open request is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.recovery import News
from models.language.expressions import Choice, Constant, Expression, negated, plus, up_to_most
from models.language.program import Command
from models.world.rows import Becomes, command
from models.world.state import (
    A5,
    ALIVE,
    ANSWERED,
    CALLS,
    DECIDING,
    KEPT,
    OUTSIDE,
    UNSTARTED,
    WAITS,
    Worker,
    World,
)


def after_an_error(world: World, worker: Worker) -> Iterator[Command]:
    """Yield how a driver stops after a storage error, or because another writer took over."""
    alive = worker.life.is_(ALIVE)
    yield command(
        worker.name,
        f"{worker.name}'s driver stops: the store must be reopened",
        (alive, worker.driver.is_(*DECIDING), worker.broken.is_(1)),
        {**worker.left_at(UNSTARTED), worker.known: _kept(worker)},
    )
    yield command(
        worker.name,
        f"{worker.name} reopens the store",
        (alive, worker.rests(), worker.broken.is_(1), world.may_write(worker)),
        {worker.broken: Constant(0)},
    )
    if not world.setting.assumes(A5):
        yield command(
            worker.name,
            f"{worker.name} is refused by the database: another writer has taken over",
            (
                alive,
                worker.driver.is_(*DECIDING),
                worker.broken.is_(0),
                negated(world.may_write(worker)),
            ),
            {**worker.left_at(UNSTARTED), worker.broken: Constant(1)},
        )


def _kept(worker: Worker) -> Expression:
    """Return what a process still knows when its driver stops: the news of an open request."""
    known: Expression = Constant(0)
    for news in KEPT:
        known = Choice(worker.driver.is_(news), worker.known.to(news), known)
    return known


def storage_fails(world: World, worker: Worker) -> Iterator[Command]:
    """Yield how a commit raises: whether its row is durable is unknown until the store is reopened.

    A row that is durable all the same is the row's own command with this one after it.
    """
    counted: Becomes = {world.faults: plus(world.faults, 1), worker.broken: Constant(1)}
    alive = (worker.life.is_(ALIVE), worker.broken.is_(0), _left(world))
    yield command(
        "storage",
        f"a commit of {worker.name} raises",
        (*alive, worker.driver.is_(*DECIDING), world.unfinished()),
        {**counted, **worker.left_at(UNSTARTED), worker.known: _kept(worker)},
        harm=True,
    )
    yield command(
        "storage",
        f"a commit beside the driver of {worker.name} raises",
        (*alive, worker.driver.is_(News.READY, *OUTSIDE), world.unfinished()),
        counted,
        harm=True,
    )


def interrupted(world: World, worker: Worker) -> Iterator[Command]:
    """Yield how a call is interrupted: nothing is written, and recovery decides later."""
    counted: Becomes = {world.faults: plus(world.faults, 1)}
    alive = (worker.life.is_(ALIVE), _left(world))
    for step in world.setting.steps:
        yield command(
            "storage",
            f"the call of step {step} by {worker.name} is interrupted; the request is under way",
            (*alive, worker.driver.is_(WAITS), worker.about.is_(step)),
            {
                **counted,
                **worker.left_at(UNSTARTED),
                world.abroad[step]: up_to_most(world.abroad[step]),
            },
            harm=True,
        )
    yield command(
        "storage",
        f"the call of {worker.name} is interrupted",
        (*alive, worker.driver.is_(CALLS, ANSWERED)),
        {**counted, **worker.left_at(UNSTARTED)},
        harm=True,
    )


def _left(world: World) -> Expression:
    return world.faults.is_not(world.setting.bounds.faults_max)
