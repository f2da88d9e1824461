"""The one piece of work that every contender does: steps with 100 bytes in and 100 bytes out.

The tool does nothing, so that what is timed is the keeping of the history. Standard library only.
"""

from __future__ import annotations

import json
from typing import Any

BYTES = 100
"""Of the arguments and of the result of a step, as compact JSON."""


def arguments(step: int) -> dict[str, Any]:
    """Return the arguments of a step, different for each."""
    return _padded({"i": step, "mode": "r", "path": f"/data/in/{step:06}.json"})


def result(step: int) -> dict[str, Any]:
    """Return the result of a step."""
    return _padded({"i": step, "ok": True, "sha": f"{step:032x}"})


def text(value: dict[str, Any]) -> str:
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
