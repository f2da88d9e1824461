"""The lines of what a run came to."""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.errors import UnstorableResult
from agent_replay.lifecycles.run import RunState
from agent_replay.outcome import Failure, Outcome
from agent_replay.report.words import aligned, bounded, detail_in_words, shown_json, why_in_words
from agent_replay.values import Json

_WAITS = {
    RunState.RUNNING: "running, and waits for somebody who resumes it",
    RunState.PAUSED: "paused, and waits for evidence",
    RunState.CANCELLING: "cancelling, and waits for evidence",
}


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Yield the state of a run, a line for each result, and what ended it."""
    yield f"{outcome.run}: {_WAITS.get(outcome.state, outcome.state.value)}"
    rows = [(step, _result(outcome, step)) for step in outcome.results]
    if rows:
        yield from aligned(rows, indent="  ")
    if outcome.failure is not None:
        yield from _failure_lines(outcome.failure)


def result_of(outcome: Outcome, step: str) -> tuple[Json, str]:
    """Return the result of a step, or None and why it is not known any more."""
    try:
        return outcome.results[step], ""
    except UnstorableResult as error:
        return None, str(error)


def _result(outcome: Outcome, step: str) -> str:
    result, problem = result_of(outcome, step)
    return bounded(problem) if problem else shown_json(result)


def _failure_lines(failure: Failure) -> Iterator[str]:
    why = why_in_words(failure.why)
    yield f"  {failure.step}: {failure.state}{': ' if why else ''}{why}"
    if failure.detail is not None:
        yield f"  on record is {detail_in_words(failure.detail)}"
