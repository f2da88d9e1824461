"""What the models take from the shipped code: the product of the machines, and the decisions.

Nothing of the spec is typed again. The permitted rows are the generated ones; the decision function
is the shipped one, tabulated over everything that it can be asked. A mutant is another pair of
tables: `with_rows` and `with_decisions` make one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent_replay.lifecycles.coupling import PERMITTED, Key, Permitted
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import NOTHING_OWED, Acts, News, Situation, decide

Decisions = Mapping[Situation, Acts]


@dataclass(frozen=True, slots=True)
class Tables:
    """The permitted rows, and what is owed in each situation."""

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
    """What is owed wherever it is so; what is None does not matter."""

    run_state: RunState
    state: StepState | None
    news: News | None
    attempts_left: bool | None
    window_open: bool | None
    bound_passed: bool | None
    earlier_unresolved: bool | None
    acts: Acts


def cases(decisions: Decisions, contract: Contract) -> Iterator[Case]:
    """Yield the decisions for one contract as few cases, which exclude each other and leave nothing
    out: what engines are given that cannot call the function."""
    rows = {
        tuple(getattr(situation, name) for name in Case._fields[:-1]): acts
        for situation, acts in decisions.items()
        if situation.contract is contract
    }
    for known, acts in _split(rows, ()):
        yield Case(*known, *(None,) * (len(Case._fields) - 1 - len(known)), acts)  # type: ignore[arg-type]


Values = tuple[object, ...]


def _split(rows: Mapping[Values, Acts], known: Values) -> Iterator[tuple[Values, Acts]]:
    """Yield values and acts, asking only for what matters, one place after another.

    State and news are left out only where nothing is owed: what is written has its state by name.
    """
    place = len(known)
    outcomes = set(rows.values())
    if outcomes == {NOTHING_OWED} and place or len(outcomes) == 1 and place >= _NAMED:
        yield known, outcomes.pop()
        return
    slices: dict[object, dict[Values, Acts]] = {}
    for values, acts in rows.items():
        slices.setdefault(values[place], {})[values] = acts
    if place >= _NAMED and _alike(slices.values(), place):
        yield from _split(next(iter(slices.values())), (*known, None))
        return
    for value, part in slices.items():
        yield from _split(part, (*known, value))


_NAMED = Case._fields.index("news") + 1


def _alike(slices: Iterable[Mapping[Values, Acts]], place: int) -> bool:
    """Return whether it makes no difference which of these the value at a place picks."""
    first, *others = (
        {values[:place] + values[place + 1 :]: acts for values, acts in part.items()}
        for part in slices
    )
    return all(other == first for other in others)
