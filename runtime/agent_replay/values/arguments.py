"""The way in for values that a caller made in Python: the arguments of a step.

Before a call a refusal costs nothing. So arguments must be exactly what they will be when they are
read again: no tuples, no subclasses, no keys but strings, and integers that any database keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from agent_replay.errors import InvalidInput
from agent_replay.values.limits import ARGUMENTS_BYTES_MAX, INTEGER_BITS, INTEGER_MAX, INTEGER_MIN
from agent_replay.values.text import shown
from agent_replay.values.walk import Rules, Unfit, parsed_text, text_of

Refusal: TypeAlias = Callable[[str, str], InvalidInput]
"""Makes the error to raise, from the place of a fault and what is wrong there."""

ARGUMENTS: Final = Rules(
    ARGUMENTS_BYTES_MAX,
    INTEGER_MIN,
    INTEGER_MAX,
    f"signed {INTEGER_BITS} bits; write it as a string",
    reserved=True,
)


def check_arguments(
    value: object,
    place: str = "arguments",
    *,
    refuse: Refusal | None = None,
    parsed: bool = False,
) -> str:
    """Return the canonical text of the arguments of a step, or raise `InvalidInput`.

    Arguments are an object. Keys that begin with `$` are refused at any depth: they are kept for
    references to earlier results. `parsed` saves a walk over a value that `read_json` has made.
    """
    try:
        if type(value) is not dict:
            raise Unfit(f"arguments are an object, not {shown(value)}")  # noqa: TRY301
        return parsed_text(value, ARGUMENTS) if parsed else text_of(value, ARGUMENTS)
    except Unfit as fault:
        raise (refuse or refusal)(place + fault.where, fault.problem) from None


def refusal(place: str, problem: str) -> InvalidInput:
    """Return the error for a fault in what a caller gave."""
    return InvalidInput(f"{place}: {problem}")
