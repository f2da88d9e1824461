"""agent-once: each tool call through `Once.execute`, with the run as its scope."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from once import Once

from benchmarks.peers.contender import Work, in_threads


class AgentOnce:
    """A store of calls that happen once."""

    def __init__(self, folder: Path, work: Work) -> None:
        self._work = work
        self._once = Once(path=str(folder / "once.db"), busy_timeout=30)

    def run(self, run: str, steps: int) -> None:
        """Execute each step."""
        work = self._work

        def call(i: int, a: dict[str, Any], idempotency_key: str | None = None) -> Any:
            return work.tool(i)

        for step in range(steps):
            self._once.execute(call, tool_name="tool", scope=run, i=step, a=work.arguments(step))

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Do so in threads."""
        in_threads(self.run, runs, steps)

    def pragma(self, name: str) -> Any:
        """Return a setting of this thread's connection."""
        return self._once.store._conn().execute(f"pragma {name}").fetchone()[0]

    def close(self) -> None:
        """Close the store."""
        self._once.close()
