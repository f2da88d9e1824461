"""The machines are the spec: the full square, the edges, and what they refuse."""

from __future__ import annotations

import itertools

import pytest
from transitions.extensions import GraphMachine

from agent_replay import machine
from agent_replay.errors import IllegalMove
from agent_replay.lifecycles import run, step
from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState

EVERY_STEP_PAIR = list(itertools.product(Contract, StepState, StepEvent, Actor))
LIFECYCLES = [*map(machine.step_lifecycle, Contract), machine.run_lifecycle()]
EVERY_RUN_PAIR = list(itertools.product(RunState, RunEvent))
EVERY_ROW = list(
    itertools.product(
        [None, *Contract], StepState, [*StepEvent, *RunEvent], Actor, RunState, [False, True]
    )
)


@pytest.mark.invariant("S6")
def test_a_step_machine_agrees_with_the_spec_on_every_pair() -> None:
    legal = 0
    for contract, state, event, actor in EVERY_STEP_PAIR:
        target = step.MOVES.get((contract, state, event, actor))
        if target is not None:
            legal += 1
            assert machine.advance(contract, state, event, actor) is target
        else:
            with pytest.raises(
                IllegalMove, match=f"no move '{event} by {actor}' from state '{state}'"
            ):
                machine.advance(contract, state, event, actor)
    assert legal == len(step.MOVES) > 0


def test_the_run_machine_agrees_with_the_spec_on_every_pair() -> None:
    for state, event in EVERY_RUN_PAIR:
        target = run.MOVES.get((state, event))
        if target is not None:
            assert machine.advance_run(state, event) is target
        else:
            with pytest.raises(IllegalMove, match=f"no move '{event}' from state '{state}'"):
                machine.advance_run(state, event)


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S13")
def test_judge_permits_exactly_the_rows_of_the_coupling_table() -> None:
    """Replay and verify use the table; appends use the machines: they are the same on the full
    square."""
    permitted = 0
    for contract, source, event, actor, run_state, last in EVERY_ROW:
        row = PERMITTED.get((contract, source, event, actor, run_state, last))
        if row is not None:
            permitted += 1
            assert machine.judge(contract, source, event, actor, run_state, last=last) == row
        else:
            with pytest.raises(IllegalMove):
                machine.judge(contract, source, event, actor, run_state, last=last)
    assert permitted == len(PERMITTED) > 0


@pytest.mark.parametrize("contract", Contract)
def test_an_independent_graph_of_a_step_machine_has_the_edges_of_the_spec(
    contract: Contract,
) -> None:
    lifecycle = machine.step_lifecycle(contract)
    rows = {
        (source.value, machine.trigger_name(event, actor), target.value)
        for (of, source, event, actor), target in step.MOVES.items()
        if of is contract
    }
    assert _edges(lifecycle) == rows


def test_an_independent_graph_of_the_run_machine_has_the_edges_of_the_spec() -> None:
    rows = {
        (source.value, event.value, target.value) for (source, event), target in run.MOVES.items()
    }
    assert _edges(machine.run_lifecycle()) == rows


def _edges(lifecycle: machine.Lifecycle) -> set[tuple[str, str, str]]:
    """Return the edges that `GraphMachine` draws for the rows that the machine really holds."""
    held = [
        {"trigger": name, "source": transition.source, "dest": transition.dest}
        for name, event in lifecycle.machine.events.items()
        for transitions in event.transitions.values()
        for transition in transitions
    ]
    graph = GraphMachine(
        states=list(lifecycle.machine.states),
        initial=lifecycle.machine.initial,
        transitions=held,
        auto_transitions=False,
        graph_engine="mermaid",
    )
    return {(row["source"], row["trigger"], row["dest"]) for row in graph.markup["transitions"]}


@pytest.mark.fault("M01")
@pytest.mark.parametrize(
    "lifecycle",
    LIFECYCLES,
    ids=lambda one: one.name,
)
def test_a_machine_has_no_callback_no_guard_and_no_automatic_trigger(
    lifecycle: machine.Lifecycle,
) -> None:
    held = lifecycle.machine
    for hook in (
        "before_state_change",
        "after_state_change",
        "prepare_event",
        "finalize_event",
        "on_exception",
        "on_final",
    ):
        assert not getattr(held, hook)
    assert not any(name.startswith("to_") for name in held.events)
    assert held.ignore_invalid_triggers is False
    for state in held.states.values():
        assert not state.on_enter
        assert not state.on_exit
    for event in held.events.values():
        for transitions in event.transitions.values():
            assert len(transitions) == 1
            (transition,) = transitions
            for hook in ("conditions", "before", "after", "prepare"):
                assert not getattr(transition, hook)


@pytest.mark.fault("M01")
def test_an_illegal_move_changes_nothing_for_the_next_one() -> None:
    with pytest.raises(IllegalMove):
        machine.advance(Contract.OPAQUE, StepState.SUCCEEDED, StepEvent.REQUEST, Actor.RUNTIME)
    assert (
        machine.advance(Contract.OPAQUE, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME)
        is StepState.REQUESTED
    )


