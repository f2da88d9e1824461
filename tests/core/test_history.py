"""What a row does to what is known of its run, and why a row cannot follow, word for word."""

from __future__ import annotations

import pytest

from agent_replay.errors import DamagedHistory
from agent_replay.events import Event, Head, Registration, Stamp, StepRow
from agent_replay.history import (
    UNTOUCHED,
    OpenStep,
    RunHistory,
    advance,
    complaints,
    expected_attempt,
    first_head,
    next_head,
    next_open,
    payload_of,
    permitted,
    read_payload,
)

WRITER = bytes(16)
REGISTRATION = Registration(
    7, "r", "plan", 2, 3, "{}", "hint", 4, WRITER, 1_000, 2_000, b"\x01" * 32
)
STEPS = [
    StepRow(7, 1, "pay", "pay@1", "idempotent", "{}", "key-1"),
    StepRow(7, 2, "tell", "tell@1", "opaque", "{}", "key-2"),
]
HEAD = Head(7, 5, b"\x05" * 32, "running", 1, "requested", 2, 4, 2)
"""The first of two steps is requested, for the second time."""


def row(**changes: object) -> Event:
    """Return the row that acknowledges the step that is open in `HEAD`, changed as given."""
    columns: dict[str, object] = {
        "run": 7,
        "seq": 6,
        "event": "acknowledge",
        "coupled": "",
        "actor": "runtime",
        "step": 1,
        "attempt": 2,
        "state": "succeeded",
        "run_state": "running",
        "epoch": 4,
        "writer": WRITER,
        "wall_ns": 30,
        "boot_ns": 40,
        "payload": '{"result":1}',
        "hash": b"\x06" * 32,
    }
    return Event(**{**columns, **changes})  # type: ignore[arg-type]


def run_row(event: str, actor: str, run_state: str, **changes: object) -> Event:
    """Return a row with a move of the run itself."""
    columns = {"event": event, "actor": actor, "run_state": run_state}
    return row(**{"step": None, "attempt": None, "state": None, **columns, **changes})


SUSPENDS = row(event="suspend", coupled="pause", state="in_doubt", run_state="paused")
RESENDS = row(event="resend", state="requested", attempt=3, payload="{}")
REFUTES = row(event="refute", actor="operator", coupled="resume", state="planned")
IN_DOUBT = HEAD._replace(state="in_doubt", run_state="paused")


# --- why a row cannot follow --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (row(run=8), ["expected run 7, seq 6: an event is missing or doubled"]),
        (row(seq=7), ["expected run 7, seq 6: an event is missing or doubled"]),
        (row(seq=5), ["expected run 7, seq 6: an event is missing or doubled"]),
        (row(epoch=5), ["'acknowledge' of epoch 5 after epoch 4"]),
        (row(epoch=3), ["'acknowledge' of epoch 3 after epoch 4"]),
        (run_row("adopt", "recovery", "running"), ["'adopt' of epoch 4 after epoch 4"]),
        (run_row("adopt", "recovery", "running", epoch=3), ["'adopt' of epoch 3 after epoch 4"]),
        (row(step=2), ["step 2 moves, but step 1 is open"]),
        (
            row(event="confirm", actor="probe"),
            [
                "no move 'confirm' by 'probe' from 'requested' while the run is 'running' "
                "(contract idempotent)"
            ],
        ),
        (
            row(event="nonsense"),
            [
                "no move 'nonsense' by 'runtime' from 'requested' while the run is 'running' "
                "(contract idempotent)"
            ],
        ),
        (
            row(coupled="pause"),
            ["'acknowledge' leads to 'succeeded', and the run to 'running' with ''"],
        ),
        (
            row(state="failed"),
            ["'acknowledge' leads to 'succeeded', and the run to 'running' with ''"],
        ),
        (
            SUSPENDS._replace(run_state="running"),
            ["'suspend' leads to 'in_doubt', and the run to 'paused' with 'pause'"],
        ),
        (row(attempt=3), ["attempt 3 after attempt 2"]),
        (RESENDS._replace(attempt=2), ["attempt 2 after attempt 2"]),
        (row(epoch=5, step=2, attempt=1), [
            "'acknowledge' of epoch 5 after epoch 4",
            "step 2 moves, but step 1 is open",
            "attempt 1 after attempt 2",
        ]),
    ],
)  # fmt: skip
def test_a_row_that_cannot_follow_is_told_with_what_was_expected(
    event: Event, said: list[str]
) -> None:
    assert list(complaints(HEAD, "idempotent", event)) == said
    with pytest.raises(DamagedHistory) as caught:
        advance(HEAD, UNTOUCHED, "idempotent", event)
    assert str(caught.value) == f"run 7, seq {event.seq}: {said[0]}"


