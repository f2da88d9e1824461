"""The search: all states, shortest stories, and no pass at a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.check import Verdict, judged
from models.engines.search import search
from models.language.expressions import (
    Constant,
    Expression,
    Read,
    both,
    equal,
    less,
    negated,
    numbered,
    plus,
)
from models.language.program import Assignment, Claim, Command, Model, Witness
from models.language.python import compiled

LEFT, RIGHT = numbered("left", 9), numbered("right", 9)


def step(variable: str, by: int) -> Command:
    moved = LEFT if variable == "left" else RIGHT
    room = less(Read(moved), Constant(10 - by))
    return Command(
        actor=variable,
        says=f"{variable} goes {by}",
        guard=(room,),
        assignments=(Assignment(moved, plus(moved, by)),),
    )


def grid(*claims: Claim, occurs: Expression | None = None) -> Model:
    """Ten by ten squares, entered in a corner, by steps of one or three to the right or up."""
    return Model(
        name="grid",
        variables=(LEFT, RIGHT),
        initial={"left": 0, "right": 0},
        commands=(step("left", 1), step("left", 3), step("right", 1)),
        invariants=claims,
        witnesses=() if occurs is None else (Witness("S1", "it is there", occurs),),
    )


def never_at(left: int, right: int, name: str = "S2") -> Claim:
    there = both(equal(Constant(left), Read(LEFT)), equal(Constant(right), Read(RIGHT)))
    return Claim(name, f"never at {left}, {right}", negated(there))


def test_every_state_and_every_edge_is_counted_once() -> None:
    found = search(compiled(grid()))
    assert found.complete
    assert found.states == 100
    assert found.edges == 9 * 10 + 7 * 10 + 10 * 9
    assert found.depth == 9 + 4  # nine up; eight to the right is 3 + 3 + 1 + 1
    assert found.violations == {}


def test_the_story_of_a_violation_is_the_shortest() -> None:
    found = search(compiled(grid(never_at(4, 1))))
    assert found.violation is not None
    assert not found.complete
    says = sorted(command.says for command in found.violation.commands)
    assert says == ["left goes 1", "left goes 3", "right goes 1"]
    assert len(found.violation.states) == len(found.violation.commands) + 1


def test_going_on_finds_the_first_of_each_invariant() -> None:
    model = grid(never_at(4, 1), never_at(9, 9, "S3"), never_at(5, 1))
    found = search(compiled(model), goes_on=True)
    assert found.complete
    assert found.states == 100
    assert {name: one.claim.says for name, one in found.violations.items()} == {
        "S2": "never at 4, 1",
        "S3": "never at 9, 9",
    }


def test_the_first_state_is_judged_too() -> None:
    found = search(compiled(grid(never_at(0, 0))))
    assert found.violation is not None
    assert found.violation.commands == ()


def test_a_claim_of_an_event_is_told_with_that_event() -> None:
    claim = Claim("S7", "it is at the left edge", equal(Read(LEFT), Constant(0)))
    up = replace(step("right", 1), claims=(claim,))
    found = search(compiled(replace(grid(), commands=(step("left", 1), up))))
    assert found.violation is not None
    assert [command.says for command in found.violation.commands] == ["left goes 1", "right goes 1"]


@pytest.mark.parametrize("states_max", [1, 2, 50, 99])
def test_a_search_that_hits_its_limit_is_no_pass(states_max: int) -> None:
    program = compiled(grid())
    found = search(program, states_max=states_max)
    assert not found.complete
    assert judged(program, found).verdict is Verdict.INCOMPLETE


def test_a_witness_that_does_not_occur_is_no_pass() -> None:
    there = search(compiled(grid(occurs=equal(Read(LEFT), Constant(9)))))
    assert there.unseen == ()
    program = compiled(grid(occurs=less(Constant(9), Read(LEFT))))
    result = judged(program, search(program))
    assert result.verdict is Verdict.VACUOUS
    assert result.lines == ("never so, and S1 rests on it: it is there",)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    wide = numbered("wide", 200_000)
    walk = Command(
        actor="a",
        says="walks",
        guard=(less(Read(wide), Constant(200_000)),),
        assignments=(Assignment(wide, plus(wide, 1)),),
    )
    model = Model(name="walk", variables=(wide,), initial={"wide": 0}, commands=(walk,))
    search(compiled(model), progress=lambda states, edges: told.append((states, edges)))
    assert [states for states, _ in told] == [65536, 131072, 196608]
