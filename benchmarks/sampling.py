"""Where the processor's time of a step goes: samples of what runs, taken by the processor's clock.

A profiler that notes every call makes a step three times as dear, and calls dearer than what they
do. Here a signal comes after each interval of processor time, and what it interrupts is noted. It
is delivered when the interpreter comes to its next instruction, so the time inside of a call to
SQLite falls on the line with that call.
"""

from __future__ import annotations

import linecache
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import agent_replay
from benchmarks import bare, ours, timing, work
from benchmarks.timing import Say

INTERVAL_SECONDS = 0.001
"""Of processor time; the kernel may take its own tick instead, which is longer."""

SQLITE = "inside of SQLite: rows, triggers, foreign keys, commit and sync"
TOOL = "the tool and the loop around it"
PARTS = {
    "store": "the store: statements, checks of lock, files and epoch, the transaction",
    "values": "JSON: results encoded, checked and decoded",
    "chain.py": "the hashes of the rows",
    "machine.py": "the machine and the decision",
    "recovery.py": "the machine and the decision",
    "lifecycles": "the machine and the decision",
    "history.py": "the history in memory",
    "live.py": "the history in memory",
    "driver.py": "the driver",
}
"""What lies in a file or folder of the library."""
REST = "everything else in the library"

_HERE = Path(__file__).parent
_LIBRARY = Path(agent_replay.__file__).parent


def measured(steps: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return the processor's time of a step, ours and the bare loop's, and how ours is shared out.

    The two are timed without samples, in turns; the samples are of runs of their own.
    """
    plan, payloads = ours.plan(steps), work.prepared(steps)

    def run(folder: Path, seconds_of: Callable[[Callable[[], object]], float]) -> float:
        with ours.open_runtime(folder / "o.db", result=payloads.result) as opened:
            return seconds_of(lambda: opened.run("run", plan))

    def loop(folder: Path) -> float:
        with closing(bare.connect(folder / "b.db")) as connection:
            return _seconds(lambda: bare.loop(connection, steps, payloads))

    found: Counter[str] = Counter()

    def sampled(folder: Path) -> float:
        with samples(found):
            return run(folder, _seconds)

    contenders = {"ours": lambda folder: run(folder, _seconds), "bare": loop, "sampled": sampled}
    seconds = timing.in_turns(contenders, rounds, place, say)
    total = max(1, found.total())
    return {
        "steps": steps,
        "seconds_per_step": {
            name: timing.described([one / steps for one in taken])
            for name, taken in seconds.items()
        },
        "samples": found.total(),
        "parts": {part: count / total for part, count in found.most_common()},
    }


def _seconds(act: Callable[[], object]) -> float:
    """Return how much of the processor's time something takes, the kernel's for it included."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


@contextmanager
def samples(found: Counter[str]) -> Iterator[None]:
    """Count, while this lasts, in which part the process is; only in the main thread."""

    def note(_signal: int, frame: FrameType | None) -> None:
        found[part_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def part_of(frame: FrameType | None) -> str:
    """Return which part is at work: that of the innermost frame which is of the library.

    What SQLite calls back, as after a commit, is begun where its own work has ended, so a sample
    there is of that work.
    """
    while frame is not None:
        part = _of_file(frame.f_code.co_filename)
        if part is not None:
            return SQLITE if _asks_sqlite(frame) or _asks_sqlite(frame.f_back) else part
        frame = frame.f_back
    return REST


@cache
def _of_file(file: str) -> str | None:
    """Return the part that a file belongs to; None if it is neither the library nor this."""
    path = Path(file)
    if path.is_relative_to(_HERE):
        return TOOL
    if not path.is_relative_to(_LIBRARY):
        return None
    return PARTS.get(path.relative_to(_LIBRARY).parts[0], REST)


def _asks_sqlite(frame: FrameType | None) -> bool:
    return frame is not None and ".execute" in linecache.getline(
        frame.f_code.co_filename, frame.f_lineno or 0
    )
