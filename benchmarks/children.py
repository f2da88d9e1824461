"""What is timed from its start as a process: `python benchmarks/children.py WHO DATABASE STEPS`.

WHO is `bare` or `ours`. It prints "called" at its first call of the tool and "done" at the end, and
kills itself before step DIE_AT, if that is given. Nothing is imported that the contender needs not.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


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

    {"bare": _bare, "ours": _ours}[who](Path(path), int(steps), tick)
    print("done", flush=True)


def _bare(path: Path, steps: int, tick: object) -> None:
    from benchmarks import bare, work

    assert callable(tick)
    connection = bare.connect(path)
    first = bare.recorded(connection)
    at = iter(range(first, steps))
    bare.loop(connection, steps, work.WHEN_NEEDED, first=first, tick=lambda: tick(next(at)))


def _ours(path: Path, steps: int, tick: object) -> None:
    from benchmarks import ours

    assert callable(tick)
    with ours.open_runtime(path, tick=lambda request: tick(ours.step_of(request))) as runtime:
        assert runtime.run("run", ours.plan(steps)).completed


if __name__ == "__main__":
    main()
