"""The checks of conftest.py bite: each is shown a run of tests that would mislead without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.checkout import ROOT

pytestmark = pytest.mark.slow  # each starts pytest, most of them with workers

WORKERS = ("-n", "2", "--max-worker-restart", "0")
MANY = """import os, pytest, subprocess
@pytest.mark.parametrize("i", range(6))
def test_many(i): pass
"""


def pytest_over(folder: Path, code: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run pytest over one file of tests beside this project's conftest.py."""
    (folder / "tests").mkdir()
    package = folder / "runtime" / "agent_replay"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()  # else an installed package goes before it
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests" / "test_it.py").write_text(MANY + code, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(folder / "runtime"), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), WORKERS], ids=["alone", "workers"])
def test_the_count_is_the_same_with_and_without_workers(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, output = pytest_over(tmp_path, "", *options)
    assert status == 0, output
    assert re.search(r"^tests: 6 collected, 6 ran$", output, re.MULTILINE)


@pytest.mark.fault("M09")
def test_tests_that_a_dead_worker_took_along_are_missed(tmp_path: Path) -> None:
    code = "def test_dies(): os._exit(0)\n" + "def test_after(): pass\n" + "def test_last(): pass\n"
    status, output = pytest_over(tmp_path, code, "-n", "1", "--max-worker-restart", "0")
    assert status != 0
    assert re.search(r"^tests: 9 collected, 7 ran$", output, re.MULTILINE), output
    assert "FAILED: collected and not run: tests/test_it.py::test_last" in output


@pytest.mark.parametrize("options", [(), WORKERS], ids=["alone", "workers"])
def test_a_process_that_outlives_its_test_fails_the_run(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    code = "def test_it(): subprocess.run(['sh', '-c', 'sleep 600 > /dev/null 2>&1 &'])\n"
    status, output = pytest_over(tmp_path, code, *options)
    assert status == 1, output
    assert re.search(r"^FAILED: left behind and ended now: \d+ sleep 600", output, re.MULTILINE)
    assert "7 passed" in output


def test_a_skip_fails_where_every_program_is_required(tmp_path: Path) -> None:
    code = (
        "@pytest.mark.needs('strace')\ndef test_strace(): pass\n"
        "@pytest.mark.skip(reason='wanted')\n@pytest.mark.may_skip('it says so')\n"
        "def test_other(): pass\n"
    )
    status, output = pytest_over(tmp_path, code, REQUIRE_ALL="1", PATH=str(tmp_path))
    assert status == 1
    assert "no strace here; on Debian: apt-get install strace" in output
    assert "6 passed, 1 skipped, 1 error" in output


def test_a_skip_is_a_skip_elsewhere(tmp_path: Path) -> None:
    code = "@pytest.mark.needs('strace')\ndef test_strace(): pass\n"
    status, output = pytest_over(tmp_path, code, PATH=str(tmp_path))
    assert status == 0
    assert "6 passed, 1 skipped" in output


def test_a_program_without_a_package_is_a_mistake(tmp_path: Path) -> None:
    status, output = pytest_over(tmp_path, "@pytest.mark.needs('sqlite')\ndef test_it(): pass\n")
    assert status == 4
    assert "needs the program 'sqlite'" in output


def test_the_code_of_another_checkout_is_not_judged(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "agent_replay").mkdir(parents=True)
    status, output = pytest_over(tmp_path, "", PYTHONPATH=str(other))
    assert status == 4
    assert "run `make test`" in output
