"""The canonical text of a value, which is what is stored and hashed, and the way back.

Its bytes are:

- UTF-8 without white space. Lone surrogates are refused at every way in, so it always encodes.
- Objects: keys sorted by code point, which is also the order of their UTF-8 bytes.
- Strings: `"` and `\\` with a backslash before them; U+0008, U+0009, U+000A, U+000C, U+000D as
  `\\b`, `\\t`, `\\n`, `\\f`, `\\r`; other characters below U+0020 as `\\u00` and two small hex
  digits. All others stand for themselves, also `/`, U+007F and U+2028.
- Integers: their decimal digits. `1` and `1.0` differ, and so do `0.0` and `-0.0`.
- Floats: the fewest digits from which the same double is read again, among those the closest, and
  of two that are equally close the even one.
  Zero and 1e-4 <= |x| < 1e16 have a point with at least one digit on both sides (`1200.0`). All
  others have one digit, a point and more digits if there are more, `e`, a sign and two digits or
  more (`1e+20`, `2.5e-07`). It is what Python's `repr` gives.

This is not RFC 8785 (JCS) and does not claim to be: strings are written as there, but numbers are
not, and neither is the order of keys that have characters above U+FFFF.
"""

from __future__ import annotations

import _thread  # not threading: importing that takes more stack than may be left
import hashlib
import json
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

from agent_replay.errors import DamagedHistory
from agent_replay.values.limits import SHOWN_LENGTH_MAX, VALUE_DEPTH_MAX

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


def canonical(value: Json) -> str:
    """Return the canonical text of a value that passed one of the ways in."""
    return on_any_stack(_encode, value)


def digest(text: str | bytes) -> str:
    """Return the SHA-256 of a text, in hex digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def decode(text: str, place: str = "a stored value") -> Json:
    """Return the value of a stored text, or raise `DamagedHistory`.

    It checks that the text is JSON that can be read, not that it is canonical.
    """
    try:
        if is_deeper(text, VALUE_DEPTH_MAX):
            raise ValueError(f"nested deeper than {VALUE_DEPTH_MAX} levels")  # noqa: TRY301
        return cast(Json, on_any_stack(_decode, text))
    except ValueError as error:
        raise DamagedHistory(
            f"{place}: the runtime never wrote this text ({error}); "
            "keep a copy of the file and run verify on it"
        ) from error


def is_deeper(text: str, depth_max: int) -> bool:
    """Tell whether the arrays and objects of a JSON text are nested too deep.

    So this is known before a parser that recurses sees the text. Of a text that is not JSON, at
    least the part is judged that a parser reads before it gives up.
    """
    if text.count("[") + text.count("{") <= depth_max:
        return False
    rest = brackets = _brackets(text)
    for _ in range(depth_max // 2):  # each round takes one or two levels away from everywhere
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
        if not rest:
            return False
    depth = 0
    for mark in brackets:
        depth += 1 if mark in b"[{" else -1
        if depth > depth_max:
            return True
    return False


def _brackets(text: str) -> bytes:
    """Return the brackets of a JSON text that are not in strings."""
    # Without escaped backslashes and escaped quotes, every quote begins or ends a string. Taking
    # two neighbours away leaves that so for the others, and most strings have no brackets.
    bare = text.replace("\\\\", "").replace('\\"', "").encode(errors="replace")
    marks = bare.translate(None, delete=_NOT_MARKS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2])


def on_any_stack(work: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    """Return what the work returns, also if the caller is close to Python's recursion limit.

    Else a good result could not be stored because of where it was returned. The coders call
    nothing of the user's, so that it does not matter in which thread they run.
    """
    try:
        return work(argument)
    except RecursionError:
        return _on_a_fresh_stack(work, argument)


def _on_a_fresh_stack(work: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    results: list[_Result] = []
    errors: list[Exception] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work(argument))
        except Exception as error:  # noqa: BLE001 - it is raised again, in the caller's thread
            errors.append(error)
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]


def shown(value: object) -> str:
    """Return a value for a message: short, printable ASCII, whatever the value is.

    Of a value that is not a plain scalar only its type is shown, so that nothing of the user's is
    run and nothing large is formatted.
    """
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return repr(value)
    if kind is int:
        number = cast(int, value)
        return repr(number) if -(10**40) < number < 10**40 else f"<{number.bit_length()}-bit int>"
    if kind is str or kind is bytes:
        short = cast(str, value)[:SHOWN_LENGTH_MAX]
        text = ascii(short)
        whole = len(short) == len(cast(str, value)) and len(text) <= 2 * SHOWN_LENGTH_MAX
        return text if whole else f"{text[:SHOWN_LENGTH_MAX]}..."
    return f"<{type_name(kind)}>"


def type_name(kind: type) -> str:
    """Return the name of a type in printable ASCII, with its module unless it is built in."""
    try:
        home, name = str.__str__(kind.__module__), str.__str__(kind.__qualname__)
    except Exception:  # noqa: BLE001 - the adapter boundary: a metaclass may do as it likes
        return "a type without a name"
    return printable(name if home == "builtins" else f"{home}.{name}")


def printable(text: str, length_max: int = SHOWN_LENGTH_MAX) -> str:
    """Return the beginning of a text with everything escaped that is not printable ASCII."""
    short = text[:length_max].encode("ascii", "backslashreplace").decode("ascii")
    safe = "".join(mark if " " <= mark <= "~" else f"\\x{ord(mark):02x}" for mark in short)
    return safe[:length_max]


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_ENCODER: Final = json.JSONEncoder(
    check_circular=False, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def _compiled_once() -> Callable[[Json], str]:
    """Return what `_ENCODER.encode` does, without the C encoder that it makes anew for each value.

    Where this Python has no such encoder, it is `_ENCODER.encode` itself.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    write = json.encoder.encode_basestring
    chunks = make(None, _ENCODER.default, write, None, ":", ",", True, False, False)
    return lambda value: "".join(chunks(value, 0))


_encode: Final = _compiled_once()
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_scan: Final[Any] = getattr(_DECODER, "scan_once")  # noqa: B009 - it has no types


def _decode(text: str) -> object:
    """Return what `_DECODER.decode` does, which looks for white space first, and none was
    written."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return _DECODER.decode(text)
    return value if end == len(text) else _DECODER.decode(text)


_NOT_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
