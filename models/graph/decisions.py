"""The decision function beside the spec's graph: what it appends must be an edge.

The function is asked in every state of the graph, upon every news, at every reading of the clocks.
A state of a run that a former writer had is asked as the runtime asks it: the holder adopts the run
in the same transaction, and what the function appends comes after that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import Act, Append, News, Situation, decide
from models.graph.bounds import READINGS
from models.graph.expected import Expected
from models.graph.plans import ATTEMPTS_MAX
from models.graph.states import UNREAD, Edges, OpenStep, State, describe

EITHER = (False, True)


class Asked(NamedTuple):
    """What was asked, how often an append was the answer, and which of them were no edges.

    `appended` holds contract, state of the step, event, actor and state of the run.
    """

    questions: int
    appends: int
    calls: int
    appended: frozenset[tuple[str, str, str, str, str]]
    wrong: tuple[str, ...]


def every_situation() -> Iterator[Situation]:
    """Yield every situation that the function can be asked about."""
    for parts in itertools.product(
        Contract, StepState, RunState, News, EITHER, EITHER, EITHER, EITHER
    ):
        yield Situation(*parts)


def ask_everywhere(expected: Expected, graph: dict[State, Edges]) -> Asked:
    """Ask the function in every state of a graph."""
    questions = appends = calls = 0
    appended: set[tuple[str, str, str, str, str]] = set()
    wrong: list[str] = []
    for state in graph:
        contract = expected.contracts[len(state.passed)]
        permitted = permitted_after_adopting(expected, graph, state)
        for situation in situations(contract, state):
            questions += 1
            for act in decided(situation):
                calls += isinstance(act, Act)
                if isinstance(act, Append):
                    appends += 1
                    row = (act.event.value, act.actor.value)
                    appended.add((contract, state.open.state, *row, state.run_state))
                    if row not in permitted:
                        wrong.append(
                            f"{row[0]} by {row[1]} upon {situation.news}, in: {describe(state)}"
                        )
    return Asked(questions, appends, calls, frozenset(appended), tuple(wrong))


def permitted_after_adopting(
    expected: Expected, graph: dict[State, Edges], state: State
) -> set[tuple[str, str]]:
    """Return event and actor of what the holder may write in a state, or outside of the bounds."""
    owned = state._replace(epoch=state.held)
    edges: Iterable[tuple[str, str]] = {(label.event, label.actor) for label in graph[owned]}
    return {*edges, *expected.leaves_bounds(owned)}


def situations(contract: str, state: State) -> set[Situation]:
    """Return every situation that a state can be, with every news at every reading."""
    here = state.open
    return {
        Situation(
            contract=Contract(contract),
            state=StepState(here.state),
            run_state=RunState(state.run_state),
            news=news,
            attempts_left=ATTEMPTS_MAX + here.grants - here.attempt > 0,
            window_open=window_is_open(here, now),
            bound_passed=bound_has_passed(here, now),
            earlier_unresolved=here.attempt - here.refuted > 1,
        )
        for news in News
        for now in READINGS
    }


def window_is_open(here: OpenStep, now: int) -> bool:
    """Return whether the window is open: it lapses between the readings, and when they go back."""
    return here.first in (UNREAD, now)


def bound_has_passed(here: OpenStep, now: int) -> bool:
    """Return whether the bound has passed: it passes between the readings."""
    return here.suspended != UNREAD and here.suspended < now


@cache
def decided(situation: Situation) -> tuple[Append | Act, ...]:
    """Return what the shipped function answers."""
    return decide(situation)
