"""Whatever is stored is what was given, and can be read back; whatever else is refused by name."""

from __future__ import annotations

import enum
import json
import math
import string
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple, TypeVar, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from agent_replay.errors import DamagedHistory, InvalidInput, UnstorableResult
from agent_replay.values import (
    ARGUMENTS_BYTES_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    RESULT_BYTES_MAX,
    RESULT_INTEGER_DIGITS_MAX,
    VALUE_DEPTH_MAX,
    Json,
    MarkedResult,
    canonical,
    check_adapter,
    check_adapter_name,
    check_adapter_version,
    check_arguments,
    check_id,
    decode,
    digest,
    encode_result,
    read_json,
    shown,
    unstorable,
)
from agent_replay.values import results as results_module
from agent_replay.values.arguments import ARGUMENTS
from agent_replay.values.results import RESULT
from agent_replay.values.text import is_deeper
from agent_replay.values.walk import TooLarge, Unfit, careful_text, parsed_text, text_of
from tests.outside import plain

T = TypeVar("T")

EMOJI, HEBREW, LINE_SEPARATOR = "\U0001f600", "\ufb33", "\u2028"
LONE = "\ud83d"
FLOATS = (1.0, 1e20, 1e-7, -0.0, 5e-324, 0.0, 1.5, 1e15, 1e16, 1e-4, 9.9e-5, 0.1 + 0.2, 1.7e308)


def nested(depth: int, inside: object = None) -> Any:
    """Return arrays inside one another, made without recursion."""
    value = [] if inside is None else [inside]
    for _ in range(depth - 1):
        value = [value]
    return value


def cycle() -> list[object]:
    inner: list[object] = [1]
    outer: list[object] = [{"a": inner}]
    inner.append(outer)
    return outer


def unfolding(levels: int) -> Any:
    """Return a small value whose text is huge: each level holds the next one twice."""
    value: list[object] = []
    for _ in range(levels):
        value = [value, value]
    return value


def close_to_the_recursion_limit(work: Callable[[], T], *, frames_left: int = 60) -> T:
    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1

    def down(levels: int) -> T:
        return work() if levels == 0 else down(levels - 1)

    return down(sys.getrecursionlimit() - used - frames_left)


def identical(one: Json, other: Json) -> bool:
    """Tell whether two values have the same types, signs of zero, and content."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one.hex() == other.hex()
    return one == other


# --- what hypothesis makes ----------------------------------------------------------------------

TEXTS = some.text(max_size=6) | some.sampled_from(["$ref", "", EMOJI, HEBREW, "\0", '"$', "a\\"])
NUMBERS = some.integers(INTEGER_MIN, INTEGER_MAX) | some.floats(
    allow_nan=False, allow_infinity=False
)
JSON_VALUES: some.SearchStrategy[Json] = some.recursive(
    some.none() | some.booleans() | NUMBERS | TEXTS,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Pair(NamedTuple):
    left: object
    right: object


class Loud(str):
    """A string that lies about itself in every way."""

    def __str__(self) -> str:
        return "loud"

    def __repr__(self) -> str:
        return "loud"

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 1

    def encode(self, encoding: str = "", errors: str = "") -> bytes:
        raise ValueError("no bytes")


class Half(float):
    def __repr__(self) -> str:
        return "half"


class Hiding(dict[str, object]):
    """A dict that shows other items than it holds."""

    def items(self) -> Any:
        raise ValueError("not for you")

    __iter__ = __len__ = keys = values = items


ALMOST_JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats()
    | TEXTS
    | some.sampled_from(
        [
            Colour.RED,
            Size.SMALL,
            Half(0.5),
            Loud("x"),
            LONE,
            b"x",
            {1, 2},
            2**63,
            10**700,
            Decimal(1),
        ]
    ),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.tuples(inner, inner)
        | some.builds(Pair, inner, inner)
        | some.dictionaries(
            TEXTS | some.sampled_from([LONE, 1, None, Colour.RED]), inner, max_size=4
        )
        | some.dictionaries(TEXTS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=15,
)


# --- the canonical text -------------------------------------------------------------------------


def written(value: Json) -> str:
    """Return the canonical text as the module's docstring describes it, without its code."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(value)
        case float():
            return written_float(value)
        case str():
            return '"' + "".join(map(written_character, value)) + '"'
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case dict():
            keys = sorted(value, key=str.encode)
            return "{" + ",".join(f"{written(key)}:{written(value[key])}" for key in keys) + "}"


