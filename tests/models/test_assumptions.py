"""Each assumption is needed, by those invariants that name it and by no other."""

from __future__ import annotations

import pytest

from models.assumptions import broken_without
from models.world.state import ASSUMPTIONS
from spec.generate import ROOT
from spec.invariants import load

PROMISES = load(ROOT / "spec")


def test_the_switches_are_the_assumptions_of_the_spec() -> None:
    assert set(PROMISES.assumptions) == ASSUMPTIONS


def resting_on(assumption: str) -> set[str]:
    return {
        one.id
        for one in PROMISES.invariants
        if "models" in one.checked_by and assumption in one.assumes
    }


@pytest.mark.parametrize("assumption", sorted(ASSUMPTIONS))
def test_without_an_assumption_just_the_invariants_break_that_rest_on_it(assumption: str) -> None:
    assert broken_without(assumption).keys() == resting_on(assumption)


@pytest.mark.slow
def test_two_writers_break_no_more_with_an_idempotent_step() -> None:
    assert broken_without("A5", whole=True).keys() == resting_on("A5")
