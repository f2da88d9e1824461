"""Guarded commands, and the model that they make up.

A model is a set of variables with a first state, and commands. A command belongs to an actor and
is one indivisible event: where its guard holds, its assignments may happen, all at once. A claim
must hold of the state in which its command happens; an invariant of every state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from models.language.expressions import Expression, Variable, reads


class Claim(NamedTuple):
    """Something that must hold, with the id of the invariant that it belongs to."""

    id: str
    says: str
    holds: Expression


class Assignment(NamedTuple):
    """A variable and what it becomes, in terms of the state before."""

    variable: Variable
    becomes: Expression


class Row(NamedTuple):
    """A row of the history that a command appends: the key of the product, with its values as
    text; `contract` is '' for the run's own events."""

    contract: str
    source: str
    event: str
    actor: str
    run_state: str
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One event. `says` tells it in a story; `harm` marks what only an adversary does."""

    actor: str
    says: str
    guard: tuple[Expression, ...]
    assignments: tuple[Assignment, ...]
    claims: tuple[Claim, ...] = ()
    rows: tuple[Row, ...] = ()
    harm: bool = False


class Witness(NamedTuple):
    """A situation that must occur somewhere, or the invariant it belongs to says nothing."""

    id: str
    says: str
    occurs: Expression


class Eventually(NamedTuple):
    """A liveness property: after `since`, whenever it holds, `until` holds at some time.

    With `for_good` it is: from some time on `until` holds for ever.
    """

    id: str
    says: str
    since: Expression
    until: Expression
    for_good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Variables, first state, commands, and what is claimed of them."""

    name: str
    variables: tuple[Variable, ...]
    initial: Mapping[str, int]
    commands: tuple[Command, ...]
    invariants: tuple[Claim, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    eventually: tuple[Eventually, ...] = ()
    ended: Expression | None = None
    fields: Mapping[str, Variable] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse a model that no engine could run."""
        names = {variable.name: variable for variable in self.variables}
        object.__setattr__(self, "fields", names)
        if len(names) != len(self.variables):
            raise ValueError(f"{self.name}: two variables have the same name")
        if names.keys() != self.initial.keys():
            raise ValueError(f"{self.name}: the first state must give every variable a value")
        for command in self.commands:
            for problem in complaints(command, names):
                raise ValueError(f"{self.name}: {command.actor}: {command.says}: {problem}")

    @property
    def actors(self) -> tuple[str, ...]:
        """Return the actors in the order of their first command."""
        return tuple(dict.fromkeys(command.actor for command in self.commands))


def complaints(command: Command, known: Mapping[str, Variable]) -> Sequence[str]:
    """Return what is wrong with a command; nothing if it is sound."""
    found = []
    assigned = [assignment.variable.name for assignment in command.assignments]
    if len(set(assigned)) != len(assigned):
        found.append("a variable is assigned twice")
    used = [variable for part in command.guard for variable in reads(part)]
    for assignment in command.assignments:
        used += [assignment.variable, *reads(assignment.becomes)]
    found += [f"{one.name} is not a variable" for one in used if known.get(one.name) != one]
    if in_sequence(command.assignments) is None:
        found.append("its assignments read each other in a ring")
    return found


def in_sequence(assignments: Sequence[Assignment]) -> tuple[Assignment, ...] | None:
    """Return assignments in an order that means the same one after another as all at once.

    None if there is no such order. An engine that assigns in sequence needs it.
    """
    left = list(assignments)
    ordered: list[Assignment] = []
    while left:
        for one in left:
            others = [other for other in left if other is not one]
            if not any(one.variable in set(reads(other.becomes)) for other in others):
                ordered.append(one)
                left.remove(one)
                break
        else:
            return None
    return tuple(ordered)


def without_claims(model: Model) -> Model:
    """Return a model of which only the liveness properties are asked."""
    commands = tuple(replace(command, claims=()) for command in model.commands)
    return replace(model, commands=commands, invariants=())
