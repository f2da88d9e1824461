"""A process ended between a request and its reply: what the next one does, for each contract.

The process that ended is played by an interrupted tool and a runtime that is closed: the history
then holds an open request of a writer that is gone. The real kills are in tests/crash.
"""

from __future__ import annotations

import pytest

from agent_replay import (
    Contract,
    Outcome,
    Request,
    RunState,
    StepState,
    adapter,
    idempotent,
    queryable,
)
from agent_replay.clock import NANOSECONDS
from agent_replay.recovery import Why
from agent_replay.store.verify import verify
from tests.outside import LANDS_SECONDS, SETTLES_SECONDS, WINDOW_SECONDS, plan_of
from tests.runtime.conftest import World


def _events(world: World, run_id: str) -> list[str]:
    return [f"{event.event} by {event.actor}" for event in world.events(run_id)]


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S11")
def test_an_idempotent_call_is_sent_again_with_the_same_key(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "keyed", {"do": ["interrupt", "ok"]})))
    assert world.ledger.effects["pay"] == 1
    outcome = world.resume("r")
    assert outcome.completed
    assert outcome.results["pay"] == {"receipt": "pay-1"}
    assert world.ledger.effects["pay"] == 1
    assert world.ledger.calls == [("pay", 1), ("pay", 2)]
    assert len(set(world.ledger.keys)) == 1
    assert _events(world, "r") == [
        "request by runtime",
        "adopt by recovery",
        "resend by recovery",
        "acknowledge by runtime",
    ]


def test_a_read_only_call_is_made_again(world: World) -> None:
    world.interrupted("r", plan_of(("look", "look", {"do": ["interrupt", "ok"]})))
    assert world.resume("r").completed


@pytest.mark.invariant("S10")
def test_an_opaque_call_is_in_doubt_and_never_made_again(world: World) -> None:
    world.interrupted("r", plan_of(("tell", "dark", {"do": ["interrupt"]})))
    outcome = world.resume("r")
    assert outcome.state is RunState.PAUSED
    (doubt,) = outcome.in_doubt
    assert (doubt.step, doubt.attempt, doubt.contract, doubt.why) == (
        "tell",
        1,
        Contract.OPAQUE,
        Why.DIED,
    )
    assert doubt.not_before is None
    for _ in range(3):
        assert world.resume("r").in_doubt == (doubt,)
    assert world.ledger.called("tell") == 1


def test_a_queryable_call_that_landed_is_found_at_once(world: World) -> None:
    world.interrupted("r", plan_of(("mail", "asked", {"do": ["interrupt"]})))
    outcome = world.resume("r")
    assert outcome.completed
    assert outcome.results["mail"] == {"receipt": "mail-1"}
    assert world.ledger.called("mail") == 1
    assert _events(world, "r")[-2:] == ["suspend by recovery", "confirm by probe"]


def _absent(world: World) -> Outcome:
    plan = plan_of(("mail", "asked", {"do": ["unsent", "unsent", "unsent", "ok"]}))
    with world.open() as runtime:
        return runtime.run("r", plan)


@pytest.mark.invariant("S4")
def test_absence_counts_only_after_the_settle_bound(world: World) -> None:
    outcome = _absent(world)
    assert outcome.state is RunState.PAUSED
    assert outcome.in_doubt[0].not_before == world.clock.wall_ns / NANOSECONDS + SETTLES_SECONDS
    world.clock.pass_by(SETTLES_SECONDS)
    assert world.resume("r").waits, "exactly the bound has not passed it"
    world.clock.pass_by(0.001)
    assert world.resume("r").waits, "a second attempt was made, and its own bound counts anew"
    assert world.ledger.called("mail") == 2


def test_a_queryable_step_is_exhausted_when_the_probe_has_refuted_every_attempt(
    world: World,
) -> None:
    """The attempt used up after a refute: the probe grants none."""
    _absent(world)
    for _ in range(2):
        world.clock.pass_by(SETTLES_SECONDS + 1)
        assert world.resume("r").waits
    world.clock.pass_by(SETTLES_SECONDS + 1)
    outcome = world.resume("r")
    assert outcome.state is RunState.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.state) == ("mail", StepState.FAILED)
    assert outcome.failure.why == Why.ATTEMPTS_USED_UP
    assert world.ledger.effects["mail"] == 0
    assert _events(world, "r")[-2:] == ["refute by probe", "exhaust by runtime"]


