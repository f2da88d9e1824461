"""One run, step after step: throughput, cost against length, syncs and bytes."""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import bare, ours, timing
from benchmarks.timing import Say


def against_the_limits(
    steps: int, rounds: int, place: Path, say: Say, *, grown: bool, limits: bool
) -> dict[str, Any]:
    """Return seconds of ours and of the bare loop, and their ratio; with `limits` of others too."""

    def loop(commits: int) -> timing.Sample:
        def sample(folder: Path) -> float:
            with closing(bare.connect(folder / "b.db", grown=grown)) as connection:
                return timing.seconds(lambda: bare.loop(connection, steps, commits=commits))

        return sample

    def runtime(folder: Path) -> float:
        given = ours.plan(steps)
        with ours.open_runtime(folder / "o.db", grown=grown) as opened:
            return timing.seconds(lambda: opened.run("run", given))

    contenders: dict[str, timing.Sample] = {"ours": runtime, "bare": loop(1)}
    if limits:
        contenders["two commits"] = loop(2)
        contenders["append"] = lambda folder: timing.seconds(lambda: bare.append(folder, steps))
    samples = timing.in_turns(contenders, rounds, place, say)
    return {
        "steps": steps,
        "seconds": {name: timing.described(found) for name, found in samples.items()},
        "ratio": timing.paired(samples["bare"], samples["ours"]),
    }


def over_the_length(steps: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return what a step costs in each tenth of a long run: the time from one call to the next."""
    tenths: list[list[float]] = [[] for _ in range(10)]
    ratios = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        calls: list[float] = []
        with timing.folder(place) as folder:

            def tick(_request: object) -> None:
                calls.append(time.perf_counter())  # noqa: B023 - called inside of the loop only

            with ours.open_runtime(folder / "o.db", tick=tick) as opened:
                opened.run("run", ours.plan(steps))
        costs = [after - before for before, after in pairwise(calls)]
        parts = [costs[len(costs) * at // 10 : len(costs) * (at + 1) // 10] for at in range(10)]
        medians = [statistics.median(part) for part in parts]
        for tenth, median in zip(tenths, medians, strict=True):
            tenth.append(median)
        ratios.append(medians[-1] / medians[0])
    return {
        "steps": steps,
        "tenths_seconds": [statistics.median(tenth) for tenth in tenths],
        "ratio": timing.described(ratios),
    }
