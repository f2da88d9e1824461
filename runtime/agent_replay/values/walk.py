"""The judgement of a value: is it JSON, and within the limits?

Two walks give one judgement. The fast one only says yes or no. The careful one says what is wrong
and where, or copies what is almost JSON into what is. Neither recurses: how deep a value is, and
how deep the stack of the caller, must not decide what is acceptable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast

from agent_replay.values.limits import VALUE_DEPTH_MAX
from agent_replay.values.text import Json, canonical, is_deeper, shown, type_name

PATH_STEPS_MAX: Final = 12


class Unfit(Exception):
    """A value may not pass: what is wrong with it, and where in it (`.items[2].id`)."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem, where)
        self.problem = problem
        self.where = where

    def __str__(self) -> str:
        return f"{self.where.lstrip('.')}: {self.problem}" if self.where else self.problem


class TooLarge(Unfit):
    """The whole value may not pass, because its text would be too long."""


class Flaw(NamedTuple):
    """What a parser leaves in the place of something that must be refused."""

    problem: str
    where: str = ""


class Rules(NamedTuple):
    """What is acceptable at one of the ways in."""

    bytes_max: int
    integer_min: int
    integer_max: int
    integer_says: str
    exact: bool = True  # no tuples, and no subclasses of the JSON types
    reserved: bool = False  # no keys that begin with `$`
    depth_max: int = VALUE_DEPTH_MAX


EXACT: Final = frozenset({type(None), bool, int, float, str, list, dict})


def text_of(value: object, rules: Rules) -> str:
    """Return the canonical text of an acceptable value, or raise `Unfit`."""
    if is_exact(value, rules):
        return parsed_text(cast(Json, value), rules)
    return careful_text(value, rules)


def parsed_text(value: Json, rules: Rules) -> str:
    """Return what `text_of` does, of a value with exact types and integers within the limits."""
    try:
        text = canonical(value)
        size = len(text) if text.isascii() else len(text.encode())
    except ValueError:  # NaN, an infinity, or a lone surrogate
        return careful_text(value, rules)
    doubtful = size > rules.bytes_max or (rules.reserved and '"$' in text)
    if doubtful or is_deeper(text, rules.depth_max):
        return careful_text(value, rules)
    return text


def careful_text(value: object, rules: Rules) -> str:
    """Return the canonical text of a value that may be almost JSON, or raise `Unfit`."""
    text = canonical(plain(value, rules))
    if len(text.encode()) > rules.bytes_max:
        raise _too_large(rules)
    return text


def plain(value: object, rules: Rules) -> Json:
    """Return a copy of a value that has only exact JSON types, or raise `Unfit`.

    Of a subclass only the methods of its JSON type are used, so that nothing of the user's is run:
    an enumeration member, a default dict or a named tuple becomes the plain value that it holds.
    """
    return _Walk(rules).over(value)


def step_to(slot: str | int) -> str:
    """Return one step of a path: `[2]`, `.amount`, or `['a b']`."""
    if isinstance(slot, str) and slot.isascii() and slot.isidentifier() and len(slot) <= 40:
        return f".{slot}"
    return f"[{slot if isinstance(slot, int) else shown(slot)}]"


def is_exact(value: Any, rules: Rules) -> bool:  # noqa: C901 - one flat loop: it is the hot path
    """Tell whether a value has only types that the encoder takes as they are, within the limits.

    It goes level by level. Beside the exact JSON types these are tuples, if the rules allow them.
    `room` is what is left for the text, counted low: an item of a list takes two characters at
    least, one of an object five. If it is used up, `TooLarge` is raised. So the walk also ends over
    a small value that unfolds to a huge text: a list may hold another one a million times.
    """
    room, level = rules.bytes_max, [value]
    least, most = rules.integer_min, rules.integer_max
    containers = (dict, list) if rules.exact else (dict, list, tuple)
    for depth in range(rules.depth_max + 1):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                room -= len(item)
            elif kind is int:
                if not least <= item <= most:
                    return False
            elif kind in containers:
                if depth == rules.depth_max:
                    return False
                room -= (5 if kind is dict else 2) * len(item)
                if room < 0:
                    raise _too_large(rules)
                if kind is not dict:
                    below += item
                    continue
                for key in item:
                    if type(key) is not str:
                        return False
                    room -= len(key)
                below += item.values()
            elif kind not in EXACT:
                return False
        if not below:
            break
        level = below
    if room < 0:
        raise _too_large(rules)
    return True


class _Open:
    """A container that is being copied, and which of its items is next."""

    __slots__ = ("items", "made", "slot", "value")

    def __init__(self, value: object, made: Any, items: Iterator[tuple[Any, object]]) -> None:
        self.value = value
        self.made = made
        self.items = items
        self.slot: str | int | None = None


