"""The verifier of the sweep: the recorded report holds, a damaged one is refused by its place."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from crashtests import provenance, verify
from crashtests.judgement import digest_of
from crashtests.sweep import tally
from crashtests.sweep import verify as sweep
from crashtests.sweep.judge import MUST_BE_ZERO
from crashtests.sweep.scenarios import FULL, PATHS, QUICK, SCENARIOS
from tests.crashtests.paths import no_paths
from tests.crashtests.test_verifier import DAMAGES, leaves, parent_of

RESULTS = Path(__file__).resolve().parent.parent.parent / "results"
RECORDED = RESULTS / "crash-sweep.json"
SCENARIO = "opaque"
EVERY = 23
"""Of so many leaves one is damaged in the short test; every third in the long one."""

KILLS_MIN = 10_000

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> Report:
    made: Report = json.loads(RECORDED.read_text(encoding="utf-8"))
    return made


@pytest.fixture
def again(report: Report) -> Report:
    return copy.deepcopy(report)


@pytest.fixture(scope="module")
def opaque(report: Report) -> Report:
    """Return one scenario, cut down to its first path, as a quick sweep would have told it."""
    told = next(told for told in report["scenarios"] if told["scenario"] == SCENARIO)
    rows = [copy.deepcopy(row) for row in told["paths"] if row["path"] == PATHS[0]]
    states = renumbered(rows, "states")
    kinds = renumbered(rows, "recorded")
    kept = [copy.deepcopy(told["states"][number]) for number in states]
    ends = list(dict.fromkeys(state["end"] for state in kept))
    for state in kept:
        state["end"] = ends.index(state["end"])
    cut = {
        "scenario": SCENARIO,
        "terminations": {"-9": sum(len(row["states"]) for row in rows)},
        "kinds": [told["kinds"][number] for number in kinds],
        "paths": rows,
        "states": kept,
        "ends": [told["ends"][number] for number in ends],
    }
    return {**cut, "digest": digest_of(cut)}


def renumbered(rows: list[Report], name: str) -> list[int]:
    """Number what rows name anew, from 0 on; return the old numbers in their new order."""
    old = list(dict.fromkeys(itertools.chain.from_iterable(row[name] for row in rows)))
    for row in rows:
        row[name] = [old.index(number) for number in row[name]]
    return old


def judged(told: Report) -> list[str]:
    return list(provenance.guarded(sweep._scenario, told, QUICK))


def test_the_recorded_report_holds_but_for_sources_that_went_on(
    report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify.main([str(RECORDED), "--recorded"]) == 0
    said = capsys.readouterr().out
    assert f"{len(SCENARIOS)} scenarios" in said
    assert report["form"] == FULL
    assert report["about"]["clean"] is True, "it is of a revision that can be had"


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S14")
def test_the_recorded_report_is_what_it_should_be(report: Report) -> None:
    ours = [row for row in report["totals"] if row["scenario"] != "blind-retry"]
    blind = [row for row in report["totals"] if row["scenario"] == "blind-retry"]
    assert sum(row["kills"] for row in ours) >= KILLS_MIN
    assert {row["path"] for row in ours} == set(PATHS)
    assert [row for row in ours if any(row[name] for name in MUST_BE_ZERO)] == []
    assert all(row["duplicates"] for row in blind), "the baseline fails, so that ours could"


def test_every_history_of_the_recorded_report_is_a_path(report: Report) -> None:
    databases = [end["database"] for told in report["scenarios"] for end in told["ends"]]
    assert len([one for one in databases if one]) > 100, "there is something to check"
    assert [problem for one in databases if one for problem in no_paths(one)] == []


def test_what_was_cut_down_holds(opaque: Report) -> None:
    assert judged(opaque) == []


def damaged(told: Report, every: int) -> Iterator[tuple[str, Report]]:
    for number, path in enumerate(leaves(told)):
        if number % every == 0 and path != ("digest",):
            for name, damage in DAMAGES.items():
                changed = copy.deepcopy(told)
                if damage(changed, path):
                    yield f"{'.'.join(map(str, path))} {name}", changed


@pytest.mark.fault("M04")
@pytest.mark.parametrize("every", [EVERY, pytest.param(3, marks=pytest.mark.slow)])
def test_every_damaged_leaf_is_refused(opaque: Report, every: int) -> None:
    """Some are seen by the digest alone: which operation it was, and the effects of a state."""
    seen, missed, by_digest = 0, [], []
    for name, changed in damaged(opaque, every):
        seen += 1
        found = judged(changed)
        if not found:
            missed.append(name)
        elif all(problem.startswith("digest") for problem in found):
            by_digest.append(name)
    assert seen > 100, "there was something to damage"
    assert missed == []
    free = ("kinds.", "paths.0.recorded.", "paths.0.states.", "states.", "ends.")
    assert [name for name in by_digest if not name.startswith(free)] == []


def test_a_kill_that_did_wrong_is_seen_in_the_ends(again: Report) -> None:
    """Digests are made anew; the ledger of one end has an effect more."""
    told = next(told for told in again["scenarios"] if told["scenario"] == SCENARIO)
    end = next(end for end in told["ends"] if end["effects"] == [1])
    end["effects"] = [2]
    told["digest"] = digest_of({k: v for k, v in told.items() if k != "digest"})
    again["totals"] = tally.totals(again["scenarios"])
    assert any("opaque" in f and "duplicates" in f for f in verify.findings(again, recorded=True))


@pytest.mark.fault("M04")
@pytest.mark.parametrize(
    ("path", "says"),
    [
        (("scenarios", 0), "scenarios: they are"),
        (("totals", 0), "totals: they are not"),
        (("about", "sources"), "malformed: 'sources' is missing"),
        (("form",), "it has not the fields"),
    ],
)
def test_a_report_from_which_something_is_missing_is_refused(
    again: Report, path: tuple[Any, ...], says: str
) -> None:
    del parent_of(again, path)[path[-1]]
    assert any(says in finding for finding in verify.findings(again, recorded=True))


def test_a_path_that_was_not_killed_everywhere_is_refused(again: Report) -> None:
    told = next(told for told in again["scenarios"] if told["scenario"] == SCENARIO)
    row = next(row for row in told["paths"] if row["path"] == PATHS[1])
    missing = row["after"].pop()
    found = list(provenance.guarded(sweep._scenario, told, FULL))
    assert any(f"was not killed after {tuple(missing)}" in finding for finding in found)


def test_a_report_that_covers_little_is_refused(again: Report) -> None:
    """A forger cuts each path to its first operation, and makes all digests and totals anew."""
    for told in again["scenarios"]:
        for row in told["paths"]:
            row["recorded"], row["states"] = row["recorded"][:1], row["states"][:1]
        for name, used in (("kinds", "recorded"), ("states", "states")):
            told[name] = [told[name][number] for number in renumbered(told["paths"], used)]
        ends = list(dict.fromkeys(state["end"] for state in told["states"]))
        for state in told["states"]:
            state["end"] = ends.index(state["end"])
        told["ends"] = [told["ends"][number] for number in ends]
        told["digest"] = digest_of({k: v for k, v in told.items() if k != "digest"})
    again["totals"] = tally.totals(again["scenarios"])
    found = verify.findings(again, recorded=True)
    assert any("passes no sync log" in finding for finding in found)
    assert any("0 of 1 call tool" in finding for finding in found)


def test_a_report_whose_effects_at_the_kill_were_erased_is_refused(opaque: Report) -> None:
    told = copy.deepcopy(opaque)
    for state in told["states"]:
        state.update(rows=0, head=None, effects=[0])
    told["digest"] = digest_of({k: v for k, v in told.items() if k != "digest"})
    assert any("the tool had answered" in finding for finding in judged(told))


# --- the published schema -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    matrix, own = (
        json.loads((RESULTS / f"crash-{name}.schema.json").read_text(encoding="utf-8"))
        for name in ("matrix", "sweep")
    )
    registry: Registry[Any] = Registry().with_resource(
        matrix["$id"], Resource.from_contents(matrix)
    )
    return jsonschema.Draft202012Validator(own, registry=registry)


def test_the_recorded_report_has_the_published_form(
    report: Report, opaque: Report, schema: jsonschema.Draft202012Validator
) -> None:
    assert {scenario.name for scenario in SCENARIOS} == set(
        schema.schema["$defs"]["scenario"]["properties"]["scenario"]["enum"]  # type: ignore[index]
    )
    scenario = schema.evolve(schema={"$ref": "#/$defs/scenario", "$defs": schema.schema["$defs"]})  # type: ignore[index]
    scenario.validate(opaque)
    for name in ("format", "form", "about", "totals"):
        part = schema.evolve(
            schema={**schema.schema["properties"][name], "$defs": schema.schema["$defs"]}  # type: ignore[index]
        )
        part.validate(report[name])


@pytest.mark.slow
def test_all_of_the_recorded_report_has_the_published_form(
    report: Report, schema: jsonschema.Draft202012Validator
) -> None:
    schema.validate(report)


@pytest.mark.parametrize(
    "path",
    [
        ("terminations", "-9"),
        ("kinds", 0, 0),
        ("paths", 0, "after"),
        ("states", 0, "effects"),
        ("ends", 0, "said", "state"),
        ("ends", 0, "database", "events", 0, "actor"),
    ],
)
@pytest.mark.parametrize("value", [None, "nothing", -1])
def test_a_value_of_another_type_has_not_the_published_form(
    opaque: Report, schema: jsonschema.Draft202012Validator, path: tuple[Any, ...], value: object
) -> None:
    changed = copy.deepcopy(opaque)
    parent_of(changed, path)[path[-1]] = value
    scenario = schema.evolve(schema={"$ref": "#/$defs/scenario", "$defs": schema.schema["$defs"]})  # type: ignore[index]
    with pytest.raises(jsonschema.ValidationError):
        scenario.validate(changed)
