"""This runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.peers.contender import Work


class Ours:
    """Plans, run by a `Runtime`."""

    def __init__(self, folder: Path, work: Work) -> None:
        self._runtime = ours.open_runtime(folder / "ours.db", result=work.tool)
        self._plans: dict[int, Any] = {}

    def prepare(self, steps: int) -> None:
        """Read a plan before the clock runs."""
        self._plans[steps] = ours.plan(steps)

    def run(self, run: str, steps: int) -> None:
        """Run a plan."""
        assert self._runtime.run(run, self._plans[steps]).completed

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Run it under several ids at once."""
        ours.run_all(self._runtime, runs, self._plans[steps], workers=len(runs))

    def pragma(self, name: str) -> Any:
        """Return a setting of the writer."""
        return self._runtime._store.connection.pragma(name)

    def close(self) -> None:
        """Close the runtime."""
        self._runtime.close()
