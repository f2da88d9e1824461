"""What is owed next: each rule of the decision function, and what holds of all of it."""

from __future__ import annotations

import itertools

import pytest

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from agent_replay.recovery import Act, Append, News, Situation, Why, decide

EITHER = (False, True)
EVERY = [
    Situation(*parts)
    for parts in itertools.product(
        Contract, StepState, RunState, News, EITHER, EITHER, EITHER, EITHER
    )
]
POSSIBLE = [
    situation
    for situation in EVERY
    if any(
        (key[0], key[1], key[4]) == (situation.contract, situation.state, situation.run_state)
        for key in PERMITTED
    )
]
SENDS = (StepEvent.REQUEST, StepEvent.RESEND)


def situation(
    contract: Contract,
    state: StepState,
    news: News,
    *,
    run_state: RunState = RunState.RUNNING,
    attempts_left: bool = True,
    window_open: bool = True,
    bound_passed: bool = True,
    earlier_unresolved: bool = False,
) -> Situation:
    return Situation(
        contract,
        state,
        run_state,
        news,
        attempts_left,
        window_open,
        bound_passed,
        earlier_unresolved,
    )


@pytest.mark.invariant("S6")
def test_every_move_that_is_owed_exists_in_the_lifecycle() -> None:
    owed = 0
    for given in POSSIBLE:
        for act in decide(given):
            if isinstance(act, Append):
                owed += 1
                key = (given.contract, given.state, act.event, act.actor, given.run_state, False)
                assert key in PERMITTED, (given, act)
    assert owed > 0


def test_nothing_is_owed_where_the_lifecycle_has_no_move() -> None:
    """A state and a run state that do not go together are answered too, by nothing."""
    for given in EVERY:
        if given.run_state not in (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLING):
            assert decide(given) == ()


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S10")
def test_nothing_without_a_promise_is_sent_twice() -> None:
    for given in POSSIBLE:
        if (
            given.contract in (Contract.OPAQUE, Contract.QUERYABLE)
            and given.state is StepState.REQUESTED
        ):
            acts = decide(given)
            assert not any(isinstance(act, Append) and act.event in SENDS for act in acts)
            if Act.CALL in acts:
                assert given.news is News.READY, "only a call that has not begun may begin"


@pytest.mark.invariant("S10")
def test_the_runtime_never_settles_a_step_in_doubt_without_a_probe() -> None:
    for given in POSSIBLE:
        if given.state is StepState.IN_DOUBT:
            for act in decide(given):
                assert act is Act.PROBE or (isinstance(act, Append) and act.actor is Actor.PROBE)
                assert given.contract is Contract.QUERYABLE


@pytest.mark.invariant("S10")
def test_no_orphan_stays_requested() -> None:
    for given in POSSIBLE:
        if given.state is StepState.REQUESTED and given.news is News.FOUND_OPEN:
            (act,) = decide(given)
            assert isinstance(act, Append)
            assert act.actor is Actor.RECOVERY


@pytest.mark.parametrize("contract", [Contract.READ_ONLY, Contract.IDEMPOTENT])
@pytest.mark.parametrize(
    ("news", "actor"), [(News.FAILURE, Actor.RUNTIME), (News.FOUND_OPEN, Actor.RECOVERY)]
)
def test_an_unanswered_call_that_may_be_repeated_is_sent_again(
    contract: Contract, news: News, actor: Actor
) -> None:
    (act,) = decide(situation(contract, StepState.REQUESTED, news))
    assert isinstance(act, Append)
    assert (act.event, act.actor) == (StepEvent.RESEND, actor)


@pytest.mark.parametrize(
    ("left", "is_open", "why"),
    [
        (False, True, Why.ATTEMPTS_USED_UP),
        (True, False, Why.WINDOW_LAPSED),
        (False, False, Why.WINDOW_LAPSED),
    ],
)
def test_an_idempotent_call_is_suspended_when_it_may_not_go_out_again(
    left: bool, is_open: bool, why: Why
) -> None:
    acts = decide(
        situation(
            Contract.IDEMPOTENT,
            StepState.REQUESTED,
            News.FOUND_OPEN,
            attempts_left=left,
            window_open=is_open,
        )
    )
    assert acts == (Append(StepEvent.SUSPEND, Actor.RECOVERY, why),)


def test_a_read_only_call_whose_attempts_are_used_up_is_rejected() -> None:
    acts = decide(
        situation(Contract.READ_ONLY, StepState.REQUESTED, News.FOUND_OPEN, attempts_left=False)
    )
    assert acts == (Append(StepEvent.REJECT, Actor.RECOVERY, Why.ATTEMPTS_USED_UP),)


def test_a_request_is_not_sent_once_its_window_has_lapsed() -> None:
    """The late resend past the window: the clock is read again right before the call."""
    acts = decide(
        situation(Contract.IDEMPOTENT, StepState.REQUESTED, News.READY, window_open=False)
    )
    assert acts == (Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.WINDOW_LAPSED),)


