"""The quick way over the events of a run, for long histories.

A `Follower` takes in rows as they come out of the database, as long as each is one of which
`history.complaints` has nothing to say: of the right types, with the right hash, the next number,
a move that is permitted. It leaves the first row that it does not know to be so to its caller, who
judges it by the rules in words, names what is wrong or takes the row in, and lets the follower go
on. So no message is made here, and no rule stands here alone: a fault in this module can make a
pass slow, and a test holds that it never accepts what the rules refuse.

The moves come from the same table as all others, by their texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import count
from json import JSONDecoder
from typing import Final

from agent_replay.chain import event_link, event_words, registration_link, writer_words
from agent_replay.errors import DamagedHistory
from agent_replay.events import Event, Head, Registration, StepRow
from agent_replay.history import SENDS, UNTOUCHED, RunHistory, next_head, next_open
from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.step import StepState

EventRow = tuple[
    int, int, str, str, str, int | None, int | None, str | None, str,
    int, bytes, int, int, str, bytes,
]  # fmt: skip
"""A row of `events` as the database gives it: of these types, if nothing has changed the file."""

_STEP_EVENT = (int, int, str, str, str, int, int, str, str, int, bytes, int, int, str, bytes)
_NONE = type(None)
_RUN_EVENT = (*_STEP_EVENT[:5], _NONE, _NONE, _NONE, *_STEP_EVENT[8:])
_PLANNED: Final = StepState.PLANNED.value
_SUCCEEDED: Final = StepState.SUCCEEDED.value
_LAYOUT: Final = b"%bt5:eventi%d;i%d;%bi%d;i%d;%b%bi%d;i%d;t%d:%b"
"""That of `chain.event_link`, for an event of a step."""
_read_one = JSONDecoder().raw_decode

Words = tuple[str, str, str, str | None, str]
"""Event, coupled, actor, state and run_state of a row."""
Move = tuple[bytes, bytes, int, bool, "Moves"]
"""How the words are hashed, before the numbers and after; how many attempts it adds; whether it
opens the next step; and what may follow if it does not."""
Moves = dict[Words, Move]
_NOWHERE: Final[Moves] = {}
Place = tuple[str, str, str, bool]
"""Contract and state of the open step, state of the run, whether the step is the last."""


@cache
def moves() -> dict[Place, Moves]:
    """Return the moves of steps that are permitted at each place."""
    table: dict[Place, Moves] = {}
    for (contract, source, event, actor, run_state, last), to in PERMITTED.items():
        if contract is None:
            continue  # a move of the run itself is rare, and left to the rules in words
        place = contract.value, source.value, run_state.value, last
        after = contract.value, to.target.value, to.run_target.value, last
        words = (
            event.value, " ".join(to.coupled), actor.value, to.target.value, to.run_target.value
        )  # fmt: skip
        opens = to.target is StepState.SUCCEEDED and not last
        moves_after = table.setdefault(after, {})
        sent = int(event.value in SENDS)
        table.setdefault(place, {})[words] = (*event_words(*words), sent, opens, moves_after)
    return table


class Follower:
    """A pass over the events of a run, which stands where `history.head` says.

    `writer` is the one whose rows may follow without a closer look; None if that is nobody. With
    `judges_payloads` a payload must be what the runtime writes, and nothing is kept of the rows
    but the head: that is for `verify`. Otherwise results and the open step are kept, too.
    """

    __slots__ = ("_contracts", "_history", "_judges", "_kept_max", "writer")

    def __init__(
        self, history: RunHistory, *, writer: bytes | None, judges_payloads: bool = False
    ) -> None:
        self._history = history
        self._contracts = [step.contract for step in history.steps]
        self._judges = judges_payloads
        self._kept_max = 0 if judges_payloads else None
        self.writer = writer

    def take(self, rows: Iterator[EventRow]) -> EventRow | None:
        """Take rows in, up to the first that calls for a closer look; return that one, or None at
        the end."""
        if self.writer is None or self._history.head.step > len(self._contracts):
            return next(rows, None)
        return self._take(rows, self._history.head, self.writer)

    def _take(self, rows: Iterator[EventRow], head: Head, writer: bytes) -> EventRow | None:
        """Take rows in from a head on.

        One loop, mostly without calls to functions of ours, and with local names only: a row costs
        about as much as its way out of the database.
        """
        run, seq, link, run_state, step, state, attempt, epoch, steps = head
        contracts, places, judges = self._contracts, moves(), self._judges
        known = places.get((contracts[step - 1], state, run_state, step == steps), _NOWHERE)
        written = writer_words(epoch, writer)
        done: deque[str] = deque(maxlen=self._kept_max)
        since: deque[EventRow] = deque(maxlen=self._kept_max)
        row: EventRow | None = None
        try:
            for row in rows:
                (
                    row_run, row_seq, name, coupled, actor, row_step, row_attempt, row_state,
                    row_run_state, row_epoch, row_writer, wall_ns, boot_ns, payload, row_hash,
                ) = row  # fmt: skip
                words = name, coupled, actor, row_state, row_run_state
                before, after, sent, opens, following = known[words]
                if (
                    row_seq != seq + 1 or row_step != step or row_attempt != attempt + sent
                    or row_epoch != epoch or row_writer != writer or row_run != run
                ):  # fmt: skip
                    return row
                # A TypeError unless all are integers: 1.0 is equal to 1, but not what was written.
                row_run | row_seq | row_step | row_attempt | row_epoch | wall_ns | boot_ns
                text = payload.encode()
                link_now = sha256(_LAYOUT % (
                    link, run, row_seq, before, step, row_attempt, after, written, wall_ns, boot_ns,
                    len(text), text,
                )).digest()  # fmt: skip
                if link_now != row_hash or (judges and not _is_ours(payload, row_state)):
                    return row
                seq, link, run_state, attempt = row_seq, link_now, row_run_state, row_attempt
                if opens:
                    done.append(payload)
                    since.clear()
                    step, state, attempt = step + 1, _PLANNED, 0
                    place = contracts[step - 1], state, run_state, step == steps
                    known = places.get(place, _NOWHERE)
                else:
                    since.append(row)
                    known = following
                    state = row_state or state  # a move of a step has one
        except (KeyError, TypeError, AttributeError):
            if row is None:
                raise
            return row  # there is no such move, or a value is of another type
        else:
            return None
        finally:
            now = Head(run, seq, link, run_state, step, state, attempt, epoch, steps)
            self._stand(now, done, since)

    def _stand(self, now: Head, done: Iterable[str], since: Iterable[EventRow]) -> None:
        """Take over what a pass came to: where the run stands, the results of the steps that it
        left behind, and the events since."""
        history = self._history
        head, known = history.head, history.open
        if self._judges:
            history.head = now
            return
        history.results.update(zip(count(head.step), done, strict=False))
        if now.step != head.step:
            head, known = now._replace(state=_PLANNED, attempt=0), UNTOUCHED
        for event in map(Event._make, since):
            after, known = next_head(head, event), next_open(head, known, event)
            history.take_over(event, after, known)
            head = after
        history.head, history.open = now, known


def _is_ours(payload: str, state: str | None) -> bool:
    """Return whether a payload is a JSON object, and has a result if the step succeeded."""
    if payload == "{}":  # which most requests have
        return state != _SUCCEEDED
    try:
        value, end = _read_one(payload)
    except (ValueError, RecursionError):
        return False
    if type(value) is not dict or end != len(payload):
        return False
    return state != _SUCCEEDED or "result" in value or "unstorable" in value


def event_of(row: EventRow, registration: Registration) -> Event:
    """Return the event in a row of this run, or raise `DamagedHistory` if its values are of other
    types."""
    if tuple(map(type, row)) not in (_STEP_EVENT, _RUN_EVENT):
        raise DamagedHistory(
            f"run {registration.run} ({registration.id}), seq {row[1]!a}: a value in the row is of "
            "another type"
        )
    return Event._make(row)


def fold(
    registration: Registration,
    steps: Sequence[StepRow],
    rows: Iterator[EventRow],
    *,
    previous: bytes,
) -> RunHistory:
    """Return the run that these rows tell, checked row by row; `previous` is the link before the
    run's.

    Raises `DamagedHistory` naming the first row that cannot be.
    """
    if registration_link(previous, registration) != registration.hash:
        raise DamagedHistory(
            f"run {registration.run} ({registration.id}): the registration does not fit its hash"
        )
    history = RunHistory(registration, steps)
    follower = Follower(history, writer=registration.writer)
    while (row := follower.take(rows)) is not None:
        event = event_of(row, registration)
        if event_link(history.head.hash, event) != event.hash:
            raise DamagedHistory(
                f"run {registration.run} ({registration.id}), seq {event.seq}: the row does not "
                "fit its hash"
            )
        history.take(event)
        follower.writer = event.writer
    return history
