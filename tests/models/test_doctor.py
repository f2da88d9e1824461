"""L4, its other half: in every unfinished run that the model can reach, doctor names what to do."""

from __future__ import annotations

import json

import pytest

from agent_replay.clock import NANOSECONDS, Reading
from agent_replay.contracts import idempotent, opaque, queryable, read_only
from agent_replay.events import Registration, StepRow
from agent_replay.history import RunHistory
from agent_replay.lifecycles.step import Contract
from agent_replay.report.commands import Caller
from agent_replay.report.diagnosis import Writing, diagnose
from models.bounds import Bounds
from models.engines.search import path
from models.language.expressions import negated
from models.paths import Graph, event_of, projected, with_adopt
from models.world.state import Setting
from tests.models.support import searched, small

TERMS = {
    Contract.READ_ONLY: read_only(),
    Contract.IDEMPOTENT: idempotent(key_window=60, lands_within=10),
    Contract.QUERYABLE: queryable(settles_within=10),
    Contract.OPAQUE: opaque(),
}
CALLER = Caller(("agent-replay",), "runs.db")


def untouched(contract: Contract) -> RunHistory:
    """Return a run of one step that has only been registered."""
    adapters = json.dumps({"tool@1": TERMS[contract].pinned()})
    registration = Registration(1, "r", "", 1, 2, adapters, "", 1, b"", 0, 0, b"")
    step = StepRow(1, 1, "s", "tool@1", contract.value, "{}", "key")
    return RunHistory(registration, [step])


def histories(bounds: Bounds) -> dict[tuple[object, ...], RunHistory]:
    """Return a history for each standing of an unfinished run that the model reaches."""
    program, found = searched(bounds)
    graph = Graph(Setting(bounds=bounds), program, found)
    unfinished = program.condition(negated(graph.world.ended()))
    reached: dict[tuple[object, ...], RunHistory] = {}
    for state in filter(unfinished, found.parents):
        head, known = projected(graph, state)
        standing = head.run_state, head.state, head.attempt, known.grants
        if standing in reached:
            continue
        history = reached[standing] = untouched(bounds.steps[0])
        states, commands = path(program, found.parents, state)
        for target, command in zip(states[1:], commands, strict=True):
            epoch = projected(graph, target)[0].epoch
            for row in with_adopt(command, history.head, epoch):
                event = event_of(row, history.head, epoch)
                assert event is not None
                history.take(event._replace(payload='{"why":"died"}'))
    return reached


@pytest.mark.invariant("L4")
@pytest.mark.parametrize("contract", Contract)
def test_doctor_names_the_next_act_of_every_unfinished_run(contract: Contract) -> None:
    nobody, somebody = Writing(False, "", None), Writing(True, "process 7", None)
    reached = histories(small(contract))
    assert len(reached) >= 3
    for history in reached.values():
        for writing in (nobody, somebody):
            for seconds in (1, 1000):
                now = Reading(seconds * NANOSECONDS, seconds * NANOSECONDS, "boot")
                boots = {1: "boot", 2: "boot"}
                said = diagnose(history, caller=CALLER, writing=writing, now=now, boots=boots)
                assert said.acts, history.head
                assert said.why, history.head
