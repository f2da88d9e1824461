"""One measure of one contender: `python -m benchmarks.peers.child NAME WHAT FOLDER [NUMBERS]`.

Runs in the contender's environment, so only the standard library and the contender are there. It
prints JSON. WHAT is

sequential STEPS        one run, after one of one step that is not timed
concurrent RUNS STEPS   several at once, after the same
start                   one step; "called" is printed at the call of the tool
look STEPS              in how many calls the arguments, and the result before, are on file
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.peers.contender import Contender, Opener, Work

CONTENDERS = {
    "ours": "with_ours:Ours",
    "bare": "with_bare:Bare",
    "agent-once": "with_agent_once:AgentOnce",
    "agent-outbox": "with_agent_outbox:AgentOutbox",
    "langgraph": "with_langgraph:LangGraph",
    "langgraph async": "with_langgraph:LangGraphAsync",
    "dbos": "with_dbos:Dbos",
}
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


def main() -> None:
    """Measure what is asked for and print it."""
    name, what, folder, *numbers = sys.argv[1:]
    measure = {"sequential": _sequential, "concurrent": _concurrent, "start": _start, "look": _look}
    found = measure[what](_opener(name), Path(folder), [int(number) for number in numbers])
    print(json.dumps(found), flush=True)


def _opener(name: str) -> Opener:
    module, _, attribute = CONTENDERS[name].partition(":")
    opener: Opener = getattr(importlib.import_module(f"benchmarks.peers.{module}"), attribute)
    return opener


def _work(steps: int) -> Work:
    arguments = [work.arguments(step) for step in range(steps)]
    results = [work.result(step) for step in range(steps)]
    return Work(arguments.__getitem__, results.__getitem__)


def _prepare(contender: Contender, steps: int) -> None:
    """Have a contender prepare what it can before the clock runs; most can't."""
    prepare: Callable[[int], None] | None = getattr(contender, "prepare", None)
    if prepare is not None:
        prepare(steps)


def _timed(open_it: Opener, folder: Path, steps: int, act: Callable[[Contender], None]) -> Any:
    contender = open_it(folder, _work(steps))
    _prepare(contender, 1)
    contender.run("warm-up", 1)
    _prepare(contender, steps)
    begun = time.perf_counter()
    act(contender)
    seconds = time.perf_counter() - begun
    said = {
        "seconds": seconds,
        "journal": str(contender.pragma("journal_mode")).upper(),
        "synchronous": SYNCHRONOUS[int(contender.pragma("synchronous"))],
    }
    contender.close()
    return said


def _sequential(open_it: Opener, folder: Path, numbers: Sequence[int]) -> Any:
    (steps,) = numbers
    from benchmarks.peers import look  # here: it would slow each start down

    said = _timed(open_it, folder, steps, lambda contender: contender.run("run", steps))
    return {**said, "database_bytes": look.database_bytes(folder) / steps}


def _concurrent(open_it: Opener, folder: Path, numbers: Sequence[int]) -> Any:
    runs, steps = numbers
    names = [f"run{number}" for number in range(runs)]
    return _timed(open_it, folder, steps, lambda contender: contender.run_many(names, steps))


def _start(open_it: Opener, folder: Path, _numbers: Sequence[int]) -> Any:
    def tool(step: int) -> Any:
        print("called", flush=True)
        return work.result(step)

    contender = open_it(folder, Work(work.arguments, tool))
    _prepare(contender, 1)
    contender.run("run", 1)
    contender.close()
    return {}


def _look(open_it: Opener, folder: Path, numbers: Sequence[int]) -> Any:
    from benchmarks.peers import look

    (steps,) = numbers
    seen: list[dict[str, bool]] = []

    def tool(step: int) -> Any:
        if step:
            seen.append(look.seen(folder, step))
        return work.result(step)

    contender = open_it(folder, Work(work.arguments, tool))
    _prepare(contender, steps)
    contender.run("run", steps)
    contender.close()
    return {what: sum(one[what] for one in seen) / len(seen) for what in seen[0]}


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # a peer's threads are none of ours to wait for
