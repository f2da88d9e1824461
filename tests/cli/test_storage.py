"""A storage that fails under a run: the run, the step and the command that goes on are named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from agent_replay.cli.exits import Exit
from tests.cli.support import environment

TOOL = """import gc
from agent_replay import adapter

@adapter(name="large")
def large(request):
    for one in gc.get_objects():
        if type(one).__module__ == "agent_replay.store.writer" and hasattr(one, "connection"):
            list(one.connection.execute("pragma max_page_count=1"))
    return "x" * 400_000
"""


def test_a_full_disk_names_run_and_step_and_the_command_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "full_disk_tools.py").write_text(TOOL)
    step = {"id": "a", "adapter": "large@1", "contract": "opaque", "arguments": {}}
    (tmp_path / "plan.json").write_text(json.dumps({"plan": 1, "steps": [step]}))
    database = str(tmp_path / "runs.db")
    words = ["run", "plan.json", "--run-id", "r", "--db", database]
    done = subprocess.run(
        [sys.executable, "-m", "agent_replay", *words, "--adapters", "full_disk_tools.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == Exit.STORAGE
    said = done.stderr
    assert "stopped at the error below: attempt 1 of step a of run r stays requested" in said
    assert f"resume r --db {database}" in said
    assert "database or disk is full" in said
