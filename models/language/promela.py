"""Render a model in Promela, for Spin.

Each actor is a process of its own that repeats its commands for ever, so it has one place of
control and adds nothing to the state. A command is one `d_step`: Spin's states and transitions are
then those of the model, edge by edge. A judge looks at the invariants; it can move only where one
does not hold.

An assertion is written with its number, since Spin names a broken one by its text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from models.language.expressions import TRUE, Expression, Variable, both, implied, negated
from models.language.program import Claim, Command, Eventually, Model, in_sequence
from models.language.spelling import Spelling, spell

PROMELA = Spelling("&&", "||", "!", "{condition} -> {then} : {otherwise}")
_NUMBERED = re.compile(r"(?<!\w)0\s*==\s*(\d+)")


class Rendered(NamedTuple):
    """A model's text, the claims by the number of their assertion, and the names of its liveness
    properties."""

    text: str
    claims: dict[int, Claim]
    formulas: dict[str, Eventually]

    def broken(self, assertion: str) -> Claim | None:
        """Return the claim that belongs to an assertion as Spin reports it."""
        found = _NUMBERED.findall(assertion)
        return self.claims.get(int(found[-1])) if found else None


def rendered(model: Model) -> Rendered:
    """Return a model in Promela."""
    claims: dict[int, Claim] = {}
    formulas = {f"{one.id}_{number}": one for number, one in enumerate(model.eventually)}
    lines = [f"/* {model.name} */", *map(_declared, model.variables, model.initial.values()), ""]
    for actor in model.actors:
        commands = [one for one in model.commands if one.actor == actor]
        lines += [f"active proctype actor_{actor.replace(' ', '_')}() {{ do"]
        lines += [line for one in commands for line in _command(one, claims)]
        lines += ["od }", ""]
    lines += [*_judge(model, claims), "", *map(_formula, formulas, formulas.values()), ""]
    return Rendered("\n".join(lines), claims, formulas)


def _named(name: str) -> str:
    """Return a name that is no word of Promela, such as `run`."""
    return f"the_{name}"


def _spelled(expression: Expression) -> str:
    return spell(expression, PROMELA, _named)


def _declared(variable: Variable, value: int) -> str:
    bits = (len(variable.labels) - 1).bit_length()
    if not bits:
        return f"#define {_named(variable.name)} {value}"
    return f"unsigned {_named(variable.name)} : {bits} = {value};"


def _command(command: Command, claims: dict[int, Claim]) -> Iterator[str]:
    """Yield a command as one indivisible step; what it claims is asked of the state before it."""
    asserted = [f"assert({_asserted(claim, claims)})" for claim in command.claims]
    ordered = in_sequence(command.assignments)
    assert ordered is not None, "a model with a ring of assignments is refused when it is made"
    assigned = [f"{_named(one.variable.name)} = {_spelled(one.becomes)}" for one in ordered]
    acts = "; ".join([*asserted, *assigned]) or "skip"
    yield f":: d_step {{ {_spelled(both(*command.guard))} -> {acts} }} /* {command.says} */"


def _asserted(claim: Claim, claims: dict[int, Claim]) -> str:
    claims[len(claims) + 1] = claim
    return f"{_spelled(claim.holds)} || 0 == {len(claims)}"


def _judge(model: Model, claims: dict[int, Claim]) -> Iterator[str]:
    looked_at = [claim for claim in model.invariants if claim.holds != TRUE]
    if not looked_at:
        return
    yield "active proctype actor_judge() { do"
    for claim in looked_at:
        claims[len(claims) + 1] = claim
        wrong = _spelled(negated(claim.holds))
        asserted = f"assert(0 == {len(claims)})"
        yield f":: d_step {{ {wrong} -> {asserted} }} /* {claim.id}: {claim.says} */"
    yield "od }"


def _formula(name: str, one: Eventually) -> str:
    since, until = _spelled(one.since), _spelled(one.until)
    if one.for_good:
        return f"ltl {name} {{ <> [] {_spelled(implied(one.since, one.until))} }}"
    return f"ltl {name} {{ [] ({since} -> <> {until}) }}"
