"""Databases that a measure needs and that nobody times."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from benchmarks import ours


def write_runs(path: Path, *, runs: int, steps: int) -> None:
    """Write finished runs into a database, through the runtime, and sync them all at the end."""
    given = ours.plan(steps)
    with closing(ours.open_runtime(path)) as runtime:
        runtime._store.connection.pragma("synchronous", 0)
        for number in range(runs):
            runtime.run(f"other{number}", given)
    for file in path.parent.glob(f"{path.name}*"):
        with file.open("rb+") as written:
            os.fsync(written.fileno())
