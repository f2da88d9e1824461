"""The way in for JSON text from outside: files, arguments of commands, replies.

It accepts less than `json.loads`, which takes NaN and lone surrogates, keeps the last of two equal
keys, turns 1e999 into infinity, and runs out of stack on deep nesting. What is refused is named
with its path, or with line and column where the text is not JSON at all.

The parser leaves a `Flaw` in the place of whatever must be refused. Only if there is one does the
careful walk look for it, because only the walk knows paths.
"""

from __future__ import annotations

import codecs
import json
import math
import sys
from typing import Final, cast

from agent_replay.values.arguments import ARGUMENTS, Refusal, refusal
from agent_replay.values.limits import INTEGER_MAX, INTEGER_MIN, RESULT_BYTES_MAX, VALUE_DEPTH_MAX
from agent_replay.values.text import Json, canonical, is_deeper, on_any_stack, printable
from agent_replay.values.walk import Flaw, Unfit, plain, step_to

_DIGITS_SURE: Final = 18  # so many digits are within 64 bits, whatever they are


def read_json(
    text: str | bytes,
    place: str = "",
    *,
    refuse: Refusal | None = None,
    bytes_max: int = RESULT_BYTES_MAX,
    depth_max: int = VALUE_DEPTH_MAX,
) -> Json:
    """Return the value of a JSON text, or raise `InvalidInput`.

    Integers must fit into 64 bits, and floats are rounded to doubles. The path in a message begins
    with `place`.
    """
    try:
        source = _source(text, bytes_max)
        if is_deeper(source, depth_max):
            raise Unfit(f"arrays and objects are nested deeper than {depth_max} levels")  # noqa: TRY301
        return on_any_stack(_parse, source)
    except Unfit as fault:
        where = (place + fault.where).lstrip(",. ") or "the JSON text"
        raise (refuse or refusal)(where, fault.problem) from None


def _source(text: str | bytes, bytes_max: int) -> str:
    """Return the text to parse, which is UTF-8 and not too long, or raise `Unfit`."""
    too_large = Unfit(f"more than {bytes_max} bytes, which is the limit")
    if len(text) > bytes_max:
        raise too_large
    try:
        encoded = text.encode() if isinstance(text, str) else text
        source = encoded.decode()
    except UnicodeEncodeError as error:
        where = _line_and_column(error.object[: error.start])
        raise Unfit("a lone surrogate, which UTF-8 cannot hold", where) from None
    except UnicodeDecodeError as error:
        where = _line_and_column(error.object[: error.start].decode())
        raise Unfit("not UTF-8; save the text as UTF-8", where) from None
    if len(encoded) > bytes_max:
        raise too_large
    if encoded.startswith(codecs.BOM_UTF8):
        raise Unfit("begins with a byte order mark; save the text as UTF-8 without one")
    return source


def _line_and_column(before: str) -> str:
    column = len(before) - before.rfind("\n")
    return f", line {before.count(chr(10)) + 1}, column {column}"


def _parse(source: str) -> Json:
    parser = _Parser()
    try:
        document = cast(Json, parser.decoder.decode(source))
    except json.JSONDecodeError as error:
        where = f", line {error.lineno}, column {error.colno}"
        raise Unfit(f"not JSON: {error.msg}", where) from None
    if parser.flawed or not _encodes(document, source):
        plain(document, _READ)
    return document


def _encodes(document: Json, source: str) -> bool:
    """Tell whether a document has no lone surrogates; only an escape can have brought one in."""
    if "\\ud" not in source and "\\uD" not in source:
        return True
    try:
        canonical(document).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Parser:
    """A decoder of JSON that leaves a `Flaw` in the place of what must be refused."""

    def __init__(self) -> None:
        self.flawed = False
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self.object,
            parse_int=self.integer,
            parse_float=self.fraction,
            parse_constant=self.constant,
        )

    def object(self, pairs: list[tuple[str, Json]]) -> dict[str, Json] | Flaw:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        unseen = set(made)
        for key, _ in pairs:
            if key not in unseen:
                return self.flaw("the key is written twice in one object; keep one", step_to(key))
            unseen.remove(key)
        raise AssertionError("there are fewer keys than pairs, so one key is there twice")

    def integer(self, digits: str) -> int | Flaw:
        if len(digits) <= _DIGITS_SURE:
            return int(digits)
        # Of a longer literal no more is converted than can matter: a conversion is quadratic.
        if len(digits) <= _DIGITS_SURE + 2 and INTEGER_MIN <= int(digits) <= INTEGER_MAX:
            return int(digits)
        return self.flaw(
            f"the integer {printable(digits)} ({len(digits.lstrip('-'))} digits) is beyond "
            f"{ARGUMENTS.integer_says}"
        )

    def fraction(self, digits: str) -> float | Flaw:
        value = float(digits)
        if math.isinf(value):
            return self.flaw(f"the number {printable(digits)} is too large for a double")
        if value == 0 and digits.lower().partition("e")[0].strip("-0."):
            return self.flaw(f"the number {printable(digits)} would become zero as a double")
        return value

    def constant(self, name: str) -> Flaw:
        return self.flaw(f"{name} is not JSON; use null or a string")

    def flaw(self, problem: str, where: str = "") -> Flaw:
        self.flawed = True
        return Flaw(problem, where)


_READ: Final = ARGUMENTS._replace(bytes_max=sys.maxsize, depth_max=sys.maxsize, reserved=False)
