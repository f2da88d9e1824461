"""One run, step after step: throughput, cost against length, syncs and bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import bare, ours, timing, work
from benchmarks.timing import Say


class Kind(NamedTuple):
    """What is run, and beside what."""

    steps: int
    grown: bool = True
    limits: bool = False
    """Whether the other limits are shown too."""
    result: Callable[[int], Any] = work.result


def against_the_limits(kind: Kind, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds of ours, of the bare loop and of other limits, and the ratio of the first two.

    The plan is read, the payloads are made and the database is open before a clock runs.
    """
    steps = kind.steps
    plan, payloads = ours.plan(steps), work.prepared(steps, kind.result)

    def loop(commits: int) -> timing.Sample:
        def sample(folder: Path) -> float:
            with closing(bare.connect(folder / "b.db", grown=kind.grown)) as connection:
                return timing.seconds(
                    lambda: bare.loop(connection, steps, payloads, commits=commits)
                )

        return sample

    def runtime(folder: Path) -> float:
        with ours.open_runtime(folder / "o.db", grown=kind.grown, result=payloads.result) as opened:
            return timing.seconds(lambda: opened.run("run", plan))

    def append(folder: Path) -> float:
        return timing.seconds(lambda: bare.append(folder, steps, payloads))

    contenders: dict[str, timing.Sample] = {"ours": runtime, "bare": loop(1)}
    if kind.limits:
        contenders |= {"two commits": loop(2), "append": append}
    samples = timing.in_turns(contenders, rounds, place, say)
    return {
        "steps": steps,
        "seconds": {name: timing.described(found) for name, found in samples.items()},
        "ratio": timing.paired(samples["bare"], samples["ours"]),
    }


def over_the_length(steps: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return what a step costs in each tenth of a long run: the time from one call to the next."""
    plan, payloads = ours.plan(steps), work.prepared(steps)
    found: dict[str, list[list[float]]] = {"ours": [], "bare": []}

    def runtime(folder: Path) -> float:
        calls: list[float] = []
        with ours.open_runtime(
            folder / "o.db",
            tick=lambda _request: calls.append(time.perf_counter()),
            result=payloads.result,
        ) as opened:
            opened.run("run", plan)
        found["ours"].append(_tenths(calls))
        return _last_against_first(found["ours"][-1])

    def loop(folder: Path) -> float:
        calls: list[float] = []
        with closing(bare.connect(folder / "b.db")) as connection:
            bare.loop(connection, steps, payloads, tick=lambda: calls.append(time.perf_counter()))
        found["bare"].append(_tenths(calls))
        return _last_against_first(found["bare"][-1])

    ratios = timing.in_turns({"ours": runtime, "bare": loop}, rounds, place, say)
    return {
        "steps": steps,
        "tenths_seconds": {
            who: [statistics.median(one) for one in zip(*tenths[1:], strict=True)]
            for who, tenths in found.items()
        },
        "ratio": timing.described(ratios["ours"]),
        "ratio_bare": timing.described(ratios["bare"]),
    }


def _tenths(calls: list[float]) -> list[float]:
    """Return the median cost of a step in each tenth."""
    costs = [after - before for before, after in pairwise(calls)]
    parts = [costs[len(costs) * at // 10 : len(costs) * (at + 1) // 10] for at in range(10)]
    return [statistics.median(part) for part in parts]


def _last_against_first(tenths: list[float]) -> float:
    return tenths[-1] / tenths[0]
