"""Samples of several contenders, taken in turns, and what is said of them."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Sample = Callable[[Path], float]
"""Does the work in an empty folder, and returns what was measured."""

Say = Callable[[str], None]


def say(words: str) -> None:
    """Show how far it is, apart from what is printed at the end."""
    print(f"  {words}", file=sys.stderr, flush=True)


@contextmanager
def folder(place: Path) -> Iterator[Path]:
    """Yield an empty folder that is removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="bench-", dir=place))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def in_turns(
    contenders: Mapping[str, Sample], rounds: int, place: Path, say: Say
) -> dict[str, list[float]]:
    """Sample each once a round, each round in another order, after a round that is not kept."""
    names = list(contenders)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            with folder(place) as path:
                measured = contenders[name](path)
            if number:
                samples[name].append(measured)
    return samples


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def described(samples: Sequence[float]) -> dict[str, Any]:
    """Return the median and the spread of some samples."""
    return {
        "median": statistics.median(samples),
        "least": min(samples),
        "most": max(samples),
        "samples": list(samples),
    }


def paired(over: Sequence[float], under: Sequence[float]) -> dict[str, Any]:
    """Return the ratio of two contenders, round by round: what slows a round down slows both."""
    return described([one / other for one, other in zip(over, under, strict=True)])
