"""The nightly search: python -m tests.stateful.fuzz [--seconds N] [--workers N] [--folder FOLDER]

It goes on until it is interrupted, or for so many seconds. Each worker is a process with seeds of
its own. What fails is kept twice: as a script in the folder, and in Hypothesis's database, from
which the next search replays it first. Exits: 0 nothing was found; 1 something was.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hypothesis.database import DirectoryBasedExampleDatabase

from tests.stateful import reached
from tests.stateful.search import nightly, search

ROUND_EXAMPLES = 100
FOLDER = Path(".hypothesis")
FAILURES = "stateful-failures"


def main(words: Sequence[str] | None = None) -> int:
    """Run the search and return its exit."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)  # of a worker
    given = parser.parse_args(words)
    if given.seed is not None:
        return work(given.seed, given.seconds, given.folder)
    return watch(given.workers, given.seconds, given.folder)


def work(seed: int, seconds: float, folder: Path) -> int:
    """Search round after round, and print a line for each: acts, and cells that a death met."""
    database = DirectoryBasedExampleDatabase(folder / "examples")
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            met = search(nightly(database, ROUND_EXAMPLES), seed)
        except Exception as failure:
            print(f"failed {keep(failure, seed, folder)}", flush=True)
            raise
        acts = sum(count for name, count in met.items() if name.startswith("an act ended"))
        deaths = sum(met[cell] for cell in reached.cells())
        print(f"round {acts} {deaths}", flush=True)
        seed += 1
    return 0


def keep(failure: BaseException, seed: int, folder: Path) -> Path:
    """Write what failed as a program, and return its path."""
    notes = getattr(failure, "__notes__", [f"no script; the seed is {seed}"])
    script = next((note.partition("\n")[2] for note in notes if "import Lab" in note), notes[0])
    path = folder / FAILURES / f"{hashlib.sha256(script.encode()).hexdigest()[:12]}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    return path


def watch(workers: int, seconds: float, folder: Path) -> int:
    """Run the workers, tell how far they are in one line, and return 1 if one found something."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "stateful.log"
    running = [_worker(secrets.randbits(31), seconds, folder, log) for _ in range(workers)]
    began, told = time.monotonic(), 0.0
    try:
        while any(process.poll() is None for process in running):
            if time.monotonic() - told > (1 if sys.stdout.isatty() else 60):
                told = time.monotonic()
                print(f"\r{progress(log, told - began)}", end="", flush=True)
            if any(process.poll() for process in running):
                break
            time.sleep(0.2)
    except KeyboardInterrupt:
        print("\ninterrupted", end="")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    print(f"\r{progress(log, time.monotonic() - began)}")
    found = [line.split()[1] for line in _lines(log) if line.startswith("failed")]
    for path in found:
        print(f"failed: PYTHONPATH=. {sys.executable} {path}")
    crashed = [process.returncode for process in running if (process.returncode or 0) > 0]
    return 1 if found or crashed else 0


def _worker(seed: int, seconds: float, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    words = ["--seed", str(seed), "--seconds", str(seconds), "--folder", str(folder)]
    with log.open("wb"):
        pass
    with log.open("ab") as out, (folder / "stateful.err").open("ab") as error:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.stateful.fuzz", *words], stdout=out, stderr=error
        )


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines()


def progress(log: Path, seconds: float) -> str:
    """Return how far the workers are."""
    rounds = [line.split() for line in _lines(log) if line.startswith("round")]
    acts, deaths = (sum(int(words[column]) for words in rounds) for column in (1, 2))
    examples = len(rounds) * ROUND_EXAMPLES
    return f"{seconds:.0f} s: {examples} examples, {acts} acts, {deaths} deaths in a commit or call"


if __name__ == "__main__":
    sys.exit(main())
