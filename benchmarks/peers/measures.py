"""What is measured of each contender, in turns: a process for each sample."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import timing
from benchmarks.timing import Say
from crashtests.sources import ROOT

SECONDS_MAX = 600
LOOKED_AT = 20
"""Steps of the run whose files are looked at."""
SYNCED = ("fsync", "fdatasync")
SYNC_STEPS = (20, 120)
"""The syncs of a step are what the longer of two runs has more than the shorter."""


class Size(NamedTuple):
    """How much is done."""

    rounds: int
    steps: int
    runs: int
    runs_steps: int


FULL = Size(5, 1_000, 100, 20)
"""The size that the bars are about."""
QUICK = Size(1, 50, 5, 4)

Pythons = Mapping[str, str]
"""The Python in which each contender is."""


def all_of(size: Size, pythons: Pythons, place: Path, say: Say) -> dict[str, Any]:
    """Return every measure of the contenders that there are."""
    look = ("look", LOOKED_AT)
    measured = {
        "sequential": _turns(("sequential", size.steps), size, pythons, place, say),
        "concurrent": _turns(("concurrent", size.runs, size.runs_steps), size, pythons, place, say),
        "start": _turns(("start",), size, pythons, place, say),
        "look": {name: _alone(python, name, look, place) for name, python in pythons.items()},
    }
    say("counting syncs")
    measured["syncs"] = {name: _syncs(python, name, place) for name, python in pythons.items()}
    return measured


def _turns(what: tuple[Any, ...], size: Size, pythons: Pythons, place: Path, say: Say) -> Any:
    say(" ".join(map(str, what)))
    said: dict[str, dict[str, Any]] = {}

    def sample(name: str) -> timing.Sample:
        def run(folder: Path) -> float:
            words = _words(pythons[name], name, what, folder)
            if what[0] == "start":
                return _until_called(words)
            said[name] = _run(words)
            return float(said[name].pop("seconds"))

        return run

    samples = timing.in_turns({name: sample(name) for name in pythons}, size.rounds, place, say)
    base = "bare" if what[0] == "start" else "ours"
    return {
        name: {
            **said.get(name, {}),
            "seconds": timing.described(found),
            f"against_{base}": timing.paired(found, samples[base]),
        }
        for name, found in samples.items()
    }


def _alone(python: str, name: str, what: tuple[Any, ...], place: Path) -> Any:
    with timing.folder(place) as folder:
        return _run(_words(python, name, what, folder))


def _words(python: str, name: str, what: tuple[Any, ...], folder: Path) -> list[str]:
    measure, *numbers = map(str, what)
    return [python, "-m", "benchmarks.peers.child", name, measure, str(folder.resolve()), *numbers]


def _environment() -> dict[str, str]:
    """Return ours, with the checkout to import from, and without telemetry."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}


def _run(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _until_called(words: list[str]) -> float:
    """Return the seconds from the spawn of a process to its first call of the tool."""
    begun = time.perf_counter()
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == "called":
                took = time.perf_counter() - begun
                child.stdout.read()
                return took
    raise RuntimeError(f"{' '.join(words)} never called the tool")


def _syncs(python: str, name: str, place: Path) -> float | None:
    """Return the syncs of a step as strace counts them, or None where there is no strace."""
    if shutil.which("strace") is None:
        return None
    few, many = (_synced(python, name, steps, place) for steps in SYNC_STEPS)
    return (many - few) / (SYNC_STEPS[1] - SYNC_STEPS[0])


def _synced(python: str, name: str, steps: int, place: Path) -> int:
    with timing.folder(place) as folder:
        trace = folder / "trace"
        words = _words(python, name, ("sequential", steps), folder)
        strace = ["strace", "-f", "-qq", "-e", f"trace={','.join(SYNCED)}", "-o", str(trace)]
        _run([*strace, *words])
        calls = re.compile(rf"\b({'|'.join(SYNCED)})\(")
        return len(calls.findall(trace.read_text(encoding="utf-8", errors="replace")))


OURS = {name: sys.executable for name in ("ours", "bare")}
"""The contenders that need no environment of their own."""
