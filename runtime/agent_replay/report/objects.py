"""What the commands print with `--json`, as JSON objects.

Times are UTC, keys and hashes hex digits. Fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_replay.errors import ReplayError
from agent_replay.events import Event, Writer
from agent_replay.history import RunHistory, payload_of, read_payload
from agent_replay.outcome import Outcome
from agent_replay.report.commands import Act, sources_of
from agent_replay.report.diagnosis import Diagnosis
from agent_replay.report.outcomes import result_of
from agent_replay.report.runs import Listed
from agent_replay.report.words import utc, utc_of_seconds, why_in_words
from agent_replay.values import Json, decode


def outcome_object(outcome: Outcome, next_acts: tuple[Act, ...], code: int) -> dict[str, Json]:
    """Return what a run came to, with all of its results."""
    results: dict[str, Json] = {}
    unstorable: dict[str, Json] = {}
    for step in outcome.results:
        result, problem = result_of(outcome, step)
        if problem:
            unstorable[step] = problem
        else:
            results[step] = result
    return {
        "run": outcome.run,
        "state": outcome.state.value,
        "exit": code,
        "results": results,
        "unstorable": unstorable,
        "in_doubt": [
            {
                "step": doubt.step,
                "attempt": doubt.attempt,
                "key": doubt.key,
                "contract": doubt.contract.value,
                "why": doubt.why,
                "why_in_words": why_in_words(doubt.why),
                "detail": doubt.detail,
                "not_before": _moment(doubt.not_before),
            }
            for doubt in outcome.in_doubt
        ],
        "failure": None
        if outcome.failure is None
        else {
            "step": outcome.failure.step,
            "state": outcome.failure.state.value,
            "why": outcome.failure.why,
            "why_in_words": why_in_words(outcome.failure.why),
            "detail": outcome.failure.detail,
        },
        "warnings": list(outcome.warnings),
        "next": acts_list(next_acts),
    }


def refused_object(run: str, error: ReplayError, code: int) -> dict[str, Json]:
    """Return why a run could not be resumed."""
    return {"run": run, "error": type(error).__name__, "message": str(error), "exit": code}


def acts_list(acts: tuple[Act, ...]) -> list[Json]:
    """Return what can be done next, each as words of a command and as a line for a shell."""
    return [{"do": act.do, "argv": list(act.argv), "command": act.command} for act in acts]


def diagnosis_object(found: Diagnosis) -> dict[str, Json]:
    """Return how an unfinished run stands, why, and what to do."""
    return {
        "run": found.run,
        "standing": found.standing.value,
        "run_state": found.run_state.value,
        "step": found.step,
        "number": found.number,
        "steps": found.steps,
        "state": found.state.value,
        "contract": found.contract.value,
        "attempt": found.attempt,
        "key": found.key,
        "why": list(found.why),
        "not_before": _moment(found.not_before),
        "next": acts_list(found.acts),
    }


def listed_object(run: Listed) -> dict[str, Json]:
    """Return a run as `list` shows it."""
    return {
        "number": run.run,
        "run": run.id,
        "standing": run.standing.value,
        "registered": utc(run.registered_ns),
        "steps": run.steps,
        "seq": run.seq,
        "open": None
        if run.step is None
        else {
            "step": run.step,
            "number": run.number,
            "state": run.state,
            "attempt": run.attempt,
            "key": run.key,
        },
        "archive": run.archive,
    }


def history_object(
    history: RunHistory,
    events: Sequence[Event],
    writers: Sequence[Writer],
    *,
    standing: str,
    arguments: bool,
) -> dict[str, Json]:
    """Return a run from its registration to its last event; arguments only if asked for."""
    registration, head = history.registration, history.head
    return {
        "run": registration.id,
        "number": registration.run,
        "standing": standing,
        "run_state": head.run_state,
        "registered": utc(registration.wall_ns),
        "plan": registration.plan,
        "attempts_max": registration.attempts_max,
        "adapters": read_payload(registration.adapters, "the adapters of the run"),
        "loaded_from": list(sources_of(registration.hint)),
        "head": {"seq": head.seq, "hash": head.hash.hex()},
        "writers": [_writer(writer) for writer in writers],
        "steps": list(_steps(history, arguments=arguments)),
        "events": [_event(history, event) for event in events],
    }


def _writer(writer: Writer) -> dict[str, Json]:
    return {
        "epoch": writer.epoch,
        "pid": writer.pid,
        "host": writer.host,
        "opened": utc(writer.opened_ns),
        "boot_id": writer.boot_id,
    }


def _steps(history: RunHistory, *, arguments: bool) -> Iterator[dict[str, Json]]:
    for step in history.steps:
        told: dict[str, Json] = {
            "id": step.id,
            "adapter": step.adapter,
            "contract": step.contract,
            "key": step.key,
        }
        if arguments:
            told["arguments"] = decode(step.arguments, f"arguments of step {step.id}")
        yield told


def _event(history: RunHistory, event: Event) -> dict[str, Json]:
    return {
        "seq": event.seq,
        "time": utc(event.wall_ns),
        "event": event.event,
        "coupled": [*event.coupled.split()],
        "actor": event.actor,
        "step": None if event.step is None else history.steps[event.step - 1].id,
        "attempt": event.attempt,
        "state": event.state,
        "run_state": event.run_state,
        "epoch": event.epoch,
        "payload": payload_of(event),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else utc_of_seconds(seconds)
