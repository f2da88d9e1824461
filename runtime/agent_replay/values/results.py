"""The way in for results: what a tool returned becomes text, or a marker that describes it.

The tool has run, so nothing that its result does may end in any other error, and whatever can be
kept is kept: tuples become arrays, and values of subclasses become the plain values they hold. The
caller is always given what `decode` makes of the stored text, never the object that the tool
returned, so that the first answer is the same as every later one.

A marker is stored in place of a result that JSON cannot hold:

- `type`: the name of its type.
- `why`: what is wrong with it, and where in it.
- `repr`: the beginning of its text, in printable ASCII.
- `digest`: the SHA-256 of its whole text in UTF-8, or null where there is none to be had.

Its text is its canonical text if it is of plain types and only too large, and else what `ascii`
gives. A genuine result may look just like a marker, so whoever stores one must also store which of
them it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from agent_replay.errors import UnstorableResult
from agent_replay.values.limits import (
    DESCRIBED_BYTES_MAX,
    MARKER_TEXT_LENGTH_MAX,
    RESULT_BYTES_MAX,
    RESULT_INTEGER_DIGITS_MAX,
    VALUE_DEPTH_MAX,
)
from agent_replay.values.text import Json, canonical, digest, printable, type_name
from agent_replay.values.walk import Rules, TooLarge, Unfit, is_exact, text_of

RESULT: Final = Rules(
    RESULT_BYTES_MAX,
    1 - 10**RESULT_INTEGER_DIGITS_MAX,
    10**RESULT_INTEGER_DIGITS_MAX - 1,
    f"{RESULT_INTEGER_DIGITS_MAX} digits",
    exact=False,
)
_DESCRIBED: Final = RESULT._replace(bytes_max=DESCRIBED_BYTES_MAX)


class MarkedResult(UnstorableResult):
    """A result could not be stored; `marker` describes it, and is on record in its place."""

    def __init__(self, marker: Mapping[str, Json]) -> None:
        super().__init__(
            f"the tool returned a value of type {marker.get('type')} that cannot be stored "
            f"({marker.get('why')}); the call is recorded as done and is not made again; "
            "let the adapter return plain JSON, and look this result up at the tool"
        )
        self.marker = dict(marker)


def encode_result(value: object) -> str:
    """Return the text to store for a result, or raise `UnstorableResult` with its marker."""
    try:
        return text_of(value, RESULT)
    except Unfit as fault:
        raise unstorable(_marker(value, fault)) from None
    except Exception as error:
        # The adapter boundary: the result is an object of the adapter's, and another thread may
        # even be changing it. The tool has run, so this must not look like a call that failed.
        unreadable = Unfit(f"reading it raised {type_name(type(error))}")
        raise unstorable(_marker(value, unreadable)) from error


def unstorable(marker: Mapping[str, Json]) -> MarkedResult:
    """Return the error for a marker, the same at the first answer and at every later one."""
    return MarkedResult(marker)


def _marker(value: object, fault: Unfit) -> dict[str, Json]:
    marker: dict[str, Json] = {
        "type": type_name(type(value)),
        "why": printable(str(fault), 2 * MARKER_TEXT_LENGTH_MAX),
        "repr": None,
        "digest": None,
    }
    try:
        is_json = isinstance(fault, TooLarge) and is_exact(value, _DESCRIBED)
        text = canonical(cast(Json, value)) if is_json else _ascii(value)
        marker["repr"] = printable(text, MARKER_TEXT_LENGTH_MAX)
        marker["digest"] = digest(text)
    except Exception as error:  # noqa: BLE001 - the adapter boundary: `__repr__` may do as it likes
        marker["repr"] = printable(f"<none: {_reason(error)}>", MARKER_TEXT_LENGTH_MAX)
    return marker


def _ascii(value: object) -> str:
    """Return what `ascii` gives, unless formatting the containers would take for ever."""
    if not _is_bounded(value):
        raise Unfit("too large or too deep to be shown")
    return str.__str__(ascii(value))  # a `__repr__` may return a subclass of str


def _is_bounded(value: Any) -> bool:
    """Tell whether the containers in a value hold so little that they can be formatted.

    Of an object that is no container, its own `__repr__` is believed to come to an end.
    """
    room, level = DESCRIBED_BYTES_MAX, [value]
    for _ in range(VALUE_DEPTH_MAX + 1):
        below: list[Any] = []
        for item in level:
            base = _sized_base(type(item))
            room -= _ITEM_BYTES if base is None else _ITEM_BYTES + base.__len__(item)
            if room < 0:
                return False
            if base is dict:
                below += dict.keys(item)
                below += dict.values(item)
            elif base in _COLLECTIONS:
                below += base.__iter__(item)
        if not below:
            return True
        level = below
    return False


_ITEM_BYTES: Final = 16  # roughly what an item takes, so that a million is enough
_COLLECTIONS: Final[frozenset[type]] = frozenset({list, tuple, set, frozenset})
_SIZED: Final[frozenset[type]] = frozenset({dict, str, bytes, bytearray}) | _COLLECTIONS


def _sized_base(kind: type) -> Any:
    if kind in _SIZED:
        return kind
    return next((base for base in _SIZED if issubclass(kind, base)), None)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Unfit) else f"its repr raises {type_name(type(error))}"
