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
    """What a search has found.

    `violations` has the first one of each invariant, by id. `unseen` holds the places of the
    witnesses that did not occur. `parents` has each state with the one it was first reached from.
    """

    states: int
    edges: int
    depth: int
    complete: bool
    violations: dict[str, Violation]
    unseen: tuple[int, ...]
    seconds: float
    parents: dict[int, int]

    @property
    def violation(self) -> Violation | None:
        """Return the first violation of all, if there is one."""
        return next(iter(self.violations.values()), None)


def search(
    program: Compiled,
    *,
    states_max: int = STATES_MAX,
    progress: Progress | None = None,
    goes_on: bool = False,
) -> Found:
    """Search every state of a model; with `goes_on` past violations too, to the first of each."""
    return _Search(program, states_max, progress, goes_on).run()


class _Search:
    def __init__(
        self, program: Compiled, states_max: int, progress: Progress | None, goes_on: bool
    ) -> None:
        self.program = program
        self.states_max = states_max
        self.progress = progress
        self.goes_on = goes_on
        self.parents: dict[int, int] = {program.initial: -1}
        self.edges = 0
        self.violations: dict[str, Violation] = {}
        model = program.model
        self.unseen = {
            place: program.condition(one.occurs) for place, one in enumerate(model.witnesses)
        }
        self.judges = [(claim, program.condition(claim.holds)) for claim in model.invariants]

    def run(self) -> Found:
        """Search level by level."""
        began = time.monotonic()
        level, depth = [self.program.initial], 0
        self._judge(self.program.initial)
        self._witness(level)
        while level and not self._stops():
            level = self._next(level)
            depth += bool(level)
            self._witness(level)
        return Found(
            states=len(self.parents),
            edges=self.edges,
            depth=depth,
            complete=not self._stops(),
            violations=self.violations,
            unseen=tuple(self.unseen),
            seconds=time.monotonic() - began,
            parents=self.parents,
        )

    def _stops(self) -> bool:
        full = len(self.parents) >= self.states_max
        return full or (bool(self.violations) and not self.goes_on)

    def _next(self, level: list[int]) -> list[int]:
        """Return the states one event further on that are new; less if the search stops."""
        edges, broken, parents = self.program.edges, self.program.broken, self.parents
        new: list[int] = []
        bad: list[Broken] = []
        for state in level:
            out = edges(state, bad)
            self.edges += len(out)
            if bad:
                self._tell(state, bad)
                bad.clear()
            for _, target in out:
                if target not in parents:
                    parents[target] = state
                    new.append(target)
                    if broken(target) >= 0:
                        self._judge(target)
            if self.progress and len(parents) % PROGRESS_EVERY < len(out):
                self.progress(len(parents), self.edges)
            if self._stops():
                break
        return new

    def _witness(self, level: list[int]) -> None:
        for place, occurs in list(self.unseen.items()):
            if any(map(occurs, level)):
                del self.unseen[place]

    def _judge(self, state: int) -> None:
        """Note the invariants that do not hold in a state."""
        for claim, holds in self.judges:
            if claim.id not in self.violations and not holds(state):
                way = path(self.program, self.parents, state)
                self.violations[claim.id] = Violation(claim, *way)

    def _tell(self, state: int, bad: list[Broken]) -> None:
        """Note the claims that do not hold of an event."""
        for place, number, target in bad:
            command = self.program.model.commands[place]
            claim = command.claims[number]
            if claim.id not in self.violations:
                states, commands = path(self.program, self.parents, state)
                way = (*states, target), (*commands, command)
                self.violations[claim.id] = Violation(claim, *way)


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
