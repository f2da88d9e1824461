"""What is measured, under which name, and which figure is to be reached."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import concurrent, length, processes, sampling, sequential, verifying, work
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
"""The size that the bars are about: a figure of another is not held against them."""
QUICK = Size(1, 100, 400, 8, 5, 200, 2_000)


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
SPEED = ("events_per_second", "median")

BARS = (
    Bar("1,000 steps, new log, against the bare loop", "new log", RATIO, least=0.75),
    Bar("1,000 steps, grown log, against the bare loop", "grown log", RATIO, least=0.65),
    Bar("10,000 steps, grown log, against the bare loop", "grown log, long", RATIO, least=0.65),
    Bar("durable syncs per step, 1,000 steps", "files", ("ours", "syncs"), most=1.02),
    Bar("durable syncs per step, 10,000 steps", "files, long", ("ours", "syncs"), most=1.02),
    Bar("last tenth of 10,000 steps against the first", "length", RATIO, most=1.10),
    Bar("100 runs of 20 steps, against the bare group commit", "concurrent", RATIO, least=0.50),
    Bar("killed at 9,999 of 10,000: restart against the bare loop's", "restart", RATIO, most=4.0),
    Bar("the same beside 50,000 runs", "restart", ("ratio_beside", "median"), most=4.0),
    Bar("that restart against ours without them", "restart", ("beside", "median"), most=1.10),
    Bar("restart, growth with the run (1 is linear)", "restart", ("growth",), most=1.10),
    Bar("spawn to first call, new database, against the bare loop's", "start", RATIO, most=3.5),
    Bar("events verified per second, 1 million", "verify", SPEED, least=40_000),
    Bar("events verified per second, 100,000", "verify, tenth", SPEED, least=40_000),
    Bar("memory while verifying 1 million, bytes", "verify", ("memory_bytes",), most=120_000_000),
    Bar("log bytes per step against the bare loop", "files", ("log_ratio",), most=1.8),
)

GROUPS = {
    "sequential": ("new log", "grown log", "grown log, long", "grown log, no results"),
}
"""Names for several measures at once."""


def judged(measured: dict[str, Any], size: Size) -> list[dict[str, Any]]:
    """Return each bar that was measured with its figure; it is reached, or not, at full size."""
    return [
        {
            "says": bar.says,
            "measure": bar.measure,
            "value": bar.value(measured),
            "least": bar.least,
            "most": bar.most,
            "reached": bar.reached(measured) if size == FULL else None,
        }
        for bar in BARS
        if bar.measure in measured
    ]


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
    rounds = size.rounds

    def loop(kind: Kind) -> Callable[[], dict[str, Any]]:
        return lambda: sequential.against_the_limits(kind, rounds, place, say)

    return {
        "new log": loop(Kind(size.steps, grown=False, limits=True)),
        "grown log": loop(Kind(size.steps, limits=True)),
        "grown log, long": loop(Kind(size.steps_long)),
        "grown log, no results": loop(Kind(size.steps, result=work.nothing)),
        "files": lambda: files(size.steps, place),
        "files, long": lambda: files(size.steps_long, place),
        "length": lambda: length.over_the_length(size.steps_long, rounds, place, say),
        "processor": lambda: sampling.measured(size.steps_long, rounds, place, say),
        "concurrent": lambda: concurrent.against_the_limit(
            size.runs, size.runs_steps, rounds, place, say
        ),
        "start": lambda: processes.first_call(2 * rounds, place, say),
        "restart": lambda: processes.restarted(size.steps_long, rounds, size.others, place, say),
        "verify, tenth": lambda: verifying.measured(size.events // 10, rounds, place, say),
        "verify": lambda: verifying.measured(size.events, min(rounds, 3), place, say),
    }
