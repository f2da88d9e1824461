"""What the models take from the shipped code: the product of the machines, and the decisions.

Nothing of the spec is typed again. The permitted rows are the generated ones; the decision function
is the shipped one, tabulated over everything that it can be asked. A mutant is another pair of
tables: `with_rows` and `with_decisions` make one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from agent_replay.lifecycles.coupling import PERMITTED, Key, Permitted
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import NOTHING_OWED, Acts, News, Situation, decide

Decisions = Mapping[Situation, Acts]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The permitted rows, and what is owed in each situation; equal to itself alone."""

    permitted: Mapping[Key, Permitted]
    decisions: Decisions


def situations() -> Iterator[Situation]:
    """Yield every situation that the decision function can be asked about."""
    truths = (False, True)
    stored = [state for state in RunState if state is not RunState.NEW]
    for values in itertools.product(
        Contract, StepState, stored, News, truths, truths, truths, truths
    ):
        yield Situation(*values)


def tabulated(function: Callable[[Situation], Acts]) -> dict[Situation, Acts]:
    """Return a decision function as a table over everything that it can be asked."""
    return {situation: function(situation) for situation in situations()}


SHIPPED = Tables(PERMITTED, tabulated(decide))


def with_decisions(tables: Tables, changed: Callable[[Situation, Acts], Acts]) -> Tables:
    """Return tables in which each decision is what `changed` makes of it."""
    decisions = {
        situation: changed(situation, acts) for situation, acts in tables.decisions.items()
    }
    return Tables(tables.permitted, decisions)


def with_rows(tables: Tables, changed: Callable[[Key, Permitted], Permitted | None]) -> Tables:
    """Return tables in which each permitted row is what `changed` makes of it; None removes it."""
    rows = {key: changed(key, outcome) for key, outcome in tables.permitted.items()}
    return Tables({key: outcome for key, outcome in rows.items() if outcome}, tables.decisions)


class Case(NamedTuple):
    """What is owed wherever it is so, on any of these news; a reading that is None does not matter.

    `state` is None where nothing is owed whatever it is.
    """

    run_state: RunState
    state: StepState | None
    news: tuple[News, ...]
    readings: tuple[bool | None, ...]
    acts: Acts


READINGS = ("attempts_left", "window_open", "bound_passed", "earlier_unresolved")
Readings = tuple[bool | None, ...]


@cache
def cases(tables: Tables, contract: Contract) -> tuple[Case, ...]:
    """Return the decisions for one contract as few cases, which exclude each other and leave
    nothing out: what engines are given that cannot call the function."""
    return tuple(_cases(tables.decisions, contract))


def _cases(decisions: Decisions, contract: Contract) -> Iterator[Case]:
    for run_state in dict.fromkeys(situation.run_state for situation in decisions):
        rows = {
            situation: acts
            for situation, acts in decisions.items()
            if situation.contract is contract and situation.run_state is run_state
        }
        if set(rows.values()) == {NOTHING_OWED}:
            yield Case(run_state, None, tuple(News), (None,) * len(READINGS), NOTHING_OWED)
            continue
        for state in StepState:
            yield from _of_state(rows, run_state, state)


def _of_state(rows: Decisions, run_state: RunState, state: StepState) -> Iterator[Case]:
    """Yield the cases of one state, those together that differ only in their news."""
    together: dict[tuple[Readings, Acts], list[News]] = {}
    for news in News:
        by_readings = {
            tuple(getattr(situation, name) for name in READINGS): acts
            for situation, acts in rows.items()
            if situation.state is state and situation.news is news
        }
        for known, acts in _split(by_readings, ()):
            together.setdefault((known, acts), []).append(news)
    for (known, acts), several in together.items():
        yield Case(run_state, state, tuple(several), known, acts)


def _split(rows: Mapping[Readings, Acts], known: Readings) -> Iterator[tuple[Readings, Acts]]:
    """Yield readings and acts, asking one reading after another, and only for what matters."""
    place = len(known)
    outcomes = set(rows.values())
    if len(outcomes) == 1:
        yield (*known, *(None,) * (len(READINGS) - place)), outcomes.pop()
        return
    no, yes = (
        {readings: acts for readings, acts in rows.items() if readings[place] is value}
        for value in (False, True)
    )
    if _others(no, place) == _others(yes, place):
        yield from _split(no, (*known, None))
        return
    yield from _split(no, (*known, False))
    yield from _split(yes, (*known, True))


def _others(rows: Mapping[Readings, Acts], place: int) -> dict[Readings, Acts]:
    return {readings[:place] + readings[place + 1 :]: acts for readings, acts in rows.items()}
