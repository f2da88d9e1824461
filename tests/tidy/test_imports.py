"""What `import agent_replay` costs, since each recovery after a crash pays it again."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

COST_MAX = 55 / 26
"""Of what `transitions` alone costs: the limit of 55 ms was set on a machine where that is 26 ms.
"""
ROUNDS = (7, 15, 31)
"""How many rounds are measured; a larger batch follows only if a smaller one was over the limit."""
OURS = "import agent_replay"

NOT_LOADED = {
    "agent_replay.cli",
    "agent_replay.effects",
    "argparse",
    "asyncio",
    "concurrent.futures",
    "http",
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "multiprocessing",
    "pathlib",
    "pickle",
    "rich",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "tomllib",
    "transitions",
    "unittest",
    "urllib",
}
"""What a program that only imports the library has no use for, or must not come to depend on."""


def run_seconds(code: str) -> float:
    """Return the processor time of a fresh interpreter; what else the machine does is not in it."""
    child = os.posix_spawn(sys.executable, [sys.executable, "-I", "-c", code], os.environ)
    _, status, usage = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime


def import_cost(rounds: int) -> float:
    """Return our import in units of that of `transitions`, each above a bare start."""
    seconds: dict[str, list[float]] = {"pass": [], "import transitions": [], OURS: []}
    for _ in range(rounds):
        for code, measured in seconds.items():
            measured.append(run_seconds(code))
    bare, theirs, ours = map(statistics.median, seconds.values())
    return (ours - bare) / (theirs - bare)


def test_the_import_is_cheap() -> None:
    run_seconds(OURS)  # once unmeasured: it may compile
    cost = 0.0
    for rounds in ROUNDS:
        cost = import_cost(rounds)
        if cost <= COST_MAX:
            return
    assert cost <= COST_MAX, f"median of {ROUNDS[-1]} rounds"


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-I", "-c", code],
            check=True,
            timeout=60,
            capture_output=True,
            text=True,
        ).stdout.split()
    )


def test_the_import_loads_only_what_it_needs() -> None:
    loaded = loaded_by("import agent_replay") - loaded_by("")
    assert "agent_replay.errors" in loaded
    assert NOT_LOADED & loaded == set()
