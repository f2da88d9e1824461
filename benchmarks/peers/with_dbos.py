"""DBOS Transact on SQLite: one step a tool call, in a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID
from dbos._dbos import _get_dbos_instance

from benchmarks.peers.contender import Work

_given: list[Work] = []


def _call(step: int, _arguments: dict[str, Any]) -> Any:
    return _given[0].tool(step)


_step = DBOS.step(name="call")(_call)


def _all(steps: int) -> int:
    for step in range(steps):
        _step(step, _given[0].arguments(step))
    return steps


_workflow = DBOS.workflow(name="all")(_all)


class Dbos:
    """A workflow of steps."""

    def __init__(self, folder: Path, work: Work) -> None:
        _given[:] = [work]
        DBOS(
            config={
                "name": "bench",
                "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
                "run_admin_server": False,
                "log_level": "ERROR",
                "application_version": "1",
            }
        )
        DBOS.launch()

    def run(self, run: str, steps: int) -> None:
        """Run the workflow in this thread."""
        with SetWorkflowID(run):
            _workflow(steps)

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Start all workflows and wait for them."""
        handles = []
        for run in runs:
            with SetWorkflowID(run):
                handles.append(DBOS.start_workflow(_workflow, steps))
        for handle in handles:
            assert handle.get_result() == steps

    def pragma(self, name: str) -> Any:
        """Return a setting of a connection of its pool."""
        with _get_dbos_instance()._sys_db.engine.connect() as connection:
            cursor = connection.connection.driver_connection.execute(f"pragma {name}")
            return cursor.fetchone()[0]

    def close(self) -> None:
        """End its threads."""
        DBOS.destroy(workflow_completion_timeout_sec=0)
