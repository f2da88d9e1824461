"""What a history says, a row at a time.

`advance` takes a head over one event, with what the decision function needs to know of the open
step; `complaints` says why a row cannot follow: number, move, attempt, epoch. It is the one place
where that is said in words. `follow` goes over whole histories. Nothing here does I/O, decides, or
knows an adapter, so that a replay cannot call a tool.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent_replay.errors import DamagedHistory
from agent_replay.events import (
    CONTRACTS,
    RUN_STATES,
    STEP_STATES,
    Event,
    Head,
    Registration,
    Stamp,
    StepRow,
)
from agent_replay.lifecycles.coupling import PERMITTED, Permitted
from agent_replay.lifecycles.run import TERMINAL as RUN_TERMINAL
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, StepEvent, StepState
from agent_replay.values import Json

_ACTORS = {actor.value: actor for actor in Actor}
_EVENTS: dict[str, StepEvent | RunEvent] = {
    **{event.value: event for event in StepEvent},
    **{event.value: event for event in RunEvent},
}
_PLANNED = StepState.PLANNED.value
_SUCCEEDED = StepState.SUCCEEDED.value
SENDS = frozenset({StepEvent.REQUEST.value, StepEvent.RESEND.value})


class OpenStep(NamedTuple):
    """What the events say of the open step, beyond its state and its attempts.

    `grants` counts the operator's refutes and resends; `unresolved` the requests and resends since
    the last refute; `first` stamps the first of these, `suspended` the latest suspend; attempts up
    to `refuted` were refuted; `last` is the step's latest event.
    """

    grants: int = 0
    unresolved: int = 0
    refuted: int = 0
    first: Stamp | None = None
    suspended: Stamp | None = None
    last: Event | None = None


UNTOUCHED = OpenStep()


class RunHistory:
    """A run as its rows tell it. `results` maps the number of a step to the payload that settled
    it."""

    __slots__ = ("head", "open", "registration", "results", "settled", "steps")

    def __init__(self, registration: Registration, steps: Sequence[StepRow]) -> None:
        self.registration = registration
        self.steps = steps
        self.head = first_head(registration)
        self.open = UNTOUCHED
        self.results: dict[int, str] = {}
        self.settled: Event | None = None
        """The event that failed or abandoned a step, if one did."""

    @property
    def run_state(self) -> RunState:
        """Return the state of the run."""
        return RunState(self.head.run_state)

    @property
    def ended(self) -> bool:
        """Return whether the run has reached a terminal state."""
        return self.run_state in RUN_TERMINAL

    @property
    def open_step(self) -> StepRow:
        """Return the row of the open step."""
        return self.steps[self.head.step - 1]

    def take(self, event: Event) -> None:
        """Take one more event in, which must follow from the head."""
        self.take_over(event, *advance(self.head, self.open, self.open_step.contract, event))

    def take_over(self, event: Event, head: Head, open_step: OpenStep) -> None:
        """Take an event in whose outcome is known already."""
        if event.state == _SUCCEEDED and event.step is not None:
            self.results[event.step] = event.payload
        elif event.state in (StepState.FAILED, StepState.ABANDONED):
            self.settled = event
        self.head = head
        self.open = open_step


def first_head(registration: Registration) -> Head:
    """Return where a run stands that has only been registered."""
    return Head(
        run=registration.run,
        seq=0,
        hash=registration.hash,
        run_state=RunState.RUNNING.value,
        step=1,
        state=StepState.PLANNED.value,
        attempt=0,
        epoch=registration.epoch,
        steps=registration.steps,
    )


def permitted(contract: str | None, head: Head, event: Event) -> Permitted | None:
    """Return where the table says that the event leads from this head, or None if there is no
    such move."""
    try:
        return PERMITTED.get(
            (
                None if contract is None else CONTRACTS[contract],
                STEP_STATES[head.state],
                _EVENTS[event.event],
                _ACTORS[event.actor],
                RUN_STATES[head.run_state],
                head.step == head.steps,
            )
        )
    except KeyError:
        return None


def next_head(head: Head, event: Event) -> Head:
    """Return where the run stands after the event; a step that succeeds opens the next one."""
    if event.step is None:
        step, state, attempt = head.step, head.state, head.attempt
    elif event.state == _SUCCEEDED and head.step < head.steps:
        step, state, attempt = head.step + 1, _PLANNED, 0
    else:
        step, state, attempt = head.step, event.state or head.state, event.attempt or head.attempt
    return Head(
        head.run,
        event.seq,
        event.hash,
        event.run_state,
        step,
        state,
        attempt,
        event.epoch,
        head.steps,
    )


def next_open(head: Head, known: OpenStep, event: Event) -> OpenStep:
    """Return what is known of the open step after the event; `head` is the one before it."""
    if event.step is None:
        return known
    if event.state == _SUCCEEDED and head.step < head.steps:
        return UNTOUCHED
    granted = event.actor == Actor.OPERATOR
    if event.event in SENDS:
        return OpenStep(
            known.grants + granted,
            known.unresolved + 1,
            known.refuted,
            known.first or _stamp(event),
            known.suspended,
            event,
        )
    if event.event == StepEvent.SUSPEND:
        return known._replace(suspended=_stamp(event), last=event)
    if event.event == StepEvent.REFUTE:
        return OpenStep(grants=known.grants + granted, refuted=head.attempt, last=event)
    return known._replace(last=event)


def _stamp(event: Event) -> Stamp:
    return Stamp(event.epoch, event.wall_ns, event.boot_ns)


def advance(head: Head, known: OpenStep, contract: str, event: Event) -> tuple[Head, OpenStep]:
    """Return the head and the open step after the event, or raise `DamagedHistory` if it cannot
    follow.

    `contract` is that of the open step. The hash of the event is not looked at here.
    """
    for problem in complaints(head, contract, event):
        raise DamagedHistory(f"run {head.run}, seq {event.seq}: {problem}")
    return next_head(head, event), next_open(head, known, event)


def complaints(head: Head, contract: str, event: Event) -> Iterable[str]:
    """Yield why the event cannot follow the head; nothing if it does."""
    if event.run != head.run or event.seq != head.seq + 1:
        yield f"expected run {head.run}, seq {head.seq + 1}: an event is missing or doubled"
        return
    if (event.event == RunEvent.ADOPT) != (event.epoch != head.epoch) or event.epoch < head.epoch:
        yield f"{event.event!r} of epoch {event.epoch} after epoch {head.epoch}"
    if event.step not in (None, head.step):
        yield f"step {event.step} moves, but step {head.step} is open"
    found = permitted(None if event.step is None else contract, head, event)
    if found is None:
        yield (
            f"no move {event.event!r} by {event.actor!r} from {head.state!r} "
            f"while the run is {head.run_state!r} (contract {contract})"
        )
        return
    state = None if event.step is None else found.target
    if (
        event.coupled != " ".join(found.coupled)
        or event.state != state
        or event.run_state != found.run_target
    ):
        yield (
            f"{event.event!r} leads to '{found.target}', and the run to '{found.run_target}' "
            f"with {' '.join(found.coupled)!r}"
        )
    if event.attempt != expected_attempt(head, event.event, event.step):
        yield f"attempt {event.attempt} after attempt {head.attempt}"


def expected_attempt(head: Head, event: str, step: int | None) -> int | None:
    """Return the attempt that an event after this head carries."""
    if step is None:
        return None
    return head.attempt + 1 if event in SENDS else head.attempt


def payload_of(event: Event) -> dict[str, Json]:
    """Return the payload of an event as a value, or raise `DamagedHistory`."""
    return read_payload(event.payload, f"run {event.run}, seq {event.seq}")


def read_payload(text: str, place: str) -> dict[str, Json]:
    """Return a stored payload as a value, or raise `DamagedHistory` naming the place."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedHistory(f"{place}: the payload is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DamagedHistory(f"{place}: the payload is not a JSON object")
    return value
