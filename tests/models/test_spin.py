"""Spin and the search visit the same states by the same edges, and Spin finds what is wrong."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from models.bounds import IDEMPOTENT, OPAQUE, QUERYABLE, READ_ONLY, Bounds
from models.build import build
from models.engines import spin
from models.engines.search import search
from models.language.expressions import TRUE, Constant, Read, either, less, numbered, plus
from models.language.program import Assignment, Claim, Command, Eventually, Model, without_claims
from models.language.promela import rendered
from models.language.python import compiled
from models.world.state import ASSUMPTIONS, Setting
from tests.models.support import searched, small

pytestmark = [pytest.mark.needs("spin"), pytest.mark.needs("gcc")]

HAND, WIND = numbered("hand", 6), numbered("wind", 2)


def _turned(actor: str, by: int, most: int) -> Command:
    variable = HAND if actor == "hand" else WIND
    return Command(
        actor=actor,
        says=f"{actor} turns",
        guard=(less(Read(variable), Constant(most + 1 - by)),),
        assignments=(Assignment(variable, plus(variable, by)),),
    )


def toy(*claims: Claim, eventually: tuple[Eventually, ...] = ()) -> Model:
    """Two actors that turn something, the wind for ever."""
    back = Command(
        actor="wind",
        says="the wind drops",
        guard=(WIND.is_(2),),
        assignments=(Assignment(WIND, Constant(0)),),
    )
    return Model(
        name="toy",
        variables=(HAND, WIND),
        initial={"hand": 0, "wind": 0},
        commands=(_turned("hand", 1, 6), _turned("hand", 2, 6), _turned("wind", 1, 2), back),
        invariants=claims,
        eventually=eventually,
    )


AGREE = (
    small(READ_ONLY, OPAQUE, faults_max=1),
    small(IDEMPOTENT, workers=2, stops=True),
    small(QUERYABLE, kills_max=2),
)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", AGREE, ids=lambda bounds: "-".join(bounds.steps))
def test_both_engines_agree_on_states_and_edges(bounds: Bounds) -> None:
    program, found = searched(bounds)
    verified = spin.check_safety(program.model)
    assert verified.complete
    assert (verified.states, verified.edges) == (found.states, found.edges)


@pytest.mark.slow
def test_hashes_of_states_are_as_many_as_the_states_where_these_are_few() -> None:
    program, found = searched(AGREE[0])
    verified = spin.check_safety(program.model, exact=False)
    assert (verified.states, verified.edges) == (found.states, found.edges)


@pytest.mark.slow
def test_both_engines_agree_where_an_assumption_is_off() -> None:
    """With claims taken out, what is broken is counted the same as what is whole."""
    driven_twice = Setting(bounds=small(OPAQUE, workers=2), assumptions=ASSUMPTIONS - {"A5"})
    model = without_claims(build(driven_twice))
    found = search(compiled(model))
    verified = spin.check_safety(model)
    assert (verified.states, verified.edges) == (found.states, found.edges)


def test_a_toy_is_counted_and_a_broken_claim_is_named() -> None:
    found = search(compiled(toy()))
    verified = spin.check_safety(toy())
    assert verified.complete
    assert verified.violated is None
    assert (verified.states, verified.edges) == (found.states, found.edges) == (21, 54)
    far = Claim("S2", "the hand never gets to four", less(Read(HAND), Constant(4)))
    near = Claim("S3", "the hand is a number", either(HAND.is_(0), less(Constant(0), Read(HAND))))
    assert spin.check_safety(toy(near, far)).violated == far


def test_liveness_holds_under_fairness_and_what_does_not_hold_is_named() -> None:
    turned = Eventually("L1", "it comes to five", TRUE, less(Constant(4), Read(HAND)), True)
    calm = Eventually("L2", "the wind drops for good", TRUE, WIND.is_(0), True)
    again = Eventually("L3", "the wind drops again", WIND.is_(1), WIND.is_(0))
    found = spin.check_liveness(toy(eventually=(turned, calm, again)))
    violated = {name: one.violated for name, one in found.items()}
    assert violated == {"L1_0": None, "L2_1": calm, "L3_2": None}


def test_nothing_is_left_of_a_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broken = toy()
    object.__setattr__(broken, "name", "a */ name that ends its comment")
    with pytest.raises(spin.SpinFailed, match=r"spin -a model\.pml failed"):
        spin.check_safety(broken)
    assert list(tmp_path.iterdir()) == []


def test_a_depth_that_is_too_small_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin, "DEPTH_MAX", 5)
    verified = spin.check_safety(toy())
    assert not verified.complete
    assert verified.violated is None


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert spin.missing() == ("spin", "gcc")


def test_every_claim_is_rendered_with_a_number_of_its_own() -> None:
    text = rendered(build(Setting(bounds=small(IDEMPOTENT))))
    for number, claim in text.claims.items():
        assert text.broken(f"( (({claim.id}==1))||(0=={number}) )") == claim
    assert text.broken("(the_run==1)") is None