class _Walk:
    """The careful walk: the containers that it is inside of, and what is left for the text."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.room = rules.bytes_max
        self.open: list[_Open] = []
        self.inside: set[int] = set()

    def over(self, value: object) -> Json:
        try:
            top = self.copy(value)
            while self.open:
                self.go_on(self.open[-1])
        except TooLarge:
            raise
        except Unfit as fault:
            raise Unfit(fault.problem, self.path() + fault.where) from None
        return top

    def go_on(self, inside: _Open) -> None:
        """Copy the next items, up to one that is itself a container or up to the last."""
        inside.slot = None  # of a key that is refused, the path ends at its object
        for slot, item in inside.items:
            inside.slot = slot
            inside.made[slot] = self.copy(item)
            if self.open[-1] is not inside:
                return
            inside.slot = None
        self.inside.remove(id(self.open.pop().value))

    def copy(self, value: Any) -> Json:
        kind = type(value)
        if kind is Flaw:
            raise Unfit(*value)
        if self.rules.exact and kind not in EXACT:
            raise Unfit(_not_json(kind))
        copier = _COPIERS.get(kind) or next(
            (_COPIERS[base] for base in _COPIERS if issubclass(kind, base)), None
        )
        if copier is None:
            raise Unfit(_not_json(kind))
        return copier(self, value)

    def copy_constant(self, value: bool | None) -> Json:
        return value

    def copy_text(self, value: str) -> Json:
        text = str.__str__(value)
        self.take(len(text))
        if not _encodes(text):
            raise Unfit("the string has a lone surrogate, which UTF-8 cannot hold")
        return text

    def copy_integer(self, value: int) -> Json:
        number = int.__int__(value)
        if not self.rules.integer_min <= number <= self.rules.integer_max:
            raise Unfit(f"the integer {shown(number)} is beyond {self.rules.integer_says}")
        return number

    def copy_float(self, value: float) -> Json:
        number = float.__float__(value)
        if not math.isfinite(number):
            raise Unfit(f"{number} is not JSON; use null or a string")
        return number

    def copy_list(self, value: list[object]) -> Json:
        made: list[Json] = [None] * list.__len__(value)
        self.enter(_Open(value, made, enumerate(list.__iter__(value))), 2 * len(made))
        return made

    def copy_tuple(self, value: tuple[object, ...]) -> Json:
        made: list[Json] = [None] * tuple.__len__(value)
        self.enter(_Open(value, made, enumerate(tuple.__iter__(value))), 2 * len(made))
        return made

    def copy_dict(self, value: dict[object, object]) -> Json:
        made: dict[str, Json] = {}
        self.enter(_Open(value, made, self.named(value, made)), 5 * dict.__len__(value))
        return made

    def named(
        self, value: dict[object, object], made: dict[str, Json]
    ) -> Iterator[tuple[str, object]]:
        for key, item in dict.items(value):
            name = self.name_of(key)
            if name in made:
                raise Unfit("two keys of this object have this text", step_to(name))
            yield name, item

    def name_of(self, key: object) -> str:
        kind = type(key)
        if kind is not str and (self.rules.exact or not issubclass(kind, str)):
            raise Unfit(f"the key {shown(key)} is not a string, as every key in JSON is")
        name = str.__str__(cast(str, key))
        self.take(len(name))
        if not _encodes(name):
            raise Unfit(f"the key {shown(name)} has a lone surrogate, which UTF-8 cannot hold")
        if self.rules.reserved and name.startswith("$"):
            raise Unfit("keys that begin with $ are reserved; choose another name", step_to(name))
        return name

    def enter(self, container: _Open, size: int) -> None:
        self.take(size)
        if id(container.value) in self.inside:
            raise Unfit("the value contains itself")
        if len(self.open) == self.rules.depth_max:
            raise Unfit(f"arrays and objects are nested deeper than {self.rules.depth_max} levels")
        self.open.append(container)
        self.inside.add(id(container.value))

    def take(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            raise _too_large(self.rules)

    def path(self) -> str:
        steps = [step_to(outer.slot) for outer in self.open if outer.slot is not None]
        if len(steps) > PATH_STEPS_MAX:
            steps[PATH_STEPS_MAX // 2 : -PATH_STEPS_MAX // 2] = ["..."]
        return "".join(steps)


_COPIERS: Final[dict[type, Callable[[_Walk, Any], Json]]] = {
    str: _Walk.copy_text,
    bool: _Walk.copy_constant,
    type(None): _Walk.copy_constant,
    int: _Walk.copy_integer,
    float: _Walk.copy_float,
    list: _Walk.copy_list,
    tuple: _Walk.copy_tuple,
    dict: _Walk.copy_dict,
}


def _encodes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_json(kind: type) -> str:
    for base in (dict, list, str, int, float):
        if issubclass(kind, base):
            needed = base.__name__
            return f"{type_name(kind)} is a subclass of {needed}; give a plain {needed}"
    if issubclass(kind, tuple):
        return f"{type_name(kind)} is not JSON; give a list"
    return f"{type_name(kind)} is not JSON; give a dict, list, str, int, float, bool or None"


def _too_large(rules: Rules) -> TooLarge:
    return TooLarge(f"more than {rules.bytes_max} bytes as JSON, which is the limit")
