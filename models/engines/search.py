"""Breadth-first search: every state within the bounds, and the shortest story to whatever is wrong.

The search ends at the first violation, or when every state has been seen, or at a limit. A search
that ends at a limit is incomplete: it says nothing.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from models.language.program import Claim, Command
from models.language.python import Broken, Compiled

STATES_MAX = 3_000_000
"""About 500 MB; larger bounds are for an engine that packs its states more tightly."""

Progress = Callable[[int, int], None]
"""Told now and then how many states and edges have been seen."""
PROGRESS_EVERY = 1 << 16


@dataclass(frozen=True, slots=True)
class Violation:
    """What does not hold, and the shortest way to it: states and the commands between them."""

    claim: Claim
    states: tuple[int, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search has found. `unseen` holds the places of the witnesses that did not occur."""

    states: int
    edges: int
    depth: int
    complete: bool
    violation: Violation | None
    unseen: tuple[int, ...]
    fired: frozenset[int]
    seconds: float
    parents: dict[int, int]


def search(
    program: Compiled, *, states_max: int = STATES_MAX, progress: Progress | None = None
) -> Found:
    """Search every state of a model, and stop at the first violation."""
    return _Search(program, states_max, progress).run()


class _Search:
    def __init__(self, program: Compiled, states_max: int, progress: Progress | None) -> None:
        self.program = program
        self.states_max = states_max
        self.progress = progress
        self.parents: dict[int, int] = {program.initial: -1}
        self.edges = 0
        self.depth = 0
        self.fired: set[int] = set()
        model = program.model
        self.unseen = {
            place: program.condition(one.occurs) for place, one in enumerate(model.witnesses)
        }
        self.began = time.monotonic()

    def run(self) -> Found:
        """Search level by level."""
        level = [self.program.initial]
        found = self._judged(self.program.initial)
        self._witness(level)
        while level and found is None and len(self.parents) < self.states_max:
            level, found = self._next(level)
            if level:
                self.depth += 1
            self._witness(level)
        return Found(
            states=len(self.parents),
            edges=self.edges,
            depth=self.depth,
            complete=not level and found is None,
            violation=found,
            unseen=tuple(self.unseen),
            fired=frozenset(self.fired),
            seconds=time.monotonic() - self.began,
            parents=self.parents,
        )

    def _next(self, level: list[int]) -> tuple[list[int], Violation | None]:
        """Return the states one event further on that are new, and the first violation there."""
        edges, broken, parents = self.program.edges, self.program.broken, self.parents
        new: list[int] = []
        bad: list[Broken] = []
        fired = self.fired
        for state in level:
            out = edges(state, bad)
            self.edges += len(out)
            if bad:
                place, claim, target = bad[0]
                return new, self._told(state, place, claim, target)
            for place, target in out:
                if target not in parents:
                    parents[target] = state
                    new.append(target)
                    fired.add(place)
                    if broken(target) >= 0:
                        return new, self._judged(target)
            if self.progress and len(parents) % PROGRESS_EVERY < len(out):
                self.progress(len(parents), self.edges)
            if len(parents) >= self.states_max:
                return new, None
        return new, None

    def _witness(self, level: list[int]) -> None:
        for place, occurs in list(self.unseen.items()):
            if any(map(occurs, level)):
                del self.unseen[place]

    def _judged(self, state: int) -> Violation | None:
        place = self.program.broken(state)
        if place < 0:
            return None
        return Violation(
            self.program.model.invariants[place], *path(self.program, self.parents, state)
        )

    def _told(self, state: int, place: int, claim: int, target: int) -> Violation:
        states, commands = path(self.program, self.parents, state)
        last = self.program.model.commands[place]
        return Violation(last.claims[claim], (*states, target), (*commands, last))


def path(
    program: Compiled, parents: dict[int, int], state: int
) -> tuple[tuple[int, ...], tuple[Command, ...]]:
    """Return the states on the way to a state, itself included, and the commands between them."""
    states = [state]
    while (state := parents[state]) >= 0:
        states.append(state)
    states.reverse()
    commands = [
        next(place for place, target in program.edges(one, []) if target == after)
        for one, after in itertools.pairwise(states)
    ]
    return tuple(states), tuple(program.model.commands[place] for place in commands)
