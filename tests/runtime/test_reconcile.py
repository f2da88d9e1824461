"""Evidence: what it must name, what it moves, and that it is taken once."""

from __future__ import annotations

import json
import threading

import pytest

from agent_replay import (
    EvidenceRefused,
    InvalidInput,
    Json,
    NoSuchRun,
    Outcome,
    RunState,
    StepState,
)
from agent_replay.store.verify import verify
from tests.outside import WINDOW_SECONDS, plain, plan_of
from tests.runtime.conftest import World, evidence_for, give

IN_DOUBT = plan_of(("tell", "dark", {"do": ["lost", "ok"]}), ("pay", "keyed"))


def _in_doubt(world: World, plan: Json = IN_DOUBT) -> Outcome:
    with world.open() as runtime:
        outcome = runtime.run("r", plan)
    assert outcome.state is RunState.PAUSED
    return outcome


@pytest.mark.invariant("S3")
def test_a_confirmed_step_returns_the_operators_result(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        assert runtime.confirm(evidence_for(outcome), result={"id": 1}).state is RunState.RUNNING
        done = runtime.resume("r")
    assert done.completed
    assert done.results["tell"] == {"id": 1}
    assert world.ledger.called("tell") == 1


def test_confirming_the_last_step_completes_the_run(world: World) -> None:
    outcome = _in_doubt(world, plan_of(("tell", "dark", {"do": ["lost"]})))
    with world.open() as runtime:
        assert runtime.confirm(evidence_for(outcome), result=None).completed
    assert world.events()[-1].coupled == "resume complete"


@pytest.mark.invariant("S4")
def test_a_refuted_step_is_requested_again(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        assert runtime.refute(evidence_for(outcome)).state is RunState.RUNNING
        assert runtime.resume("r").completed
    assert world.ledger.calls == [("tell", 1), ("tell", 2), ("pay", 1)]


def test_an_operators_refute_grants_an_attempt(world: World) -> None:
    with world.open(attempts_max=1) as runtime:
        outcome = runtime.run("r", IN_DOUBT)
        runtime.refute(evidence_for(outcome))
        assert runtime.resume("r").completed


def test_an_abandoned_step_is_unknown_for_ever(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        ended = runtime.abandon(evidence_for(outcome))
    assert ended.state is RunState.FAILED
    assert ended.failure is not None
    assert ended.failure.state is StepState.ABANDONED
    assert world.resume("r").failure == ended.failure
    assert world.ledger.called("pay") == 0


def test_an_operators_resend_goes_out_with_the_same_key_and_one_attempt_more(world: World) -> None:
    outcome = _in_doubt(world, plan_of(("pay", "keyed", {"do": ["lost", "lost", "lost", "ok"]})))
    with world.open() as runtime:
        assert runtime.resend(evidence_for(outcome)).completed
    assert world.ledger.called("pay") == 4
    assert len(set(world.ledger.keys)) == 1
    assert world.ledger.effects["pay"] == 1
    resent = json.loads(world.events()[-2].payload)
    assert resent["evidence"]["who"] == "ada"
    assert "source" in resent


def test_a_resend_that_stays_unanswered_is_in_doubt_again(world: World) -> None:
    outcome = _in_doubt(world, plan_of(("pay", "keyed", {"do": ["lost"]})))
    with world.open() as runtime:
        again = runtime.resend(evidence_for(outcome))
    assert again.in_doubt[0].attempt == 4


def test_nothing_is_resent_past_the_window(world: World) -> None:
    outcome = _in_doubt(world, plan_of(("pay", "windowed", {"do": ["lost"]})))
    world.clock.pass_by(WINDOW_SECONDS)
    with world.open() as runtime, pytest.raises(EvidenceRefused, match="key window has lapsed"):
        runtime.resend(evidence_for(outcome))
    assert world.ledger.called("pay") == 3


def test_a_resend_of_what_is_not_idempotent_is_refused(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime, pytest.raises(EvidenceRefused, match="may do it twice"):
        runtime.resend(evidence_for(outcome))
    assert world.ledger.called("tell") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": "pay"}, "not in doubt"),
        ({"step": "nothing"}, "no step 'nothing'"),
        ({"attempt": 2}, "attempt"),
        ({"attempt": 0}, "attempt"),
        ({"key": "0" * 64}, "names the key"),
    ],
)
@pytest.mark.parametrize("move", ["confirm", "refute", "abandon", "resend"])
def test_evidence_about_anything_else_is_refused_and_nothing_is_written(
    world: World, move: str, changes: dict[str, object], message: str
) -> None:
    evidence = evidence_for(_in_doubt(world), **changes)
    before = world.dump()
    with world.open() as runtime, pytest.raises(EvidenceRefused, match=message):
        give(runtime, move, evidence)
    assert world.dump() == before


@pytest.mark.parametrize("field", ["kind", "who", "why"])
@pytest.mark.parametrize("value", ["", "  ", None, 7, "x" * 3000])
def test_evidence_says_what_who_and_why(world: World, field: str, value: object) -> None:
    evidence = evidence_for(_in_doubt(world), **{field: value})
    with world.open() as runtime, pytest.raises(InvalidInput, match=field):
        runtime.refute(evidence)


def test_evidence_for_an_unknown_run_is_refused(world: World) -> None:
    evidence = evidence_for(_in_doubt(world), run="other")
    with world.open() as runtime, pytest.raises(NoSuchRun):
        runtime.refute(evidence)


def test_a_refute_needs_the_statement_that_nothing_can_land(world: World) -> None:
    evidence = evidence_for(_in_doubt(world), no_request_can_land=False)
    with world.open() as runtime, pytest.raises(EvidenceRefused, match="can still land"):
        runtime.refute(evidence)


def test_a_confirm_may_rest_on_an_earlier_attempt_and_a_refute_must_cover_the_latest(
    world: World,
) -> None:
    outcome = _in_doubt(world, plan_of(("pay", "keyed", {"do": ["lost"]})))
    assert outcome.in_doubt[0].attempt == 3
    with world.open() as runtime:
        with pytest.raises(EvidenceRefused, match="name the latest, 3, not 1"):
            runtime.refute(evidence_for(outcome, attempt=1))
        assert runtime.confirm(evidence_for(outcome, attempt=1), result="r").completed


def test_proof_of_a_refuted_attempt_confirms_and_marks_the_contradiction(world: World) -> None:
    outcome = _in_doubt(world, plan_of(("tell", "dark", {"do": ["lost"]})))
    with world.open() as runtime:
        runtime.refute(evidence_for(outcome))
        again = runtime.resume("r")
        assert again.in_doubt[0].attempt == 2
        assert runtime.confirm(evidence_for(again, attempt=1), result="it was there").completed
    payload = json.loads(world.events()[-1].payload)
    assert payload["contradicts_refute"] is True
    assert payload["evidence"]["attempt"] == 1


def test_what_is_recorded_of_evidence(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        runtime.confirm(evidence_for(outcome), result={"id": 1})
    row = world.events()[-1]
    payload = json.loads(row.payload)
    assert payload["result"] == {"id": 1}
    assert payload["evidence"].keys() >= {
        "run",
        "step",
        "attempt",
        "key",
        "kind",
        "content",
        "digest",
        "who",
        "why",
    }
    assert payload["evidence"]["content"] == {"line": 7}
    assert row.wall_ns == world.clock.wall_ns


@pytest.mark.fault("D06")
@pytest.mark.parametrize(
    "result",
    [
        False,
        0,
        "",
        None,
        [],
        {},
        {"status": "failed", "approved": False, "error": "x", "result": None},
    ],
    ids=plain,
)
def test_a_falsy_or_oddly_shaped_result_is_kept_as_it_is(world: World, result: Json) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        runtime.confirm(evidence_for(outcome, content=result), result=result)
    done = world.resume("r")
    assert done.results["tell"] == result
    assert type(done.results["tell"]) is type(result)


def test_a_result_that_cannot_be_stored_is_refused_from_an_operator(world: World) -> None:
    outcome = _in_doubt(world)
    before = world.dump()
    with world.open() as runtime, pytest.raises(InvalidInput, match="cannot be stored"):
        runtime.confirm(evidence_for(outcome), result=object())  # type: ignore[arg-type]
    with world.open() as runtime, pytest.raises(InvalidInput):
        runtime.refute(evidence_for(outcome, content=float("nan")))
    assert world.dump() == before


@pytest.mark.fault("D02")
@pytest.mark.parametrize("second", ["confirm", "refute"])
def test_evidence_is_taken_once(world: World, second: str) -> None:
    outcome = _in_doubt(world)
    evidence = evidence_for(outcome)
    with world.open() as runtime:
        runtime.confirm(evidence, result=1)
        before = world.dump()
        with pytest.raises(EvidenceRefused, match="not in doubt"):
            give(runtime, second, evidence, result=1)
    assert world.dump() == before
    assert world.resume("r").results["tell"] == 1


@pytest.mark.fault("D02")
def test_of_two_threads_with_the_same_evidence_one_is_refused(world: World) -> None:
    outcome = _in_doubt(world)
    evidence = evidence_for(outcome)
    barrier = threading.Barrier(2)
    answers: list[str] = []

    with world.open() as runtime:

        def give() -> None:
            barrier.wait(timeout=10)
            try:
                runtime.confirm(evidence, result=1)
                answers.append("taken")
            except EvidenceRefused:
                answers.append("refused")

        threads = [threading.Thread(target=give) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
    assert sorted(answers) == ["refused", "taken"]
    assert verify(world.path).sound


@pytest.mark.fault("D01")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_run_that_has_ended_takes_no_evidence(world: World, end: str) -> None:
    outcome = _in_doubt(world)
    evidence = evidence_for(outcome)
    with world.open() as runtime:
        if end == "completed":
            runtime.confirm(evidence, result=1)
            runtime.resume("r")
        elif end == "failed":
            runtime.abandon(evidence)
        else:
            runtime.cancel("r", who="ada", why="enough")
            runtime.confirm(evidence, result=1)
        assert runtime.outcome("r").state == end
        before = world.dump()
        for act in (runtime.refute, runtime.abandon, runtime.resend):
            with pytest.raises(EvidenceRefused, match="not in doubt"):
                act(evidence)
        with pytest.raises(EvidenceRefused, match="not in doubt"):
            runtime.confirm(evidence, result=2)
    assert world.dump() == before
