"""The second implementation agrees with the first, though neither knows the other."""

from __future__ import annotations

import itertools

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from crashtests.independent.lifecycle import Lifecycle


def test_both_derive_the_same_product_from_the_spec() -> None:
    lifecycle = Lifecycle()
    permitted = 0
    for contract, source, event, actor, run_state, last, first in itertools.product(
        [None, *Contract],
        StepState,
        [*StepEvent, *RunEvent],
        Actor,
        RunState,
        [False, True],
        [False, True],
    ):
        if contract is None and source is StepState.SUCCEEDED and not last:
            continue  # the open step is then the next one
        others = ({"planned"} if not last else set()) | ({"succeeded"} if not first else set())
        if contract is None:
            move = lifecycle.own_move(source, event, actor, run_state, others)
        else:
            move = lifecycle.move(contract, source, event, actor, run_state, others)
        row = PERMITTED.get((contract, source, event, actor, run_state, last))
        if row is None:
            assert move is None, (contract, source, event, actor, run_state, last, first)
            continue
        permitted += 1
        assert move is not None
        assert (move.state, move.run_moves, move.run_state) == (
            row.target,
            row.coupled,
            row.run_target,
        )
    assert permitted == 2 * len(PERMITTED)
