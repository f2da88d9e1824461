"""A scenario explored: each path recorded, and a process killed before each of its operations.

The report of a scenario is kept small by naming each thing once: `kinds` of operations, `ends` that
an undisturbed recovery comes to, `states` that kills leave, each with its end. A path then is two
lists of numbers: the operations that were recorded, and the states that the kills before them left.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from crashtests.judgement import digest_of
from crashtests.sweep.bench import Bench, State
from crashtests.sweep.scenarios import EACH, RUN, paths_of
from crashtests.vfs import Operation

After = tuple[int, ...]
"""The operations at which the processes before were killed, the first run's first."""


class Row(NamedTuple):
    """What came of the kills on one path."""

    path: str
    after: tuple[After, ...]
    recorded: tuple[int, ...]
    states: tuple[int, ...]


class Explorer:
    """Kills a scenario's processes, and takes down what came of it."""

    def __init__(self, bench: Bench, form: str, progress: Callable[[int], None]) -> None:
        """`progress` is told the number of kills so far, after each."""
        self._bench = bench
        self._form = form
        self._progress = progress
        self._kinds: dict[Operation, int] = {}
        self._states: dict[State, int] = {}
        self._ends: dict[State, int] = {}
        self._told_states: list[dict[str, Any]] = []
        self._told_ends: list[dict[str, Any]] = []

    def explore(self) -> dict[str, Any]:
        """Return the report of the scenario; raises `Fooled` if something shows nothing."""
        scenario = self._bench.scenario
        starts: list[tuple[After, State]] = [((), self._bench.begin())]
        rows: list[Row] = []
        for path in paths_of(scenario, self._form):
            left = list(self._kill_all(path, starts, rows))
            starts = list(self._starts(path, left))
            self._bench.keep(state for _, state in starts)
        told = {
            "scenario": scenario.name,
            "terminations": {str(-signal.SIGKILL): self._bench.kills},
            "kinds": [list(kind) for kind in self._kinds],
            "paths": [row._asdict() for row in _merged(rows)],
            "states": self._told_states,
            "ends": self._told_ends,
        }
        return {**told, "digest": digest_of(told)}

    def _starts(self, path: str, left: list[tuple[After, State]]) -> Iterator[tuple[After, State]]:
        """Yield where the next path begins: once in each state, or after each kill of a run."""
        seen: set[State] = set()
        for after, state in left:
            if (path == RUN and self._form == EACH) or state not in seen:
                yield after, state
            seen.add(state)

    def _kill_all(
        self, path: str, starts: list[tuple[After, State]], rows: list[Row]
    ) -> Iterator[tuple[After, State]]:
        """Kill at every operation of a path; yield what each kill left."""
        for after, start in starts:
            recorded = self._bench.operations(start)
            states = []
            for number in range(len(recorded)):
                state = self._bench.kill(start, number)
                self._progress(self._bench.kills)
                states.append(self._number(state))
                yield (*after, number), state
            kinds = tuple(self._kind(operation) for operation in recorded)
            rows.append(Row(path, (after,), kinds, tuple(states)))

    def _kind(self, operation: Operation) -> int:
        return self._kinds.setdefault(operation, len(self._kinds))

    def _number(self, state: State) -> int:
        """Return the number of a state that a kill left, taken down with what comes of it."""
        if state not in self._states:
            looked, finished = self._bench.look(state), self._bench.finish(state)
            events = [] if looked.database is None else looked.database["events"]
            self._told_states.append(
                {
                    "stage": state.stage,
                    "rows": len(events),
                    "head": events[-1]["hash"] if events else None,
                    "effects": list(looked.effects),
                    "end": self._end(finished.end, finished.outcome),
                }
            )
            self._states[state] = len(self._states)
        return self._states[state]

    def _end(self, state: State, said: Any) -> int:
        if state not in self._ends:
            looked = self._bench.look(state)
            told = {"database": looked.database, "effects": list(looked.effects), "said": said}
            self._told_ends.append(told)
            self._ends[state] = len(self._ends)
        return self._ends[state]


def _merged(rows: list[Row]) -> list[Row]:
    """Return the rows with those joined that differ only in the kill that they come after."""
    joined: dict[tuple[Any, ...], list[After]] = {}
    for row in rows:
        joined.setdefault((row.path, row.recorded, row.states), []).extend(row.after)
    return [
        Row(path, tuple(after), recorded, states)
        for (path, recorded, states), after in joined.items()
    ]
