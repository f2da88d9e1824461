"""The language of the models: expressions mean the same however they are run or written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.language.expressions import (
    FALSE,
    TRUE,
    Binary,
    Choice,
    Constant,
    Expression,
    Operator,
    Read,
    Variable,
    both,
    either,
    evaluate,
    implied,
    less,
    negated,
    numbered,
    parts_of,
    plus,
    reads,
    up_to_most,
)
from models.language.program import Assignment, Claim, Command, Model, in_sequence
from models.language.promela import PROMELA, rendered
from models.language.python import compiled
from models.language.spelling import spell

LAMP = Variable("lamp", ("off", "dim", "bright"))
COUNT = numbered("count", 5)
ONE = numbered("one", 0)

NUMBERS: st.SearchStrategy[Expression] = st.one_of(
    st.integers(0, 5).map(Constant), st.sampled_from([Read(LAMP), Read(COUNT)])
)
COMPARISONS = st.builds(
    Binary, st.sampled_from([Operator.EQUAL, Operator.UNEQUAL, Operator.LESS]), NUMBERS, NUMBERS
)
CONDITIONS: st.SearchStrategy[Expression] = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(both, inner, inner),
        st.builds(either, inner, inner),
        st.builds(negated, inner),
        st.builds(implied, inner, inner),
    ),
    max_leaves=12,
)


def model_of(*commands: Command, claims: tuple[Claim, ...] = ()) -> Model:
    return Model(
        name="lamp",
        variables=(LAMP, COUNT),
        initial={"lamp": 0, "count": 0},
        commands=commands,
        invariants=claims,
    )


def command_of(*assignments: Assignment, guard: tuple[Expression, ...] = ()) -> Command:
    return Command(actor="hand", says="turns", guard=guard, assignments=assignments)


@given(CONDITIONS, st.integers(0, 2), st.integers(0, 5))
def test_compiled_means_what_evaluate_says(condition: Expression, lamp: int, count: int) -> None:
    state = {"lamp": lamp, "count": count}
    program = compiled(model_of())
    assert program.condition(condition)(program.packed(state)) == evaluate(condition, state)


@given(CONDITIONS, st.integers(0, 2), st.integers(0, 5))
def test_a_guard_and_an_assignment_mean_what_evaluate_says(
    condition: Expression, lamp: int, count: int
) -> None:
    state = {"lamp": lamp, "count": count}
    becomes = Choice(condition, Constant(4), up_to_most(COUNT))
    command = command_of(
        Assignment(COUNT, becomes), guard=(negated(condition), less(Read(LAMP), Constant(2)))
    )
    program = compiled(model_of(command))
    edges = [program.values(target) for _, target in program.edges(program.packed(state), [])]
    met = all(evaluate(part, state) for part in command.guard)
    assert edges == [{"lamp": lamp, "count": evaluate(becomes, state)}] * met


@pytest.mark.parametrize(
    ("folded", "plain"),
    [
        (both(), TRUE),
        (both(TRUE, LAMP.is_("dim")), LAMP.is_("dim")),
        (both(FALSE, LAMP.is_("dim")), FALSE),
        (either(), FALSE),
        (either(TRUE, LAMP.is_("dim")), TRUE),
        (either(LAMP.is_("dim"), LAMP.is_("dim")), LAMP.is_("dim")),
        (negated(negated(LAMP.is_("dim"))), LAMP.is_("dim")),
        (LAMP.is_("off", "dim", "bright"), TRUE),
        (ONE.is_not(0), FALSE),
    ],
)
def test_what_is_known_is_folded_away(folded: Expression, plain: Expression) -> None:
    assert folded == plain


def test_a_label_that_a_variable_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="lamp is never 'green'"):
        LAMP.is_("green")


def test_an_expression_reads_its_variables() -> None:
    expression = Choice(LAMP.is_("dim"), Read(COUNT), up_to_most(COUNT))
    assert set(reads(expression)) == {LAMP, COUNT}
    assert parts_of(Read(LAMP)) == ()


def test_promela_is_written_with_its_own_operators() -> None:
    condition = both(negated(LAMP.is_("dim")), either(COUNT.is_(1), COUNT.is_(2)))
    written = spell(condition, PROMELA, lambda name: f"the_{name}")
    assert written == "((!(the_lamp == 1)) && ((the_count == 1) || (the_count == 2)))"
    assert spell(up_to_most(COUNT), PROMELA) == "((count < 5) -> (count + 1) : 5)"


# --- programs -----------------------------------------------------------------------------------


def test_assignments_happen_all_at_once() -> None:
    swapped = command_of(Assignment(LAMP, Constant(2)), Assignment(COUNT, Read(LAMP)))
    program = compiled(model_of(swapped))
    ((_, target),) = program.edges(program.packed({"lamp": 1, "count": 0}), [])
    assert program.values(target) == {"lamp": 2, "count": 1}
    ordered = in_sequence(swapped.assignments)
    assert ordered is not None
    assert [one.variable.name for one in ordered] == ["count", "lamp"]
    assert "the_count = the_lamp; the_lamp = 2" in rendered(model_of(swapped)).text


def test_a_ring_of_assignments_is_refused() -> None:
    ring = command_of(Assignment(LAMP, Read(COUNT)), Assignment(COUNT, Read(LAMP)))
    with pytest.raises(ValueError, match="read each other in a ring"):
        model_of(ring)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (command_of(Assignment(ONE, Constant(0))), "one is not a variable"),
        (command_of(guard=(ONE.is_(0), numbered("none", 1).is_(1))), "none is not a variable"),
        (
            command_of(Assignment(LAMP, Constant(1)), Assignment(LAMP, Constant(2))),
            "assigned twice",
        ),
    ],
)
def test_a_command_that_no_engine_could_run_is_refused(command: Command, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        model_of(command)


def test_a_model_names_each_variable_once_and_starts_each() -> None:
    sound = model_of()
    with pytest.raises(ValueError, match="same name"):
        replace(sound, variables=(LAMP, LAMP))
    with pytest.raises(ValueError, match="every variable"):
        replace(sound, initial={"lamp": 0})


def test_a_claim_is_asked_of_the_state_before() -> None:
    claim = Claim("S1", "it is off", LAMP.is_("off"))
    command = replace(
        command_of(Assignment(LAMP, plus(LAMP, 1)), guard=(LAMP.is_not("bright"),)), claims=(claim,)
    )
    program = compiled(model_of(command))
    bad: list[tuple[int, int, int]] = []
    program.edges(program.packed({"lamp": 0, "count": 0}), bad)
    assert bad == []
    program.edges(program.packed({"lamp": 1, "count": 0}), bad)
    assert bad == [(0, 0, program.packed({"lamp": 2, "count": 0}))]


def test_an_invariant_that_is_broken_is_named_by_its_place() -> None:
    claims = (
        Claim("S1", "it counts", TRUE),
        Claim("S2", "it is not bright", LAMP.is_not("bright")),
    )
    program = compiled(model_of(claims=claims))
    assert program.broken(program.packed({"lamp": 1, "count": 0})) == -1
    assert program.broken(program.packed({"lamp": 2, "count": 0})) == 1
