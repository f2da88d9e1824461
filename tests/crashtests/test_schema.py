"""The published schema of the crash matrix: strict, and of one mind with the verifier.

What damages the form of a report is generated from the recorded one: each field of each kind of
object is removed, joined by a foreign one, and given a value of each other type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from crashtests import cases, judgement, provenance, verify
from crashtests.cases import CASES, Case
from crashtests.independent import chains
from crashtests.independent.history import Impossible
from crashtests.independent.lifecycle import Lifecycle

RESULTS = Path(__file__).resolve().parent.parent.parent / "results"
SCHEMA: dict[str, Any] = json.loads((RESULTS / "crash-matrix.schema.json").read_text("utf-8"))
REPORT: dict[str, Any] = json.loads((RESULTS / "crash-matrix.json").read_text("utf-8"))
DEFINED: dict[str, Any] = SCHEMA["$defs"]
ROWS: list[dict[str, Any]] = SCHEMA["properties"]["cases"]["allOf"][0]["prefixItems"]
COUNTS = ("none", "one", "two")
LIFECYCLE = Lifecycle()

ANY_LENGTH = {"effects", "events", "writers"}
"""Lists of which a schema cannot say how long they are; and the sources, by their names."""
ANY_TEXT = {"host", "hint", "namespace"}
"""Texts that may be anything."""

OTHERS: tuple[Any, ...] = (None, True, 7, 0.5, "text", [], {})
"""A value of each type; `true` is equal to 1 for Python, which must not help it."""

Path_ = tuple[str | int, ...]


class Place(NamedTuple):
    """Where a value stands in a record."""

    path: Path_
    value: Any
    kind: object
    """Equal for places of which the schema says the same: rows of one table are all alike."""


def places(value: Any) -> Iterator[Place]:
    """Yield the places of a record."""

    def walk(here: Any, path: Path_) -> Iterator[Place]:
        inner = here.items() if isinstance(here, dict) else enumerate(here)
        for name, item in inner:
            fields = frozenset(here) if isinstance(here, dict) else frozenset()
            yield Place((*path, name), item, (kind_of((*path, name)), type(item), fields))
            if isinstance(item, dict | list):
                yield from walk(item, (*path, name))

    return walk(value, ())


def kind_of(path: Path_) -> Path_:
    """Return a path without numbers and names of sources, and alike for every stage of a case."""
    parts = tuple("*" if isinstance(part, int) else part for part in path)
    if parts[:1] == ("sources",) and parts[1:] not in (("spec/step.toml",), ("spec/run.toml",)):
        parts = (*parts[:1], *["*" for _ in parts[1:]])
    return (
        parts[2:] if parts[0] == "kills" and parts[2:3] in (("database",), ("ledger",)) else parts
    )


def damaged(record: Any, known: set[object]) -> Iterator[tuple[str, Any]]:
    """Yield what was done to a record and the record after it, for each kind that is not known."""
    text = json.dumps(record)  # a copy by way of JSON takes a third of the time
    for path, value, kind in places(record):
        if kind in known:
            continue
        known.add(kind)
        for deed, change in deeds(path, value):
            again = json.loads(text)
            holder = again
            for part in path[:-1]:
                holder = holder[part]
            change(holder, path[-1])
            if "digest" in again and path != ("digest",):
                again["digest"] = judgement.digest_of(again)
            yield f"{'.'.join(map(str, path))}: {deed}", again


def deeds(path: Path_, value: Any) -> Iterator[tuple[str, Callable[[Any, Any], object]]]:
    """Yield the damages of one place that a schema can see."""
    in_a_list = isinstance(path[-1], int)
    free = path[-2] in ANY_LENGTH if in_a_list else path[-2:-1] == ("sources",)
    if not free or path[-1] in ("spec/step.toml", "spec/run.toml"):
        yield "removed", lambda holder, name: holder.pop(name)
    if isinstance(value, dict):
        yield "joined", lambda holder, name: holder[name].update(foreign=1)
    if isinstance(value, str) and path[-1] not in ANY_TEXT:
        yield "with a line end", partial(replace, value=value + "\n")
        yield "another text", partial(replace, value="\u2028")
    if isinstance(value, int) and not isinstance(value, bool):
        yield "below", partial(replace, value=-10)
    for other in OTHERS:
        if type(other) is not type(value):
            yield f"made {other!r}", partial(replace, value=other)


def replace(holder: Any, name: Any, value: Any) -> None:
    holder[name] = value


def validator_of(*schemas: Any) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$defs": DEFINED, "allOf": list(schemas)})


def of_case(number: int) -> jsonschema.Draft202012Validator:
    return validator_of({"$ref": "#/$defs/case"}, ROWS[number])


# --- it is strict -------------------------------------------------------------------------------


def test_it_is_a_schema_and_the_recorded_report_is_of_its_form() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    jsonschema.Draft202012Validator(SCHEMA).validate(REPORT)


def objects_in(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield each part of a schema that lists the fields of an object."""
    if isinstance(schema, dict):
        if schema.get("type") in ("object", ["object", "null"]) and "properties" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from objects_in(part)


