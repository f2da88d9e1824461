"""How an expression is written in the notation of an engine that takes text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from models.language.expressions import All, Any, Binary, Choice, Constant, Expression, Not, Read


class Spelling(NamedTuple):
    """The notation of one engine. `choice` has the places `{condition}`, `{then}`, `{otherwise}`;
    everything is put into brackets, so no engine's precedence matters."""

    conjunction: str
    disjunction: str
    negation: str
    choice: str


def spell(expression: Expression, spelling: Spelling, name: Callable[[str], str] = str) -> str:
    """Return an expression in a notation; `name` says how a variable is called there."""

    def inner(part: Expression) -> str:
        return spell(part, spelling, name)

    match expression:
        case Constant(value):
            return str(value)
        case Read(variable):
            return name(variable.name)
        case All(parts):
            return f"({f' {spelling.conjunction} '.join(map(inner, parts))})"
        case Any(parts):
            return f"({f' {spelling.disjunction} '.join(map(inner, parts))})"
        case Not(part):
            return f"({spelling.negation}{inner(part)})"
        case Choice(condition, then, otherwise):
            written = spelling.choice.format(
                condition=inner(condition), then=inner(then), otherwise=inner(otherwise)
            )
            return f"({written})"
        case Binary(operator, left, right):
            return f"({inner(left)} {operator.value} {inner(right)})"