def test_a_refusal_after_an_unresolved_attempt_is_no_failure() -> None:
    """The first attempt charged and its reply was lost; the second is refused for lack of money."""
    acts = decide(
        situation(Contract.IDEMPOTENT, StepState.REQUESTED, News.REFUSAL, earlier_unresolved=True)
    )
    assert acts == (Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.REFUSED_AFTER_UNRESOLVED),)


@pytest.mark.parametrize(
    ("contract", "news", "earlier"),
    [
        (Contract.IDEMPOTENT, News.REFUSAL, False),
        (Contract.IDEMPOTENT, News.REFUSAL_OF_KEY, True),
        (Contract.READ_ONLY, News.REFUSAL, True),
        (Contract.OPAQUE, News.REFUSAL, False),
        (Contract.QUERYABLE, News.REFUSAL, False),
    ],
)
def test_a_refusal_that_covers_every_attempt_fails_the_step(
    contract: Contract, news: News, earlier: bool
) -> None:
    acts = decide(situation(contract, StepState.REQUESTED, news, earlier_unresolved=earlier))
    assert acts == (Append(StepEvent.REJECT, Actor.RUNTIME, Why.REFUSED),)


def test_absence_counts_only_once_the_settle_bound_has_passed() -> None:
    """Probe-then-send without the bound gives two effects with no crash at all."""
    ask = situation(Contract.QUERYABLE, StepState.IN_DOUBT, News.ABSENT, run_state=RunState.PAUSED)
    assert decide(ask._replace(bound_passed=False)) == ()
    assert decide(ask) == (Append(StepEvent.REFUTE, Actor.PROBE, Why.PROBE_ABSENT),)


@pytest.mark.parametrize(
    ("news", "actor"), [(News.NOTHING, Actor.RUNTIME), (News.FOUND_OPEN, Actor.RECOVERY)]
)
def test_a_refuted_step_without_attempts_is_exhausted(news: News, actor: Actor) -> None:
    """The attempt that a refute uses up: the probe grants none."""
    acts = decide(situation(Contract.QUERYABLE, StepState.PLANNED, news, attempts_left=False))
    assert acts == (Append(StepEvent.EXHAUST, actor, Why.ATTEMPTS_USED_UP),)


@pytest.mark.parametrize("contract", Contract)
def test_a_cancel_settles_a_call_that_has_not_begun_as_not_sent(contract: Contract) -> None:
    acts = decide(
        situation(contract, StepState.REQUESTED, News.READY, run_state=RunState.CANCELLING)
    )
    assert acts == (Append(StepEvent.REJECT, Actor.RUNTIME, Why.NOT_SENT),)


@pytest.mark.parametrize("contract", Contract)
def test_a_cancel_sends_nothing(contract: Contract) -> None:
    for given in POSSIBLE:
        if given.contract is contract and given.run_state is RunState.CANCELLING:
            acts = decide(given)
            assert Act.CALL not in acts
            assert not any(isinstance(act, Append) and act.event in SENDS for act in acts)


def test_the_whole_function_is_total_and_short() -> None:
    for given in EVERY:
        assert len(decide(given)) <= 1


@pytest.mark.parametrize(
    ("given", "act"),
    [
        (
            situation(Contract.OPAQUE, StepState.REQUESTED, News.REPLY),
            Append(StepEvent.ACKNOWLEDGE, Actor.RUNTIME, Why.ANSWERED),
        ),
        (
            situation(
                Contract.OPAQUE,
                StepState.REQUESTED,
                News.READY,
                run_state=RunState.CANCELLING,
                earlier_unresolved=True,
            ),
            Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.CANCEL_ASKED),
        ),
        (
            situation(
                Contract.OPAQUE, StepState.REQUESTED, News.FAILURE, run_state=RunState.CANCELLING
            ),
            Append(StepEvent.SUSPEND, Actor.RUNTIME, Why.CANCEL_ASKED),
        ),
        (
            situation(Contract.IDEMPOTENT, StepState.REQUESTED, News.FAILURE),
            Append(StepEvent.RESEND, Actor.RUNTIME, Why.RAISED),
        ),
        (
            situation(Contract.OPAQUE, StepState.REQUESTED, News.FOUND_OPEN),
            Append(StepEvent.SUSPEND, Actor.RECOVERY, Why.DIED),
        ),
        (
            situation(
                Contract.QUERYABLE, StepState.IN_DOUBT, News.PRESENT, run_state=RunState.PAUSED
            ),
            Append(StepEvent.CONFIRM, Actor.PROBE, Why.PROBE_PRESENT),
        ),
    ],
)
def test_each_move_is_written_with_its_reason(given: Situation, act: Append) -> None:
    assert decide(given) == (act,)
