"""Make a model from a setting: bounds, tables, assumptions, and what is broken on purpose."""

from __future__ import annotations

from models.language.expressions import FALSE
from models.language.program import Model
from models.properties import eventually, invariants, witnesses
from models.world import harm, people, provider, worker
from models.world.state import Setting, World

VARIANTS = frozenset(
    {
        "a call begins after a storage error",
        "a refusal of the key speaks of the past alone",
        "a replaced writer may write",
        "a request is sent before it is durable",
        "a resend begins the key window anew",
        "a step does not wait for the one before",
        "an operator's resend grants nothing",
        "opening does not make the log durable",
        "the attempt is part of the key",
        "the settle bound counts from the request",
    }
)
"""What can be broken in the world; moves and decisions are broken in their tables."""


def build(setting: Setting) -> Model:
    """Return the model of a setting; raises `ValueError` naming an unknown variant."""
    for unknown in sorted(setting.variants - VARIANTS):
        raise ValueError(f"there is no variant {unknown!r}; there are {sorted(VARIANTS)}")
    world = World(setting)
    commands = [
        *(one for process in world.workers.values() for one in worker.commands(world, process)),
        *provider.commands(world),
        *provider.time(world),
        *(one for process in world.workers.values() for one in people.commands(world, process)),
        *harm.commands(world),
    ]
    return Model(
        name=setting.bounds.name,
        variables=world.variables,
        initial=world.initial(),
        commands=tuple(one for one in commands if FALSE not in one.guard),
        invariants=invariants(world),
        witnesses=witnesses(world),
        eventually=eventually(world),
        ended=world.ended(),
    )
