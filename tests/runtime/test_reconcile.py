"""Evidence: what it must name, what it moves, and that it is taken once."""

from __future__ import annotations

import json
import threading

import pytest

from agent_replay import (
    Evidence,
    EvidenceRefused,
    InvalidInput,
    Json,
    NoSuchRun,
    Outcome,
    RunState,
    StepState,
)
from agent_replay.lifecycles.step import StepEvent
from agent_replay.reconcile import confirming_payload, operators_payload
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from agent_replay.values import digest
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


def refusal(world: World, move: str, outcome: Outcome, **changes: object) -> str:
    """Return what is said when evidence is refused."""
    evidence = evidence_for(outcome, **changes)
    with world.open() as runtime, pytest.raises((EvidenceRefused, InvalidInput)) as caught:
        give(runtime, move, evidence)
    return str(caught.value)


def test_a_refusal_says_what_was_given_what_stands_and_what_to_do(world: World) -> None:
    outcome = _in_doubt(world)
    key = outcome.in_doubt[0].key
    assert refusal(world, "refute", outcome, step="pay") == (
        "step 'pay' of run 'r' is not in doubt: 'tell' is in_doubt"
    )
    assert refusal(world, "refute", outcome, step="no") == "run 'r' has no step 'no'"
    assert refusal(world, "confirm", outcome, key="k") == (
        f"step 'tell': the evidence names the key 'k', the step's is '{key}'"
    )
    assert refusal(world, "confirm", outcome, attempt=2) == (
        "step 'tell' has attempts 1 to 1, the evidence names 2"
    )
    assert refusal(world, "abandon", outcome, attempt=0) == (
        "step 'tell': abandon must cover every attempt so far, so name the latest, 1, not 0"
    )
    for attempt in (True, "1", 1.0):
        told = f"attempt is a number, not {attempt!r}"
        assert refusal(world, "refute", outcome, attempt=attempt) == told
    assert refusal(world, "refute", outcome, no_request_can_land=False) == (
        "step 'tell': to refute it, state that no request of it can still land "
        "(no_request_can_land); if one can, wait, or confirm when it has landed"
    )
    assert refusal(world, "resend", outcome) == (
        "step 'tell' is opaque: sending it again may do it twice; confirm, refute or abandon it"
    )
    for name in ("kind", "who", "why"):
        assert refusal(world, "abandon", outcome, **{name: " "}) == (
            f"evidence needs '{name}': a text of 1 to 2000 characters"
        )
    assert refusal(world, "abandon", outcome, content=float("nan")).startswith(
        "the content of the evidence cannot be stored: "
    )
    assert refusal(world, "abandon", outcome, who="\ud800").startswith(
        "the evidence cannot be stored: "
    )


def test_a_text_of_evidence_may_be_as_long_as_the_limit(world: World) -> None:
    outcome = _in_doubt(world)
    assert "1 to 2000" in refusal(world, "abandon", outcome, why="x" * 2001)
    with world.open() as runtime:
        assert runtime.abandon(evidence_for(outcome, why="x" * 2000)).failure is not None


def test_evidence_about_a_request_that_is_open_says_to_resume_first(world: World) -> None:
    world.interrupted("r", plan_of(("tell", "dark", {"do": ["interrupt"]})))
    with world.open() as runtime:
        step = runtime._store.read("r").open_step
        evidence = Evidence("r", "tell", 1, step.key, "log", None, "ada", "looked", True)
        with pytest.raises(EvidenceRefused) as caught:
            runtime.refute(evidence)
    assert str(caught.value) == (
        "step 'tell' of run 'r' is not in doubt: 'tell' is requested; resume the run first, "
        "which settles it or puts it in doubt"
    )


def test_evidence_about_a_run_that_has_ended_says_so(world: World) -> None:
    outcome = _in_doubt(world)
    with world.open() as runtime:
        runtime.abandon(evidence_for(outcome))
    assert refusal(world, "confirm", outcome) == (
        "step 'tell' of run 'r' is not in doubt: the run is failed"
    )


def test_evidence_about_another_run_than_the_history_is_refused(world: World) -> None:
    outcome = _in_doubt(world)
    with Reader(world.path) as reader:
        history, _ = reader.read("r")
    with pytest.raises(EvidenceRefused, match=r"^the evidence is about run 'other', not 'r'$"):
        operators_payload(StepEvent.ABANDON, evidence_for(outcome, run="other"), history)


def test_a_confirms_payload_is_what_was_seen_and_the_result_and_nothing_else(world: World) -> None:
    outcome = _in_doubt(world)
    evidence = evidence_for(outcome, no_request_can_land=False)
    with Reader(world.path) as reader:
        history, _ = reader.read("r")
    recorded = {
        "attempt": 1,
        "content": {"line": 7},
        "digest": digest('{"line":7}'),
        "key": evidence.key,
        "kind": "ledger",
        "run": "r",
        "step": "tell",
        "who": "ada",
        "why": "looked it up",
    }
    payload = json.loads(confirming_payload(evidence, [1], history))
    assert payload == {"evidence": recorded, "result": [1], "why": "evidence"}
    payload = json.loads(operators_payload(StepEvent.ABANDON, evidence, history))
    assert payload == {"evidence": recorded, "why": "evidence"}
    stated = evidence_for(outcome)
    payload = json.loads(operators_payload(StepEvent.REFUTE, stated, history))
    assert payload["evidence"] == {**recorded, "no_request_can_land": True}
    with pytest.raises(InvalidInput, match=r"^the result of step 'tell' cannot be stored: "):
        confirming_payload(evidence, float("nan"), history)


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
