"""The model: it means what evaluate says, takes every row, and a crash takes nothing back."""

from __future__ import annotations

import pytest

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.step import Contract
from models.bounds import IDEMPOTENT, OPAQUE, QUERYABLE, READ_ONLY, Bounds
from models.build import VARIANTS, build
from models.language.expressions import evaluate
from models.language.program import Row
from models.paths import Graph, projected, with_adopt
from models.world.state import ASSUMPTIONS, Setting
from tests.models.support import searched, small

EVERY_EDGE = (
    small(READ_ONLY, faults_max=1),
    small(IDEMPOTENT, stops=True),
    small(QUERYABLE, faults_max=1),
    small(OPAQUE, READ_ONLY, workers=2),
)


@pytest.mark.parametrize("bounds", EVERY_EDGE, ids=lambda bounds: "-".join(bounds.steps))
def test_every_edge_is_what_its_command_says_and_stays_within_the_variables(bounds: Bounds) -> None:
    """The compiled model against `evaluate`: guards, assignments and domains, on states of all
    depths."""
    program, found = searched(bounds)
    most = {one.name: len(one.labels) for one in program.model.variables}
    for state in list(found.parents)[::17]:
        values = program.values(state)
        edges = dict.fromkeys(program.edges(state, []))
        for place, command in enumerate(program.model.commands):
            met = all(evaluate(part, values) for part in command.guard)
            if not met:
                assert not any(edge[0] == place for edge in edges)
                continue
            new = {one.variable.name: evaluate(one.becomes, values) for one in command.assignments}
            assert all(0 <= value < most[name] for name, value in new.items()), command.says
            assert (place, program.packed({**values, **new})) in edges


def test_every_row_of_the_spec_is_written_somewhere() -> None:
    """All that may be stored is reachable, with adopt where another writer's row comes first."""
    written: set[Row] = set()
    for contract in Contract:
        for steps in ((contract,), (contract, OPAQUE)):
            bounds = small(*steps)
            program, found = searched(bounds)
            graph = Graph(Setting(bounds=bounds), program, found)
            for state, edges in graph.edges.items():
                head, _ = projected(graph, state)
                for place, target in edges:
                    command, epoch = (
                        program.model.commands[place],
                        projected(graph, target)[0].epoch,
                    )
                    written |= set(with_adopt(command, head, epoch))
    assert written == {Row(key[0] or "", *key[1:]) for key in PERMITTED}


def test_a_crash_takes_no_request_back() -> None:
    """What has left a process that dies is still under way."""
    program, found = searched(small(OPAQUE))
    killed = 0
    for state in found.parents:
        values = program.values(state)
        for place, target in program.edges(state, []):
            if "still under way" in program.model.commands[place].says:
                assert program.values(target)["abroad_1"] == values["abroad_1"] + 1
                killed += "is killed" in program.model.commands[place].says
            elif "is killed" in program.model.commands[place].says:
                assert program.values(target)["abroad_1"] == values["abroad_1"]
    assert killed


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_every_variant_changes_something(variant: str) -> None:
    """A switch that changes no command would make its mutant a mistake of the test."""
    assumptions = ASSUMPTIONS - ({"A5"} if "replaced writer" in variant else set())
    bounds = small(IDEMPOTENT, QUERYABLE)
    whole = build(Setting(bounds=bounds, assumptions=assumptions))
    broken = build(Setting(bounds=bounds, assumptions=assumptions, variants=frozenset({variant})))
    assert broken.commands != whole.commands


def test_a_variant_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no variant 'the moon is full'"):
        build(Setting(bounds=small(OPAQUE), variants=frozenset({"the moon is full"})))
