"""What is timed from its start as a process: `python benchmarks/children.py WHO DATABASE STEPS`.

WHO is `bare` or `ours`; with 0 STEPS the run goes on from its history. It prints "called" at its
first call of the tool and "done" when the run has ended. With DIE_AT it kills itself before that
step; with PLAN, a file, the run is given its plan again. Nothing is imported that the contender
needs not.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

Tick = Callable[[int], None]


def main() -> None:
    """Do the steps that are still to be done."""
    who, path, steps, *rest = sys.argv[1:]
    die_at = int(rest[0]) if rest else -1
    calls = 0

    def tick(step: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            print("called", flush=True)
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if who == "bare":
        _bare(Path(path), int(steps), tick)
    else:
        _ours(Path(path), int(steps), tick, plan_file=rest[1] if len(rest) > 1 else None)


def _bare(path: Path, steps: int, tick: Tick) -> None:
    from benchmarks import bare, work

    connection = bare.connect(path)
    first = bare.recorded(connection)
    steps = steps or first + 1
    at = iter(range(first, steps))
    bare.loop(connection, steps, work.WHEN_NEEDED, first=first, tick=lambda: tick(next(at)))
    print("done", flush=True)


def _ours(path: Path, steps: int, tick: Tick, *, plan_file: str | None) -> None:
    from benchmarks import ours

    with ours.open_runtime(path, tick=lambda request: tick(ours.step_of(request))) as runtime:
        if plan_file:
            from agent_replay.plan import load_plan

            outcome = runtime.run("run", load_plan(plan_file))
        elif steps:
            outcome = runtime.run("run", ours.plan(steps))
        else:
            outcome = runtime.resume("run")
        print("done", flush=True)
        assert outcome.completed


if __name__ == "__main__":
    main()
