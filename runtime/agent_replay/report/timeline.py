"""The lines of `show`: a run from its registration to its last event.

Times are those that the writers' clocks showed. Where a clock went back the line says so, and no
length of time is ever negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_replay.events import Event, Writer
from agent_replay.history import SENDS, RunHistory, payload_of, read_payload
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.outcome import terms_of
from agent_replay.report.commands import sources_of
from agent_replay.report.words import (
    aligned,
    bounded,
    detail_in_words,
    elapsed,
    safe,
    shown_json,
    terms_in_words,
    utc,
    why_in_words,
)
from agent_replay.values import Json

ARGUMENTS_LENGTH_MAX = 1_000
_SOURCE_LENGTH = 12


def header_lines(history: RunHistory, writers: Sequence[Writer], *, standing: str) -> Iterator[str]:
    """Yield what was fixed when the run was registered, who wrote it, and where it stands."""
    registration, head = history.registration, history.head
    yield f"{registration.id}: {standing}"
    rows = [
        ("registered", f"{utc(registration.wall_ns)}, as run {registration.run} of this database"),
        ("plan", f"{registration.steps} steps, digest {registration.plan}"),
        ("limit", f"{registration.attempts_max} attempts a step, before a person is asked"),
        ("head", f"{registration.id}={head.seq}:{head.hash.hex()}"),
    ]
    rows += [("adapter", text) for text in _adapters(history)]
    rows += [("loaded from", safe(source)) for source in sources_of(registration.hint)]
    rows += [("writer", _writer(writer)) for writer in writers]
    yield from aligned(rows, indent="  ")


def argument_lines(history: RunHistory) -> Iterator[str]:
    """Yield a line for each step of the plan, with its key and the beginning of its arguments."""
    for step in history.steps:
        arguments = bounded(step.arguments, ARGUMENTS_LENGTH_MAX)
        yield f"  step {step.step} {step.id}: {step.adapter}, key {step.key}, arguments {arguments}"


def event_lines(
    history: RunHistory, events: Sequence[Event], before: Event | None = None
) -> list[str]:
    """Return a line for each event, in order; `before` is the event before the first, if any."""
    rows: list[tuple[str, ...]] = []
    sources = _Sources(history)
    previous_ns = history.registration.wall_ns if before is None else before.wall_ns
    state = RunState.RUNNING.value if before is None else before.run_state
    for event in events:
        moved = f"run {state} -> {event.run_state}" if event.run_state != state else ""
        coupled = f" ({event.coupled.replace(' ', ', ')})" if event.coupled else ""
        rows.append(
            (
                str(event.seq),
                utc(event.wall_ns),
                elapsed(previous_ns, event.wall_ns),
                "the run" if event.step is None else history.steps[event.step - 1].id,
                event.event,
                "" if event.attempt is None else f"attempt {event.attempt}",
                event.actor,
                f"-> {event.state}" if event.state else "",
                f"{moved}{coupled}",
                "; ".join((*_details(event), *sources.remarks(event))),
            )
        )
        previous_ns, state = event.wall_ns, event.run_state
    return aligned(rows, indent="  ") if rows else []


def _adapters(history: RunHistory) -> Iterator[str]:
    pinned = read_payload(history.registration.adapters, "the adapters of the run")
    for identity, terms in terms_of(history.registration).items():
        given = pinned[identity]
        source = given.get("source") if isinstance(given, dict) else None
        told = f", source {source[:_SOURCE_LENGTH]}" if isinstance(source, str) and source else ""
        yield f"{identity}: {terms_in_words(terms)}{told}"


def _writer(writer: Writer) -> str:
    return (
        f"epoch {writer.epoch}: process {writer.pid} on {bounded(writer.host)}, "
        f"from {utc(writer.opened_ns)}"
    )


def _details(event: Event) -> Iterator[str]:
    """Yield what the payload of an event says to a person."""
    payload = payload_of(event)
    if "result" in payload:
        yield f"result {shown_json(payload['result'])}"
    if "unstorable" in payload:
        yield f"its result could not be stored: {shown_json(payload['unstorable'])}"
    yield from _reason(event, payload)
    if payload.get("detail") is not None:
        yield detail_in_words(payload["detail"])
    yield from _evidence(payload.get("evidence"))
    if "contradicts_refute" in payload:
        yield "this contradicts the refute before it"
    send_before = payload.get("send_before_ns")
    if isinstance(send_before, int):
        yield f"to be sent before {utc(send_before)}"


def _reason(event: Event, payload: dict[str, Json]) -> Iterator[str]:
    if event.event == RunEvent.ASK_CANCEL:
        yield f"asked by {_text(payload.get('who'))}: {_text(payload.get('why'))}"
    elif event.event == RunEvent.ADOPT:
        yield f"epoch {event.epoch} takes the run over"
    elif payload.get("why"):
        yield why_in_words(str(payload["why"]))


def _evidence(evidence: Json) -> Iterator[str]:
    if isinstance(evidence, dict):
        yield f"{_text(evidence.get('kind'))}: {shown_json(evidence.get('content'))}"
        yield f"by {_text(evidence.get('who'))}: {_text(evidence.get('why'))}"


def _text(value: Json) -> str:
    return bounded(value) if isinstance(value, str) else shown_json(value)


class _Sources:
    """The digests of the adapters' sources, so that a change between attempts is seen."""

    def __init__(self, history: RunHistory) -> None:
        pinned = read_payload(history.registration.adapters, "the adapters of the run")
        self._history = history
        self._pinned = {
            identity: given.get("source") if isinstance(given, dict) else None
            for identity, given in pinned.items()
        }
        self._first: dict[int, Json] = {}

    def remarks(self, event: Event) -> Iterator[str]:
        """Yield how the adapter of a request differs from the one that was there before."""
        if event.event not in SENDS or event.step is None:
            return
        source = payload_of(event).get("source")
        if event.step not in self._first:
            self._first[event.step] = source
            if source != self._pinned.get(self._history.steps[event.step - 1].adapter):
                yield "the adapter's source differs from the one that the run has pinned"
        elif source != self._first[event.step]:
            yield "the adapter's source differs from the one at attempt 1"
