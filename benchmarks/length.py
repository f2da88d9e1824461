"""What a step costs against the length of its run.

A long run takes seconds, and a shared machine is not as fast at its end as at its beginning. So the
last tenth of one run and the first tenth of another take turns, a hundred steps each: what slows
the machine down slows both.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import bare, ours, timing, work
from benchmarks.timing import Say

TURN_STEPS_MAX = 100
"""Steps of one run before the other has its turn."""
WAIT_SECONDS_MAX = 600

Tick = Callable[[], None]
Run = Callable[[Path, Tick], None]
"""Carry out all steps in an empty folder, and call this once in each."""


def over_the_length(steps: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return what a step costs in each tenth of a long run, and the last against the first: the
    time from one call to the next."""
    plan, payloads = ours.plan(steps), work.prepared(steps)

    def runtime(folder: Path, tick: Tick) -> None:
        with ours.open_runtime(
            folder / "o.db", tick=lambda _request: tick(), result=payloads.result
        ) as opened:
            opened.run("run", plan)

    def loop(folder: Path, tick: Tick) -> None:
        with closing(bare.connect(folder / "b.db")) as connection:
            bare.loop(connection, steps, payloads, tick=tick)

    tenths: dict[str, list[list[float]]] = {"ours": [], "bare": []}

    def sample(who: str, run: Run) -> timing.Sample:
        def taken(folder: Path) -> float:
            found = InTurns(run, steps).take(folder)
            tenths[who].append([statistics.median(tenth) for tenth in found.tenths])
            return found.last_against_first

        return taken

    ratios = timing.in_turns(
        {"ours": sample("ours", runtime), "bare": sample("bare", loop)}, rounds, place, say
    )
    return {
        "steps": steps,
        "tenths_seconds": {
            who: [statistics.median(one) for one in zip(*found[1:], strict=True)]
            for who, found in tenths.items()
        },
        "ratio": timing.described(ratios["ours"]),
        "ratio_bare": timing.described(ratios["bare"]),
    }


class InTurns:
    """A run whose last tenth takes turns with the first tenth of another, in a thread of its own.

    Only one of them is ever at work.
    """

    def __init__(self, run: Run, steps: int) -> None:
        self._run = run
        self._steps = steps
        self._turn = min(TURN_STEPS_MAX, max(1, steps // 10))
        self._old: list[float] = []
        self._young: list[float] = []
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = False
        self.tenths: list[list[float]] = []
        self.last_against_first = 0.0

    def take(self, folder: Path) -> InTurns:
        """Carry both out."""
        for name in ("old", "young"):
            (folder / name).mkdir()
        self._thread = threading.Thread(target=self._second, args=(folder / "young",), daemon=True)
        self._run(folder / "old", self._tick)
        self._ended = True
        self._go.release()
        self._thread.join(WAIT_SECONDS_MAX)
        first, last = _costs(self._young, 0, self._steps // 10), self._tenth(9)
        self.tenths = [self._tenth(number) for number in range(10)]
        self.last_against_first = statistics.median(last) / statistics.median(first)
        return self

    def _tenth(self, number: int) -> list[float]:
        return _costs(self._old, self._steps * number // 10, self._steps * (number + 1) // 10)

    def _tick(self) -> None:
        """Note a call of the first run; in its last tenth, let the other go on now and then."""
        done = len(self._old) - self._steps * 9 // 10
        if done >= 0 and done % self._turn == 0:
            if done == 0:  # not before, so that it is alone until then
                self._thread.start()
            self._go.release()
            _wait(self._back)
        self._old.append(time.perf_counter())

    def _second(self, folder: Path) -> None:
        try:
            self._run(folder, self._tick_of_the_second)
        except _Enough:
            pass
        finally:
            self._back.release()

    def _tick_of_the_second(self) -> None:
        if len(self._young) % self._turn == 0:
            if self._young:
                self._back.release()
            _wait(self._go)
            if self._ended:
                raise _Enough
        self._young.append(time.perf_counter())


class _Enough(BaseException):
    """The second run has done its part."""


def _wait(semaphore: threading.Semaphore) -> None:
    if not semaphore.acquire(timeout=WAIT_SECONDS_MAX):
        raise TimeoutError("the other run has not come to its turn")


def _costs(calls: list[float], first: int, last: int) -> list[float]:
    """Return the time from one call to the next, for the calls in a range."""
    return [after - before for before, after in pairwise(calls[first:last])]