def written_character(character: str) -> str:
    short = {'"': '"', "\\": "\\", "\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
    if character in short:
        return "\\" + short[character]
    return f"\\u00{ord(character):02x}" if character < " " else character


def closest(value: Decimal, digits: int) -> str:
    """Return the closest decimal of so many digits that is the same double, or nothing.

    Of two that are equally close it is the even one.
    """
    contexts = (Context(prec=digits, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    same = [one for one in (c.plus(value) for c in contexts) if float(one) == float(value)]
    if not same:
        return ""
    best = min(same, key=lambda one: (abs(one - value), one.as_tuple().digits[-1] % 2))
    return f"{best:.{digits - 1}e}"


def written_float(value: float) -> str:
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    fewest = next(filter(None, (closest(Decimal(abs(value)), digits) for digits in range(1, 18))))
    head, _, tail = fewest.partition("e")
    digits, exponent = head.replace(".", ""), int(tail)
    if not 1e-4 <= abs(value) < 1e16:
        fraction = "." + digits[1:] if digits[1:] else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return sign + "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


@pytest.mark.fault("H08")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (1e20, "1e+20"),
        (1e-7, "1e-07"),
        (-0.0, "-0.0"),
        (5e-324, "5e-324"),
        (1e16, "1e+16"),
        (1e15, "1000000000000000.0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (10**20, "100000000000000000000"),
    ],
)
def test_numbers_are_written_as_the_documentation_says(value: float, text: str) -> None:
    assert canonical(value) == text == written(value)


@pytest.mark.fault("H09")
def test_keys_are_sorted_by_code_point_and_only_controls_are_escaped() -> None:
    value: Json = {
        EMOJI: 1,
        HEBREW: 2,
        "a": LINE_SEPARATOR + "\x7f/",
        "": '\0\x1f\b\t\n\f\r"\\',
        "é": [],
    }
    text = canonical(value)
    assert text == (
        '{"":"\\u0000\\u001f\\b\\t\\n\\f\\r\\"\\\\",'
        f'"a":"{LINE_SEPARATOR}\x7f/","é":[],"{HEBREW}":2,"{EMOJI}":1}}'
    )
    assert text == written(value)


@pytest.mark.fault("H08")
@pytest.mark.fault("H09")
@given(JSON_VALUES)
@example(list(FLOATS))
def test_a_second_implementation_writes_the_same_bytes(value: Json) -> None:
    assert canonical(value) == written(value)


@given(some.floats(allow_nan=False, allow_infinity=False))
@example(562949953421312.75)  # between two texts that are equally close
def test_a_second_implementation_writes_the_same_floats(value: float) -> None:
    assert canonical(value) == written(value)


@given(JSON_VALUES)
def test_a_value_is_read_back_as_it_was(value: Json) -> None:
    assert identical(decode(canonical(value)), value)
    assert identical(read_json(canonical(value)), value)


def test_the_digest_is_sha_256_over_utf_8() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest("") == digest(b"") == empty
    assert digest("é") == digest("é".encode())


# --- the way back from the store ------------------------------------------------------------------

STORED_AND_BROKEN = {
    "deep": "[" * 100_000,
    "just too deep": "[" * (VALUE_DEPTH_MAX + 1) + "]" * (VALUE_DEPTH_MAX + 1),
    "long integer": "1" * 5_000,
    "NaN": "[NaN]",
    "empty": "",
    "cut": '{"a":',
    "two values": "1 2",
}


@pytest.mark.fault("G06")
@pytest.mark.fault("G07")
@pytest.mark.parametrize("text", STORED_AND_BROKEN.values(), ids=STORED_AND_BROKEN.keys())
def test_a_stored_text_edited_by_hand_is_damage_and_not_a_crash(text: str) -> None:
    with pytest.raises(DamagedHistory, match="event 7: the runtime never wrote this text"):
        decode(text, "event 7")
    with pytest.raises(DamagedHistory):
        close_to_the_recursion_limit(lambda: decode(text))


@pytest.mark.fault("G06")
def test_the_longest_integer_of_a_result_is_readable_under_every_digit_limit() -> None:
    value = -(10**RESULT_INTEGER_DIGITS_MAX) + 1
    text = encode_result([value])
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        assert decode(text) == [value]
        assert encode_result([value]) == text
    finally:
        sys.set_int_max_str_digits(before)


# --- reading what comes from outside --------------------------------------------------------------

REFUSED_TEXTS: list[tuple[str | bytes, str, str]] = [
    # G01
    ("[NaN]", "[0]", "NaN is not JSON"),
    ('{"a": {"b c": [1, Infinity]}}', "a['b c'][1]", "Infinity is not JSON"),
    ('{"a": [[], -Infinity]}', "a[1]", "-Infinity is not JSON"),
    ("NaN", "the JSON text", "NaN is not JSON"),
    ("[1e999]", "[0]", "1e999 is too large for a double"),
    ('{"a": -1.8e308}', "a", "too large"),
    ('{"a": 1e-400}', "a", "would become zero"),
    ("[0.0, -2E-324]", "[1]", "would become zero"),
    # G03
    (r'["ok", "\ud83d"]', "[1]", "lone surrogate"),
    (r'{"a": {"\uDC00": 1}}', "a", r"the key '\udc00' has a lone surrogate"),
    (r'["\ude00\ud83d"]', "[0]", "lone surrogate"),
    ('["a",\n "\ud83d"]', "line 2, column 3", "lone surrogate"),
    # G06, G11
    ("[9223372036854775808]", "[0]", "beyond signed 64 bits; write it as a string"),
    ('{"a": -9223372036854775809}', "a", "(19 digits)"),
    ('{"a": 18446744073709551616}', "a", "(20 digits)"),
    ('{"a": {"b": ' + "7" * 5_000 + "}}", "a.b", "(5000 digits) is beyond signed 64 bits"),
    # G07
    ("[" * 100_000, "the JSON text", "nested deeper than 100 levels"),
    ('{"a":' * 100_000, "the JSON text", "nested deeper than 100 levels"),
    ("[" * 101 + "]" * 101, "the JSON text", "nested deeper than 100 levels"),
    ("[" * 900 + "]" * 900, "the JSON text", "nested deeper than 100 levels"),
    # G09
    ('{"a": 1, "a": 1}', "a", "written twice"),
    ('{"s": [{"b": 1}, {"x": {"b": 1, "c": 2, "c": 3}}]}', "s[1].x.c", "written twice"),
    (r'{"é": 1, "\u00e9": 2}', r"['\xe9']", "written twice"),
    # not JSON at all
    ("", "line 1, column 1", "not JSON"),
    ("[1,\n  2,\n  oops]", "line 3, column 3", "not JSON"),
    ("[1] [2]", "line 1, column 5", "not JSON: Extra data"),
    ("{'a': 1}", "line 1, column 2", "not JSON"),
    ("[01]", "line 1, column 3", "not JSON"),
    ('["\t"]', "line 1, column 3", "not JSON: Invalid control character"),
    ("[1\0]", "line 1, column 3", "not JSON"),
    ("[1]\u00a0", "line 1, column 4", "not JSON"),
    (b'{"a":\n "\xc3\xa9\xff"}', "line 2, column 4", "not UTF-8"),
    (b'["\xed\xa0\xbd"]', "line 1, column 3", "not UTF-8"),
    (b"\xef\xbb\xbf[]", "the JSON text", "byte order mark"),
    ("\ufeff[]", "the JSON text", "byte order mark"),
    ("[1]".encode("utf-16"), "line 1, column 1", "not UTF-8"),
]


@pytest.mark.fault("G01")
@pytest.mark.fault("G03")
@pytest.mark.fault("G06")
@pytest.mark.fault("G07")
@pytest.mark.fault("G09")
@pytest.mark.fault("G11")
@pytest.mark.parametrize(
    ("text", "place", "problem"), REFUSED_TEXTS, ids=[plain(t[:24]) for t, _, _ in REFUSED_TEXTS]
)
def test_what_is_not_strict_json_is_refused_with_its_place(
    text: str | bytes, place: str, problem: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_json(text)
    assert str(refused.value).startswith(f"{place}: ")
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 300
    with pytest.raises(InvalidInput):
        close_to_the_recursion_limit(lambda: read_json(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[9223372036854775807, -9223372036854775808]", [INTEGER_MAX, INTEGER_MIN]),
        ("[0, -0, 0.0, -0.0, 0e5, 0.00e-999, -0E1]", [0, 0, 0.0, -0.0, 0.0, 0.0, -0.0]),
        ("[4e-324, 1.7e308, 1e20]", [5e-324, 1.7e308, 1e20]),
        (r'["\ud83d\ude00", "\u0000"]', [EMOJI, "\0"]),
        (r'["\\ud83d", "\ud83d\ude00\\\\"]', ["\\ud83d", EMOJI + "\\\\"]),
        ("[" * 100 + "]" * 100, nested(100)),
        ('["' + "[" * 500 + '", "{{\\"[["]', ["[" * 500, '{{"[[']),
        ("[" + ",".join(["[]"] * 500) + "]", [[]] * 500),
        ('{"a": {"a": 1}, "A": 2, "": 3}', {"a": {"a": 1}, "A": 2, "": 3}),
        (b' \n"\xf0\x9f\x98\x80"\r\t', EMOJI),
        ("true", True),
        ("null", None),
    ],
)
def test_strict_json_is_read(text: str | bytes, value: Json) -> None:
    assert identical(read_json(text), value)
    assert identical(close_to_the_recursion_limit(lambda: read_json(text)), value)


def test_the_place_of_a_fault_begins_with_the_name_that_was_given() -> None:
    with pytest.raises(InvalidInput, match=r"^result\.a\[0\]: NaN is not JSON"):
        read_json('{"a": [NaN]}', "result")
    with pytest.raises(InvalidInput, match=r"^result, line 1, column 2: not JSON"):
        read_json("[", "result")


@pytest.mark.fault("K01")
def test_a_text_over_the_limit_is_refused_in_bytes() -> None:
    assert read_json('"é"', bytes_max=4) == "é"
    for text in ('"éé"', b'"abc"', "[[[[[[[["):
        with pytest.raises(InvalidInput, match="more than 4 bytes"):
            read_json(text, bytes_max=4)


def reference_depth(text: str) -> int:
    """Return how deep a parser gets into a text that may be broken, character by character."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        text = text[: error.pos]
    depth = deepest = place = 0
    while place < len(text):
        if text[place] == '"':
            place += 1
            while place < len(text) and text[place] != '"':
                place += 2 if text[place] == "\\" else 1
        elif text[place] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif text[place] in "]}":
            depth -= 1
        place += 1
    return deepest


@pytest.mark.fault("G07")
@given(some.text('[]{}",:\\a1 ', max_size=40) | JSON_VALUES.map(canonical), some.integers(0, 9))
@example('["\\\\\\"[[[[",[]]', 2)
@example('[["[["]]', 1)
@example('["\\\\",[[]]]', 2)
def test_no_parser_gets_deeper_than_is_said_before_it_starts(text: str, depth_max: int) -> None:
    deeper = is_deeper(text, depth_max)
    if reference_depth(text) > depth_max:
        assert deeper
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return
    assert deeper == (reference_depth(text) > depth_max)


# --- arguments ------------------------------------------------------------------------------------

REFUSED_ARGUMENTS: list[tuple[object, str, str]] = [
    ([], "arguments", "arguments are an object, not <list>"),
    (None, "arguments", "not None"),
    (Hiding(), "arguments", "an object"),
    # G01
    ({"a": math.nan}, "arguments.a", "nan is not JSON"),
    ({"a": [math.inf]}, "arguments.a[0]", "inf is not JSON"),
    ({"a": {"b": -math.inf}}, "arguments.a.b", "-inf is not JSON"),
    # G03
    ({"a": [1, LONE]}, "arguments.a[1]", "lone surrogate"),
    ({"a": {LONE: 1}}, "arguments.a", "lone surrogate"),
    ({"a": b"\xff".decode(errors="surrogateescape")}, "arguments.a", "lone surrogate"),
    # G06, G11
    ({"a": 2**63}, "arguments.a", "9223372036854775808 is beyond signed 64 bits"),
    ({"a": -(2**63) - 1}, "arguments.a", "beyond signed 64 bits"),
    ({"a": 10**5_000}, "arguments.a", "<16610-bit int> is beyond signed 64 bits"),
    # G07
    ({"a": nested(100)}, "arguments.a[0][0]", "nested deeper than 100 levels"),
    ({"a": nested(900)}, "arguments.a", "nested deeper than 100 levels"),
    ({"a": nested(100_000)}, "arguments.a", "nested deeper than 100 levels"),
    ({"a": cycle()}, "arguments.a[0].a[1]", "contains itself"),
    # H09
    ({1: "a", "1": "b"}, "arguments", "the key 1 is not a string"),
    ({"a": {None: 1}}, "arguments.a", "the key None is not a string"),
    ({"a": 1, 2: 3}, "arguments", "the key 2 is not a string"),
    ({"a": [], "b": {"c": [[]], 2: 3}}, "arguments.b", "the key 2 is not a string"),
    ({"x": 0, "a": [0, {True: 1}]}, "arguments.a[1]", "the key True is not a string"),
    ({Colour.RED: 1}, "arguments", "is not a string"),
    # reserved
    ({"$ref": 1}, "arguments['$ref']", "reserved"),
    ({"a": [{"b": {"$": 1}}]}, "arguments.a[0].b['$']", "reserved"),
    # not exactly JSON
    ({"a": (1, 2)}, "arguments.a", "tuple is not JSON; give a list"),
    ({"a": Pair(1, 2)}, "arguments.a", "Pair is not JSON; give a list"),
    ({"a": Colour.RED}, "arguments.a", "Colour is a subclass of str; give a plain str"),
    ({"a": Size.SMALL}, "arguments.a", "Size is a subclass of int; give a plain int"),
    ({"a": Half(0.5)}, "arguments.a", "Half is a subclass of float"),
    ({"a": OrderedDict()}, "arguments.a", "OrderedDict is a subclass of dict"),
    ({"a": b"x"}, "arguments.a", "bytes is not JSON; give a dict, list, str"),
    ({"a": {1}}, "arguments.a", "set is not JSON"),
    ({"a": Decimal(1)}, "arguments.a", "decimal.Decimal is not JSON"),
    ({"a": datetime.now(UTC)}, "arguments.a", "datetime.datetime is not JSON"),
]


@pytest.mark.fault("G01")
@pytest.mark.fault("G03")
@pytest.mark.fault("G06")
@pytest.mark.fault("G07")
@pytest.mark.fault("G11")
@pytest.mark.fault("H09")
@pytest.mark.parametrize(("value", "place", "problem"), REFUSED_ARGUMENTS)
def test_arguments_that_are_not_exactly_json_are_refused_with_their_place(
    value: object, place: str, problem: str
) -> None:
    calls: list[Callable[[], str]] = [
        lambda: check_arguments(value),
        lambda: close_to_the_recursion_limit(lambda: check_arguments(value)),
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as refused:
            call()
        found = str(refused.value).partition(": ")[0]
        assert found == place or ("[0]...[0]" in found and found.startswith(place))
        assert problem in str(refused.value)
        assert len(str(refused.value)) < 300


@pytest.mark.fault("G05")
def test_a_nul_is_an_ordinary_character_of_a_value() -> None:
    assert check_arguments({"a\0": "\0"}) == '{"a\\u0000":"\\u0000"}'
    assert decode('{"a\\u0000":"\\u0000"}') == {"a\0": "\0"}


def test_dollar_signs_are_free_everywhere_but_at_the_start_of_a_key() -> None:
    value = {"a$": "$ref", 'b"$': ['"$', "$"], "": {"": "$"}}
    assert decode(check_arguments(value)) == value


@pytest.mark.fault("K01")
def test_arguments_may_be_as_long_as_the_limit_and_no_longer() -> None:
    room = ARGUMENTS_BYTES_MAX - len('{"a":""}')
    assert len(check_arguments({"a": "x" * room})) == ARGUMENTS_BYTES_MAX
    for too_long in ("x" * (room + 1), "é" * (room // 2 + 1), "\0" * (room // 6 + 1)):
        with pytest.raises(InvalidInput, match=r"^arguments: more than 1048576 bytes as JSON"):
            check_arguments({"a": too_long})


def test_a_value_as_deep_as_the_limit_passes_even_from_a_deep_stack() -> None:
    value = {"a": nested(VALUE_DEPTH_MAX - 1)}
    text = close_to_the_recursion_limit(lambda: check_arguments(value))
    assert text == check_arguments(value)
    assert close_to_the_recursion_limit(lambda: decode(text)) == value
    assert close_to_the_recursion_limit(lambda: encode_result(value)) == text


@given(JSON_VALUES)
def test_arguments_mean_the_same_from_python_and_from_a_file(value: Json) -> None:
    def outcome(check: Callable[[], str]) -> str:
        try:
            return check()
        except InvalidInput as error:
            return f"refused: {error}"

    from_file = cast("dict[str, Json]", read_json(json.dumps({"a": value})))
    from_python = {"a": value}
    assert outcome(lambda: check_arguments(from_file, parsed=True)) == outcome(
        lambda: check_arguments(from_python)
    )


# --- results --------------------------------------------------------------------------------------


@pytest.mark.fault("C07")
@pytest.mark.parametrize(
    "value",
    [
        None,
        False,
        True,
        0,
        -1,
        "",
        [],
        {},
        [[], {}, [None, {"a": [False, 0, ""]}]],
        2**63,
        -(2**64),
        10**RESULT_INTEGER_DIGITS_MAX - 1,
        *FLOATS,
        LINE_SEPARATOR,
        {HEBREW: 1, EMOJI: 2, "é": 3, "": 4, "$ref": 5},
        '\0\x1f\x7f"\\/',
        nested(VALUE_DEPTH_MAX),
        {"type": "x", "digest": None, "repr": None, "why": "looks like a marker"},
    ],
    ids=plain,
)
def test_the_first_answer_is_the_same_as_every_later_one(value: Json) -> None:
    text = encode_result(value)
    first, later = decode(text), decode(text.encode().decode())
    assert identical(first, value)
    assert identical(later, value)
    assert encode_result(first) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, (2,)), "[1,[2]]"),
        (Pair({"a": ()}, None), '[{"a":[]},null]'),
        ({"b": Colour.RED, "a": Size.SMALL}, '{"a":1,"b":"red"}'),
        ({Colour.RED: Half(0.5)}, '{"red":0.5}'),
        ([Loud("quiet"), {Loud("key"): 1}], '["quiet",{"key":1}]'),
        (defaultdict(list, a=[1]), '{"a":[1]}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        (Hiding(a=1), '{"a":1}'),
        (True, "true"),
    ],
    ids=plain,
)
def test_of_almost_json_the_plain_value_is_kept(value: object, text: str) -> None:
    """Tuples and subclasses cost no answer: they are stored as the JSON that they hold."""
    assert encode_result(value) == text


class Raising:
    """An object of which every part that a description may touch raises."""

    def __repr__(self) -> str:
        raise ValueError("no repr")

    __str__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = __repr__  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":  # pytest looks at it
            return Raising
        raise ValueError(name)


class Meta(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise ValueError("no module")


class Nameless(metaclass=Meta):
    pass


class Lying:
    """Its repr is a string that lies, of another type, with colours and line breaks in it."""

    def __repr__(self) -> str:
        return Loud("\x1b[31mred\n" + "a" * 1_000)


REFUSED_RESULTS: list[tuple[object, str, str, str | None]] = [
    # G01
    (math.nan, "float", "nan is not JSON", "nan"),
    ({"a": [math.inf]}, "dict", "a[0]: inf is not JSON", "{'a': [inf]}"),
    # G03
    ([LONE], "list", "[0]: the string has a lone surrogate", r"['\ud83d']"),
    ({LONE: 1}, "dict", "the key '\\ud83d' has a lone surrogate", None),
    # G06
    (10**RESULT_INTEGER_DIGITS_MAX, "int", "beyond 640 digits", "1000"),
    (
        [10**5_000],
        "list",
        "[0]: the integer <16610-bit int> is beyond 640 digits",
        "<none: its repr raises ValueError>",
    ),
    # G07
    (nested(VALUE_DEPTH_MAX + 1), "list", "nested deeper than 100 levels", None),
    (nested(100_000), "list", "nested deeper than 100 levels", "<none: too large or too"),
    (cycle(), "list", "contains itself", "<none: too large or too deep"),
    # the rest
    ({1: 2, "1": 3}, "dict", "the key 1 is not a string", "{1: 2, '1': 3}"),
    ({Loud("a"): 1, "a": 2}, "dict", "a: two keys of this object have this text", None),
    ({1, 2}, "set", "set is not JSON", "{1, 2}"),
    (b"\xff", "bytes", "bytes is not JSON", r"b'\xff'"),
    ([b"", unfolding(60)], "list", "[0]: bytes is not JSON", "<none: too large or too deep"),
    ([object], "list", "[0]: type is not JSON", None),
    (Raising(), "test_values.Raising", "Raising is not JSON", "<none: its repr raises ValueError>"),
    ([{"a": Raising()}], "list", "[0].a: ", None),
    (Nameless(), "a type without a name", "is not JSON", None),
    (Lying(), "test_values.Lying", "is not JSON", r"\x1b[31mred\x0aaa"),
    (cast(Iterator[int], iter([])), "list_iterator", "list_iterator is not JSON", None),
]


@pytest.mark.fault("G01")
@pytest.mark.fault("G03")
@pytest.mark.fault("G06")
@pytest.mark.fault("G07")
@pytest.mark.parametrize(
    ("value", "kind", "why", "text"), REFUSED_RESULTS, ids=[r[2] for r in REFUSED_RESULTS]
)
def test_a_result_that_cannot_be_stored_is_described(
    value: object, kind: str, why: str, text: str | None
) -> None:
    calls: list[Callable[[], str]] = [
        lambda: close_to_the_recursion_limit(lambda: encode_result(value)),
        lambda: encode_result(value),
    ]
    for call in calls:
        with pytest.raises(UnstorableResult) as refused:
            call()
        marker = cast(MarkedResult, refused.value).marker
        assert set(marker) == {"type", "why", "repr", "digest"}
        assert str(marker["type"]).endswith(kind)
        assert why in str(marker["why"])
        assert all(mark in string.printable[:95] for mark in canonical(marker))
        assert len(canonical(marker)) < 1_000
        if text is not None:
            assert str(marker["repr"]).startswith(text)
            assert marker["digest"] is None or len(str(marker["digest"])) == 64
            assert (marker["digest"] is None) == text.startswith("<none: ")


def test_the_error_is_the_same_when_it_is_raised_from_the_stored_marker() -> None:
    with pytest.raises(UnstorableResult) as first:
        encode_result({"a": b"x"})
    marker = cast(MarkedResult, first.value).marker
    again = unstorable(cast("dict[str, Json]", decode(canonical(marker))))
    assert isinstance(again, UnstorableResult)
    assert str(again) == str(first.value)
    assert (
        again.marker
        == marker
        == {
            "type": "dict",
            "why": "a: bytes is not JSON; give a dict, list, str, int, float, bool or None",
            "repr": "{'a': b'x'}",
            "digest": digest("{'a': b'x'}"),
        }
    )


@pytest.mark.fault("K01")
def test_a_result_may_be_as_long_as_the_limit_and_a_longer_one_has_its_digest() -> None:
    fits = "x" * (RESULT_BYTES_MAX - 2)
    assert len(encode_result(fits)) == RESULT_BYTES_MAX
    for value in (fits + "x", "é" * (RESULT_BYTES_MAX // 2), [fits, fits], (fits, 1)):
        with pytest.raises(UnstorableResult) as refused:
            encode_result(value)
        marker = cast(MarkedResult, refused.value).marker
        text = canonical(cast(Json, value))
        assert marker["why"] == "more than 4194304 bytes as JSON, which is the limit"
        assert marker["digest"] == digest(text)


@pytest.mark.fault("K01")
def test_a_small_value_that_unfolds_to_a_huge_text_is_refused_in_time() -> None:
    with pytest.raises(UnstorableResult, match="more than 4194304 bytes") as refused:
        encode_result(unfolding(60))
    assert cast(MarkedResult, refused.value).marker["digest"] is None
    with pytest.raises(InvalidInput, match=r"^arguments: more than 1048576 bytes"):
        check_arguments({"a": unfolding(60)})
    with pytest.raises(InvalidInput, match=r"^arguments: more than 1048576 bytes"):
        check_arguments({"a": ["x" * 1_000_000] * 1_000_000})
    with pytest.raises(InvalidInput, match=r"^arguments: more than 1048576 bytes"):
        check_arguments({"a": [{"x" * 1_000_000: 0}] * 100_000})
    with pytest.raises(TooLarge):
        careful_text(unfolding(60), RESULT._replace(bytes_max=10_000))


def test_a_result_far_over_the_limit_is_described_without_its_digest() -> None:
    with pytest.raises(UnstorableResult) as refused:
        encode_result("x" * (5 * RESULT_BYTES_MAX))
    assert cast(MarkedResult, refused.value).marker["digest"] is None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_must_not_be_swallowed_passes(stop: type[BaseException]) -> None:
    class Stopping:
        def __repr__(self) -> str:
            raise stop

    with pytest.raises(stop):
        encode_result(Stopping())


def test_an_exception_while_a_result_is_read_is_an_unstorable_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes another thread, or a lack of memory: nothing of the result's own is ever run."""

    def fail(value: object, rules: object) -> str:
        raise MemoryError

    monkeypatch.setattr(results_module, "text_of", fail)
    with pytest.raises(UnstorableResult, match="reading it raised MemoryError"):
        encode_result({"a": 1})


@given(ALMOST_JSON)
@example({"a": nested(VALUE_DEPTH_MAX - 1)})
@example({"a": nested(VALUE_DEPTH_MAX)})
@example({"a": nested(VALUE_DEPTH_MAX - 1, {})})
@example([INTEGER_MAX, INTEGER_MAX + 1, INTEGER_MIN, INTEGER_MIN - 1])
@example([10**RESULT_INTEGER_DIGITS_MAX])
@example([-(10**RESULT_INTEGER_DIGITS_MAX)])
def test_the_fast_walk_and_the_careful_walk_give_one_judgement(value: object) -> None:
    def judgement(judge: Callable[[object, Any], str], rules: object) -> str:
        try:
            return judge(value, rules)
        except Unfit as fault:
            return f"refused: {fault}"

    for rules in (RESULT, ARGUMENTS, ARGUMENTS._replace(depth_max=2)):
        assert judgement(text_of, rules) == judgement(careful_text, rules)


@given(ALMOST_JSON, some.integers(0, 40))
def test_both_walks_have_the_same_limit_of_size(value: object, bytes_max: int) -> None:
    """Of a value with two faults they may name either one."""
    fitting, rules = RESULT._replace(exact=True), RESULT._replace(exact=True, bytes_max=bytes_max)
    try:
        size = len(careful_text(value, fitting).encode())
    except Unfit:
        for judge in (text_of, careful_text):
            with pytest.raises(Unfit):
                judge(value, rules)
        return
    for judge in (text_of, careful_text):
        if size <= bytes_max:
            assert judge(value, rules) == judge(value, fitting)
        else:
            with pytest.raises(TooLarge):
                judge(value, rules)


@given(JSON_VALUES, some.integers(0, 40), some.integers(0, 4))
def test_what_a_parser_made_needs_no_walk_to_be_judged(
    value: Json, bytes_max: int, depth_max: int
) -> None:
    def judgement(judge: Callable[[Json, Any], str]) -> str:
        try:
            return judge(value, ARGUMENTS._replace(bytes_max=bytes_max, depth_max=depth_max))
        except Unfit as fault:
            return f"refused: {fault}"

    assert judgement(parsed_text) == judgement(careful_text)


# --- ids ------------------------------------------------------------------------------------------

REFUSED_IDS = [
    "",
    " ",
    "\t\n",
    " a",
    "a ",
    "a\n",
    "\na",
    "a b",
    False,
    True,
    0,
    1,
    1.5,
    None,
    b"a",
    ["a"],
    LONE,
    "a" + LONE,
    "é",
    "e\u0301",
    "a\u200b",
    "a\u202e",
    "\u200fa",
    "а",  # noqa: RUF001 - Cyrillic
    "١",  # noqa: RUF001 - Arabic
    "ａ",  # noqa: RUF001 - full width
    "x" * 129,
    "x" * 300,
    "../x",
    "/etc/x",
    "C:\\x",
    "..",
    ".",
    ".a",
    "a/b",
    "a\\b",
    "a\0b",
    "a\0",
    "-a",
    "--help",
    "_a",
    ":a",
    "~",
    "%",
    "a%",
    "'",
    "a;--",
    "$a",
    "@",
    "a@1",
    "a,b",
    Loud("a"),
    Colour.RED,
    Raising(),
]


@pytest.mark.fault("A09")
@pytest.mark.fault("G03")
@pytest.mark.fault("G05")
@pytest.mark.fault("G12")
@pytest.mark.fault("L03")
@pytest.mark.parametrize("value", REFUSED_IDS, ids=[shown(value) for value in REFUSED_IDS])
def test_an_id_that_could_be_mistaken_or_misused_is_refused(value: object) -> None:
    for kind in ("run id", "step id"):
        with pytest.raises(InvalidInput) as refused:
            check_id(kind, value)
        message = str(refused.value)
        assert message.startswith(f"{kind} ")
        assert message.isascii()
        assert message.isprintable()
        assert len(message) < 250


@pytest.mark.fault("A09")
@pytest.mark.fault("G12")
@pytest.mark.parametrize("value", REFUSED_IDS, ids=[shown(value) for value in REFUSED_IDS])
def test_so_is_such_a_name_or_version_of_an_adapter(value: object) -> None:
    for check in (check_adapter_name, check_adapter_version):
        with pytest.raises(InvalidInput, match=r"^adapter (name|version) "):
            check(value)
    if type(value) is str and value != "a@1":
        for text in (value, f"{value}@1", f"a@{value}"):
            with pytest.raises(InvalidInput, match=r"^adapter "):
                check_adapter(text)


@pytest.mark.parametrize("value", ["a", "A", "7", "order-42", "a.b_c:d-e", "a..", "CON", "x" * 128])
def test_an_acceptable_id_is_returned_as_it_is(value: str) -> None:
    assert check_id("run id", value) == value


def test_the_message_shows_an_id_unmistakably() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_id("step id", "e\u0301")
    assert str(refused.value) == (
        r"step id 'e\u0301': the step id is a string of 1 to 128 of A-Z a-z 0-9 . _ : - "
        "and begins with a letter or digit"
    )


@given(some.text(max_size=4) | some.text("aZ09._:-\n @+é", max_size=4))
def test_the_rule_for_ids_is_the_documented_expression(value: str) -> None:
    word = string.ascii_letters + string.digits
    fits = value[:1] in tuple(word) and all(mark in word + "._:-" for mark in value)
    try:
        assert check_id("run id", value) == value
        assert fits
    except InvalidInput:
        assert not fits


def test_an_adapter_is_a_name_and_a_version() -> None:
    assert check_adapter("charge@1") == ("charge", "1")
    assert check_adapter("a.b_c-d@2.1+x-y_z") == ("a.b_c-d", "2.1+x-y_z")
    assert check_adapter("x" * 64 + "@" + "1" * 32) == ("x" * 64, "1" * 32)
    for value in (
        "charge",
        "@1",
        "charge@",
        "a@b@c",
        "1a@1",
        "a:b@1",
        "x" * 65 + "@1",
        "a@" + "1" * 33,
    ):
        with pytest.raises(InvalidInput):
            check_adapter(value)


def test_any_value_is_shown_short_and_printable() -> None:
    for value in (
        *REFUSED_IDS,
        "é" * 1_000,
        b"\xff" * 1_000,
        10**10_000,
        cycle(),
        Lying(),
        Nameless(),
    ):
        text = shown(value)
        assert text.isascii()
        assert text.isprintable()
        assert len(text) < 150
