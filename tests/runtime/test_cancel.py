"""A cancel sends nothing more, and never hides an unknown."""

from __future__ import annotations

import threading

import pytest

from agent_replay import (
    InvalidInput,
    Json,
    NoSuchRun,
    Outcome,
    Request,
    RunState,
    Runtime,
    ToolRejected,
    adapter,
    idempotent,
    opaque,
    read_only,
)
from agent_replay.recovery import Why
from agent_replay.store.verify import verify
from tests.outside import plan_of
from tests.runtime.conftest import World, evidence_for


def _cancel(runtime: Runtime, run_id: str = "r") -> Outcome:
    return runtime.cancel(run_id, who="ada", why="enough")


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("look", RunState.CANCELLED),
        ("keyed", RunState.CANCELLING),
        ("dark", RunState.CANCELLING),
        ("asked", RunState.CANCELLING),
    ],
)
def test_with_no_live_driver_the_open_step_is_settled_at_once(
    world: World, name: str, state: RunState
) -> None:
    world.interrupted("r", plan_of(("a", name, {"do": ["interrupt"]}), ("b", "keyed")))
    with world.open() as runtime:
        outcome = _cancel(runtime)
        assert outcome.state is state
        if state is RunState.CANCELLING:
            assert outcome.in_doubt[0].why == Why.CANCEL_ASKED
            assert runtime.confirm(evidence_for(outcome), result=1).state is RunState.CANCELLED
    assert world.ledger.called("a") == 1
    assert world.ledger.called("b") == 0
    assert verify(world.path).sound


def test_a_probe_settles_a_step_while_the_run_is_cancelling(world: World) -> None:
    world.interrupted("r", plan_of(("a", "asked", {"do": ["interrupt"]}), ("b", "keyed")))
    with world.open() as runtime:
        assert _cancel(runtime).state is RunState.CANCELLING
        assert runtime.resume("r").state is RunState.CANCELLED
    assert world.ledger.called("b") == 0


def test_a_paused_run_waits_for_evidence_when_it_is_cancelled(world: World) -> None:
    with world.open() as runtime:
        runtime.run("r", plan_of(("a", "dark", {"do": ["lost"]}), ("b", "keyed")))
        outcome = _cancel(runtime)
        assert outcome.state is RunState.CANCELLING
        assert runtime.resume("r").state is RunState.CANCELLING
        assert runtime.refute(evidence_for(outcome)).state is RunState.CANCELLED
        assert runtime.resume("r").state is RunState.CANCELLED
    assert world.ledger.calls == [("a", 1)]


def test_a_second_ask_changes_nothing(world: World) -> None:
    with world.open() as runtime:
        runtime.run("r", plan_of(("a", "dark", {"do": ["lost"]})))
        _cancel(runtime)
        before = verify(world.path).events
        assert _cancel(runtime).state is RunState.CANCELLING
    assert verify(world.path).events == before


def test_a_run_between_two_steps_is_cancelled_at_once(world: World) -> None:
    outcome: list[Outcome] = []
    with world.open() as runtime:
        paused = runtime.run("r", plan_of(("a", "dark", {"do": ["lost"]}), ("b", "keyed")))
        runtime.confirm(evidence_for(paused), result=1)
        outcome.append(_cancel(runtime))
    assert outcome[0].state is RunState.CANCELLED
    assert dict(outcome[0].results) == {"a": 1}


@pytest.mark.parametrize("name", ["look", "keyed", "dark"])
@pytest.mark.parametrize("deed", ["answers", "fails", "refuses"])
def test_a_live_driver_settles_its_own_call(world: World, name: str, deed: str) -> None:
    """The cancel comes from another thread while the tool works; it returns before the tool
    does."""
    entered, released = threading.Event(), threading.Event()
    calls: list[str] = []
    terms = {"look": read_only(), "keyed": idempotent(), "dark": opaque()}[name]

    @adapter(name=name, contract=terms)
    def works(request: Request) -> Json:
        calls.append(request.step)
        entered.set()
        assert released.wait(timeout=10)
        if deed == "fails":
            raise TimeoutError
        if deed == "refuses":
            raise ToolRejected
        return "done"

    outcomes: list[Outcome] = []
    with world.open(adapters=[works]) as runtime:
        thread = threading.Thread(
            target=lambda: outcomes.append(runtime.run("r", plan_of(("a", name), ("b", name))))
        )
        thread.start()
        assert entered.wait(timeout=10)
        assert _cancel(runtime).state is RunState.CANCELLING
        released.set()
        thread.join(timeout=10)
    (outcome,) = outcomes
    in_doubt = deed == "fails" and name != "look"
    assert outcome.state is (RunState.CANCELLING if in_doubt else RunState.CANCELLED)
    assert outcome.waits is in_doubt
    assert calls == ["a"]
    assert verify(world.path).sound


def test_a_call_that_has_not_begun_is_not_begun(world: World) -> None:
    """The hook cancels after the request is durable and before the call."""
    runtimes: list[Runtime] = []

    def hook(run_id: str, event: object) -> None:
        if event.event == "request" and event.step == 2:  # type: ignore[attr-defined]
            _cancel(runtimes[0])

    with world.open(on_event=hook) as runtime:
        runtimes.append(runtime)
        outcome = runtime.run("r", plan_of(("a", "dark"), ("b", "dark")))
    assert outcome.state is RunState.CANCELLED
    assert outcome.failure is not None
    assert outcome.failure.why == Why.NOT_SENT
    assert world.ledger.calls == [("a", 1)]


def test_a_hook_may_cancel_at_the_very_first_row(world: World) -> None:
    runtimes: list[Runtime] = []
    asked: list[Outcome] = []

    def hook(run_id: str, event: object) -> None:
        if not asked:
            asked.append(_cancel(runtimes[0]))

    with world.open(on_event=hook) as runtime:
        runtimes.append(runtime)
        assert runtime.run("r", plan_of(("a", "dark"))).state is RunState.CANCELLED
    assert world.ledger.calls == []


@pytest.mark.parametrize("options", [{"who": "", "why": "x"}, {"who": "x", "why": " "}])
def test_a_cancel_says_who_and_why(world: World, options: dict[str, str]) -> None:
    with world.open() as runtime, pytest.raises(InvalidInput):
        runtime.cancel("r", **options)


def test_an_unknown_run_cannot_be_cancelled(world: World) -> None:
    with world.open() as runtime, pytest.raises(NoSuchRun):
        _cancel(runtime)
