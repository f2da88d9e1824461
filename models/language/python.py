"""Compile a model to Python: the engine of the search, and what a story is told with.

A state is one integer, a few bits a variable. Guards are nested where they share their first parts,
so a command is looked at only where the parts before it hold; a change of a variable is added to
the integer. `evaluate` says what the text must mean, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from models.language.expressions import (
    FALSE,
    TRUE,
    Binary,
    Constant,
    Expression,
    Operator,
    Read,
    Variable,
    negated,
    reads,
)
from models.language.program import Claim, Command, Model
from models.language.spelling import Spelling, spell

PYTHON = Spelling("and", "or", "not ", "{then} if {condition} else {otherwise}")

Edge = tuple[int, int]
"""The place of a command in the model, and the state that it leads to."""
Broken = tuple[int, int, int]
"""The place of a command, the place of its claim that does not hold, and the state it leads to."""


class Field(NamedTuple):
    """Where a variable lies in a state."""

    variable: Variable
    shift: int
    mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A model as functions of states.

    `edges` returns every edge out of a state and puts broken claims into the list it is given;
    `broken` returns the place of an invariant that does not hold, or -1; `holds` has a function for
    each condition that was asked for.
    """

    model: Model
    fields: tuple[Field, ...]
    initial: int
    edges: Callable[[int, list[Broken]], list[Edge]]
    broken: Callable[[int], int]

    def values(self, state: int) -> dict[str, int]:
        """Return the value of each variable in a state."""
        return {one.variable.name: state >> one.shift & one.mask for one in self.fields}

    def packed(self, values: Mapping[str, int]) -> int:
        """Return the state in which the variables have these values."""
        return sum(values[one.variable.name] << one.shift for one in self.fields)

    def condition(self, expression: Expression) -> Callable[[int], bool]:
        """Return a condition as a function of a state."""
        lines = [*_unpacked(self.fields, {one.name for one in reads(expression)})]
        lines.append(f"return {spell(expression, PYTHON)}")
        return cast("Callable[[int], bool]", _function("holds(s)", lines))


def compiled(model: Model) -> Compiled:
    """Return the functions of a model."""
    fields = tuple(_fields(model.variables))
    shifts = {one.variable.name: one.shift for one in fields}
    search = [*_unpacked(fields, None), "out = []"]
    search += _nested(
        [_Branch(one.guard, place, one) for place, one in enumerate(model.commands)], shifts
    )
    search.append("return out")
    check = [*_unpacked(fields, _used(claim.holds for claim in model.invariants))]
    for place, claim in enumerate(model.invariants):
        if claim.holds != TRUE:
            check.append(f"if {spell(negated(claim.holds), PYTHON)}: return {place}")
    check.append("return -1")
    return Compiled(
        model=model,
        fields=fields,
        initial=sum(model.initial[one.variable.name] << one.shift for one in fields),
        edges=cast("Callable[[int, list[Broken]], list[Edge]]", _function("edges(s, bad)", search)),
        broken=cast("Callable[[int], int]", _function("broken(s)", check)),
    )


def _fields(variables: Sequence[Variable]) -> Iterator[Field]:
    shift = 0
    for variable in variables:
        bits = (len(variable.labels) - 1).bit_length()
        yield Field(variable, shift, (1 << bits) - 1)
        shift += bits


def _used(expressions: Iterator[Expression]) -> set[str]:
    return {variable.name for expression in expressions for variable in reads(expression)}


def _unpacked(fields: Sequence[Field], names: set[str] | None) -> Iterator[str]:
    for one in fields:
        if names is None or one.variable.name in names:
            taken = f"s >> {one.shift} & {one.mask}" if one.mask else "0"
            yield f"{one.variable.name} = {taken}"


def _function(signature: str, lines: Sequence[str]) -> object:
    """Return the function that these lines make: text that this file made of a model, no data."""
    text = f"def {signature}:\n" + "\n".join(f"    {line}" for line in lines)
    namespace: dict[str, object] = {}
    exec(text, namespace)
    return namespace[signature.partition("(")[0]]


# --- nesting ------------------------------------------------------------------------------------


class _Branch(NamedTuple):
    """A command with those parts of its guard that have not been asked for yet."""

    guard: tuple[Expression, ...]
    place: int
    command: Command


def _nested(branches: Sequence[_Branch], shifts: Mapping[str, int]) -> list[str]:
    """Return the lines that add the edges of these commands, shared guards first."""
    lines: list[str] = []
    groups: dict[Expression, list[_Branch]] = {}
    for branch in branches:
        if branch.guard:
            rest = branch._replace(guard=branch.guard[1:])
            groups.setdefault(branch.guard[0], []).append(rest)
        else:
            lines += _added(branch, shifts)
    asked: dict[str, list[Expression]] = {}
    for first in groups:
        asked.setdefault(_exclusive(first), []).append(first)
    for firsts in asked.values():
        for number, first in enumerate(firsts):
            word = "elif" if number else "if"
            lines.append(f"{word} {spell(first, PYTHON)}:")
            lines += [f"    {line}" for line in _nested(groups[first], shifts)]
    return lines


def _exclusive(part: Expression) -> str:
    """Return the same text for conditions of which at most one holds: a variable's values."""
    match part:
        case Binary(Operator.EQUAL, Read(variable), Constant()):
            return f"values of {variable.name}"
        case _:
            return spell(part, PYTHON)


def _added(branch: _Branch, shifts: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines that add one edge, and look at the command's claims."""
    target = "s"
    for variable, becomes in branch.command.assignments:
        target += f" + ({spell(becomes, PYTHON)} - {variable.name} << {shifts[variable.name]})"
    yield f"t = {target}"
    yield f"out.append(({branch.place}, t))"
    for number, claim in enumerate(branch.command.claims):
        yield from _claimed(claim, branch.place, number)


def _claimed(claim: Claim, place: int, number: int) -> Iterator[str]:
    says = f"bad.append(({place}, {number}, t))"
    yield says if claim.holds == FALSE else f"if {spell(negated(claim.holds), PYTHON)}: {says}"
