"""The one piece of work that every contender does: steps with 100 bytes in and 100 bytes out.

The tool does nothing, so that what is timed is the keeping of the history. Standard library only,
and nothing that a contender would not load anyway.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

BYTES = 100
"""Of the arguments and of the result of a step, as compact JSON."""


class Payloads(NamedTuple):
    """What a contender writes: requests as text, for a plan is read before it is run; results as
    values, for a history encodes what a tool returns."""

    request: Callable[[int], str]
    result: Callable[[int], Any]


def arguments(step: int) -> dict[str, Any]:
    """Return the arguments of a step, different for each."""
    return _padded({"i": step, "mode": "r", "path": f"/data/in/{step:06}.json"})


def result(step: int) -> dict[str, Any]:
    """Return the result of a step."""
    return _padded({"i": step, "ok": True, "sha": f"{step:032x}"})


def nothing(_step: int) -> None:
    """Return the result of a step that has none."""


def request(step: int) -> str:
    """Return what must be known of a request before it is sent: its key and its arguments."""
    return f'{{"key":"{step:064x}","arguments":{text(arguments(step))}}}'


WHEN_NEEDED = Payloads(request, result)
"""Each made when it is asked for."""


def prepared(steps: int, result: Callable[[int], Any] = result) -> Payloads:
    """Return the payloads of a run, all made now, so that making them is not timed."""
    requests = [request(step) for step in range(steps)]
    results = [result(step) for step in range(steps)]
    return Payloads(requests.__getitem__, results.__getitem__)


def text(value: object) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def plan(steps: int) -> dict[str, Any]:
    """Return the plan of that many steps, for `agent_replay`."""
    return {
        "plan": 1,
        "steps": [
            {
                "id": f"s{step}",
                "adapter": "tool@1",
                "contract": "idempotent",
                "arguments": arguments(step),
            }
            for step in range(steps)
        ],
    }


def _padded(value: dict[str, Any]) -> dict[str, Any]:
    value["pad"] = ""
    value["pad"] = "x" * (BYTES - len(text(value)))
    return value
