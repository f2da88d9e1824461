"""What the tests of the models share: small bounds, searched once."""

from __future__ import annotations

from functools import cache

from agent_replay.lifecycles.step import Contract
from models.bounds import Bounds
from models.build import build
from models.engines.search import Found, search
from models.language.expressions import Expression
from models.language.program import Command
from models.language.python import Compiled, compiled
from models.world.state import Setting, World


def small(*steps: Contract, **more: int | bool) -> Bounds:
    """Return bounds with one death, one grant and two attempts, unless said otherwise."""
    return Bounds(name="small", why="a test", steps=steps, **more)  # type: ignore[arg-type]


@cache
def searched(setting: Bounds | Setting) -> tuple[Compiled, Found]:
    """Return a model and its whole search, violations and all."""
    whole = Setting(bounds=setting) if isinstance(setting, Bounds) else setting
    program = compiled(build(whole))
    found = search(program, goes_on=True)
    assert found.complete
    return program, found


def states_where(bounds: Bounds, condition: Expression) -> list[int]:
    """Return the reachable states in which a condition holds."""
    program, found = searched(bounds)
    return list(filter(program.condition(condition), found.parents))


def world_of(bounds: Bounds) -> World:
    """Return the variables of the model with these bounds."""
    return World(Setting(bounds=bounds))


def after(program: Compiled, state: int, says: str) -> list[tuple[Command, int]]:
    """Return the edges out of a state whose command says this, and where they lead."""
    edges = ((program.model.commands[place], target) for place, target in program.edges(state, []))
    return [(command, target) for command, target in edges if says in command.says]
