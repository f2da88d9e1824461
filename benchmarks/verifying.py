"""How fast a database is verified, and in how much memory.

`python -m benchmarks.verifying HOW FILE` is what is measured.
HOW is `verify`, or `read`: a bare pass that reads the same rows of events and hashes them. Each is
a process of its own, which prints how many events there were, the seconds, and its memory in bytes.
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import fixtures, timing
from benchmarks.timing import Say

STEPS = 50
"""Of each run, which makes 100 events of it."""


def measured(events: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return how fast a database of about so many events is verified, and the memory it takes."""
    memory: list[int] = []
    counts: set[int] = set()

    def sample(how: str) -> timing.Sample:
        def run(_folder: Path) -> float:
            words = [sys.executable, "-m", "benchmarks.verifying", how, str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            count, seconds, peak = done.stdout.split()
            counts.add(int(count))
            if how == "verify":
                memory.append(int(peak))
            return float(seconds)

        return run

    with timing.folder(place) as folder:
        path = folder / "ours.db"
        say(f"writing {events} events")
        fixtures.write_runs(path, runs=max(1, events // (2 * STEPS)), steps=STEPS)
        samples = timing.in_turns(
            {how: sample(how) for how in ("verify", "read")}, rounds, place, say
        )
    (count,) = counts
    return {
        "events": count,
        "seconds": {how: timing.described(found) for how, found in samples.items()},
        "events_per_second": timing.described([count / took for took in samples["verify"]]),
        "ratio": timing.paired(samples["verify"], samples["read"]),
        "memory_bytes": max(memory),
    }


def main() -> None:
    """Go over the events once."""
    how, path = sys.argv[1:]
    begun = time.perf_counter()
    count = {"verify": _verify, "read": _read}[how](path)
    print(count, time.perf_counter() - begun, peak_bytes())


def _verify(path: str) -> int:
    from agent_replay.store.verify import verify

    verdict = verify(path)
    assert verdict.sound, verdict.findings[:1]
    return verdict.events


def _read(path: str) -> int:
    import apsw

    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    count = 0
    for row in connection.execute("select * from events order by run, seq"):
        hashlib.sha256(repr(row).encode()).digest()
        count += 1
    return count


def peak_bytes() -> int:
    """Return the most memory that this process had at once.

    `ru_maxrss` starts, in a spawned process, with what its parent had; the kernel's own page of the
    process does not.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
