"""The sweep is not fooled, and its report is complete: every operation, and every contract."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_replay import Contract
from crashtests import verify
from crashtests.subjects import SUBJECTS
from crashtests.sweep.only import pattern_of
from crashtests.sweep.scenarios import PATHS, QUICK, RECOVERY, RUN, SCENARIOS, Scenario
from tests.crashtests.modules import run
from tests.crashtests.paths import no_paths

QUICK_KILLS_MIN = 500

FOOLED = {
    "honest": "unknown",
    "exits": "ended with 0 before it",
    "kills_itself": "ended with -9 before it",
    "never_stops": "did not reach it",
    "stops_elsewhere": "was announced, and",
    "goes_on": "the process went on",
    "does_nothing": "lost; said:",
    "deletes_the_ledger": "the ledger had the effects (1,), and now (0,)",
    "has_no_effect": "the tool had an effect, and the ledger has none",
    "tells_of_no_row": "was told of as durable, and is not in the history",
}
"""What is said of each process that would fool it; the first one is what it should be."""


def test_a_process_that_would_fool_the_sweep_is_found_out(tmp_path: Path) -> None:
    done = run("tests.crashtests.fooling", str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("foreign") == "once and unknown", "any adapter will do, by its import path"
    assert said.keys() == FOOLED.keys()
    wrong = {name: said[name] for name in FOOLED if FOOLED[name] not in said[name]}
    assert not wrong
    assert said["honest"] == FOOLED["honest"], "nothing else is to be complained of"


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S3")
@pytest.mark.invariant("S4")
@pytest.mark.invariant("S8")
@pytest.mark.invariant("S13")
def test_a_kill_before_each_operation_of_a_first_run(tmp_path: Path) -> None:
    """Its own verifier finds nothing; the baseline is seen to fail, so that it could."""
    output = tmp_path / "crash-sweep.json"
    done = run("crashtests.sweep", "--quick", "--quiet", "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text())
    assert report["form"] == QUICK
    assert verify.findings(report) == []
    rows = {row["scenario"]: row for row in report["totals"]}
    assert sum(row["kills"] for row in rows.values()) >= QUICK_KILLS_MIN
    assert rows["blind-retry"]["duplicates"] > 0
    assert rows["opaque"]["unknown"] > 0
    assert output.with_suffix(".md").read_text().startswith("# The sweep")
    assert_every_kind_was_passed(report)
    databases = [end["database"] for told in report["scenarios"] for end in told["ends"]]
    assert [problem for one in databases if one for problem in no_paths(one)] == []


def assert_every_kind_was_passed(report: Mapping[str, Any]) -> None:
    """What is watched does happen: an operation that no run passes would not be swept."""
    passed = {tuple(kind) for told in report["scenarios"] for kind in told["kinds"]}
    operations = {operation for operation, _ in passed}
    assert operations >= {"write", "sync", "truncate", "delete", "rename", "lock", "call", "reply"}
    assert {("write", "log"), ("write", "database"), ("sync", "log"), ("sync", "folder")} <= passed


def test_every_contract_has_its_scenario() -> None:
    assert {scenario.contract for scenario in SCENARIOS} == {*Contract, ""}
    assert {scenario.subject for scenario in SCENARIOS} <= SUBJECTS.keys()
    for scenario in SCENARIOS:
        assert scenario.paths == PATHS[: len(scenario.paths)], "each path comes after the other"
        assert RECOVERY in scenario.paths, "a recovery is killed in each"


@pytest.mark.parametrize(
    ("point", "says"),
    [
        ("opaque:recovery@56:op=41", r"opaque:recovery@56:op=41 before \w+ \w+: it left request"),
        ("idempotent:run:op=55", "recovery added adopt resend acknowledge: completed"),
    ],
)
def test_one_point_is_killed_again_by_its_name(point: str, says: str) -> None:
    done = run("crashtests.sweep", "--only", point)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert re.search(says, line), line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("opaque", "is not of the form"),
        ("nobody:run:op=1", "there is no scenario 'nobody'"),
        ("creation:recovery-of-recovery:op=1", "creation has no path"),
        ("opaque:recovery@1,2:op=1", "comes after 1 kills, not 2"),
    ],
)
def test_a_point_that_is_none_is_refused_with_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        pattern_of(text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--output", "report.md"], "no name of a report"),
        (["--output", "."], "no name of a report"),
        (["--scratch", "README.md"], "no folder that can be written to"),
        (["--quick", "--each"], "two forms"),
        (["--only", "opaque:run:op=1", "--json"], "no form and no report"),
        (["--lanes", "0"], "1 or more"),
    ],
)
def test_a_wrong_command_ends_before_anything_is_killed(options: list[str], says: str) -> None:
    done = run("crashtests.sweep", *options)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_point_that_no_process_comes_to_is_an_error() -> None:
    done = run("crashtests.sweep", "--only", "opaque:run:op=100000")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no process comes to that operation" in done.stderr


@pytest.mark.parametrize(
    ("scenario", "effects", "may"),
    [
        (Scenario("", "", "read_only"), 0, False),
        (Scenario("", "", "idempotent"), 1, False),
        (Scenario("", "", "idempotent", late=True), 1, True),
        (Scenario("", "", "queryable", patient=True), 0, False),
        (Scenario("", "", "queryable"), 1, False),
        (Scenario("", "", "queryable"), 0, True),
        (Scenario("", "", "opaque"), 0, True),
    ],
)
def test_what_nobody_can_know_depends_on_the_contract(
    scenario: Scenario, effects: int, may: bool
) -> None:
    assert scenario.may_be_unknown(effects) is may


def test_the_first_path_is_that_of_the_first_run() -> None:
    assert PATHS[0] == RUN