@pytest.mark.parametrize(
    "event",
    [row(), RESENDS, SUSPENDS, run_row("adopt", "recovery", "running", epoch=5)],
    ids=lambda event: event.event,
)
def test_of_a_row_that_follows_there_is_nothing_to_say(event: Event) -> None:
    assert list(complaints(HEAD, "idempotent", event)) == []


def test_a_move_of_the_run_has_no_state_and_no_attempt_of_a_step() -> None:
    asked = run_row("ask_cancel", "operator", "cancelling")
    assert list(complaints(HEAD, "idempotent", asked)) == []
    assert list(complaints(HEAD, "idempotent", asked._replace(attempt=2))) == [
        "attempt 2 after attempt 2"
    ]
    assert list(complaints(HEAD, "idempotent", asked._replace(state="requested"))) == [
        "'ask_cancel' leads to 'requested', and the run to 'cancelling' with ''"
    ]


def test_two_moves_of_the_run_in_one_row_stand_beside_each_other() -> None:
    last = IN_DOUBT._replace(step=2)
    confirmed = row(
        event="confirm", actor="operator", step=2, coupled="resume complete", run_state="completed"
    )
    assert list(complaints(last, "idempotent", confirmed)) == []
    assert list(complaints(last, "idempotent", confirmed._replace(coupled="resume"))) == [
        "'confirm' leads to 'succeeded', and the run to 'completed' with 'resume complete'"
    ]


def test_whether_the_step_is_the_last_decides_what_is_permitted() -> None:
    first = permitted("opaque", HEAD, row())
    last = permitted("opaque", HEAD._replace(step=2), row(step=2))
    assert first is not None
    assert last is not None
    assert (first.run_target, last.run_target) == ("running", "completed")
    assert permitted("unheard-of", HEAD, row()) is None


# --- what a row does ----------------------------------------------------------------------------


def test_a_run_that_has_only_been_registered_stands_before_its_first_step() -> None:
    assert first_head(REGISTRATION) == Head(
        7, 0, REGISTRATION.hash, "running", 1, "planned", 0, 4, 2
    )


def test_a_step_that_succeeds_opens_the_next_and_the_last_one_stays() -> None:
    after = next_head(HEAD, row())
    assert after == Head(7, 6, b"\x06" * 32, "running", 2, "planned", 0, 4, 2)
    last = next_head(HEAD._replace(step=2), row(step=2, run_state="completed"))
    assert last == Head(7, 6, b"\x06" * 32, "completed", 2, "succeeded", 2, 4, 2)


def test_a_move_of_the_run_leaves_the_open_step_where_it_is() -> None:
    after = next_head(HEAD, run_row("adopt", "recovery", "running", epoch=5))
    assert after == Head(7, 6, b"\x06" * 32, "running", 1, "requested", 2, 5, 2)
    known = OpenStep(grants=1)
    assert next_open(HEAD, known, run_row("adopt", "recovery", "running", epoch=5)) is known


