"""What a process costs from its start: to its first call, and to the end of a killed run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import ours, timing
from benchmarks.timing import Say

CHILD = Path(__file__).parent / "children.py"
SECONDS_MAX = 600


def first_call(rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds from the spawn to the first call of the tool, on a new database."""

    def sample(who: str) -> timing.Sample:
        return lambda folder: _until("called", who, folder / f"{who}.db", 1)

    samples = timing.in_turns({who: sample(who) for who in ("ours", "bare")}, rounds, place, say)
    return {
        "seconds": {who: timing.described(found) for who, found in samples.items()},
        "ratio": timing.paired(samples["ours"], samples["bare"]),
    }


def resumed(steps: int, rounds: int, others: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds from the spawn to the end of a run that was killed before its last step.

    `others` runs, of one step each, are in the runtime's database beside it.
    """
    with timing.folder(place) as made:
        if others:
            say(f"writing {others} other runs")
            _fill(made / "ours.db", others)
        for who in ("ours", "bare"):
            say(f"killing {who} before step {steps - 1} of {steps}")
            _killed(who, made / f"{who}.db", steps)

        def sample(who: str) -> timing.Sample:
            def work(folder: Path) -> float:
                for file in made.glob(f"{who}.db*"):
                    shutil.copy(file, folder)
                return _until("done", who, folder / f"{who}.db", steps)

            return work

        contenders = {who: sample(who) for who in ("ours", "bare")}
        samples = timing.in_turns(contenders, rounds, place, say)
    return {
        "steps": steps,
        "others": others,
        "seconds": {who: timing.described(found) for who, found in samples.items()},
        "ratio": timing.paired(samples["ours"], samples["bare"]),
    }


def _until(word: str, who: str, path: Path, steps: int) -> float:
    """Return how long a child takes, from its spawn until it prints a word."""
    begun = time.perf_counter()
    child = _start(who, path, steps)
    with child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == word:
                took = time.perf_counter() - begun
                assert child.wait(SECONDS_MAX) == 0
                return took
    raise RuntimeError(f"{who} ended with {child.returncode} and never said {word!r}")


def _killed(who: str, path: Path, steps: int) -> None:
    child = _start(who, path, steps, str(steps - 1))
    child.communicate(timeout=SECONDS_MAX)
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"{who} was to be killed, and ended with {child.returncode}")


def _start(who: str, path: Path, steps: int, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, str(CHILD), who, str(path), str(steps), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _fill(path: Path, runs: int) -> None:
    """Write finished runs of one step; not synced one by one, since nobody times it."""
    given = ours.plan(1)
    with closing(ours.open_runtime(path)) as runtime:
        runtime._store.connection.pragma("synchronous", 0)
        for number in range(runs):
            runtime.run(f"other{number}", given)


def verified(events: int, place: Path, say: Say) -> dict[str, Any]:
    """Return how fast a database of about so many events is verified, and the memory it takes."""
    steps = 50
    with timing.folder(place) as folder:
        path = folder / "ours.db"
        say(f"writing {events} events")
        given = ours.plan(steps)
        with closing(ours.open_runtime(path)) as runtime:
            runtime._store.connection.pragma("synchronous", 0)
            for number in range(max(1, events // (2 * steps))):
                runtime.run(f"run{number}", given)
        say("verifying")
        words = [sys.executable, "-c", _VERIFY, str(path)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    count, took, kilobytes = done.stdout.split()
    return {
        "events": int(count),
        "events_per_second": int(count) / float(took),
        "memory_bytes": int(kilobytes) * 1024,
    }


_VERIFY = """
import resource, sys, time
from agent_replay.store.verify import verify
begun = time.perf_counter()
verdict = verify(sys.argv[1])
took = time.perf_counter() - begun
assert verdict.sound
print(verdict.events, took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
