"""`python -m models check`: what it runs, what it says, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from models import bounds as named_bounds
from models.bounds import CI, OPAQUE, QUICK, SETS, Set
from models.check import SPIN, Result, Verdict, checked, compared
from models.command import Exit, exit_of, main
from models.engines import spin
from models.language.promela import rendered
from spec.generate import ROOT
from tests.models.support import small

SECONDS_MAX = 60
HELD = Result(kind="safety", bounds="b", engine="search", verdict=Verdict.HOLDS, states=9, edges=8)
LITTLE = Set(safety=(small(OPAQUE),), liveness=(), paths=())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "models", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
def test_the_quick_bounds_hold_and_both_engines_agree() -> None:
    done = run("check", "--bounds", "quick", "--json")
    assert done.returncode == Exit.HOLDS, done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    assert {one["verdict"] for one in results} == {"holds"}
    agreed = [one["bounds"] for one in results if one["lines"] == ["agrees with the search"]]
    assert agreed == [bounds.name for bounds in QUICK.safety]
    assert {one["kind"] for one in results} == {"safety", "S9", "S14", "L1", "L2", "L3", "L4"}


@pytest.mark.slow
@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
def test_the_ci_bounds_hold_with_ten_million_states() -> None:
    results = list(checked(CI))
    assert {one.verdict for one in results} == {Verdict.HOLDS}
    by_spin = {one.bounds: one for one in results if one.kind == "safety" and one.engine == SPIN}
    assert max(one.states for one in by_spin.values()) >= 10_000_000
    assert sum(one.lines == ("agrees with the search",) for one in results) == sum(
        bounds.searched for bounds in CI.safety
    )


def test_a_check_without_spin_says_so_loudly(capsys: pytest.CaptureFixture[str]) -> None:
    results = list(checked(LITTLE, missing=("spin",)))
    assert [one.verdict for one in results] == [Verdict.NOT_RUN, Verdict.HOLDS]
    assert results[0].lines == ("no spin here; on Debian: apt-get install spin",)
    assert exit_of(results) is Exit.HOLDS


def test_spin_asked_for_by_name_and_not_there_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["--engine", "spin"]) == Exit.MISSING
    assert "NOT RUN: spin needs spin and gcc" in capsys.readouterr().err
    monkeypatch.setitem(SETS, "quick", LITTLE)
    assert main([]) == Exit.HOLDS
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("NOT RUN: spin: no spin and no gcc here")
    assert "NOT RUN: spin" in said[-1]


def test_a_spin_that_fails_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Programs of these names that do nothing but fail."""
    for name in spin.PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(SETS, "quick", LITTLE)
    assert main([]) == Exit.INCOMPLETE
    assert "INCOMPLETE: spin -a model.pml failed" in capsys.readouterr().err


def test_a_difference_between_the_engines_is_a_failure() -> None:
    other = replace(HELD, engine=SPIN)
    assert compared(HELD, other).lines == ("agrees with the search",)
    for differs in (replace(other, states=10), replace(other, edges=7)):
        result = compared(HELD, differs)
        assert result.verdict is Verdict.DIFFERS
        assert result.lines[0].startswith("the search has 9 states and 8 edges, Spin ")


def test_a_violation_is_not_compared_by_its_counts() -> None:
    violated = replace(HELD, engine=SPIN, verdict=Verdict.VIOLATED, states=3)
    assert compared(HELD, violated) is violated


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (Verdict.HOLDS, 0),
        (Verdict.VIOLATED, 1),
        (Verdict.INCOMPLETE, 3),
        (Verdict.DIFFERS, 4),
        (Verdict.VACUOUS, 5),
    ],
)
def test_the_exit_status_is_that_of_the_worst(verdict: Verdict, code: int) -> None:
    assert exit_of([HELD, replace(HELD, verdict=verdict), HELD]) == code
    assert exit_of([replace(HELD, verdict=Verdict.VIOLATED), replace(HELD, verdict=verdict)]) == 1


def test_a_violation_is_told_as_a_story(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, on a model that is broken."""
    from models import check
    from models.mutants import named

    mutant = named("an error is taken for a reply")
    monkeypatch.setitem(SETS, "quick", replace(LITTLE, safety=(mutant.bounds,)))
    monkeypatch.setattr(check, "Setting", lambda *, bounds: mutant.setting())
    assert main(["--engine", "search"]) == Exit.VIOLATED
    said = capsys.readouterr().out
    assert "VIOLATED" in said
    assert "S3 does not hold: if step 1 succeeded it had exactly one effect" in said
    assert "runtime (worker 1): acknowledge step 1 (answered)" in said


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("guess")
    assert done.returncode == Exit.USAGE
    assert "python -m models check" in done.stderr


def test_every_bound_has_its_reason_and_every_name_is_used_once() -> None:
    for bounds_set in SETS.values():
        every = (*bounds_set.safety, *bounds_set.liveness, *bounds_set.paths)
        assert all(bounds.why.strip() for bounds in every)
        assert len({bounds.name for bounds in bounds_set.safety}) == len(bounds_set.safety)
    assert set(QUICK.safety) < set(CI.safety)
    assert named_bounds.TINY[0].steps[0] == "read_only"


def test_a_rendered_model_names_its_actors_as_processes() -> None:
    from models.build import build
    from models.world.state import Setting

    text = rendered(build(Setting(bounds=QUICK.safety[1]))).text
    for actor in ("worker_1", "worker_2", "provider", "operator", "harm", "storage"):
        assert f"active proctype actor_{actor}()" in text
