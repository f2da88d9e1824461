"""The bare loop and the bare group commit, which validate and recover nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import bare, work
from benchmarks.peers.contender import Work, in_threads


class Bare:
    """SQLite through apsw."""

    def __init__(self, folder: Path, given: Work) -> None:
        self._connection = bare.connect(folder / "bare.db")
        self._tool = given.tool
        self._payloads: dict[int, work.Payloads] = {}

    def prepare(self, steps: int) -> None:
        """Make the payloads before the clock runs."""
        self._payloads[steps] = work.prepared(steps)._replace(result=self._tool)

    def run(self, run: str, steps: int) -> None:
        """Keep the steps of a run; the loop knows only one."""
        self._connection.execute("delete from events")
        bare.loop(self._connection, steps, self._payloads[steps])

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Keep those of several at once."""
        self._connection.execute("delete from events")
        group, number = bare.Group(self._connection), {run: at for at, run in enumerate(runs)}
        payloads = self._payloads[steps]
        in_threads(lambda run, steps: group.run(number[run], steps, payloads), runs, steps)

    def pragma(self, name: str) -> Any:
        """Return a setting."""
        return self._connection.pragma(name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
