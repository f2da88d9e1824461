"""What a process costs from its start: to its first call, and to the end of a killed run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import fixtures, timing, work
from benchmarks.timing import Say

CHILD = Path(__file__).parent / "children.py"
SECONDS_MAX = 600
PLAN = "plan.json"
BESIDE = "ours, beside others"
AGAIN = "ours, plan given again"


def first_call(rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds from the spawn to the first call of the tool, on a new database."""

    def sample(who: str) -> timing.Sample:
        return lambda folder: _until("called", who, folder / f"{who}.db", 1)

    samples = timing.in_turns({who: sample(who) for who in ("ours", "bare")}, rounds, place, say)
    return {
        "seconds": {who: timing.described(found) for who, found in samples.items()},
        "ratio": timing.paired(samples["ours"], samples["bare"]),
    }


def restarted(steps: int, rounds: int, others: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds from the spawn to the end of a run that was killed before its last step.

    That is shown for a quarter, a half and all of the steps; for the last also with `others` runs
    in the database, and with the plan read and compared once more.
    """
    lengths = (steps // 4, steps // 2, steps)
    with timing.folder(place) as made:
        for who in ("ours", "bare"):
            for length in lengths:
                say(f"killing {who} before step {length - 1} of {length}")
                _killed(who, _folder(made, f"{who}, {length}"), length)
        say(f"writing {others} other runs")
        beside = _folder(made, BESIDE)
        fixtures.write_runs(beside / "ours.db", runs=others, steps=1)
        _killed("ours", beside, steps)
        again = shutil.copytree(made / f"ours, {steps}", made / AGAIN)
        (again / PLAN).write_text(json.dumps(work.plan(steps)), encoding="utf-8")
        contenders = {
            folder.name: _restart(folder, "bare" if folder.name.startswith("bare") else "ours")
            for folder in sorted(made.iterdir())
        }
        samples = timing.in_turns(contenders, rounds, place, say)
    mine, bare = samples[f"ours, {steps}"], samples[f"bare, {steps}"]
    return {
        "steps": list(lengths),
        "others": others,
        "seconds": {name: timing.described(found) for name, found in samples.items()},
        "ratio": timing.paired(mine, bare),
        "ratio_beside": timing.paired(samples[BESIDE], bare),
        "beside": timing.paired(samples[BESIDE], mine),
        "growth": growth([statistics.median(samples[f"ours, {length}"]) for length in lengths]),
    }


def growth(seconds: list[float]) -> float:
    """Return what the second half of a run adds, over what the last three quarters add, times 1.5.

    That is 1 where the cost is linear and 1.2 where it is quadratic. What the start costs is there
    at each length, and cancels out.
    """
    quarter, half, whole = seconds
    return 1.5 * (whole - half) / (whole - quarter)


def _folder(made: Path, name: str) -> Path:
    folder = made / name
    folder.mkdir()
    return folder


def _restart(made: Path, who: str) -> timing.Sample:
    def sample(folder: Path) -> float:
        for file in made.iterdir():
            _copy(file, folder / file.name)
        plan = folder / PLAN
        more = ["-1", str(plan)] if plan.exists() else []
        return _until("done", who, folder / f"{who}.db", 0, *more)

    return sample


def _copy(file: Path, target: Path) -> None:
    """Copy a file and sync it: else the first sync of the contender pays for the copying."""
    shutil.copy(file, target)
    with target.open("rb+") as copied:
        os.fsync(copied.fileno())


def _until(word: str, who: str, path: Path, steps: int, *more: str) -> float:
    """Return how long a child takes, from its spawn until it prints a word."""
    begun = time.perf_counter()
    child = _start(who, path, steps, *more)
    with child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == word:
                took = time.perf_counter() - begun
                assert child.wait(SECONDS_MAX) == 0
                return took
    raise RuntimeError(f"{who} ended with {child.returncode} and never said {word!r}")


def _killed(who: str, folder: Path, steps: int) -> None:
    child = _start(who, folder / f"{who}.db", steps, str(steps - 1))
    child.communicate(timeout=SECONDS_MAX)
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"{who} was to be killed, and ended with {child.returncode}")


def _start(who: str, path: Path, steps: int, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, str(CHILD), who, str(path), str(steps), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
