"""Expressions over small finite variables, as data.

A variable has a name and the names of its values; its value is the place in that list. An
expression is a tree of the classes below. It can be evaluated here, which fixes its meaning, and
spelled for an engine by `spelling`; nothing in this file knows an engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

Label = str | int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; `labels` names its values, and a value is counted from 0."""

    name: str
    labels: tuple[Label, ...]

    def value(self, label: Label) -> int:
        """Return the number of a label; raises `ValueError` naming the variable."""
        if label not in self.labels:
            raise ValueError(f"{self.name} is never {label!r}; it is one of {self.labels}")
        return self.labels.index(label)

    def is_(self, *labels: Label) -> Expression:
        """Return the condition that the variable has one of these values."""
        values = {self.value(label) for label in labels}
        if len(values) == len(self.labels):
            return TRUE
        return either(
            *(Binary(Operator.EQUAL, Read(self), Constant(one)) for one in sorted(values))
        )

    def is_not(self, label: Label) -> Expression:
        """Return the condition that the variable has another value."""
        if len(self.labels) == 1:
            return FALSE
        return Binary(Operator.UNEQUAL, Read(self), self.to(label))

    def to(self, label: Label) -> Constant:
        """Return a value of this variable as an expression."""
        return Constant(self.value(label))


def numbered(name: str, most: int) -> Variable:
    """Return a variable that holds the numbers from 0 to `most`."""
    return Variable(name, tuple(range(most + 1)))


class Operator(Enum):
    """What two expressions may be joined by."""

    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    PLUS = "+"
    MINUS = "-"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; as a condition, 0 is false and 1 is true."""

    value: int


TRUE = Constant(1)
FALSE = Constant(0)


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a variable."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Binary:
    """Two numbers compared, added or subtracted."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class All:
    """True if every part is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True if some part is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is false."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two numbers, by a condition."""

    condition: Expression
    then: Expression
    otherwise: Expression


Expression = Constant | Read | Binary | All | Any | Not | Choice


def both(*parts: Expression) -> Expression:
    """Return the condition that every part is true; constants and nesting are folded away."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, All) else (part,))]
    if FALSE in flat:
        return FALSE
    kept = tuple(dict.fromkeys(part for part in flat if part != TRUE))
    return TRUE if not kept else kept[0] if len(kept) == 1 else All(kept)


def either(*parts: Expression) -> Expression:
    """Return the condition that some part is true; constants and nesting are folded away."""
    flat = [one for part in parts for one in (part.parts if isinstance(part, Any) else (part,))]
    if TRUE in flat:
        return TRUE
    kept = tuple(dict.fromkeys(part for part in flat if part != FALSE))
    return FALSE if not kept else kept[0] if len(kept) == 1 else Any(kept)


def negated(part: Expression) -> Expression:
    """Return the condition that the part is false."""
    match part:
        case Constant(value):
            return Constant(1 - value)
        case Not(inner):
            return inner
        case _:
            return Not(part)


def implied(condition: Expression, conclusion: Expression) -> Expression:
    """Return the condition that the conclusion holds wherever the condition does."""
    return either(negated(condition), conclusion)


def plus(variable: Variable, number: int) -> Expression:
    """Return the value of a variable and a number added; a negative one is subtracted."""
    operator = Operator.PLUS if number >= 0 else Operator.MINUS
    return Binary(operator, Read(variable), Constant(abs(number)))


def up_to_most(variable: Variable) -> Expression:
    """Return the value one higher, or the same where there is no higher one."""
    most = len(variable.labels) - 1
    return Choice(less(Read(variable), Constant(most)), plus(variable, 1), Constant(most))


def less(left: Expression, right: Expression) -> Expression:
    """Return the condition that the first number is below the second."""
    return Binary(Operator.LESS, left, right)


def equal(left: Expression, right: Expression) -> Expression:
    """Return the condition that two numbers are the same."""
    return Binary(Operator.EQUAL, left, right)


def evaluate(expression: Expression, state: Mapping[str, int]) -> int:
    """Return the value of an expression in a state: what every engine must agree with."""
    match expression:
        case Constant(value):
            return value
        case Read(variable):
            return state[variable.name]
        case All(parts):
            return int(all(evaluate(part, state) for part in parts))
        case Any(parts):
            return int(any(evaluate(part, state) for part in parts))
        case Not(part):
            return 1 - evaluate(part, state)
        case Choice(condition, then, otherwise):
            return evaluate(then if evaluate(condition, state) else otherwise, state)
        case Binary(operator, left, right):
            return _joined(operator, evaluate(left, state), evaluate(right, state))


def _joined(operator: Operator, left: int, right: int) -> int:
    match operator:
        case Operator.EQUAL:
            return int(left == right)
        case Operator.UNEQUAL:
            return int(left != right)
        case Operator.LESS:
            return int(left < right)
        case Operator.PLUS:
            return left + right
        case Operator.MINUS:
            return left - right


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression is made of."""
    match expression:
        case Constant() | Read():
            return ()
        case All(parts) | Any(parts):
            return parts
        case Not(part):
            return (part,)
        case Choice(condition, then, otherwise):
            return condition, then, otherwise
        case Binary(_, left, right):
            return left, right


def reads(expression: Expression) -> Iterator[Variable]:
    """Yield every variable that an expression reads, as often as it reads it."""
    if isinstance(expression, Read):
        yield expression.variable
    for part in parts_of(expression):
        yield from reads(part)
