"""What a peer has to be able to do. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Work(NamedTuple):
    """A run of steps: what goes into a step, and the tool that is called with its number."""

    arguments: Callable[[int], dict[str, Any]]
    tool: Callable[[int], Any]


class Contender(Protocol):
    """A durable runtime with its database open in a folder."""

    def run(self, run: str, steps: int) -> None:
        """Call the tool for each step, one after the other."""

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Do so for several runs at the same time, as fast as it can."""

    def pragma(self, name: str) -> Any:
        """Return a setting of its own connection to SQLite."""

    def close(self) -> None:
        """Let go of the database."""


Opener = Callable[[Path, Work], Contender]


def in_threads(run: Callable[[str, int], None], runs: Sequence[str], steps: int) -> None:
    """Drive each run in a thread of its own."""
    from concurrent.futures import ThreadPoolExecutor  # here: it would slow each start down

    with ThreadPoolExecutor(len(runs)) as pool:
        for ended in [pool.submit(run, name, steps) for name in runs]:
            ended.result()
