"""The tools of tools.py with a place to die: after the effect, before the runtime knows of it.

    STOP_AFTER=charge agent-replay run plan.json --run-id order-42 --db runs.db \\
        --adapters checkpoints.py

The tool that STOP_AFTER names does its work, says so on standard error, and then waits. Kill the
process there, or close its standard input (Ctrl-D) to let the tool return.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
from pathlib import Path

from agent_replay import Adapter, Json, Request, adapter

TOOLS = runpy.run_path(str(Path(__file__).with_name("tools.py")))


def stopping(tool: Adapter) -> Adapter:
    """Return the same adapter, with the stop between its effect and its return."""

    @functools.wraps(tool.call)
    def call(request: Request) -> Json:
        result = tool(request)
        if tool.name == os.environ.get("STOP_AFTER"):
            print(f"stopped after {tool.name}", file=sys.stderr, flush=True)
            sys.stdin.read()
        return result

    return adapter(name=tool.name, version=tool.version, contract=tool.terms)(call)


quote = stopping(TOOLS["quote"])
charge = stopping(TOOLS["charge"])
notify = stopping(TOOLS["notify"])
