"""A plan that exists is acceptable, and one that is not is refused with the place of its fault."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent_replay.errors import InvalidInput, InvalidPlan
from agent_replay.lifecycles.step import Contract
from agent_replay.plan import (
    Plan,
    Step,
    first_difference,
    load_plan,
    plan_digest,
    plan_of,
    plan_text,
    read_plan,
)
from agent_replay.values import ARGUMENTS_BYTES_MAX, PLAN_BYTES_MAX, STEPS_MAX, Json, canonical

Document = dict[str, Any]


def step(step_id: object = "charge", **changed: object) -> Document:
    fields: Document = {
        "id": step_id,
        "adapter": "charge@1",
        "contract": "idempotent",
        "arguments": {"cents": 1200, "to": ["é", None]},
    }
    fields.update(changed)
    return fields


def document(*steps: object) -> Document:
    return {"plan": 1, "steps": list(steps) or [step("quote"), step("charge"), step("notify")]}


def text_of(*steps: object) -> str:
    return json.dumps(document(*steps))


def without(field: str) -> Document:
    fields = step()
    del fields[field]
    return fields


# --- what is read ---------------------------------------------------------------------------------


def test_a_plan_is_read_as_its_steps() -> None:
    plan = read_plan(text_of(step("quote", adapter="quote@2.1", contract="read_only"), step("pay")))
    assert plan.steps == (
        Step("quote", "quote", "2.1", Contract.READ_ONLY, '{"cents":1200,"to":["é",null]}'),
        Step("pay", "charge", "1", Contract.IDEMPOTENT, '{"cents":1200,"to":["é",null]}'),
    )
    assert plan.steps[0].contract is Contract.READ_ONLY
    assert plan.steps[0].arguments == {"cents": 1200, "to": ["é", None]}
    assert plan.steps[0].arguments is not plan.steps[0].arguments


@pytest.mark.parametrize("contract", list(Contract))
def test_each_contract_may_be_planned(contract: Contract) -> None:
    assert read_plan(text_of(step(contract=contract.value))).steps[0].contract is contract


def test_a_plan_from_python_is_the_plan_from_the_file() -> None:
    plan = read_plan(text_of())
    assert Plan(document()["steps"]) == plan_of(document()) == plan
    assert Plan(plan.steps) == plan
    assert Plan([*plan.steps[:1], *document()["steps"][1:]]) == plan
    assert Plan([step(contract=Contract.OPAQUE)]) == Plan([step(contract="opaque")])


def test_a_plan_never_changes() -> None:
    given_steps = document()["steps"]
    plan = Plan(given_steps)
    digest = plan.digest
    given_steps[0]["arguments"]["cents"] = 0
    given_steps.clear()
    plan.steps[0].arguments["cents"] = 0
    changes: list[Callable[[], object]] = [
        lambda: setattr(plan, "steps", ()),
        lambda: setattr(plan, "other", 1),
        lambda: delattr(plan, "digest"),
        lambda: setattr(plan.steps[0], "id", "x"),
    ]
    for change in changes:
        with pytest.raises(AttributeError):
            change()
    assert plan.digest == digest == plan_digest(plan.steps)


def test_plans_are_equal_if_their_digests_are() -> None:
    plan, same, other = read_plan(text_of()), read_plan(text_of()), read_plan(text_of(step("x")))
    assert plan == same
    assert len({plan, same, other}) == 2
    assert plan != other
    assert plan != plan.digest
    assert copy.deepcopy(plan) == pickle.loads(pickle.dumps(plan)) == plan
    assert repr(other) == f"<Plan of 1 step, {other.digest[:12]}>"


# --- text and digest ------------------------------------------------------------------------------


def test_the_digest_is_over_the_documented_bytes() -> None:
    plan = read_plan(text_of(step("a", arguments={"b": 1.0, "a": "é"}), step("b", arguments={})))
    text = (
        '{"plan":1,"steps":['
        '{"adapter":"charge@1","arguments":{"a":"é","b":1.0},"contract":"idempotent","id":"a"},'
        '{"adapter":"charge@1","arguments":{},"contract":"idempotent","id":"b"}]}'
    )
    assert plan_text(plan) == text
    assert plan.digest == sha256(text.encode()).hexdigest()


def test_the_digest_is_taken_from_steps_that_are_seen_once() -> None:
    plan = read_plan(text_of())
    assert plan_digest(iter(plan.steps)) == plan.digest
    assert plan_digest([]) == sha256(b'{"plan":1,"steps":[]}').hexdigest()


def test_key_order_and_white_space_of_the_file_do_not_matter() -> None:
    tidy = json.dumps(document(), indent=3, sort_keys=True, ensure_ascii=False)
    turned = json.dumps(
        {"steps": [dict(reversed(fields.items())) for fields in document()["steps"]], "plan": 1}
    )
    assert read_plan(tidy) == read_plan(tidy.encode()) == read_plan(turned) == read_plan(text_of())


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "Charge"},
        {"adapter": "charge@2"},
        {"adapter": "charges@1"},
        {"contract": "opaque"},
        {"arguments": {"cents": 1200, "to": ["é", False]}},
        {"arguments": {"cents": 1200.0, "to": ["é", None]}},
        {"arguments": {"cents": 1200, "to": ["e\u0301", None]}},
    ],
)
def test_whatever_matters_changes_the_digest(changed: Document) -> None:
    assert Plan([step(**changed)]) != Plan([step()])


VALUES: some.SearchStrategy[Json] = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-99, 99)
    | some.floats(-9, 9)
    | some.text(max_size=4),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text('abé\\"', max_size=3), inner)
    ),
    max_leaves=8,
)
STEPS = some.fixed_dictionaries(
    {
        "id": some.text("aZ0.", min_size=1, max_size=3).map("x{}".format),
        "adapter": some.sampled_from(["charge@1", "charge@2", "a.b-c_d@1+x"]),
        "contract": some.sampled_from(list(Contract)).map(str),
        "arguments": some.dictionaries(some.text("ab", max_size=2), VALUES, max_size=3),
    }
)
PLANS = some.lists(STEPS, min_size=1, max_size=4, unique_by=lambda fields: str(fields["id"]))


@pytest.mark.slow
@given(PLANS)
def test_the_text_of_a_plan_is_canonical_and_reads_as_the_same_plan(steps: list[Document]) -> None:
    plan = Plan(steps)
    assert plan_text(plan) == canonical({"plan": 1, "steps": cast(Json, steps)})
    assert read_plan(plan_text(plan)).steps == plan.steps


@pytest.mark.slow
@given(PLANS, PLANS)
def test_two_plans_have_one_digest_only_if_they_have_the_same_steps(
    steps: list[Document], others: list[Document]
) -> None:
    plan, other = Plan(steps), Plan(others)
    assert (plan.digest == other.digest) == (plan.steps == other.steps)


# --- what is refused ------------------------------------------------------------------------------

LONE = "\ud83d"

BAD_IDS: list[object] = [
    *("", " ", "a ", "a\n", "é", "e\u0301", "a\u200b", "a\u202eb", "a\0b", "../x", "/etc/x", ".."),
    *("C:\\x", "a/b", "-a", "x" * 300, None, False, 0, 1.5, [], {}, ["a"]),
]
BAD_ADAPTERS: list[object] = [
    *("", "charge", "@1", "charge@", "charge@1@2", "1a@1", "a b@1", "a@-1", "a@1\n", "é@1"),
    *("x" * 65 + "@1", None, False, 0, [], {"name": "charge"}),
]
BAD_CONTRACTS: list[object] = [
    *("", "Opaque", "OPAQUE", "idempotent ", None, False, 0, [], {}, ["opaque"]),
]
REFUSED: list[tuple[str | bytes, str, str]] = [
    # the plan as a whole
    ("", "line 1, column 1", "not JSON"),
    ('{"plan": 1,\n "steps": [}', "line 2, column 12", "not JSON"),
    (b'{"plan": 1, "steps": ["\xff"]}', "line 1, column 24", "not UTF-8"),
    (b"\xef\xbb\xbf" + text_of().encode(), "the JSON text", "byte order mark"),
    ("[]", "the plan", "a plan is an object, not <list>"),
    ("null", "the plan", "not None"),
    ('"plan"', "the plan", "not 'plan'"),
    ("{}", "the plan", "the field 'plan' is missing; needed are plan, steps"),
    ('{"plan": 1}', "the plan", "the field 'steps' is missing"),
    ('{"plan": 1, "steps": [], "name": 1}', "the plan", "unknown field 'name'; the nearest known"),
    (
        '{"plan": 1, "step": []}',
        "the plan",
        "unknown field 'step'; the nearest known one is 'steps'",
    ),
    ('{"plan": 2, "steps": []}', "plan", "the number of the format is 1, not 2"),
    ('{"plan": 1.0, "steps": []}', "plan", "not 1.0"),
    ('{"plan": true, "steps": []}', "plan", "not True"),
    ('{"plan": "1", "steps": []}', "plan", "not '1'"),
    ('{"plan": 1, "steps": {}}', "steps", "the steps are a list, not <dict>"),
    ('{"plan": 1, "steps": null}', "steps", "not None"),
    ('{"plan": 1, "steps": []}', "steps", "a plan has 1 to 100000 steps, and this has 0"),
    # the fields of a step
    (text_of("charge"), "steps[0]", "a step is an object, not 'charge'"),
    (text_of(step(), []), "steps[1]", "not <list>"),
    (
        text_of({}),
        "steps[0]",
        "the field 'id' is missing; needed are id, adapter, contract, arguments",
    ),
    *[(text_of(without(field)), "steps[0]", f"the field {field!r} is missing") for field in step()],
    (text_of(step(argument={})), "steps[0]", "'argument'; the nearest known one is 'arguments'"),
    (text_of(step(contracts=1)), "steps[0]", "'contracts'; the nearest known one is 'contract'"),
    (text_of({**step(), "zzz" * 999: 1}), "steps[0]", "unknown field 'zzz"),
    (text_of({**step(), "": 1}), "steps[0]", "unknown field ''; the nearest known one is"),
    # ids, adapters and contracts
    *[(text_of(step("a"), step(one)), "steps[1].id", "step id") for one in BAD_IDS],
    (text_of(step(LONE)), "steps[0].id", "lone surrogate"),
    *[(text_of(step(adapter=one)), "steps[0].adapter", "adapter ") for one in BAD_ADAPTERS],
    *[
        (
            text_of(step(contract=one)),
            "steps[0].contract",
            "is not one of read_only, idempotent, queryable, opaque",
        )
        for one in BAD_CONTRACTS
    ],
    # G09
    ('{"plan": 1, "plan": 1, "steps": []}', "plan", "written twice"),
    (
        text_of().replace('"id": "charge"', '"id": "charge", "id": "x"'),
        "steps[1].id",
        "written twice",
    ),
    (
        text_of(step(arguments={"a": [{"b": 0}]})).replace('"b": 0', '"b": 0, "c": 1, "b": 0'),
        "steps[0].arguments.a[0].b",
        "written twice",
    ),
    (
        text_of(step("a"), step("b"), step("a")),
        "steps[2].id",
        "'a' is also the id of steps[0]; ids are unique",
    ),
    # arguments: G01, G03, G06, G07, G11
    *[
        (text_of(step(arguments=value)), "steps[0].arguments", "arguments are an object, not")
        for value in (None, [], [1], "x", 0, True)
    ],
    (text_of(step(arguments={"a": float("nan")})), "steps[0].arguments.a", "NaN is not JSON"),
    (text_of(step(arguments={"a": [float("-inf")]})), "steps[0].arguments.a[0]", "-Infinity"),
    (
        text_of(step(arguments={"a": 0})).replace('"a": 0', '"a": 1e999'),
        "steps[0].arguments.a",
        "1e999",
    ),
    (text_of(step(arguments={"a": [LONE]})), "steps[0].arguments.a[0]", "lone surrogate"),
    (text_of(step(arguments={"a": {LONE: 1}})), "steps[0].arguments.a", "lone surrogate"),
    (text_of(step(arguments={"a": 2**63})), "steps[0].arguments.a", "beyond signed 64 bits"),
    (text_of(step(arguments={"a b": 10**4_000})), "steps[0].arguments['a b']", "(4001 digits)"),
    (
        text_of(step(arguments={"a": 0})).replace('"a": 0', '"a": ' + "9" * 5_000),
        "steps[0].arguments.a",
        "(5000 digits) is beyond signed 64 bits",
    ),
    ("[" * 100_000, "the JSON text", "nested deeper than 200 levels"),
    (
        text_of(step(arguments={"a": 0})).replace('"a": 0', '"a": ' + "[" * 100 + "]" * 100),
        "steps[0].arguments.a[0][0]",
        "nested deeper than 100 levels",
    ),
    (
        text_of(step(arguments={"a": 0})).replace('"a": 0', '"a": ' + "[" * 900 + "]" * 900),
        "the JSON text",
        "nested deeper than 200 levels",
    ),
    # reserved
    (text_of(step(arguments={"$ref": "a"})), "steps[0].arguments['$ref']", "reserved"),
    (text_of(step(arguments={"a": [{"$": 1}]})), "steps[0].arguments.a[0]['$']", "reserved"),
]


@pytest.mark.fault("A09")
@pytest.mark.fault("G01")
@pytest.mark.fault("G03")
@pytest.mark.fault("G05")
@pytest.mark.fault("G06")
@pytest.mark.fault("G07")
@pytest.mark.fault("G09")
@pytest.mark.fault("G11")
@pytest.mark.fault("G12")
@pytest.mark.fault("L03")
@pytest.mark.parametrize(("text", "place", "problem"), REFUSED, ids=range(len(REFUSED)))
def test_a_bad_plan_is_refused_with_the_place_of_its_fault(
    text: str | bytes, place: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidPlan) as refused:
        read_plan(text)
    error = refused.value
    if "..." not in error.place:
        assert error.place == place
    assert error.place.startswith(place)
    assert problem in error.problem
    assert str(error) == f"{error.place}: {error.problem}"
    assert str(error).isprintable()
    assert len(str(error)) < 400

    path = tmp_path / "plan.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidPlan) as refused:
        load_plan(path)
    assert str(refused.value) == f"{str(path)!r}, {error}"


class Text(str):
    """A string of another type."""


FROM_PYTHON: list[tuple[object, str, str]] = [
    (None, "steps", "the steps are a list, not None"),
    ({}, "steps", "not <dict>"),
    ("steps", "steps", "not 'steps'"),
    (range(3), "steps", "not <range>"),
    (Step("a", "b", "1", Contract.OPAQUE, "{}"), "steps", "not <agent_replay.plan.Step>"),
    ([], "steps", "has 0"),
    ([None], "steps[0]", "a step is an object"),
    ([step(**{"id": Text("a")})], "steps[0].id", "step id <"),
    ([step(adapter=Text("a@1"))], "steps[0].adapter", "adapter <"),
    ([step(contract=Text("opaque"))], "steps[0].contract", "is not one of"),
    ([{**step(), 1: 2}], "steps[0]", "unknown field 1"),
    ([step(arguments={1: 2})], "steps[0].arguments", "the key 1 is not a string"),
    ([step(arguments={"a": (1,)})], "steps[0].arguments.a", "give a list"),
    ([step(arguments={"a": [1.5, float("nan")]})], "steps[0].arguments.a[1]", "nan is not JSON"),
    ([step("a"), Step("a", "b", "1", Contract.OPAQUE, "{}")], "steps[1].id", "also the id of"),
    ([Step("", "b", "1", Contract.OPAQUE, "{}")], "steps[0].id", "step id"),
    ([Step("a", "", "1", Contract.OPAQUE, "{}")], "steps[0].adapter", "adapter"),
    ([Step("a", "b@1", "", Contract.OPAQUE, "{}")], "steps[0].adapter", "adapter"),
    ([Step("a", "b", cast(str, 1), Contract.OPAQUE, "{}")], "steps[0]", "two strings"),
    ([Step("a", "b", "1", cast(Contract, "x"), "{}")], "steps[0].contract", "is not one of"),
    ([Step("a", "b", "1", Contract.OPAQUE, "[]")], "steps[0].arguments", "an object"),
    ([Step("a", "b", "1", Contract.OPAQUE, "{} ")], "steps[0].arguments_text", "not canonical"),
    ([Step("a", "b", "1", Contract.OPAQUE, "{")], "steps[0].arguments_text, line 1", "not JSON"),
    ([Step("a", "b", "1", Contract.OPAQUE, '{"a":[NaN]}')], "steps[0].arguments_text.a[0]", "NaN"),
    ([Step("a", "b", "1", Contract.OPAQUE, cast(str, {}))], "steps[0].arguments_text", "a text"),
]


@pytest.mark.parametrize(("steps", "place", "problem"), FROM_PYTHON, ids=range(len(FROM_PYTHON)))
def test_a_bad_plan_from_python_is_refused_as_well(steps: Any, place: str, problem: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        Plan(steps)
    assert refused.value.place.startswith(place)
    assert problem in refused.value.problem
    with pytest.raises(InvalidPlan) as refused_as_document:
        plan_of({"plan": 1, "steps": steps})
    assert str(refused_as_document.value) == str(refused.value)


@pytest.mark.parametrize(
    "document", [None, [], {"plan": 2, "steps": []}, {"plan": True, "steps": []}]
)
def test_a_document_from_python_is_a_plan_in_the_form_of_the_file(document: object) -> None:
    with pytest.raises(InvalidPlan, match=r"^(the )?plan: "):
        plan_of(document)


def test_a_step_of_another_spelling_of_its_contract_becomes_a_proper_step() -> None:
    plan = Plan([Step("a", "b", "1", cast(Contract, "opaque"), "{}")])
    assert plan.steps[0].contract is Contract.OPAQUE


def test_ids_are_compared_exactly() -> None:
    assert len(Plan([step("a"), step("A"), step("a.")]).steps) == 3


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.fault("K01")
def test_a_plan_may_have_as_many_steps_as_the_limit_and_no_more() -> None:
    steps = [step(f"s{number}", arguments={}) for number in range(STEPS_MAX)]
    plan = Plan(steps)
    assert len(plan.steps) == STEPS_MAX
    assert read_plan(plan_text(plan)) == plan
    too_many: list[Callable[[], object]] = [
        lambda: Plan([*steps, step("more")]),
        lambda: read_plan(json.dumps(document(*steps, step("more")))),
    ]
    for attempt in too_many:
        with pytest.raises(
            InvalidPlan, match=r"^steps: a plan has 1 to 100000 steps, and this has"
        ):
            attempt()


@pytest.mark.fault("K01")
def test_the_arguments_of_a_step_may_be_as_long_as_the_limit_and_no_longer() -> None:
    fits = step(arguments={"a": "x" * (ARGUMENTS_BYTES_MAX - len('{"a":""}'))})
    assert len(Plan([fits]).steps[0].arguments_text) == ARGUMENTS_BYTES_MAX
    assert read_plan(text_of(fits)) == Plan([fits])
    longer = step(arguments={"a": fits["arguments"]["a"] + "x"})
    attempts: list[Callable[[], object]] = [
        lambda: Plan([longer]),
        lambda: read_plan(text_of(longer)),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidPlan, match=r"^steps\[0\].arguments: more than 1048576 bytes"):
            attempt()


@pytest.mark.fault("K01")
def test_many_steps_of_large_arguments_are_refused_before_memory_is_full() -> None:
    """The steps share one object of 1 MB, and 100 GB of text would be made of it."""
    shared = {"a": "x" * 1_000_000}
    steps = [step(f"s{number}", arguments=shared) for number in range(STEPS_MAX)]
    with pytest.raises(
        InvalidPlan, match=r"^the plan: its canonical text has more than 67108864 bytes"
    ):
        Plan(steps)


@pytest.mark.slow
@pytest.mark.fault("K01")
def test_a_plan_is_measured_in_bytes_of_its_canonical_text() -> None:
    """Numbers may be longer there than in the file: 1e15 becomes 1000000000000000.0."""
    half_a_million = {"a": "é" * 500_000}
    steps = [step(f"s{number}", arguments=half_a_million) for number in range(70)]
    assert Plan(steps[:60]).steps
    with pytest.raises(InvalidPlan, match=r"^the plan: its canonical text has more than"):
        Plan(steps)
    many = ",".join(["1e15"] * 50_000)
    rows = ",".join(
        f'{{"id":"s{number}","adapter":"a@1","contract":"opaque","arguments":{{"a":[{many}]}}}}'
        for number in range(100)
    )
    text = f'{{"plan":1,"steps":[{rows}]}}'
    assert len(text) < PLAN_BYTES_MAX
    with pytest.raises(InvalidPlan, match=r"^the plan: its canonical text has more than"):
        read_plan(text)


@pytest.mark.fault("K01")
def test_a_text_over_the_limit_is_refused_before_it_is_parsed() -> None:
    for text in (
        "[" * (PLAN_BYTES_MAX + 1),
        b"[" * (PLAN_BYTES_MAX + 1),
        "é" * (PLAN_BYTES_MAX // 2 + 1),
    ):
        with pytest.raises(InvalidPlan, match="more than 67108864 bytes, which is the limit"):
            read_plan(text)


# --- files ----------------------------------------------------------------------------------------


def test_a_plan_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text_of(), encoding="utf-8")
    assert load_plan(path) == load_plan(str(path)) == read_plan(text_of())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing.json", "No such file or directory"),
        ("", "Is a directory"),
        ("plan.json/x", "Not a directory"),
        ("plan\0.json", "embedded null byte"),
        ("x" * 5_000, "File name too long"),
        ("missing\udcff.json", "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "plan.json").write_text(text_of(), encoding="utf-8")
    path = os.path.join(str(tmp_path), name)
    with pytest.raises(InvalidPlan, match=rf"the plan cannot be read: {problem}$") as refused:
        load_plan(path)
    assert refused.value.place == ascii(path)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text_of(), encoding="utf-8")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything
        assert load_plan(path) == read_plan(text_of())
        return
    with pytest.raises(InvalidPlan, match=r"the plan cannot be read: Permission denied$"):
        load_plan(path)


@pytest.mark.fault("K01")
def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    """It has a size and no content, so that reading it would be noticed by nothing but time."""
    path = tmp_path / "plan.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidPlan, match="a plan has at most 67108864 bytes"):
        load_plan(path)


@pytest.mark.fault("K01")
@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device without an end")
def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="a plan has at most 67108864 bytes"):
        load_plan("/dev/zero")


def test_a_plan_may_come_through_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(text_of(),))
    writer.start()
    assert load_plan(path) == read_plan(text_of())
    writer.join(timeout=10)


@pytest.mark.parametrize("path", [0, None, ["plan.json"]])
def test_only_a_path_is_loaded(path: Any) -> None:
    with pytest.raises(TypeError):
        load_plan(path)


# --- comparison -----------------------------------------------------------------------------------

FOUR = [step("quote"), step("charge"), step("mail"), step("close")]


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    ("planned", "words"),
    [
        (FOUR, None),
        ([step("offer"), *FOUR[1:]], "step 1: history has 'quote', the plan has 'offer'"),
        ([FOUR[1], FOUR[0], *FOUR[2:]], "step 1: history has 'quote', the plan has 'charge'"),
        (
            [*FOUR[:2], step("http"), *FOUR[2:]],
            "step 3: history has 'mail', the plan has 'http'",
        ),
        (
            [FOUR[0], step("charge", arguments={"cents": 1201}), *FOUR[2:]],
            "step 2 'charge': arguments differ",
        ),
        (
            [FOUR[0], step("charge", adapter="charge@2"), *FOUR[2:]],
            "step 2 'charge': history has adapter charge@1, the plan has charge@2",
        ),
        (
            [FOUR[0], step("charge", contract="opaque"), *FOUR[2:]],
            "step 2 'charge': history has contract idempotent, the plan has opaque",
        ),
        ([*FOUR, step("more")], "the plan has 5 steps, the run has 4"),
        (FOUR[:1], "the plan has 1 step, the run has 4"),
        ([step("quote", arguments={}), step("x")], "step 1 'quote': arguments differ"),
    ],
)
def test_the_first_difference_is_named(planned: list[Document], words: str | None) -> None:
    assert first_difference(Plan(FOUR).steps, Plan(planned).steps) == words


@pytest.mark.slow
@given(PLANS, PLANS)
def test_there_is_a_first_difference_exactly_if_the_digests_differ(
    steps: list[Document], others: list[Document]
) -> None:
    plan, other = Plan(steps), Plan(others)
    assert (first_difference(plan.steps, other.steps) is None) == (plan == other)


# --- anything at all ------------------------------------------------------------------------------


def test_no_broken_text_leads_to_another_error() -> None:
    """A plan with random bytes changed, cut, or doubled is read or refused, and nothing else."""
    chance = random.Random(20)
    whole = json.dumps(document(), ensure_ascii=False).encode()
    read = 0
    for _ in range(3_000):
        text = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(text))
            match chance.randrange(3):
                case 0:
                    text[place] = chance.randrange(256)
                case 1:
                    del text[place : place + chance.randint(1, 9)]
                case _:
                    text[place:place] = text[place : place + chance.randint(1, 60)]
        try:
            plan = read_plan(bytes(text))
        except InvalidPlan:
            continue
        assert read_plan(plan_text(plan)) == plan
        read += 1
    assert 0 < read < 3_000


@given(some.binary(max_size=30) | some.text(max_size=30))
def test_no_text_leads_to_another_error(text: str | bytes) -> None:
    with pytest.raises(InvalidInput):
        read_plan(text)


def raised_by(work: Callable[[], object]) -> BaseException | None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - it is returned
        return error
    return None


@pytest.mark.fault("G07")
def test_a_deep_plan_is_judged_alike_from_a_deep_stack() -> None:
    inside = '{"a":' + "[" * 99 + "]" * 99 + "}"
    fields = f'"id":"a","adapter":"b@1","contract":"opaque","arguments":{inside}'
    text = f'{{"plan":1,"steps":[{{{fields}}}]}}'

    def down(levels: int) -> object:
        return raised_by(lambda: read_plan(text)) if levels == 0 else down(levels - 1)

    for levels in (0, 500, 800):
        assert down(levels) is None
