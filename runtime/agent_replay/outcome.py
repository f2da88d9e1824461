"""What a run came to: the values that callers get."""

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent_replay.clock import NANOSECONDS
from agent_replay.contracts import Terms
from agent_replay.errors import DamagedHistory, ReplayError, UnstorableResult
from agent_replay.events import Event, Registration, StepRow
from agent_replay.history import RunHistory, payload_of, read_payload
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import Why
from agent_replay.values import Json


class Results(Mapping[str, Json]):
    """The results of the steps that succeeded, by step id, in the plan's order.

    A result that could not be stored raises `UnstorableResult`, each time, in every process.
    """

    def __init__(self, history: RunHistory) -> None:
        self._payloads = history.results
        self._steps = history.steps
        self._numbers = {history.steps[number - 1].id: number for number in history.results}

    def __getitem__(self, step: str) -> Json:
        payload = read_payload(self._payloads[self._numbers[step]], f"step {step!r}")
        if "unstorable" in payload:
            described = payload["unstorable"]
            why = described.get("why") if isinstance(described, dict) else None
            raise UnstorableResult(
                f"step {step!r} ran, but its result could not be stored ({why}) and is not known "
                f"any more: {json.dumps(described)}"
            )
        return payload["result"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<results of {', '.join(self._numbers) or 'no step'}>"


_NEXT_ACTS = {
    Contract.IDEMPOTENT: "send it again inside its key window, or confirm, refute or abandon it",
    Contract.QUERYABLE: "resume to ask its probe again, or confirm, refute or abandon it",
    Contract.OPAQUE: "confirm, refute or abandon it with evidence",
}


class Doubt(NamedTuple):
    """A step whose outcome is unknown, and what is needed to settle it.

    `why` is the recorded reason, `detail` what was recorded with it, `next` what can be done now.
    `not_before` is the moment, in
    seconds since the epoch (UTC), from which a probe's "absent" counts; None where no probe can
    say.
    """

    step: str
    attempt: int
    key: str
    contract: Contract
    why: str
    detail: Json
    next: str
    not_before: float | None


class Failure(NamedTuple):
    """The step that ended a run: refused, exhausted or abandoned."""

    step: str
    state: StepState
    why: str
    detail: Json


class Outcome(NamedTuple):
    """What a run came to, or where it waits.

    `state` is completed, failed or cancelled; or paused, or cancelling, with the steps in doubt.
    `warnings` says what a person should know and what changed nothing.
    """

    run: str
    state: RunState
    results: Results
    in_doubt: tuple[Doubt, ...]
    failure: Failure | None
    warnings: tuple[str, ...]

    @property
    def completed(self) -> bool:
        """Return whether every step succeeded."""
        return self.state is RunState.COMPLETED

    @property
    def waits(self) -> bool:
        """Return whether the run waits for evidence."""
        return bool(self.in_doubt)


class Finished(NamedTuple):
    """What came of one of many runs: its outcome, or the error that touched it alone."""

    run: str
    outcome: Outcome | None
    error: ReplayError | None


def outcome_of(history: RunHistory, warnings: tuple[str, ...] = ()) -> Outcome:
    """Return what the history says that the run came to."""
    in_doubt = (doubt_of(history),) if history.head.state == StepState.IN_DOUBT else ()
    return Outcome(
        run=history.registration.id,
        state=history.run_state,
        results=Results(history),
        in_doubt=in_doubt,
        failure=None if history.settled is None else _failure(history, history.settled),
        warnings=warnings + tuple(_unstorable(history)),
    )


def doubt_of(history: RunHistory) -> Doubt:
    """Return what is unknown of the open step, which is in doubt."""
    step = history.open_step
    payload = {} if history.open.last is None else payload_of(history.open.last)
    return Doubt(
        step=step.id,
        attempt=history.head.attempt,
        key=step.key,
        contract=Contract(step.contract),
        why=str(payload.get("why", "")),
        detail=payload.get("detail"),
        next=_next_act(history, Contract(step.contract), str(payload.get("why", ""))),
        not_before=_not_before(history, step),
    )


def _next_act(history: RunHistory, contract: Contract, why: str) -> str:
    """Return what can be done now: nothing is sent past a key's window, or after a cancel."""
    sends = history.run_state is RunState.PAUSED and why != Why.WINDOW_LAPSED
    if contract is Contract.IDEMPOTENT and not sends:
        return _NEXT_ACTS[Contract.OPAQUE]
    return _NEXT_ACTS[contract]


def _not_before(history: RunHistory, step: StepRow) -> float | None:
    bound_ns = terms_of(history.registration)[step.adapter].settles_within_ns
    if bound_ns is None or history.open.suspended is None:
        return None
    return (history.open.suspended.wall_ns + bound_ns) / NANOSECONDS


def _failure(history: RunHistory, event: Event) -> Failure:
    payload = payload_of(event)
    assert event.step is not None, "only a step's own event fails or abandons it"
    return Failure(
        step=history.steps[event.step - 1].id,
        state=StepState(str(event.state)),
        why=str(payload.get("why", "")),
        detail=payload.get("detail", payload.get("evidence")),
    )


def _unstorable(history: RunHistory) -> Iterator[str]:
    for number, payload in history.results.items():
        if payload.startswith('{"unstorable":'):
            yield f"step {history.steps[number - 1].id!r} ran, but its result could not be stored"


def sources_of(registration: Registration) -> dict[str, Json]:
    """Return the digests of the adapters' sources as they were when the run began, by identity."""
    place = f"run {registration.run} ({registration.id}), adapters"
    pinned = read_payload(registration.adapters, place)
    return {
        identity: given.get("source")
        for identity, given in pinned.items()
        if isinstance(given, dict)
    }


def terms_of(registration: Registration) -> dict[str, Terms]:
    """Return the contracts with their terms that a run has pinned, by adapter identity."""
    place = f"run {registration.run} ({registration.id}), adapters"
    pinned = read_payload(registration.adapters, place)
    try:
        return {identity: Terms.of(given) for identity, given in pinned.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedHistory(f"{place}: the runtime never pinned this") from error
