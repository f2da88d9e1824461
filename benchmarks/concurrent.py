"""Many runs at the same time, beside the bare group commit."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import bare, ours, timing, work
from benchmarks.timing import Say


def against_the_limit(runs: int, steps: int, rounds: int, place: Path, say: Say) -> dict[str, Any]:
    """Return seconds of ours and of the bare group commit by as many threads, and their ratio."""
    plan, payloads = ours.plan(steps), work.prepared(steps)

    def runtime(folder: Path) -> float:
        with ours.open_runtime(folder / "o.db", result=payloads.result) as opened:
            names = [f"run{number}" for number in range(runs)]
            return timing.seconds(lambda: ours.run_all(opened, names, plan, workers=runs))

    def group(folder: Path) -> float:
        with closing(bare.connect(folder / "b.db")) as connection:
            shared = bare.Group(connection)
            threads = [
                threading.Thread(target=shared.run, args=(number, steps, payloads))
                for number in range(runs)
            ]

            def all_of_them() -> None:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

            return timing.seconds(all_of_them)

    samples = timing.in_turns({"ours": runtime, "group": group}, rounds, place, say)
    return {
        "runs": runs,
        "steps": steps,
        "seconds": {name: timing.described(found) for name, found in samples.items()},
        "ratio": timing.paired(samples["group"], samples["ours"]),
    }