@pytest.mark.fault("K05")
def test_a_machine_keeps_one_model_however_many_moves_it_has_judged() -> None:
    for _ in range(1000):
        machine.advance(Contract.OPAQUE, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME)
    assert all(len(one.machine.models) == 1 for one in LIFECYCLES)


def test_a_state_that_no_machine_knows_is_refused() -> None:
    with pytest.raises(IllegalMove):
        machine.step_lifecycle(Contract.OPAQUE).advance("garbage", "request by runtime")


# --- what is said and kept ----------------------------------------------------------------------


def refusal(
    contract: Contract | None, event: StepEvent | RunEvent, actor: Actor, run_state: RunState
) -> str:
    """Return what `judge` says of a row at a planned step that is not the last."""
    with pytest.raises(IllegalMove) as caught:
        machine.judge(contract, StepState.PLANNED, event, actor, run_state, last=False)
    return str(caught.value)


def test_a_refusal_names_the_move_who_makes_it_and_where_the_run_stands() -> None:
    paused, running = RunState.PAUSED, RunState.RUNNING
    assert refusal(Contract.OPAQUE, StepEvent.REJECT, Actor.RUNTIME, running) == (
        "a opaque step: no move 'reject by runtime' from state 'planned'"
    )
    assert refusal(Contract.OPAQUE, StepEvent.REQUEST, Actor.RUNTIME, paused) == (
        "no move 'request' by runtime of a opaque step in state 'planned' while the run is 'paused'"
    )
    assert refusal(None, RunEvent.ASK_CANCEL, Actor.PROBE, running) == (
        "no move 'ask_cancel' by probe of a run step in state 'planned' while the run is 'running'"
    )
    assert refusal(None, StepEvent.REQUEST, Actor.RUNTIME, running) == (
        "a run: 'request' is a move of a step"
    )
    assert refusal(None, RunEvent.ADOPT, Actor.RECOVERY, RunState.COMPLETED) == (
        "a run: no move 'adopt' from state 'completed'"
    )
    with pytest.raises(IllegalMove) as caught:
        machine.run_lifecycle().advance("running", "nonsense")
    assert str(caught.value) == "a run: no move 'nonsense' from state 'running'"


def test_a_coupling_that_the_machines_contradict_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = (
        Contract.OPAQUE, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME, RunState.RUNNING,
        False,
    )  # fmt: skip
    right = PERMITTED[key]
    for wrong in (
        right._replace(target=StepState.FAILED),
        right._replace(run_target=RunState.PAUSED),
        right._replace(coupled=(RunEvent.PAUSE,)),
    ):
        monkeypatch.setitem(PERMITTED, key, wrong)
        reached = "paused" if wrong.coupled else "running"
        assert refusal(Contract.OPAQUE, StepEvent.REQUEST, Actor.RUNTIME, RunState.RUNNING) == (
            f"'request' by runtime: the machines lead to 'requested' and '{reached}', "
            f"the coupling to '{wrong.target}' and '{wrong.run_target}'"
        )


def test_a_move_that_a_machine_did_not_make_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lifecycle = machine.run_lifecycle()
    monkeypatch.setattr(lifecycle.machine.events["pause"], "trigger", lambda _model: False)
    with pytest.raises(IllegalMove) as caught:
        lifecycle.advance("running", "pause")
    assert str(caught.value) == "a run: the move 'pause' from state 'running' did not happen"


def test_the_machines_have_the_states_and_the_beginning_of_the_spec() -> None:
    for contract in Contract:
        lifecycle = machine.step_lifecycle(contract)
        assert lifecycle.name == f"a {contract} step"
        assert lifecycle.machine.initial == step.INITIAL
        assert set(lifecycle.machine.states) == {state.value for state in StepState}
    assert machine.run_lifecycle().machine.initial == run.INITIAL
    assert set(machine.run_lifecycle().machine.states) == {state.value for state in RunState}


def test_a_verdict_has_the_texts_of_what_is_permitted_and_is_thought_out_once() -> None:
    for (contract, source, event, actor, run_state, last), to in PERMITTED.items():
        asked = (None if contract is None else contract.value, source.value, event, actor)
        found = machine.verdict(*asked, run_state.value, last=last)
        assert found == (
            event.value, " ".join(to.coupled), actor.value, to.target.value, to.run_target.value
        )  # fmt: skip
        assert machine.verdict(*asked, run_state.value, last=last) is found


def test_a_new_machine_moves_one_cursor_and_has_the_triggers_of_its_rows_alone() -> None:
    lifecycle = machine.Lifecycle("a thing", ["a", "b"], "a", [("go", "a", "b")])
    assert set(lifecycle.machine.events) == {"go"}
    assert lifecycle.machine.ignore_invalid_triggers is False
    assert lifecycle.machine.models == [lifecycle._cursor]
    assert lifecycle._cursor.state == "a"
    assert lifecycle.advance("a", "go") == "b"
    with pytest.raises(IllegalMove):
        lifecycle.advance("b", "go")