def test_no_object_in_it_may_have_a_foreign_field() -> None:
    found = list(objects_in(SCHEMA))
    assert len(found) > len(DEFINED) // 2
    assert [part for part in found if part.get("additionalProperties") is not False] == []


def test_what_it_defines_is_described_and_used() -> None:
    assert [name for name, part in DEFINED.items() if "description" not in part] == []
    text = json.dumps(SCHEMA)
    assert [name for name in DEFINED if f'"#/$defs/{name}"' not in text] == []


def is_refused(record: Any, case: Case) -> bool:
    """Say whether the verifier refuses a case; what it stumbles over, it reports as malformed."""
    try:
        return any(judgement.complaints(record, case, LIFECYCLE))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, Impossible):
        return True


@pytest.mark.fault("M04")
def test_a_case_of_another_form_is_refused_by_the_schema_and_by_the_verifier() -> None:
    """Although the case's own digest is computed anew, which stops nobody but an accident."""
    known: set[object] = set()
    count = 0
    for number, (record, case) in enumerate(zip(REPORT["cases"], CASES, strict=True)):
        schema = of_case(number)
        for what, again in damaged(record, known):
            place = f"{case.name}: {what}"
            assert not schema.is_valid(again), f"the schema takes {place}"
            assert is_refused(again, case), f"the verifier takes {place}"
            count += 1
    assert count > 1000


@pytest.mark.fault("M04")
def test_what_is_said_about_the_report_in_another_form_is_refused_by_both() -> None:
    schema, count = validator_of({"$ref": "#/$defs/about"}), 0
    schema.validate(REPORT["about"])
    for what, again in damaged(REPORT["about"], set()):
        assert not schema.is_valid(again), f"the schema takes {what}"
        found = verify.findings({**REPORT, "about": again, "cases": []}, recorded=True)
        assert any(one.startswith("about: ") for one in found), f"the verifier takes {what}"
        count += 1
    assert count > 100


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop("format"),
        lambda r: r.pop("about"),
        lambda r: r.pop("cases"),
        lambda r: r.update(foreign=1),
        lambda r: r.update(format=2),
        lambda r: r.update(format=True),
        lambda r: r.update(format=None),
        lambda r: r.update(cases={}),
        lambda r: r["cases"].clear(),
        lambda r: r["cases"].pop(),
        lambda r: r["cases"].pop(3),
        lambda r: r["cases"].append(r["cases"][0]),
        lambda r: r["cases"].reverse(),
        lambda r: r["cases"].__setitem__(3, None),
        lambda r: r["cases"].__setitem__(3, r["cases"][4]),
        lambda r: r["cases"][2].update(case="renamed"),
    ],
)
def test_a_report_of_another_form_is_refused_by_both(spoil: Callable[[Any], object]) -> None:
    again = {**REPORT, "cases": [dict(row) for row in REPORT["cases"]]}
    spoil(again)
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(again)
    assert verify.findings(again, recorded=True)


