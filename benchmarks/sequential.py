"""One run, step after step: throughput."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
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