def test_each_request_counts_and_the_first_keeps_its_time() -> None:
    once = next_open(HEAD, UNTOUCHED, RESENDS)
    assert once == OpenStep(0, 1, 0, Stamp(4, 30, 40), None, RESENDS)
    stopped = once._replace(suspended=Stamp(4, 1, 2))
    assert next_open(HEAD, stopped, RESENDS).suspended == Stamp(4, 1, 2)
    later = RESENDS._replace(actor="operator", wall_ns=50)
    assert next_open(HEAD, once, later) == OpenStep(1, 2, 0, Stamp(4, 30, 40), None, later)


def test_a_suspend_keeps_its_time_and_what_was_sent() -> None:
    sent = next_open(HEAD, UNTOUCHED, RESENDS)
    assert next_open(HEAD, sent, SUSPENDS) == OpenStep(
        0, 1, 0, Stamp(4, 30, 40), Stamp(4, 30, 40), SUSPENDS
    )


def test_after_a_refute_nothing_is_unresolved_and_its_attempts_are_refuted() -> None:
    known = OpenStep(1, 2, 0, Stamp(4, 1, 2), Stamp(4, 3, 4), SUSPENDS)
    assert next_open(IN_DOUBT, known, REFUTES) == OpenStep(2, 0, 2, None, None, REFUTES)
    by_probe = REFUTES._replace(actor="probe")
    assert next_open(IN_DOUBT, known, by_probe) == OpenStep(1, 0, 2, None, None, by_probe)


def test_any_other_move_of_a_step_is_its_latest_and_changes_nothing_else() -> None:
    known = OpenStep(1, 2, 1, Stamp(4, 1, 2), Stamp(4, 3, 4), SUSPENDS)
    rejected = row(event="reject", coupled="fail", state="failed", run_state="failed")
    assert next_open(HEAD, known, rejected) == known._replace(last=rejected)
    assert next_open(HEAD, known, row()) is UNTOUCHED
    last = row(step=2)
    assert next_open(HEAD._replace(step=2), known, last) == known._replace(last=last)


def test_a_run_keeps_the_results_and_what_settled_a_step_without_one() -> None:
    history = RunHistory(REGISTRATION, STEPS)
    assert (history.head, history.open) == (first_head(REGISTRATION), UNTOUCHED)
    assert (history.results, history.settled, history.ended) == ({}, None, False)
    requested = row(seq=1, event="request", attempt=1, state="requested", payload="{}")
    history.take(requested)
    assert history.open == OpenStep(0, 1, 0, Stamp(4, 30, 40), None, requested)
    assert history.results == {}
    history.take(row(seq=2, attempt=1))
    assert history.results == {1: '{"result":1}'}
    assert history.open_step is STEPS[1]
    history.take(row(seq=3, event="request", step=2, attempt=1, state="requested", payload="{}"))
    refused = row(
        seq=4, event="reject", coupled="fail", step=2, attempt=1, state="failed",
        run_state="failed", payload="{}",
    )  # fmt: skip
    history.take(refused)
    assert history.settled is refused
    assert history.ended
    assert history.results == {1: '{"result":1}'}
    abandoned = refused._replace(event="abandon", state="abandoned")
    history.take_over(abandoned, history.head, UNTOUCHED)
    assert history.settled is abandoned


@pytest.mark.parametrize(
    ("event", "attempt"), [("request", 3), ("resend", 3), ("acknowledge", 2), ("suspend", 2)]
)
def test_only_a_request_or_a_resend_is_a_new_attempt(event: str, attempt: int) -> None:
    assert expected_attempt(HEAD, event, 1) == attempt
    assert expected_attempt(HEAD, event, None) is None


def test_a_payload_is_an_object_or_the_history_is_damaged() -> None:
    assert payload_of(row()) == {"result": 1}
    with pytest.raises(DamagedHistory, match=r"^run 7, seq 6: the payload is not JSON: Expecting"):
        payload_of(row(payload="{"))
    with pytest.raises(DamagedHistory, match=r"^here: the payload is not a JSON object$"):
        read_payload("[1]", "here")
    with pytest.raises(DamagedHistory, match=r"^here: the payload is not JSON: "):
        read_payload("[" * 100_000, "here")
