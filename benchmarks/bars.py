"""What is measured, under which name, and which figure is to be reached."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import concurrent, processes, sequential, work
from benchmarks.sequential import Kind
from benchmarks.timing import Say


class Size(NamedTuple):
    """How much is done; the small one only shows that everything works."""

    rounds: int
    steps: int
    steps_long: int
    runs: int
    runs_steps: int
    others: int
    events: int


FULL = Size(7, 1_000, 10_000, 100, 20, 50_000, 1_000_000)
QUICK = Size(2, 100, 400, 8, 5, 200, 2_000)


class Bar(NamedTuple):
    """One figure to be reached."""

    says: str
    measure: str
    figure: tuple[str | int, ...]
    """Where it stands in what the measure returns."""
    least: float | None = None
    most: float | None = None

    def value(self, measured: dict[str, Any]) -> float:
        """Return the figure."""
        found: Any = measured[self.measure]
        for key in self.figure:
            found = found[key]
        return float(found)

    def reached(self, measured: dict[str, Any]) -> bool:
        """Return whether the figure is reached."""
        value = self.value(measured)
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )


RATIO = ("ratio", "median")

BARS = (
    Bar("sequential, new log, against the bare loop", "new log", RATIO, least=0.75),
    Bar("sequential, grown log, against the bare loop", "grown log", RATIO, least=0.65),
    Bar("the same, a long run", "grown log, long", RATIO, least=0.65),
    Bar("durable syncs per step", "files", ("ours", "syncs"), most=1.02),
    Bar("durable syncs per step, a long run", "files, long", ("ours", "syncs"), most=1.02),
    Bar("last tenth of a long run against the first", "length", RATIO, most=1.10),
    Bar("many runs at once, against the bare group commit", "concurrent", RATIO, least=0.50),
    Bar("killed before the last step: restart against the bare loop's", "resume", RATIO, most=4.0),
    Bar("the same with other runs beside it", "resume, others", RATIO, most=4.0),
    Bar("spawn to first call, new database, against the bare loop's", "start", RATIO, most=3.5),
    Bar("events verified per second", "verify", ("events_per_second",), least=40_000),
    Bar("memory while verifying, bytes", "verify", ("memory_bytes",), most=120_000_000),
    Bar("bytes to the log per step, against the bare loop", "files", ("log_ratio",), most=1.8),
)


GROUPS = {
    "sequential": ("new log", "grown log", "grown log, long", "grown log, no results"),
}
"""Names for several measures at once."""


def files(steps: int, place: Path) -> dict[str, Any]:
    """Return syncs and bytes for each step, counted in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.counting", str(steps), str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    said: dict[str, Any] = json.loads(done.stdout)
    return {
        "steps": steps,
        **said,
        "log_ratio": said["ours"]["log_bytes"] / said["bare"]["log_bytes"],
    }


def measures(size: Size, place: Path, say: Say) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return each measure by its name."""

    def loop(kind: Kind) -> Callable[[], dict[str, Any]]:
        return lambda: sequential.against_the_limits(kind, size.rounds, place, say)

    def restart(steps: int, others: int) -> Callable[[], dict[str, Any]]:
        return lambda: processes.resumed(steps, size.rounds, others, place, say)

    return {
        "new log": loop(Kind(size.steps, grown=False, limits=True)),
        "grown log": loop(Kind(size.steps, limits=True)),
        "grown log, long": loop(Kind(size.steps_long)),
        "grown log, no results": loop(Kind(size.steps, result=work.nothing)),
        "files": lambda: files(size.steps, place),
        "files, long": lambda: files(size.steps_long, place),
        "length": lambda: sequential.over_the_length(size.steps_long, size.rounds, place, say),
        "concurrent": lambda: concurrent.against_the_limit(
            size.runs, size.runs_steps, size.rounds, place, say
        ),
        "start": lambda: processes.first_call(2 * size.rounds, place, say),
        "resume, quarter": restart(size.steps_long // 4, 0),
        "resume, half": restart(size.steps_long // 2, 0),
        "resume": restart(size.steps_long, 0),
        "resume, others": restart(size.steps_long, size.others),
        "verify": lambda: processes.verified(size.events, place, say),
    }
