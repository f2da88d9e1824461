"""A walk over whole runs, step by step, finds the product right: an independent witness.

The generator derives the product from the open step alone. Here runs of up to three steps, of every
mix of contracts, are driven through every row of `PERMITTED`, and each step's state is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from agent_replay.lifecycles import run, step
from agent_replay.lifecycles.coupling import PERMITTED, Key
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from spec import generate, lint

STEPS_MAX = 3


class Whole(NamedTuple):
    """A run with the state of each of its steps."""

    state: RunState
    steps: tuple[StepState, ...]

    @property
    def open(self) -> int:
        """Return the index of the first step that has not succeeded, or of the last step."""
        unfinished = [i for i, s in enumerate(self.steps) if s is not StepState.SUCCEEDED]
        return (unfinished or [len(self.steps) - 1])[0]


def moves(whole: Whole, contracts: tuple[Contract, ...]) -> Iterator[tuple[Key, Whole]]:
    at = whole.open
    here = whole.steps[at], whole.state, at == len(whole.steps) - 1
    for key, row in PERMITTED.items():
        if (key[1], key[4], key[5]) == here and key[0] in (None, contracts[at]):
            steps = (*whole.steps[:at], row.target, *whole.steps[at + 1 :])
            yield key, Whole(row.run_target, steps)


def reached(contracts: tuple[Contract, ...]) -> dict[Whole, list[tuple[Key, Whole]]]:
    begin = [Whole(RunState.RUNNING, (step.INITIAL,) * len(contracts))]
    found: dict[Whole, list[tuple[Key, Whole]]] = {}
    while begin:
        whole = begin.pop()
        if whole not in found:
            found[whole] = list(moves(whole, contracts))
            begin += [after for _, after in found[whole]]
    return found


WALKS = {
    contracts: reached(contracts)
    for count in range(1, STEPS_MAX + 1)
    for contracts in itertools.product(Contract, repeat=count)
}


def test_every_run_is_in_a_state_that_is_true_of_its_steps() -> None:
    states = lint.load(generate.ROOT / "spec").run_states
    for walk in WALKS.values():
        for whole in walk:
            condition = states[whole.state].condition
            assert condition.holds(frozenset(whole.steps)), whole
            paused = whole.state is RunState.PAUSED
            doubt = StepState.IN_DOUBT in whole.steps
            assert paused == (doubt and whole.state is not RunState.CANCELLING), whole


def test_every_unfinished_run_can_go_on_and_an_ended_one_cannot() -> None:
    for walk in WALKS.values():
        for whole, further in walk.items():
            on_the_step = [key for key, _ in further if key[0] is not None]
            assert bool(on_the_step) == (whole.state not in run.TERMINAL), whole
            assert bool(further) == bool(on_the_step), whole


def test_every_permitted_row_occurs() -> None:
    occurred = {key for walk in WALKS.values() for further in walk.values() for key, _ in further}
    assert occurred == PERMITTED.keys()


def test_a_step_leaves_planned_only_after_the_steps_before_it_succeeded() -> None:
    for walk in WALKS.values():
        for whole in walk:
            before, after = whole.steps[: whole.open], whole.steps[whole.open + 1 :]
            assert set(before) <= {StepState.SUCCEEDED}, whole
            assert set(after) <= {StepState.PLANNED}, whole


def test_the_walk_is_as_wide_as_it_was() -> None:
    """A change of the machines shows as a number, as in the models."""
    counts = {len(contracts): 0 for contracts in WALKS}
    for contracts, walk in WALKS.items():
        counts[len(contracts)] += len(walk)
    assert counts == {1: 44, 2: 320, 3: 1856}  # 44: 8 when read_only, 12 for each other contract
