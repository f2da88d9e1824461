"""What must hold after every act, judged from the file and from the world outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from crashtests.independent import history
from tests.stateful import reference
from tests.stateful.judge import Database, lifecycle
from tests.stateful.outside import Outside
from tests.stateful.records import Run, Step

NOT_STORED = ("unstorable", "large")


@dataclass
class Memory:
    """What was seen after the acts before: it may be added to, and never change."""

    hashes: dict[str, list[str]] = field(default_factory=dict)
    writers: list[str] = field(default_factory=list)


def as_listed(runs: Iterable[Run]) -> list[tuple[object, ...]]:
    """Return the runs as a reader of the database lists them."""
    return [
        (run.name, reference.state_of(run), run.steps.index(run.open) + 1, run.open.state)
        for run in runs
    ]


def stored_step(plan: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what a key rests on, of a step of a plan."""
    for step in plan["steps"]:
        if step["id"] == name:
            arguments = json.dumps(step["arguments"], sort_keys=True, separators=(",", ":"))
            return {"id": name, "adapter": step["adapter"], "arguments": arguments}
    return {"id": name, "adapter": "none@1", "arguments": "{}"}


def differences(database: Database, runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield where the history, replayed by other code, says something else than the reference."""
    stored = {row["id"]: row for row in database["runs"]}
    if stored.keys() != runs.keys():
        yield f"registered are {sorted(stored)}, and {sorted(runs)} should be"
        return
    for name, run in runs.items():
        end = history.replay(database, stored[name], lifecycle())
        found = (end.run_state, end.states, end.attempts, dict(end.results))
        if found != _expected(run):
            yield f"run {name}: {found}, and {_expected(run)} should be"
        epochs = [row["epoch"] for row in database["events"] if row["run"] == stored[name]["run"]]
        if epochs[-1] != run.epoch:
            yield f"run {name}: epoch {epochs[-1]}, and {run.epoch} should be"


def _expected(run: Run) -> tuple[object, ...]:
    results = {
        step.name: None if step.result in NOT_STORED else step.result
        for step in run.steps
        if step.state is StepState.SUCCEEDED
    }
    return (
        reference.state_of(run),
        tuple(step.state for step in run.steps),
        tuple(step.attempt for step in run.steps),
        results,
    )


def forgotten(database: Database, memory: Memory) -> Iterator[str]:
    """Yield what was there before and is no more, or differs: durable stays durable (S5, S8)."""
    names = {row["run"]: row["id"] for row in database["runs"]}
    hashes: dict[str, list[str]] = {name: [] for name in names.values()}
    for event in database["events"]:
        hashes[names[event["run"]]].append(event["hash"])
    writers = [row["hash"] for row in database["writers"]]
    for name, before in memory.hashes.items():
        if hashes.get(name, [])[: len(before)] != before:
            yield f"run {name}: rows that were there are gone or changed"
    if writers[: len(memory.writers)] != memory.writers:
        yield "writers that were there are gone or changed"
    memory.hashes, memory.writers = hashes, writers


def reasons(database: Database, memory: Memory) -> Iterator[str]:
    """Yield what each new row of a step was, and why it was written."""
    names = {row["run"]: row["id"] for row in database["runs"]}
    contracts = {(row["run"], row["step"]): row["contract"] for row in database["steps"]}
    for row in database["events"]:
        if row["step"] and row["seq"] > len(memory.hashes.get(names[row["run"]], ())):
            payload = json.loads(row["payload"])
            why = payload.get("why", "")
            yield f"{row['event']} {contracts[row['run'], row['step']]}: {why}".rstrip(": ")
            for word in ("unstorable", "contradicts_refute"):
                if word in payload:
                    yield f"a row says {word}"


def broken_promises(
    runs: Mapping[str, Run], outside: Outside, untrue: set[tuple[str, str]]
) -> Iterator[str]:
    """Yield each step of which more or less happened than its state says (S2, S3, S4, S15)."""
    for run in runs.values():
        for number, step in enumerate(run.steps):
            place = run.name, step.name
            if place not in untrue and not _forgets(step, outside):
                yield from _step_problems(run, step, outside)
            if step.attempt and number and run.steps[number - 1].state != StepState.SUCCEEDED:
                yield f"{place}: requested before the step before it succeeded"


def _forgets(step: Step, outside: Outside) -> bool:
    """Return whether the wall clock was set back and the machine started anew (against A4)."""
    return step.tool == "windowed" and outside.time.set_back and outside.time.boots > 1


def _step_problems(run: Run, step: Step, outside: Outside) -> Iterator[str]:
    place = run.name, step.name
    effects, may_land = outside.effects[place], outside.may_land(place)
    reads = step.contract is Contract.READ_ONLY
    if effects > (not reads):
        yield f"{place}: {effects} effects"
    if step.state is StepState.SUCCEEDED and not reads and not effects:
        yield f"{place}: it succeeded, and nothing happened"
    is_refuted = step.state is StepState.PLANNED and step.attempt > 0
    if (step.state is StepState.FAILED or is_refuted) and not reads and (effects or may_land):
        yield f"{place}: {step.state}, and it happened or can still land"
    if not step.attempt and (effects or may_land):
        yield f"{place}: it happened without a durable request"


def unsettled(run: Run) -> bool:
    """Return whether a run that was just resumed is still open without a doubt (S10)."""
    return reference.state_of(run) is RunState.RUNNING or run.open.state is StepState.REQUESTED
