"""Every invariant has a mutant that breaks it and is caught; the shipped model breaks none."""

from __future__ import annotations

import pytest

from models.build import build
from models.check import Verdict, path_result
from models.engines import spin
from models.mutants import LIVENESS, PATHS, SAFETY, Mutant, named
from spec.generate import ROOT
from spec.invariants import load
from tests.models.support import searched

EVERY = (*SAFETY, *LIVENESS, *PATHS)


def test_every_invariant_that_the_models_check_has_a_mutant() -> None:
    promised = {one.id for one in load(ROOT / "spec").invariants if "models" in one.checked_by}
    assert {mutant.breaks for mutant in EVERY} == promised


def test_mutants_have_names_of_their_own() -> None:
    assert [named(mutant.name) for mutant in EVERY] == list(EVERY)


@pytest.mark.parametrize("mutant", SAFETY, ids=lambda mutant: mutant.name)
def test_a_mutant_of_safety_breaks_its_invariant_and_the_shipped_model_does_not(
    mutant: Mutant,
) -> None:
    assert mutant.breaks in searched(mutant.setting())[1].violations
    assert mutant.breaks not in searched(mutant.whole())[1].violations


@pytest.mark.parametrize("mutant", PATHS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_paths_breaks_its_invariant_and_the_shipped_model_does_not(
    mutant: Mutant,
) -> None:
    result = path_result(mutant.breaks, mutant.setting())
    assert result.verdict is Verdict.VIOLATED
    assert result.lines[0].startswith(f"{mutant.breaks} does not hold")
    assert path_result(mutant.breaks, mutant.whole()).verdict is Verdict.HOLDS


@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("mutant", LIVENESS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_liveness_breaks_its_invariant(mutant: Mutant) -> None:
    broken = {
        found.violated.id
        for found in spin.check_liveness(build(mutant.setting())).values()
        if found.violated
    }
    assert broken == {mutant.breaks}


@pytest.mark.slow
@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("mutant", LIVENESS, ids=lambda mutant: mutant.name)
def test_the_shipped_model_keeps_what_a_mutant_of_liveness_breaks(mutant: Mutant) -> None:
    found = spin.check_liveness(build(mutant.whole()))
    assert mutant.breaks in {name.partition("_")[0] for name in found}
    assert all(one.complete and one.violated is None for one in found.values())


@pytest.mark.slow
@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("mutant", SAFETY, ids=lambda mutant: mutant.name)
def test_spin_catches_a_mutant_of_safety_too(mutant: Mutant) -> None:
    """Spin stops at the first violation on its way, which need not be the mutant's own."""
    found = spin.check_safety(build(mutant.setting()))
    assert found.violated is not None
    assert found.violated.id in searched(mutant.setting())[1].violations
