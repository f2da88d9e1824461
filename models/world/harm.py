"""What goes wrong: SIGKILL and SIGSTOP anywhere, failing storage, a file that is copied back.

A process takes nothing with it that has left it: a request under way stays under way.
"""

from __future__ import annotations

from collections.abc import Iterator

from models.language.expressions import Choice, Constant, Read, both, negated, plus, up_to_most
from models.language.program import Command
from models.world import errors
from models.world.rows import Becomes, command
from models.world.state import (
    A5,
    ALIVE,
    DEAD,
    STOPPED,
    UNSTARTED,
    WAITS,
    Worker,
    World,
)

HARM = "harm"


def commands(world: World) -> Iterator[Command]:
    """Yield everything that an adversary does."""
    for worker in world.workers.values():
        if world.setting.bounds.kills_max:
            yield from _kills(world, worker)
        if world.setting.bounds.kills_max and world.setting.bounds.stops:
            yield from _stops(world, worker)
        if world.setting.bounds.faults_max:
            yield from errors.storage_fails(world, worker)
            yield from errors.interrupted(world, worker)
    if not world.setting.assumes(A5):
        yield _copied_back(world)


def _died(world: World, worker: Worker) -> Becomes:
    """Return what a death leaves: nothing of the process, and its last row perhaps not on disk.

    Where another process has the file open, its next commit makes that row durable too.
    """
    unsynced = Choice(world.others_dead(worker), Constant(1), Read(world.unsynced))
    return {
        **{variable: Constant(0) for variable in worker.variables},
        worker.life: worker.life.to(DEAD),
        worker.driver: worker.driver.to(UNSTARTED),
        world.kills: plus(world.kills, 1),
        world.unsynced: unsynced,
    }


def _kills(world: World, worker: Worker) -> Iterator[Command]:
    """Yield a SIGKILL, wherever the process is."""
    living = (negated(worker.life.is_(DEAD)), world.kills.is_not(world.setting.bounds.kills_max))
    waits = worker.driver.is_(WAITS)
    yield command(
        HARM,
        f"{worker.name} is killed",
        (*living, negated(waits), world.unfinished()),
        _died(world, worker),
        harm=True,
    )
    for step in world.setting.steps:
        abroad = world.abroad[step]
        yield command(
            HARM,
            f"{worker.name} is killed; its request of step {step} is still under way",
            (*living, waits, worker.about.is_(step)),
            {**_died(world, worker), abroad: up_to_most(abroad)},
            harm=True,
        )


def _stops(world: World, worker: Worker) -> Iterator[Command]:
    """Yield a SIGSTOP, and the SIGCONT some time later."""
    yield command(
        HARM,
        f"{worker.name} is stopped",
        (
            worker.life.is_(ALIVE),
            world.kills.is_not(world.setting.bounds.kills_max),
            world.unfinished(),
        ),
        {worker.life: worker.life.to(STOPPED), world.kills: plus(world.kills, 1)},
        harm=True,
    )
    yield command(
        worker.name,
        f"{worker.name} is continued",
        (worker.life.is_(STOPPED),),
        {worker.life: worker.life.to(ALIVE)},
    )


def _copied_back(world: World) -> Command:
    """Without A5 the file may be replaced by a copy made when the run was registered."""
    history = (
        *(world.run, *world.step.values(), world.attempt, world.grants, world.unresolved),
        *(world.holder, world.window, world.bound),
    )
    return command(
        HARM,
        "the database is copied back to when the run was registered",
        (
            both(*(one.life.is_(DEAD) for one in world.workers.values())),
            world.restored.is_(0),
        ),
        {**{variable: Constant(0) for variable in history}, world.restored: Constant(1)},
        harm=True,
    )
