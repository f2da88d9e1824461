"""Compare the shipped store with the spec, plan by plan, and add up what was seen.

For each plan the spec's graph is derived once, then two worlds are walked: one forwards by the
shipped writer, one backwards by hand. So each state is come to by two histories, and both graphs
are compared with the spec's.
"""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crashtests.independent.lifecycle import Lifecycle
from models.graph.bounds import Bounds
from models.graph.expected import Expected, read_vocabulary
from models.graph.refused import RefusedByHand, RefusedByWriter
from models.graph.states import TAKE_OVER, UNREAD, Edges, State
from models.graph.walk import Difference, Walk
from models.graph.ways import ShellWay, WriterWay
from models.graph.worlds import Alteration, first_world, keep, second_world

ProductRow = tuple[str, str, str, str, str, bool]
"""Contract ("" for the run's own), state of the step, event, actor, run state, and whether last."""


class Task(NamedTuple):
    """One plan to compare."""

    contracts: tuple[str, ...]
    bounds: Bounds
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What one walk came to."""

    way: str
    states: int
    edges: int
    refusals: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the comparison of one plan came to.

    `two_histories` counts the states that the two walks came to by different moves; to the others
    there is one way only. `untouched` counts the states whose second step is untouched, which are
    the same whatever its contract is. `without_readings` counts the states that are left when the
    readings are taken out.
    """

    contracts: tuple[str, ...]
    states: int
    edges: int
    walks: tuple[Walked, ...]
    two_histories: int
    untouched: int
    without_readings: int
    rows: frozenset[ProductRow]
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class Total:
    """The comparisons of several plans, added up."""

    plans: int = 0
    states: int = 0
    edges: int = 0
    walked_states: Counter[str] = field(default_factory=Counter)
    walked_edges: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    two_histories: int = 0
    distinct: int = 0
    without_readings: int = 0
    rows: set[ProductRow] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)
    _first_steps: set[str] = field(default_factory=set)

    def add(self, one: Comparison) -> None:
        """Add a comparison."""
        self.plans += 1
        self.states += one.states
        self.edges += one.edges
        for walk in one.walks:
            self.walked_states[walk.way] += walk.states
            self.walked_edges[walk.way] += walk.edges
            self.refused[walk.way] += walk.refusals.total()
            if walk.way == ShellWay.name:
                self.reasons.update(walk.refusals)
        self.two_histories += one.two_histories
        counted = one.contracts[0] in self._first_steps
        self._first_steps.add(one.contracts[0])
        self.distinct += one.states - (one.untouched if counted else 0)
        self.without_readings += one.without_readings
        self.rows |= one.rows
        self.differences += one.differences

    @property
    def equal(self) -> bool:
        """Return whether both walks found the spec's graph: as many states and edges, and no
        difference."""
        return (
            not self.differences
            and self.states > 0
            and all(self.walked_states[way] == self.states for way in WAYS)
            and all(self.walked_edges[way] == self.edges for way in WAYS)
        )


WAYS = (WriterWay.name, ShellWay.name)


def tasks(bounds: Bounds, *, refused: bool) -> list[Task]:
    """Return a task for each plan within the bounds, the longest first."""
    contracts = read_vocabulary().contracts
    plans = bounds.plans or tuple(itertools.product(contracts, contracts))
    few = Bounds(attempts=(1, 1), epochs=1)
    sizes = {plan: len(expected_of(plan, few).graph()) for plan in plans}
    return [Task(plan, bounds, refused) for plan in sorted(plans, key=lambda plan: -sizes[plan])]


def expected_of(contracts: tuple[str, ...], bounds: Bounds) -> Expected:
    """Return the spec's side for a plan."""
    return Expected(Lifecycle(), read_vocabulary(), contracts, bounds)


def compare(task: Task, alter: Alteration = keep) -> Comparison:
    """Compare one plan; `alter` is for tests, which damage the databases first."""
    expected = expected_of(task.contracts, task.bounds)
    graph = expected.graph()
    gc.freeze()  # the graph is large and stays, so that looking through it again finds nothing
    walks = list(_walks(task, expected, graph, alter))
    marks = [walk.marks for walk in walks]
    gc.unfreeze()
    return Comparison(
        contracts=task.contracts,
        states=len(graph),
        edges=sum(map(len, graph.values())),
        walks=tuple(
            Walked(way=walk.way, states=len(walk.marks), edges=walk.edges, refusals=walk.refusals)
            for walk in walks
        ),
        two_histories=sum(len({found.get(state) for found in marks}) > 1 for state in graph),
        untouched=sum(_is_untouched(state) for state in graph),
        without_readings=len({_without_readings(state) for state in graph}),
        rows=frozenset(_rows(task.contracts, graph)),
        differences=tuple(itertools.chain.from_iterable(walk.differences for walk in walks)),
    )


def _walks(
    task: Task, expected: Expected, graph: dict[State, Edges], alter: Alteration
) -> Iterable[Walk]:
    world = first_world(task.contracts, alter)
    writer = WriterWay(world)
    refused = RefusedByWriter(writer, expected) if task.refused else None
    walk = Walk(world, writer, expected, graph, refused=refused)
    walk.run()
    yield walk
    world = second_world(task.contracts, alter)
    shell = ShellWay(world)
    by_hand = RefusedByHand(shell, expected) if task.refused else None
    walk = Walk(world, shell, expected, graph, backwards=True, refused=by_hand)
    walk.run()
    yield walk


def _is_untouched(state: State) -> bool:
    return not state.passed or not state.open.basis


def _without_readings(state: State) -> State:
    return state._replace(open=state.open._replace(first=UNREAD, suspended=UNREAD))


def _rows(contracts: Sequence[str], graph: dict[State, Edges]) -> Iterable[ProductRow]:
    """Yield the rows of the product that the edges of a graph go along."""
    for state, edges in graph.items():
        index = len(state.passed)
        for label in edges:
            if label.event != TAKE_OVER:
                contract = contracts[index] if label.of_step else ""
                last = index + 1 == len(contracts)
                here = state.open.state
                yield contract, here, label.event, label.actor, state.run_state, last
