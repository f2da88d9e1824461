"""What is shipped, and that it works on its own, outside of the checkout."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.tidy.checkout import LIBRARY, PACKAGE, ROOT, tree_of

DEPENDENCIES = {"apsw", "transitions"}
EXAMPLE = ROOT / "examples" / "order"


def run(*command: str | Path, folder: Path) -> str:
    """Run a command with nothing of this checkout on its path, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level names that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.partition(".")[0])
    return names


def test_the_package_imports_nothing_that_it_does_not_declare() -> None:
    names = set().union(*(imported(tree_of(path)) for path in LIBRARY))
    assert names - sys.stdlib_module_names - {"agent_replay"} == DEPENDENCIES


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source archive, and the wheel built from that archive."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def shipped(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_holds_one_package_and_all_of_it(shipped: list[str]) -> None:
    tops = sorted({name.partition("/")[0] for name in shipped})
    assert len(tops) == 2, tops
    assert tops[0] == "agent_replay"
    assert re.fullmatch(r"agent_replay_runtime-[\d.]+\.dist-info", tops[1])

    package = {
        "agent_replay/" + path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix in {".py", ".sql", ".json", ".typed", ".toml"}
    }
    spec = {f"agent_replay/spec/{path.name}" for path in (ROOT / "spec").glob("*.toml")}
    held = {name for name in shipped if name.startswith("agent_replay/")}
    assert package | spec <= held
    assert "agent_replay/py.typed" in held
    assert [name for name in held if name.endswith("/plan.schema.json")] != []
    assert [name for name in held if name.endswith(".sql")] != []
    assert {"agent_replay/spec/step.toml", "agent_replay/spec/run.toml"} <= held


@pytest.mark.slow
def test_nothing_is_shipped_that_only_lies_about(built: Path, shipped: list[str]) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        packed = shipped + source.getnames()
    stray = re.compile(
        r"(^|/)(__pycache__|\.venv|\.git|\.[a-z_]+_cache|\.hypothesis)(/|$)|\.(pyc|db(-wal|-shm)?)$"
    )
    assert [name for name in packed if stray.search(name)] == []


@pytest.mark.slow
def test_the_wheel_needs_two_distributions(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert {re.split(r"[^\w.-]", one)[0] for one in needed} == DEPENDENCIES
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"


@pytest.mark.slow
def test_the_wheel_alone_runs_the_example(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    programs = tmp_path / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, wheel, folder=tmp_path)
    place = run(
        programs / "python",
        "-c",
        "import agent_replay; print(agent_replay.__file__)",
        folder=tmp_path,
    )
    assert Path(place.strip()).is_relative_to(tmp_path)

    assert "run" in run(programs / "agent-replay", "--help", folder=tmp_path)
    for name in ("plan.json", "tools.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    options = ("--run-id", "order-42", "--db", "runs.db", "--adapters", "tools.py")
    run(programs / "agent-replay", "run", "plan.json", *options, folder=tmp_path)
    assert (tmp_path / "runs.db").stat().st_size > 0
