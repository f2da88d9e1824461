"""One point, or some, killed again and told in words: what `--only` does.

A point is named `SCENARIO:PATH:op=N`, as in `opaque:recovery:op=41`. The path may say after which
kills it comes, `recovery@17` or `recovery-of-recovery@17,5`; without that, it is after each.
Without `op=N` it is each operation of the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from crashtests.independent.lifecycle import Lifecycle
from crashtests.sweep.bench import Bench, State
from crashtests.sweep.explore import After
from crashtests.sweep.judge import Came, came
from crashtests.sweep.scenarios import PATHS, SCENARIOS, Scenario

_FORM = re.compile(r"([a-z_-]+):([a-z-]+)(?:@([0-9]+(?:,[0-9]+)*))?(?::op=([0-9]+))?")


class Point(NamedTuple):
    """One place at which a process is killed."""

    path: str
    after: After
    operation: int

    def name(self, scenario: str) -> str:
        """Return the name by which `--only` finds it."""
        after = f"@{','.join(map(str, self.after))}" if self.after else ""
        return f"{scenario}:{self.path}{after}:op={self.operation}"


class Pattern(NamedTuple):
    """Which points are meant."""

    scenario: Scenario
    path: str
    after: After | None
    operation: int | None


def pattern_of(text: str) -> Pattern:
    """Return which points a text means; raises ValueError with what would be right."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not of the form SCENARIO:PATH[@KILLS][:op=N]")
    name, path, after, operation = found.groups()
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    if name not in by_name:
        raise ValueError(f"there is no scenario {name!r}; there are {', '.join(by_name)}")
    if path not in by_name[name].paths:
        raise ValueError(f"{name} has no path {path!r}; it has {', '.join(by_name[name].paths)}")
    kills = None if after is None else tuple(int(kill) for kill in after.split(","))
    if kills is not None and len(kills) != PATHS.index(path):
        raise ValueError(f"{path} comes after {PATHS.index(path)} kills, not {len(kills)}")
    return Pattern(by_name[name], path, kills, None if operation is None else int(operation))


class Again(NamedTuple):
    """What a kill came to that was made again."""

    point: Point
    came: Came
    told: str


def again(bench: Bench, pattern: Pattern) -> Iterator[Again]:
    """Kill at each point that is meant, and yield what came of it."""
    starts: list[tuple[After, State]] = [((), bench.begin())]
    for level in range(PATHS.index(pattern.path)):
        number = None if pattern.after is None else pattern.after[level]
        starts = [
            ((*after, n), bench.kill(state, n))
            for after, state in starts
            for n in _operations(bench, state, number)
        ]
    for after, state in starts:
        for number in _operations(bench, state, pattern.operation):
            left = bench.kill(state, number)
            point = Point(pattern.path, after, number)
            operation = bench.operations(state)[number]
            counts, told = _came(bench, left)
            yield Again(point, counts, f"before {operation.name} {operation.file}: {told}")


def _operations(bench: Bench, state: State, wanted: int | None) -> list[int]:
    """Return the operation that is wanted, if the process comes to it; or each that there is."""
    return [n for n in range(len(bench.operations(state))) if wanted in (None, n)]


def _came(bench: Bench, left: State) -> tuple[Came, str]:
    """Return what came of a kill, and what it left and recovery made of that, in words."""
    finished = bench.finish(left)
    before, after = bench.look(left), bench.look(finished.end)
    rows = [] if before.database is None else before.database["events"]
    moves = [] if after.database is None else after.database["events"]
    end = {"database": after.database, "effects": after.effects}
    counts = came(bench.scenario, end, Lifecycle())
    left_moves = " ".join(row["event"] for row in rows) or "no rows"
    more = " ".join(row["event"] for row in moves[len(rows) :]) or "nothing"
    return counts, (
        f"it left {left_moves}, effects {list(before.effects)}; recovery added {more}: "
        f"{finished.outcome['state']}, effects {list(after.effects)}: {counts.word}"
    )