def test_the_bound_counts_from_the_suspend_and_not_from_the_request(world: World) -> None:
    """A writer that stops between commit and send defeats a bound that counts from the request."""
    world.interrupted("r", plan_of(("mail", "asked", {"do": ["interrupt", "ok"]})))
    world.ledger.results.clear()
    world.ledger.effects.clear()
    world.clock.pass_by(SETTLES_SECONDS * 10)
    assert world.resume("r").waits, "it is suspended only now"
    assert world.ledger.called("mail") == 1


def test_a_probe_that_raises_or_answers_nonsense_leaves_the_step_in_doubt(world: World) -> None:
    answers: list[object] = [ValueError("down"), None, {"found": True}]

    def probe(request: object) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @adapter(name="asked", contract=queryable(settles_within=SETTLES_SECONDS), probe=probe)  # type: ignore[arg-type]
    def asked(request: object) -> None:
        raise TimeoutError

    with world.open(adapters=[asked]) as runtime:
        outcome = runtime.run("r", plan_of(("mail", "asked")))
        assert outcome.waits
        assert "did not answer" in outcome.warnings[0]
        world.clock.pass_by(SETTLES_SECONDS * 2)
        assert runtime.resume("r").waits
        assert runtime.resume("r").waits
    assert answers == []


# --- limits -------------------------------------------------------------------------------------


def test_attempts_are_counted_over_all_processes(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "keyed", {"do": ["interrupt"]})))
    for _ in range(2):
        with world.open() as runtime, pytest.raises(KeyboardInterrupt):
            runtime.resume("r")
    outcome = world.resume("r")
    assert outcome.in_doubt[0].why == Why.ATTEMPTS_USED_UP
    assert world.ledger.called("pay") == 3


def test_the_limit_that_a_run_began_with_stays(world: World) -> None:
    with world.open(attempts_max=1) as runtime:
        assert runtime.run("r", plan_of(("pay", "keyed", {"do": ["lost"]}))).waits
    assert world.resume("r", attempts_max=50).waits
    assert world.ledger.called("pay") == 1


def test_a_read_only_step_without_attempts_fails(world: World) -> None:
    with world.open() as runtime:
        outcome = runtime.run("r", plan_of(("look", "look", {"do": ["unsent"]})))
    assert outcome.state is RunState.FAILED
    assert outcome.failure is not None
    assert outcome.failure.why == Why.ATTEMPTS_USED_UP
    assert outcome.failure.detail == {"message": "nothing left", "type": "ConnectionError"}
    assert world.ledger.called("look") == 3


# --- the key window -----------------------------------------------------------------------------


@pytest.mark.invariant("S2")
def test_nothing_is_sent_once_it_might_land_outside_of_the_window(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt"]})))
    world.clock.pass_by(WINDOW_SECONDS - LANDS_SECONDS + 1)
    outcome = world.resume("r")
    assert outcome.in_doubt[0].why == Why.WINDOW_LAPSED
    assert world.ledger.called("pay") == 1


def test_a_resend_never_moves_the_start_of_the_window(world: World) -> None:
    """The late resend past the window: each resend alone would have been in time."""
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt"]})))
    world.clock.pass_by((WINDOW_SECONDS - LANDS_SECONDS) * 0.8)
    with world.open(attempts_max=10) as runtime, pytest.raises(KeyboardInterrupt):
        runtime.resume("r")
    world.clock.pass_by((WINDOW_SECONDS - LANDS_SECONDS) * 0.8)
    assert world.resume("r").in_doubt[0].why == Why.WINDOW_LAPSED
    assert world.ledger.called("pay") == 2


def test_the_adapter_is_told_until_when_it_may_send(world: World) -> None:
    told: list[float | None] = []

    @adapter(
        name="windowed", contract=idempotent(key_window=WINDOW_SECONDS, lands_within=LANDS_SECONDS)
    )
    def windowed(request: Request) -> None:
        told.append(request.send_before)
        world.clock.pass_by(10)
        raise TimeoutError

    start = world.clock.wall_ns / NANOSECONDS
    with world.open(adapters=[windowed]) as runtime:
        runtime.run("r", plan_of(("pay", "windowed")))
    assert told == [start + WINDOW_SECONDS - LANDS_SECONDS] * 3


def test_the_clock_is_read_again_right_before_the_call(world: World) -> None:
    """The commit took so long that the window has lapsed: nothing is sent, and the step says
    why."""

    def slow(run_id: str, event: object) -> None:
        if event.event == "request":  # type: ignore[attr-defined]
            world.clock.pass_by(WINDOW_SECONDS)

    with world.open(on_event=slow) as runtime:
        outcome = runtime.run("r", plan_of(("pay", "windowed")))
    assert outcome.in_doubt[0].why == Why.WINDOW_LAPSED
    assert world.ledger.calls == []


@pytest.mark.parametrize("back_seconds", [1, 86_400])
def test_a_clock_that_went_back_lapses_the_window(world: World, back_seconds: int) -> None:
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt"]})))
    world.clock.wall_ns -= back_seconds * NANOSECONDS
    assert world.resume("r").in_doubt[0].why == Why.WINDOW_LAPSED


def test_a_wall_clock_that_was_set_back_and_forth_counts_by_the_time_since_boot(
    world: World,
) -> None:
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt"]})))
    world.clock.boot_ns += WINDOW_SECONDS * NANOSECONDS
    assert world.resume("r").in_doubt[0].why == Why.WINDOW_LAPSED


def test_after_a_reboot_the_larger_of_wall_time_and_uptime_counts(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt", "ok"]})))
    world.clock.reboot(off_seconds=10)
    assert world.resume("r").completed


def test_after_a_reboot_an_uptime_beyond_the_window_lapses_it(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "windowed", {"do": ["interrupt"]})))
    world.clock.reboot(off_seconds=10)
    world.clock.boot_ns += WINDOW_SECONDS * NANOSECONDS
    assert world.resume("r").in_doubt[0].why == Why.WINDOW_LAPSED


