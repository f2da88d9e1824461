"""What a report of the sweep adds up to. Standard library and `crashtests.independent` only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crashtests.independent.lifecycle import Lifecycle
from crashtests.sweep.judge import MUST_BE_ZERO, Came, came
from crashtests.sweep.scenarios import SCENARIOS, Scenario

COUNTS = Came._fields


def scenario_named(name: str) -> Scenario:
    """Return a scenario; raises KeyError if there is none of that name."""
    return {scenario.name: scenario for scenario in SCENARIOS}[name]


def came_of(told: Mapping[str, Any], lifecycle: Lifecycle) -> list[Came]:
    """Return what came of each state that kills left in a scenario, in the states' order."""
    scenario = scenario_named(told["scenario"])
    ends = [came(scenario, end, lifecycle) for end in told["ends"]]
    return [ends[state["end"]] for state in told["states"]]


def kills_on(path: Mapping[str, Any]) -> Iterator[int]:
    """Yield the state that each kill on a row of a report's paths left."""
    for _ in path["after"]:
        yield from path["states"]


def totals(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each scenario and path the kills, and after how many of them something was so."""
    lifecycle = Lifecycle()
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for told in scenarios:
        states = came_of(told, lifecycle)
        for path in told["paths"]:
            key = (told["scenario"], path["path"])
            empty = {"scenario": key[0], "path": key[1], "kills": 0, **dict.fromkeys(COUNTS, 0)}
            row = rows.setdefault(key, empty)
            for state in kills_on(path):
                row["kills"] += 1
                for name in COUNTS:
                    row[name] += bool(getattr(states[state], name))
    return list(rows.values())


def wrong(row: Mapping[str, Any]) -> list[str]:
    """Return what in a row of the totals must be 0 and is not; the baseline may be wrong."""
    if not scenario_named(row["scenario"]).contract:
        return []
    return [f"{name}: {row[name]}" for name in MUST_BE_ZERO if row[name]]


def failures(scenarios: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the name of a point, the first of its path, for each thing that must not be."""
    lifecycle = Lifecycle()
    for told in scenarios:
        if not scenario_named(told["scenario"]).contract:
            continue
        states = came_of(told, lifecycle)
        for path in told["paths"]:
            for name in MUST_BE_ZERO:
                bad = [n for n, state in enumerate(path["states"]) if getattr(states[state], name)]
                if bad:
                    after = ",".join(map(str, path["after"][0]))
                    place = f"{path['path']}@{after}" if after else path["path"]
                    yield f"{told['scenario']}:{place}:op={bad[0]}"
