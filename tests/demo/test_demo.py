"""The demo shows what it says that it shows, and fails where it does not hold."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ORDER = Path(__file__).resolve().parents[2] / "examples" / "order"
LIFE_SECONDS_MAX = 100


def run_demo(*options: str | Path, order: Path = ORDER) -> subprocess.CompletedProcess[str]:
    package = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, order / "demo.py", *options],
        cwd=order.parent,
        env={**os.environ, **package},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIFE_SECONDS_MAX,
    )


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S10")
def test_an_order_that_is_killed_twice_is_charged_and_notified_once(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ended = run_demo("--directory", folder, "--json")
    assert ended.returncode == 0, ended.stderr
    facts: dict[str, Any] = json.loads(ended.stdout)
    assert (facts["charges"], facts["requests"], facts["notifications"]) == (1, 2, 1)
    assert facts["run_state"] == "completed"
    statuses = [one["status"] for one in facts["processes"]]
    kill = -signal.SIGKILL
    assert statuses == [kill, 0, kill, 3, 0, 0, 0, 0, 0]
    assert len({one["pid"] for one in facts["processes"]}) == len(statuses)
    assert facts["events"] == [
        ["quote", "request"],
        ["quote", "acknowledge"],
        ["charge", "request"],
        [None, "adopt"],
        ["charge", "resend"],
        ["charge", "acknowledge"],
        ["notify", "request"],
        [None, "adopt"],
        ["notify", "suspend"],
        [None, "adopt"],
        ["notify", "confirm"],
    ]
    # It is shown to a person, too, in lines that fit a terminal.
    told = ended.stderr.splitlines()
    assert max(map(len, told)) <= 100
    for one in facts["processes"]:
        how = "killed by signal 9" if one["status"] < 0 else f"exit code {one['status']}"
        assert f"  [process {one['pid']}: {how}]" in told
    # What it leaves lies in that folder.
    assert Path(facts["folder"]) == folder
    assert {"runs.db", "effects.db", "notifications.txt", "evidence.txt"} <= {
        path.name for path in folder.iterdir()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("provider.apply(", "provider.apply_blindly(", "found effects.db: 2 charge(s)"),
        ("opaque", "read_only", "exit code 0, and a paused run has exit code 3"),
        ('"order-42"', '"order 42"', "the process never said 'stopped after charge'"),
    ],
    ids=["a provider that ignores keys", "a promise that is not kept", "a run that is refused"],
)
def test_the_demo_fails_where_something_does_not_hold(
    tmp_path: Path, right: str, wrong: str, complaint: str
) -> None:
    order = tmp_path / "examples" / "order"
    shutil.copytree(ORDER, order)
    for name in ("plan.json", "tools.py", "demo.py"):
        text = (order / name).read_text(encoding="utf-8")
        (order / name).write_text(text.replace(right, wrong), encoding="utf-8")
    ended = run_demo(order=order)
    assert ended.returncode == 1
    assert complaint in ended.stderr
    (folder,) = (tmp_path / "work").iterdir()
    assert folder.name.startswith("demo-")


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("mine")
    ended = run_demo("--directory", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == f"\ndemo: {tmp_path} must be a new folder: File exists\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
