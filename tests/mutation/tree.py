"""A copy of the checkout in the form that mutmut wants: the package under `src/`.

mutmut writes all mutants of a module into one file, and a variable of the environment says which
is alive, so that child processes of a test run the mutant too. It takes `src/` for the place of the
sources; `runtime` leads there, so that the tests find what they judge.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from crashtests.sources import ROOT

TREE = ROOT / "work" / "mutation"
PACKAGE = "src/agent_replay"
_LEFT_OUT = ("pyproject.toml", ".github/", ".ci/", ".gitignore")


def prepare(settings: str) -> None:
    """Make the copy, or renew what has changed in it; what was found out before is kept."""
    (TREE / "mutants").mkdir(parents=True, exist_ok=True)
    for link in (TREE / "runtime", TREE / "mutants" / "runtime"):
        if not link.is_symlink():
            link.symlink_to("src")
    here = _files()
    for name in here:
        _renew(ROOT / name, TREE / _moved(name))
    for path in [*TREE.glob("src/**/*.py"), *TREE.glob("tests/**/*.py")]:
        name = path.relative_to(TREE).as_posix()
        if name not in {_moved(one) for one in here}:
            path.unlink()
            (TREE / "mutants" / name).unlink(missing_ok=True)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (TREE / "pyproject.toml").write_text(f"{project}\n{settings}", encoding="utf-8")


def _files() -> list[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if not name.startswith(_LEFT_OUT)]


def _moved(name: str) -> str:
    return f"src/{name.removeprefix('runtime/')}" if name.startswith("runtime/") else name


def _renew(source: Path, target: Path) -> None:
    if not source.is_file() or (target.is_file() and target.read_bytes() == source.read_bytes()):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    if source.suffix != ".py":  # of the sources, mutmut copies what is not Python only once
        (TREE / "mutants" / target.relative_to(TREE)).unlink(missing_ok=True)
