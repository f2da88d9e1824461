"""The published schema and the reader agree, apart from what no schema can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

import agent_replay.plan
from agent_replay.errors import InvalidPlan
from agent_replay.lifecycles.step import Contract
from agent_replay.plan import Plan, read_plan
from agent_replay.values import (
    ADAPTER_NAME_LENGTH_MAX,
    ADAPTER_VERSION_LENGTH_MAX,
    ARGUMENTS_BYTES_MAX,
    ID_LENGTH_MAX,
    INTEGER_BITS,
    PLAN_BYTES_MAX,
    STEPS_MAX,
    VALUE_DEPTH_MAX,
)

PATH = Path(agent_replay.plan.__file__).with_name("plan.schema.json")
SCHEMA: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def step(**changed: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": "charge",
        "adapter": "charge@1",
        "contract": "idempotent",
        "arguments": {"cents": 1200},
    }
    fields.update(changed)
    return fields


def plan(*steps: object) -> dict[str, object]:
    return {"plan": 1, "steps": list(steps)}


def without(fields: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in fields.items() if key != name}


def is_read(document: object) -> bool:
    try:
        read_plan(json.dumps(document))
    except InvalidPlan:
        return False
    return True


def test_the_schema_is_a_schema_of_the_draft_that_it_names() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]


def test_its_examples_are_plans() -> None:
    for example in SCHEMA["examples"]:
        VALIDATOR.validate(example)
        assert isinstance(read_plan(json.dumps(example)), Plan)


def test_its_numbers_and_names_are_those_of_the_code() -> None:
    fields = SCHEMA["$defs"]["step"]["properties"]
    assert SCHEMA["properties"]["steps"]["maxItems"] == STEPS_MAX
    assert f"{{0,{ID_LENGTH_MAX - 1}}}" in fields["id"]["pattern"]
    name, version = fields["adapter"]["pattern"].split("@")
    assert f"{{0,{ADAPTER_NAME_LENGTH_MAX - 1}}}" in name
    assert f"{{0,{ADAPTER_VERSION_LENGTH_MAX - 1}}}" in version
    assert fields["contract"]["enum"] == [contract.value for contract in Contract]
    for said in (
        f"signed {INTEGER_BITS} bits",
        f"deeper than {VALUE_DEPTH_MAX} levels",
        f"{ARGUMENTS_BYTES_MAX >> 20} MiB",
        f"{PLAN_BYTES_MAX >> 20} MiB",
    ):
        assert said in SCHEMA["description"]


def described(schema: object) -> bool:
    if not isinstance(schema, dict):
        return True
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    return all("description" in part and described(part) for part in parts)


def test_everything_in_it_is_described() -> None:
    assert "description" in SCHEMA
    assert described(SCHEMA)


ACCEPTED: list[object] = [
    plan(step()),
    plan(step(), step(id="b")),
    plan(step(id="A.b_c:d-9")),
    plan(step(id="x" * 128)),
    plan(step(id="9")),
    plan(step(adapter="a.b_c-d@2.1+x_y-z")),
    plan(step(adapter="x" * 64 + "@" + "1" * 32)),
    *[plan(step(contract=contract.value)) for contract in Contract],
    plan(step(arguments={})),
    plan(step(arguments={"": 0, "a$": "$", "é\0": [[], {}, None, True, 1.5, -1, "\U0001f600"]})),
    plan(step(arguments={"a": {"b": [{"c": {"d": []}}]}})),
    plan(step(arguments={"a": 2**63 - 1, "b": -(2**63), "c": 1e300})),
]
BAD_IDS: list[object] = [
    *("", " ", "a ", " a", "a\n", "é", "a\u200b", "a/b", "..", "-a", "_a", "x" * 129, None, 0),
]
BAD_ADAPTERS: list[object] = [
    *("", "a", "a@", "@1", "a@1@2", "1@1", "a:b@1", "a@1\n", "x" * 65 + "@1", None, 0),
]
BAD_CONTRACTS: list[object] = ["", "Opaque", "opaque ", None, 0, ["opaque"]]
BAD_ARGUMENTS: list[object] = [None, [], "x", 0, True]
REFUSED: list[object] = [
    None,
    [],
    "plan",
    {},
    {"plan": 1},
    {"steps": [step()]},
    {"plan": 2, "steps": [step()]},
    {"plan": "1", "steps": [step()]},
    {"plan": True, "steps": [step()]},
    {"plan": 1, "steps": [step()], "name": "x"},
    plan(),
    {"plan": 1, "steps": {}},
    {"plan": 1, "steps": None},
    plan(None),
    plan([]),
    plan({}),
    *[plan(without(step(), name)) for name in step()],
    plan(step(argument={})),
    *[plan(step(id=value)) for value in BAD_IDS],
    *[plan(step(adapter=value)) for value in BAD_ADAPTERS],
    *[plan(step(contract=value)) for value in BAD_CONTRACTS],
    *[plan(step(arguments=value)) for value in BAD_ARGUMENTS],
    plan(step(arguments={"$ref": 1})),
    plan(step(arguments={"$": 1})),
    plan(step(arguments={"a": {"$a": 1}})),
    plan(step(arguments={"a": [[{"b": [{"$a": 1}]}]]})),
]


@pytest.mark.parametrize("document", ACCEPTED, ids=range(len(ACCEPTED)))
def test_both_accept_what_is_a_plan(document: object) -> None:
    VALIDATOR.validate(document)
    assert is_read(document)


@pytest.mark.parametrize("document", REFUSED, ids=range(len(REFUSED)))
def test_both_refuse_what_is_no_plan(document: object) -> None:
    assert not VALIDATOR.is_valid(document)
    assert not is_read(document)


def deep(levels: int) -> list[object]:
    return [deep(levels - 1)] if levels > 1 else []


ONLY_THE_READER_REFUSES: dict[str, str] = {
    "two steps of one id": json.dumps(plan(step(), step())),
    "a key twice": json.dumps(plan(step())).replace('"cents"', '"cents": 1, "cents"'),
    "an integer beyond 64 bits": json.dumps(plan(step(arguments={"a": 2**63}))),
    "a number that becomes infinite": json.dumps(plan(step())).replace("1200", "1e999"),
    "a number that becomes zero": json.dumps(plan(step())).replace("1200", "1e-999"),
    "a lone surrogate": json.dumps(plan(step(arguments={"a": "\ud83d"}))),
    "a value too deep": json.dumps(plan(step(arguments={"a": deep(VALUE_DEPTH_MAX)}))),
    "arguments too long": json.dumps(plan(step(arguments={"a": "x" * ARGUMENTS_BYTES_MAX}))),
    "NaN": json.dumps(plan(step(arguments={"a": float("nan")}))),
    "1.0 as the number of the format": json.dumps({**plan(step()), "plan": 1.0}),
}
"""What a schema cannot say; a byte order mark and a whole plan too long belong to it as well."""


@pytest.mark.parametrize(
    "text", ONLY_THE_READER_REFUSES.values(), ids=ONLY_THE_READER_REFUSES.keys()
)
def test_what_only_the_reader_refuses_is_known(text: str) -> None:
    VALIDATOR.validate(json.loads(text))
    with pytest.raises(InvalidPlan):
        read_plan(text)


# --- whatever hypothesis finds --------------------------------------------------------------------

KEYS = some.text(max_size=3) | some.sampled_from(["$", "$a", "a$", "id", "plan"])
NUMBERS = some.integers(-(2**63), 2**63 - 1) | some.floats(allow_nan=False, allow_infinity=False)
VALUES = some.recursive(
    some.none() | some.booleans() | NUMBERS | some.text(max_size=3),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
NAMES = some.from_regex(r"[A-Za-z0-9._:+@é\n-]{0,4}") | some.sampled_from(["a", "a@1", "b.c@2"])
CONTRACTS = some.sampled_from([*map(str, Contract), "Opaque", ""])
GOOD_STEPS = some.fixed_dictionaries(
    {
        "id": some.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,4}", fullmatch=True),
        "adapter": some.from_regex(
            r"[A-Za-z][A-Za-z0-9_.-]{0,3}@[A-Za-z0-9][A-Za-z0-9._+-]{0,3}", fullmatch=True
        ),
        "contract": some.sampled_from([contract.value for contract in Contract]),
        "arguments": some.dictionaries(KEYS, VALUES, max_size=3),
    }
)
ODD_STEPS = some.fixed_dictionaries(
    {"id": NAMES | VALUES, "adapter": NAMES | VALUES, "contract": CONTRACTS, "arguments": VALUES},
    optional={"extra": VALUES},
)
DOCUMENTS = some.fixed_dictionaries(
    {
        "plan": some.just(1) | some.sampled_from([2, True, "1", None]),
        "steps": some.lists(GOOD_STEPS | ODD_STEPS, max_size=3) | VALUES,
    },
    optional={"extra": VALUES},
)
GOOD_DOCUMENTS = some.fixed_dictionaries(
    {"plan": some.just(1), "steps": some.lists(GOOD_STEPS, min_size=1, max_size=3)}
)


def ids_are_unique(document: Any) -> bool:
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list):
        return True
    ids = [one["id"] for one in steps if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return len(ids) == len(set(ids))


@given(GOOD_DOCUMENTS | DOCUMENTS | VALUES)
def test_the_schema_and_the_reader_agree(document: Any) -> None:
    assume(ids_are_unique(document))
    assert VALIDATOR.is_valid(document) == is_read(document)


@given(GOOD_DOCUMENTS)
def test_whatever_the_schema_accepts_is_read(document: Any) -> None:
    assume(ids_are_unique(document) and VALIDATOR.is_valid(document))
    assert is_read(document)
