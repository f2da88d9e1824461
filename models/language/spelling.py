"""How an expression is written in the notation of an engine that takes text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from models.language.expressions import (
    All,
    Any,
    Binary,
    Choice,
    Constant,
    Expression,
    Not,
    Read,
    parts_of,
)


class Spelling(NamedTuple):
    """The notation of one engine. `choice` has the places `{condition}`, `{then}`, `{otherwise}`;
    everything is put into brackets, so no engine's precedence matters."""

    conjunction: str
    disjunction: str
    negation: str
    choice: str


def spell(expression: Expression, spelling: Spelling, name: Callable[[str], str] = str) -> str:
    """Return an expression in a notation; `name` says how a variable is called there."""

    written = [spell(part, spelling, name) for part in parts_of(expression)]
    match expression:
        case Constant(value):
            return str(value)
        case Read(variable):
            return name(variable.name)
        case All():
            return f"({f' {spelling.conjunction} '.join(written)})"
        case Any():
            return f"({f' {spelling.disjunction} '.join(written)})"
        case Not():
            return f"({spelling.negation}{written[0]})"
        case Choice():
            condition, then, otherwise = written
            text = spelling.choice.format(condition=condition, then=then, otherwise=otherwise)
            return f"({text})"
        case Binary(operator):
            left, right = written
            return f"({left} {operator.value} {right})"
