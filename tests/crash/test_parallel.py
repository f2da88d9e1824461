"""The tests of the harness have one result, whether one process runs them or four do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUBJECT = "tests/crash/test_harness.py"
WAIT_SECONDS_MAX = 300.0


class Ran(NamedTuple):
    """How a run of tests ended: its status, how many it says it ran, and what came of each."""

    status: int
    counted: str
    results: dict[str, str]


def run(folder: Path, processes: int) -> Ran:
    """Run the tests in that many processes; 0 is the one process of pytest itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    report = folder / f"{processes}.xml"
    words = ["-n", str(processes), "--junitxml", str(report), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", SUBJECT, *words, f"--basetemp={folder / str(processes)}"],
        cwd=ROOT,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    count = re.search(r"^tests: (\d+ collected, \d+ ran)$", done.stdout, re.MULTILINE)
    assert count, done.stdout
    results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        assert name not in results, f"{name} ran twice"
        results[name] = ", ".join(part.tag for part in case) or "passed"
    return Ran(done.returncode, count[1], results)


@pytest.mark.slow
@pytest.mark.fault("M09")
def test_four_processes_run_the_same_tests_with_the_same_results_as_one(tmp_path: Path) -> None:
    """These are tests in which workers die, and in which a harness that is fooled would pass."""
    one, four = run(tmp_path, 0), run(tmp_path, 4)
    assert one == four
    assert one.status == 0
    assert set(one.results.values()) == {"passed"}
    assert one.counted == f"{len(one.results)} collected, {len(one.results)} ran"
    assert len(one.results) >= 25
