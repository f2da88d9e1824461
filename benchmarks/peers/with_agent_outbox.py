"""agent-outbox: each tool call through `ToolExecutor.run`, with the run as its session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_outbox import OutboxStore, ToolExecutor

from benchmarks.peers.contender import Work, in_threads


class AgentOutbox:
    """An outbox of tool calls."""

    def __init__(self, folder: Path, work: Work) -> None:
        self._work = work
        self._store = OutboxStore(str(folder / "outbox.db"))
        self._executor = ToolExecutor(self._store)

    def run(self, run: str, steps: int) -> None:
        """Run each step through the executor."""
        work = self._work

        def call(i: int, a: dict[str, Any], idempotency_key: str | None = None) -> Any:
            return work.tool(i)

        for step in range(steps):
            given = {"i": step, "a": work.arguments(step)}
            done = self._executor.run("tool", call, given, run)
            if not done.ok:
                raise RuntimeError(done.error)

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Do so in threads."""
        in_threads(self.run, runs, steps)

    def pragma(self, name: str) -> Any:
        """Return a setting of its connection."""
        return self._store._conn.execute(f"pragma {name}").fetchone()[0]

    def close(self) -> None:
        """Close the store."""
        self._store.close()
