"""The same work through the runtime, as a user would do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent_replay import Request, Runtime, adapter, idempotent
from agent_replay.plan import Plan, plan_of
from benchmarks import work

Tick = Callable[[Request], None]


def no_tick(_request: Request) -> None:
    """Note nothing."""


def step_of(request: Request) -> int:
    """Return the number that the plan gave a step."""
    arguments: Any = request.arguments
    return int(arguments["i"])


def plan(steps: int) -> Plan:
    """Return the plan, read and checked."""
    return plan_of(work.plan(steps))


def open_runtime(
    path: Path,
    *,
    grown: bool = True,
    tick: Tick = no_tick,
    result: Callable[[int], Any] = work.result,
) -> Runtime:
    """Open a database with a tool that does nothing; nobody listens to its events."""

    @adapter(name="tool", contract=idempotent())
    def tool(request: Request) -> Any:
        tick(request)
        return result(step_of(request))

    size: dict[str, Any] = {} if grown else {"log_bytes": 0}
    return Runtime(path, adapters=[tool], **size)


def run_all(runtime: Runtime, runs: Iterable[str], given: Plan, *, workers: int) -> None:
    """Drive runs of one plan at the same time."""
    for finished in runtime.run_many(((run, given) for run in runs), workers=workers):
        assert finished.error is None, finished.error