# --- it is one with the verifier and the spec ---------------------------------------------------


def fields(name: str) -> set[str]:
    """Return the fields of an object, each of which it must have."""
    part = DEFINED[name]
    assert len(part["required"]) == len(set(part["required"]))
    assert set(part["required"]) == set(part["properties"]), name
    return set(part["properties"])


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("about", provenance.ABOUT_FIELDS),
        ("case", judgement.CASE_FIELDS),
        ("kill", judgement.KILL_FIELDS),
        ("finish", judgement.FINISH_FIELDS),
        ("step", chains.STEP_COLUMNS),
        ("identity", set(chains.COLUMNS["identity"])),
        ("writer", {*chains.COLUMNS["writer"], "hash"}),
        ("run", {*chains.COLUMNS["run"], "hash"}),
        ("event", {*chains.COLUMNS["event"], "hash"}),
    ],
)
def test_the_fields_are_those_of_the_verifier(name: str, known: set[str]) -> None:
    assert fields(name) == known


def test_the_forms_are_those_of_the_verifier() -> None:
    found = {name: part.get("pattern") for name, part in DEFINED["about"]["properties"].items()}
    assert {
        name: pattern.removeprefix("^(").removesuffix(")$(?!\\n)")
        for name, pattern in found.items()
        if pattern is not None
    } == provenance.FORMS
    assert SCHEMA["properties"]["format"]["const"] == verify.FORMAT
    assert str(verify.FORMAT) == SCHEMA["$id"].rpartition(":")[2]


def row_of(case: Case) -> dict[str, Any]:
    return {
        "case": {"const": case.name},
        "subject": {"const": case.subject},
        "effects": {"const": case.effects},
        "outcome": {"const": case.outcome},
        "kills": {"$ref": f"#/$defs/{COUNTS[len(case.kills)]}"},
        "finishes": {"$ref": f"#/$defs/{COUNTS[1 + case.reconciles]}"},
    }


def test_the_cases_are_those_of_the_matrix_with_what_must_come_out() -> None:
    assert [{"properties": row_of(case)} for case in CASES] == ROWS
    whole = SCHEMA["properties"]["cases"]
    assert whole["minItems"] == whole["maxItems"] == len(CASES)
    for count, name in enumerate(COUNTS):
        assert DEFINED[name].get("minItems", 0) == DEFINED[name]["maxItems"] == count


def choices(of: str, *names: str) -> set[Any]:
    part: Any = DEFINED[of]
    for name in names:
        part = part["properties"][name]
    return set(part["enum"])


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (choices("case", "subject"), {case.subject for case in CASES}),
        (choices("case", "outcome"), set(judgement.WHY)),
        (choices("case", "why"), set(judgement.WHY.values())),
        (choices("kill", "checkpoint"), {*cases.CHECKPOINTS, cases.IN_RECOVERY}),
        (choices("step", "contract"), set(Contract)),
        (choices("event_name"), {*StepEvent, RunEvent.ASK_CANCEL, RunEvent.ADOPT}),
        (choices("event_of_the_run"), {RunEvent.ASK_CANCEL, RunEvent.ADOPT}),
        (choices("event", "actor"), set(Actor)),
        (choices("event", "state"), {*StepState, None}),
        (choices("event", "run_state"), set(RunState) - {RunState.NEW}),
        (choices("event", "coupled"), {" ".join(move.coupled) for move in PERMITTED.values()}),
    ],
)
def test_the_words_are_those_of_the_verifier_and_of_the_spec(
    found: set[Any], known: set[Any]
) -> None:
    assert found == known


def test_the_constants_are_those_of_the_verifier() -> None:
    assert DEFINED["kill"]["properties"]["termination"]["const"] == judgement.KILLED
    assert DEFINED["case"]["then"]["properties"]["key"]["const"] == judgement.BASELINE_KEY
    kinds = DEFINED["ledger"]["properties"]["effects"]["items"]["properties"]["kind"]["enum"]
    assert set(kinds) == {judgement.DEED, *judgement.KINDS.values()} - {""}
