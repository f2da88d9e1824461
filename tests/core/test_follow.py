"""The quick way over a history takes in what the rules in words have nothing against, and nothing
else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_replay.chain import ZERO, event_link, registration_link
from agent_replay.errors import DamagedHistory
from agent_replay.events import Event, Head, Registration, StepRow
from agent_replay.follow import EventRow, Follower, event_of, fold, moves
from agent_replay.history import RunHistory, expected_attempt, next_head
from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.step import Contract

WRITERS = (bytes(16), bytes(range(16)))
STEPS = 3
LENGTH_MAX = 12
PAYLOADS = ('{"result":{"é":1}}', "{}", '{"unstorable":{}}', "[]", "{", '{"why":"x"} ', "NaN")
OTHER = (None, 1, -1, 1.0, "", "é", b"", bytes(16))
"""Values of each type that a database can give."""


def registration_of(contract: str) -> tuple[Registration, list[StepRow]]:
    run = Registration(1, "r", "", STEPS, 3, "{}", "", 1, WRITERS[0], 0, 0, b"")
    steps = [
        StepRow(1, number, f"s{number}", "tool@1", contract, "{}", "")
        for number in range(1, STEPS + 1)
    ]
    return run._replace(hash=registration_link(ZERO, run)), steps


@st.composite
def histories(draw: st.DrawFn) -> tuple[Registration, list[StepRow], list[Event]]:
    """Draw a run whose every row is permitted, adopted now and then by the other writer."""
    contract = draw(st.sampled_from(list(Contract)))
    run, steps = registration_of(contract.value)
    head, events = RunHistory(run, steps).head, []
    writer = run.writer
    for _ in range(draw(st.integers(0, LENGTH_MAX))):
        found = [
            (key, to)
            for key, to in PERMITTED.items()
            if key[0] in (None, contract)
            and (key[1].value, key[4].value) == (head.state, head.run_state)
            and key[5] == (head.step == head.steps)
        ]
        if not found:
            break
        (of, _, name, actor, _, _), to = draw(st.sampled_from(found))
        adopts = name.value == "adopt"
        writer = WRITERS[1] if adopts else writer
        step = None if of is None else head.step
        event = Event(
            1, head.seq + 1, name.value, " ".join(to.coupled), actor.value, step,
            expected_attempt(head, name.value, step), None if of is None else to.target.value,
            to.run_target.value, head.epoch + adopts, writer, draw(st.integers(0, 9)), 7,
            draw(st.sampled_from(PAYLOADS)), b"",
        )  # fmt: skip
        events.append(linked(head, event))
        head = next_head(head, events[-1])
    return run, steps, events


def linked(head: Head, event: Event) -> Event:
    return event._replace(hash=event_link(head.hash, event))


def slowly(
    run: Registration, steps: Sequence[StepRow], rows: Sequence[EventRow]
) -> tuple[RunHistory, str]:
    """Return how far the rules in words go along with these rows, and what they say then."""
    history = RunHistory(run, steps)
    for row in rows:
        _, said = slowly_on(history, row, run)
        if said:
            return history, said
    return history, ""


def quickly(
    run: Registration, steps: Sequence[StepRow], rows: Sequence[EventRow]
) -> tuple[RunHistory, str]:
    """Return how far a follower goes that leaves to the rules what it does not know, and what they
    say."""
    history = RunHistory(run, steps)
    follower = Follower(history, writer=run.writer)
    remaining = iter(rows)
    while (row := follower.take(remaining)) is not None:
        follower.writer, said = slowly_on(history, row, run)
        if said:
            return history, said
    return history, ""


def told(history: RunHistory) -> tuple[object, ...]:
    return history.head, history.open, history.results, history.settled


@given(histories())
def test_a_sound_history_is_told_alike_and_moves_of_steps_need_no_closer_look(
    drawn: tuple[Registration, list[StepRow], list[Event]],
) -> None:
    run, steps, events = drawn
    slow, complaint = slowly(run, steps, events)
    assert complaint == ""
    assert told(fold(run, steps, iter(events), previous=ZERO)) == told(slow)
    history = RunHistory(run, steps)
    follower, remaining, left = Follower(history, writer=run.writer), iter(events), []
    while (row := follower.take(remaining)) is not None:
        left.append(event_of(row, run))
        history.take(left[-1])
        follower.writer = left[-1].writer
    assert told(history) == told(slow)
    assert left == [event for event in events if event.step is None]


def others(value: object) -> Iterator[object]:
    """Yield other values for a column: near ones, and one of each type that a database gives."""
    yield from OTHER
    if type(value) is int:
        yield from (value + 1, value - 1, float(value), str(value))
    elif type(value) is str:
        yield from (value + "x", value.encode())
    elif type(value) is bytes:
        yield from (value[1:], WRITERS[1])


@settings(max_examples=20)
@given(histories())
def test_of_rows_that_were_changed_both_ways_take_the_same(
    drawn: tuple[Registration, list[StepRow], list[Event]],
) -> None:
    """Each value of each row is changed, and the hashes are made to fit afterwards or not."""
    run, steps, events = drawn
    for place, event in enumerate(events):
        for column, value in enumerate(event):
            for other, fits in product(others(value), (False, True)):
                rows: list[list[object]] = [list(row) for row in events]
                rows[place][column] = other
                if fits:
                    reforge(run, rows)
                changed: list[EventRow] = [tuple(row) for row in rows]  # type: ignore[misc]
                slow, complaint = slowly(run, steps, changed)
                quick, said = quickly(run, steps, changed)
                assert (told(quick), said) == (told(slow), complaint)


def slowly_on(history: RunHistory, row: EventRow, run: Registration) -> tuple[bytes, str]:
    try:
        event = event_of(row, run)
        if event_link(history.head.hash, event) != event.hash:
            return b"", "hash"
        history.take(event)
    except DamagedHistory as damage:
        return b"", str(damage)
    return event.writer, ""


def reforge(run: Registration, rows: list[list[object]]) -> None:
    """Let the hashes fit, as far as they can be made."""
    link = run.hash
    for row in rows:
        try:
            link = event_link(link, Event._make(row))
        except (TypeError, AttributeError):
            return
        row[-1] = link


def test_the_moves_are_those_of_the_spec() -> None:
    found = {
        (*place, words[0], words[2]): (words[1], words[3], words[4])
        for place, known in moves().items()
        for words in known
    }
    assert found == {
        (contract.value, source.value, run_state.value, last, event.value, actor.value): (
            " ".join(to.coupled), to.target.value, to.run_target.value
        )
        for (contract, source, event, actor, run_state, last), to in PERMITTED.items()
        if contract is not None
    }  # fmt: skip


@pytest.mark.parametrize(("payload", "state"), [*product(PAYLOADS, ["requested", "succeeded"])])
def test_a_payload_that_the_runtime_does_not_write_gets_a_closer_look(
    payload: str, state: str
) -> None:
    run, steps = registration_of("opaque")
    head = RunHistory(run, steps).head
    sends = Event(
        1, 1, "request", "", "runtime", 1, 1, "requested", "running",
        1, run.writer, 0, 0, "{}" if state == "succeeded" else payload, b"",
    )  # fmt: skip
    rows = [linked(head, sends)]
    if state == "succeeded":
        head = next_head(head, rows[0])
        answered = rows[0]._replace(
            seq=2, event="acknowledge", state="succeeded", payload=payload, hash=b""
        )
        rows.append(linked(head, answered))
    follower = Follower(RunHistory(run, steps), writer=run.writer, judges_payloads=True)
    sound = payload in PAYLOADS[:3] and (state == "requested" or payload != "{}")
    assert (follower.take(iter(rows)) is None) == sound