def test_after_a_reboot_the_settle_bound_needs_wall_time_and_uptime(world: World) -> None:
    _absent(world)
    world.clock.reboot(off_seconds=SETTLES_SECONDS * 100)
    assert world.resume("r").waits
    assert world.ledger.called("mail") == 1, "the wall clock alone may have jumped"
    world.clock.pass_by(SETTLES_SECONDS)
    world.resume("r")
    assert world.ledger.called("mail") == 2


def test_a_clock_that_went_back_never_lets_the_bound_pass(world: World) -> None:
    _absent(world)
    world.clock.boot_ns += SETTLES_SECONDS * 10 * NANOSECONDS
    world.clock.wall_ns -= NANOSECONDS
    assert world.resume("r").waits
    assert world.ledger.called("mail") == 1


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["look", "keyed", "asked", "dark"])
def test_a_refusal_of_the_only_attempt_fails_the_step(world: World, name: str) -> None:
    with world.open() as runtime:
        outcome = runtime.run("r", plan_of(("a", name, {"do": ["refuse"]}), ("b", "keyed")))
    assert outcome.state is RunState.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.why) == ("a", Why.REFUSED)
    assert outcome.failure.detail == {"message": "no", "type": "agent_replay.adapters.ToolRejected"}
    assert world.ledger.called("b") == 0
    assert verify(world.path).sound


def test_a_refusal_after_a_lost_reply_is_in_doubt(world: World) -> None:
    """The first attempt charged and its reply was lost, the second is refused for lack of money: "
    "not "failed"."""
    with world.open() as runtime:
        outcome = runtime.run("r", plan_of(("pay", "keyed", {"do": ["lost", "refuse"]})))
    assert outcome.in_doubt[0].why == Why.REFUSED_AFTER_UNRESOLVED
    assert outcome.in_doubt[0].detail == {
        "message": "no",
        "type": "agent_replay.adapters.ToolRejected",
    }
    assert world.ledger.effects["pay"] == 1


def test_a_refusal_that_covers_the_key_fails_the_step_after_all(world: World) -> None:
    with world.open() as runtime:
        outcome = runtime.run("r", plan_of(("pay", "keyed", {"do": ["unsent", "refuse_key"]})))
    assert outcome.state is RunState.FAILED


@pytest.mark.fault("I06")
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_what_is_no_answer_of_the_tool_is_raised_and_nothing_is_written(
    world: World, error: type[BaseException]
) -> None:
    calls: list[int] = []

    @adapter(name="keyed", contract=idempotent())
    def stops(request: object) -> None:
        calls.append(1)
        raise error

    with world.open(adapters=[stops]) as runtime, pytest.raises(error):
        runtime.run("r", plan_of(("pay", "keyed")))
    assert calls == [1]
    assert _events(world, "r") == ["request by runtime"]
