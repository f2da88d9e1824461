"""A database's histories replayed through the spec's tables, row by row.

That only permitted moves are there, in permitted combinations (S6), that a terminal state is final
(S5), that epochs and attempts never go back (S7), that a step moves only when the one before it has
succeeded (S15), that a key rests on what no retry changes (S11), and that the state is the fold of
the rows (S9), is so checked by other code than the runtime's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crashtests.independent import chains
from crashtests.independent.lifecycle import Lifecycle

Row = Mapping[str, Any]
SENDS = ("request", "resend")


class End(NamedTuple):
    """Where a history ends."""

    run_state: str
    states: tuple[str, ...]
    attempts: tuple[int, ...]
    results: Mapping[str, Any]
    """By step id: the result that is on record."""
    reason: str | None
    """Why the latest step that was suspended, failed or abandoned was."""


class Impossible(Exception):
    """A row that the lifecycle does not permit; the message names the place."""


def complaints(database: Mapping[str, Any], lifecycle: Lifecycle) -> Iterator[str]:
    """Yield what cannot be in a database that the runtime wrote."""
    yield from chains.complaints(database)
    for run in database["runs"]:
        place = f"run {run['run']} ({run['id']})"
        steps = steps_of(database, run)
        if len(steps) != run["steps"] or chains.plan_digest(steps) != run["plan"]:
            yield f"{place}: the steps are not the plan that was registered"
        for number, step in enumerate(steps, start=1):
            if step["step"] != number or step.keys() != chains.STEP_COLUMNS:
                yield f"{place}, step {step['id']}: it is not in its place, or has other columns"
            if chains.key(database["identity"]["namespace"], run["id"], step) != step["key"]:
                yield f"{place}, step {step['id']}: the key is not the step's"
        try:
            replay(database, run, lifecycle)
        except Impossible as problem:
            yield f"{place}, {problem}"


def steps_of(database: Mapping[str, Any], run: Row) -> list[Row]:
    """Return the steps of a run."""
    return [step for step in database["steps"] if step["run"] == run["run"]]


def replay(database: Mapping[str, Any], run: Row, lifecycle: Lifecycle) -> End:
    """Return where the history of a run ends, or raise `Impossible` at the first row that cannot
    be."""
    steps = steps_of(database, run)
    writers = {writer["epoch"]: writer["writer"] for writer in database["writers"]}
    replayed = _Replay(steps, lifecycle, run["epoch"])
    events = [event for event in database["events"] if event["run"] == run["run"]]
    if not events:
        raise Impossible("there are no events")
    for number, event in enumerate(events, start=1):
        if event["seq"] != number:
            raise Impossible(f"seq {event['seq']}: seq {number} was to come")
        if writers.get(event["epoch"]) != event["writer"]:
            raise Impossible(f"seq {number}: no such writer")
        replayed.take(event)
    if events[-1]["event"] == "adopt":
        raise Impossible(f"seq {len(events)}: an adopt is never alone")
    return replayed.end()


def words_of(end: End, steps: Sequence[Row]) -> dict[str, Any]:
    """Return what the runtime must say of a run that has come to this end."""
    doubts = [
        {"step": step["id"], "attempt": attempt, "key": step["key"], "why": end.reason}
        for step, state, attempt in zip(steps, end.states, end.attempts, strict=True)
        if state == "in_doubt"
    ]
    return {"state": end.run_state, "results": dict(end.results), "in_doubt": doubts}


class _Replay:
    """The states of a run and its steps while its events are taken one after the other."""

    def __init__(self, steps: Sequence[Row], lifecycle: Lifecycle, epoch: int) -> None:
        self._steps = steps
        self._lifecycle = lifecycle
        self._epoch = epoch
        self._run_state = lifecycle.first_run_state
        self._states = [lifecycle.first_state] * len(steps)
        self._attempts = [0] * len(steps)
        self._results: dict[str, Any] = {}
        self._reason: str | None = None

    def take(self, event: Row) -> None:
        """Take an event, or raise `Impossible`."""
        place = f"seq {event['seq']}"
        self._check_epoch(event, place)
        number = event["step"]
        move = self._own(event) if number is None else self._of_a_step(event, number - 1, place)
        if move is None:
            raise Impossible(f"{place}: the lifecycle has no move {event['event']} here")
        state = None if number is None else move.state
        if (event["state"], event["run_state"]) != (state, move.run_state):
            raise Impossible(f"{place}: the move leads to {move.state} and {move.run_state}")
        if event["coupled"] != " ".join(move.run_moves):
            raise Impossible(f"{place}: other moves of the run ride with it: {move.run_moves}")
        if number is not None:
            self._settle(event, number - 1, move.state)
        self._run_state = move.run_state

    def end(self) -> End:
        return End(
            self._run_state,
            tuple(self._states),
            tuple(self._attempts),
            self._results,
            self._reason,
        )

    def _check_epoch(self, event: Row, place: str) -> None:
        adopts = event["event"] == "adopt"
        if event["epoch"] < self._epoch or adopts != (event["epoch"] > self._epoch):
            raise Impossible(f"{place}: epoch {event['epoch']} after epoch {self._epoch}")
        self._epoch = event["epoch"]

    def _own(self, event: Row) -> Any:
        index = next(
            (i for i, state in enumerate(self._states) if state != "succeeded"),
            len(self._states) - 1,
        )
        others = set(self._states[:index] + self._states[index + 1 :])
        return self._lifecycle.own_move(
            self._states[index], event["event"], event["actor"], self._run_state, others
        )

    def _of_a_step(self, event: Row, index: int, place: str) -> Any:
        if not 0 <= index < len(self._states):
            raise Impossible(f"{place}: there is no step {index + 1}")
        if any(state != "succeeded" for state in self._states[:index]):
            raise Impossible(f"{place}: a step moves before the one before it has succeeded")
        expected = self._attempts[index] + (event["event"] in SENDS)
        if event["attempt"] != expected:
            raise Impossible(f"{place}: attempt {event['attempt']}, and {expected} was to come")
        others = set(self._states[:index] + self._states[index + 1 :])
        contract = self._steps[index]["contract"]
        return self._lifecycle.move(
            contract, self._states[index], event["event"], event["actor"], self._run_state, others
        )

    def _settle(self, event: Row, index: int, state: str) -> None:
        self._states[index] = state
        self._attempts[index] = event["attempt"]
        payload = json.loads(event["payload"])
        if state == "succeeded":
            if "result" not in payload and "unstorable" not in payload:
                raise Impossible(f"seq {event['seq']}: it succeeded without a result")
            self._results[self._steps[index]["id"]] = payload.get("result")
        elif state in ("in_doubt", "failed", "abandoned"):
            self._reason = payload.get("why")
