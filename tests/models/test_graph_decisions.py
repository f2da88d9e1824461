"""What the decision function appends is an edge of the spec's graph, in every state of it."""

from __future__ import annotations

import functools
import itertools

import pytest

from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.recovery import Act, Acts, Append, News, Situation, decide
from models.graph import decisions
from models.graph.bounds import Bounds
from models.graph.compare import expected_of
from models.graph.decisions import Asked, ask_everywhere, every_situation
from models.graph.expected import read_vocabulary

BOUNDS = Bounds(attempts=(3, 1), epochs=2)
"""Attempts above the limit of the plan, so that it is reached, exceeded by grants, and used up."""
CONTRACTS = read_vocabulary().contracts
UNFINISHED = ("running", "paused", "cancelling")


@functools.cache
def asked_of(contract: str) -> Asked:
    expected = expected_of((contract, contract), BOUNDS)
    return ask_everywhere(expected, expected.graph())


@pytest.mark.invariant("S6")
@pytest.mark.parametrize("contract", CONTRACTS)
def test_what_is_appended_is_an_edge_in_every_state(contract: str) -> None:
    asked = asked_of(contract)
    assert asked.wrong == ()
    assert asked.appends > 0
    assert asked.calls > 0
    assert asked.questions > asked.appends


def test_every_row_that_no_person_writes_is_appended_somewhere() -> None:
    """A move of the spec that the runtime never makes would be a promise that nobody keeps."""
    expected = expected_of(("opaque", "opaque"), BOUNDS)
    automatic = {
        (contract, state, lead.event, lead.actor, run_state)
        for (contract, _, state, run_state), lead in expected.every_lead()
        if lead.of_step and lead.actor != "operator"
    }
    appended = set(itertools.chain.from_iterable(asked_of(c).appended for c in CONTRACTS))
    assert appended == automatic
    assert len(automatic) > 0


@pytest.mark.invariant("S10")
def test_every_situation_is_answered_by_a_row_of_the_product_or_by_none() -> None:
    expected = expected_of(("opaque", "opaque"), BOUNDS)
    rows = {
        (contract, state, run_state, lead.event, lead.actor)
        for (contract, _, state, run_state), lead in expected.every_lead()
    }
    places = {row[:3] for row in rows}
    answered = 0
    for situation in every_situation():
        place = (situation.contract.value, situation.state.value, situation.run_state.value)
        for act in decide(situation):
            if isinstance(act, Append) and place in places:
                answered += 1
                assert (*place, act.event.value, act.actor.value) in rows, situation
            assert situation.run_state in UNFINISHED
    assert answered > 0


@pytest.mark.invariant("S10")
@pytest.mark.parametrize("contract", CONTRACTS)
def test_an_open_request_that_is_found_owes_exactly_one_row(contract: str) -> None:
    expected = expected_of((contract, contract), BOUNDS)
    found = 0
    for state in expected.graph():
        if state.open.state != "requested":
            continue
        for situation in decisions.situations(contract, state):
            if situation.news is News.FOUND_OPEN:
                (act,) = decide(situation)
                assert isinstance(act, Append)
                found += 1
    assert found > 0


def test_a_blind_retry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(situation: Situation) -> Acts:
        acts = decide(situation)
        if any(isinstance(act, Append) and act.event is StepEvent.SUSPEND for act in acts):
            return (Append(StepEvent.RESEND, Actor.RECOVERY),)
        return acts

    monkeypatch.setattr(decisions, "decided", blind)
    wrong = asked_of.__wrapped__("opaque").wrong
    assert wrong
    assert all(line.startswith("resend by recovery upon") for line in wrong)


def test_a_call_is_never_owed_before_its_request_is_durable() -> None:
    for situation in every_situation():
        acts = decide(situation)
        assert Act.CALL not in acts or acts == (Act.CALL,)
        assert Act.CALL not in acts or situation.news is News.READY
