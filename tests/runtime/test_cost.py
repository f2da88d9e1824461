"""A step costs the same however long the history is: counted in statements, not in time."""

from __future__ import annotations

import gc
import itertools
from collections import Counter

import pytest

from agent_replay import Runtime
from agent_replay.live import LiveRun
from tests.outside import plan_of
from tests.runtime.conftest import World

MANY = 400


class Statements:
    """Counts the statements of a runtime's connection, by their first words."""

    def __init__(self, runtime: Runtime) -> None:
        self.seen: list[str] = []
        runtime._store.connection.set_exec_trace(self._take)

    def _take(self, _cursor: object, statement: str, _bindings: object) -> bool:
        self.seen.append(" ".join(statement.split()))
        return True


@pytest.mark.fault("K03")
def test_a_step_costs_the_same_statements_wherever_it_stands(world: World) -> None:
    plan = plan_of(*[(f"s{number}", "dark") for number in range(MANY)])
    with world.open() as runtime:
        counted = Statements(runtime)
        runtime.run("r", plan)
    commits = [at for at, statement in enumerate(counted.seen) if statement == "commit"]
    assert len(commits) == MANY + 1
    between = Counter(later - earlier for earlier, later in itertools.pairwise(commits))
    assert between.keys() <= {4, 3}, "begin, two rows, commit; and one row at the end"
    assert between[4] == MANY - 1


@pytest.mark.fault("K03")
def test_a_resume_reads_its_own_history_once_and_no_other(world: World) -> None:
    for name in ("other", "another"):
        with world.open() as runtime:
            runtime.run(name, plan_of(("a", "dark"), ("b", "dark")))
    world.interrupted("r", plan_of(("a", "dark"), ("b", "keyed", {"do": ["interrupt", "ok"]})))
    with world.open() as runtime:
        counted = Statements(runtime)
        assert runtime.resume("r").completed
    reads = [s for s in counted.seen if s.startswith("select") and "from events" in s]
    assert len(reads) == 1
    assert sum(" from steps " in s for s in counted.seen if s.startswith("select")) == 1


@pytest.mark.fault("K05")
def test_nothing_of_a_run_stays_in_memory_when_it_has_ended(world: World) -> None:
    with world.open() as runtime:
        for number in range(100):
            runtime.run(f"r{number}", plan_of(("a", "dark"), ("b", "keyed")))
        runtime.run("doubt", plan_of(("a", "dark", {"do": ["lost"]})))
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, LiveRun)]
        assert runtime._memory == {}
