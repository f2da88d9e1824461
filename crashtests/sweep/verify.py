"""Judge a report of the sweep, trusting nothing in it and nothing of the runtime.

`crashtests.verify` calls this. Standard library and `spec/*.toml` only.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from crashtests import provenance
from crashtests.independent.history import SENDS
from crashtests.independent.lifecycle import Lifecycle
from crashtests.judgement import KILLED, digest_of
from crashtests.sweep import judge, tally
from crashtests.sweep.scenarios import (
    EACH,
    FORMS,
    FULL,
    PATHS,
    QUICK,
    RUN,
    SCENARIOS,
    Scenario,
    paths_of,
)

FORMAT = 1
REPORT_FIELDS = {"format", "form", "about", "scenarios", "totals"}
SCENARIO_FIELDS = {"scenario", "terminations", "kinds", "paths", "states", "ends", "digest"}
PATH_FIELDS = {"path", "after", "recorded", "states"}
STATE_FIELDS = {"stage", "rows", "head", "effects", "end"}
END_FIELDS = {"database", "effects", "said"}

_HISTORY = ("database", "new database", "log", "journal")
FILES = {
    "write": (*_HISTORY, "index"),
    "sync": (*_HISTORY, "folder"),
    "truncate": _HISTORY,
    "delete": _HISTORY,
    "rename": ("new database",),
    "lock": ("index",),
    **dict.fromkeys(("call", "reply", "probe", "answer"), ("tool",)),
}
"""The operations that are watched, each with the files that it is done to."""

KILLS_MIN = {QUICK: 500, FULL: 10_000, EACH: 10_000}
"""With fewer kills a report of that form has not been everywhere."""

Told = Mapping[str, Any]


def findings(report: Any, *, recorded: bool = False) -> list[str]:
    """Return what is wrong with a report, each with its place; nothing if it holds."""
    if report.keys() != REPORT_FIELDS:
        return [f"the report: it has not the fields {', '.join(sorted(REPORT_FIELDS))}"]
    if (
        type(report["format"]) is not int
        or report["format"] != FORMAT
        or report["form"] not in FORMS
    ):
        return [f"format: {report['format']!r}, {report['form']!r}: this verifier knows them not"]
    found = provenance.findings(report["about"], recorded=recorded)
    found += [f"scenarios: {one}" for one in provenance.guarded(_names, report["scenarios"])]
    for told in report["scenarios"] if isinstance(report["scenarios"], list) else []:
        name = told.get("scenario") if isinstance(told, dict) else told
        for problem in provenance.guarded(_scenario, told, report["form"]):
            found.append(f"scenario {name!r}, {problem}")
    return found or [f"totals: {one}" for one in provenance.guarded(_totals, report)]


def summary(report: Any) -> str:
    """Return in a line what holds of a report that is sound."""
    kills = sum(row["kills"] for row in report["totals"])
    return f"{len(report['scenarios'])} scenarios with {kills} kills hold ({report['form']} form)"


def _names(scenarios: list[Told]) -> Iterator[str]:
    names = [told["scenario"] for told in scenarios]
    expected = [scenario.name for scenario in SCENARIOS]
    if names != expected:
        yield f"they are {names}, and {expected} were to be"


def _totals(report: Told) -> Iterator[str]:
    """Yield where the totals are not those of the rows, or are not what must be."""
    if report["totals"] != tally.totals(report["scenarios"]):
        yield "they are not the sums of the rows"
    kills = sum(row["kills"] for row in report["totals"])
    if kills < KILLS_MIN[report["form"]]:
        yield f"{kills} kills, and {KILLS_MIN[report['form']]} are the fewest of this form"
    for row in report["totals"]:
        for problem in tally.wrong(row):
            yield f"{row['scenario']} {row['path']}: {problem}"


def _scenario(told: Told, form: str) -> Iterator[str]:
    scenario = tally.scenario_named(told["scenario"])
    yield from _fields("the scenario", [told], SCENARIO_FIELDS)
    yield from _fields("paths", told["paths"], PATH_FIELDS)
    yield from _fields("states", told["states"], STATE_FIELDS)
    yield from _fields("ends", told["ends"], END_FIELDS)
    if digest_of(told) != told["digest"]:
        yield "digest: something in this scenario was changed"
    yield from _kills(told)
    yield from _kinds(told["kinds"])
    yield from _passed(told, scenario)
    yield from _stages(told, scenario)
    yield from _along(told, scenario)
    yield from _paths(told, paths_of(scenario, form), every=form == EACH)
    lifecycle = Lifecycle()
    for number, end in enumerate(told["ends"]):
        for problem in judge.complaints(scenario, end, lifecycle):
            yield f"ends[{number}]: {problem}"
    for number, state in enumerate(told["states"]):
        for problem in _state(scenario, state, told["ends"][state["end"]]):
            yield f"states[{number}]: {problem}"


def _fields(name: str, records: list[Told], known: set[str]) -> Iterator[str]:
    for number, record in enumerate(records):
        for field in sorted(record.keys() ^ known):
            said = "missing" if field in known else "foreign"
            yield f"{name}[{number}]: the field {field!r} is {said}"


def _kills(told: Told) -> Iterator[str]:
    """Yield where the kills are not all by SIGKILL, or the rows name what is not there."""
    kills = sum(len(path["after"]) * len(path["states"]) for path in told["paths"])
    if told["terminations"] != {str(KILLED): kills}:
        yield f"terminations: {told['terminations']}, for {kills} kills"
    seen = {"kinds": set[int](), "states": set[int](), "ends": set[int]()}
    for number, path in enumerate(told["paths"]):
        if len(path["recorded"]) != len(path["states"]) or not path["states"]:
            yield f"paths[{number}]: not each operation that was recorded has a state"
        seen["kinds"].update(path["recorded"])
        seen["states"].update(path["states"])
    seen["ends"].update(state["end"] for state in told["states"])
    for name, numbers in seen.items():
        if numbers != set(range(len(told[name]))):
            yield f"{name}: those that the rows name are not those that there are"


def _kinds(kinds: list[list[str]]) -> Iterator[str]:
    if len({tuple(kind) for kind in kinds}) != len(kinds):
        yield "kinds: one stands there twice"
    for operation, file in kinds:
        if file not in FILES.get(operation, ()):
            yield f"kinds: {operation} {file} is none"


def _passed(told: Told, scenario: Scenario) -> Iterator[str]:
    """Yield where a first run lacks what it must pass: each call, and a durable row before it."""
    for number, path in enumerate(told["paths"]):
        if path["path"] != RUN:
            continue
        kinds = [tuple(told["kinds"][kind]) for kind in path["recorded"]]
        counts = Counter(kinds)
        made = [("write", "new database"), ("sync", "new database"), ("rename", "new database")]
        steps = 0 if scenario.creates else len(scenario.steps)
        for kind in made if scenario.creates else [("write", "log"), ("sync", "log")]:
            if not counts[kind]:
                yield f"paths[{number}]: it passes no {' '.join(kind)}"
        for operation in ("call", "reply"):
            if counts[operation, "tool"] != steps:
                yield f"paths[{number}]: {counts[operation, 'tool']} of {steps} {operation} tool"
        first = kinds.index(("call", "tool")) if ("call", "tool") in kinds else 0
        if steps and scenario.contract and ("sync", "log") not in kinds[:first]:
            yield f"paths[{number}]: it calls the tool before it has synced a row (S1)"


def _stages(told: Told, scenario: Scenario) -> Iterator[str]:
    """Yield where a state is not of the process whose kill left it."""
    for number, path in enumerate(told["paths"]):
        stage = PATHS.index(path["path"]) + 1 + (not scenario.creates)
        if any(told["states"][state]["stage"] != stage for state in path["states"]):
            yield f"paths[{number}]: a kill on it left a state of another stage than {stage}"


def _along(told: Told, scenario: Scenario) -> Iterator[str]:
    """Yield where a later kill on a path left less, or no effect after the tool had answered."""
    for number, path in enumerate(told["paths"]):
        states = [told["states"][state] for state in path["states"]]
        for earlier, later in itertools.pairwise(states):
            fewer = [b < a for a, b in zip(earlier["effects"], later["effects"], strict=True)]
            if later["rows"] < earlier["rows"] or any(fewer):
                yield f"paths[{number}]: a later kill left fewer rows or effects"
                break
        kinds = [told["kinds"][kind] for kind in path["recorded"]]
        replies = list(itertools.accumulate(kind == ["reply", "tool"] for kind in kinds))
        for replied, state in zip(replies, states[1:], strict=False):
            if replied and scenario.contract != "read_only" and not any(state["effects"]):
                yield f"paths[{number}]: the tool had answered, and there is no effect"
                break


def _paths(told: Told, expected: tuple[str, ...], *, every: bool) -> Iterator[str]:
    """Yield where a path was not killed everywhere it must be."""
    left: list[dict[tuple[int, ...], int]] = [{(): -1}]
    for depth, path in enumerate(PATHS):
        rows = [row for row in told["paths"] if row["path"] == path]
        if bool(rows) != (path in expected):
            yield f"{path}: it is {'foreign' if rows else 'missing'}"
        if not rows or depth >= len(left):
            return
        begun = [tuple(after) for row in rows for after in row["after"]]
        yield from _begun(path, begun, left[depth], every=every and depth == 1)
        left.append(
            {
                (*after, number): state
                for row in rows
                for after in row["after"]
                for number, state in enumerate(row["states"])
            }
        )


def _begun(
    path: str, begun: list[tuple[int, ...]], left: dict[tuple[int, ...], int], *, every: bool
) -> Iterator[str]:
    """Yield where a path does not begin after each kill of the path before, or each state."""
    if len(set(begun)) != len(begun):
        yield f"{path}: it begins twice after the same kill"
    if not left.keys() >= set(begun):
        yield f"{path}: it begins after a kill that was not"
        return
    missing = left.keys() - set(begun)
    if not every:
        reached = {left[after] for after in begun}
        missing = {after for after in missing if left[after] not in reached}
    for after in itertools.islice(sorted(missing), 3):
        yield f"{path}: it was not killed after {after}"


def _state(scenario: Scenario, state: Told, end: Told) -> Iterator[str]:
    """Yield where the end does not go on from a state: rows or effects are gone."""
    if any(
        later < earlier for earlier, later in zip(state["effects"], end["effects"], strict=True)
    ):
        yield f"effects: {state['effects']}, and in the end {end['effects']}"
    if not scenario.contract:
        return
    events = end["database"]["events"]
    sent = {event["step"] for event in events[: state["rows"]] if event["event"] in SENDS}
    for step, effects in enumerate(state["effects"], start=1):
        if effects and step not in sent:
            yield f"effects: step {step} had one without a durable request (S1)"
    head = events[state["rows"] - 1]["hash"] if 0 < state["rows"] <= len(events) else None
    if state["rows"] > len(events) or head != state["head"]:
        yield f"head: row {state['rows']} is not in the history that came of it"
