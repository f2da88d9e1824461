"""The worked change of docs/models.md, done for real on a copy of the checkout.

    python -m tests.models.worked_change     write what the tools say into the page

The change: an operator's resend is allowed for queryable steps too. It is one word in one row of
the spec, and wrong, since nothing makes a queryable tool take two requests for one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "models.md"
COPIED = ("crashtests", "docs", "models", "pyproject.toml", "runtime", "spec", "tests")
SECONDS_MAX = 300

ROW = re.compile(r'(source = "in_doubt", +event = "resend", .*contracts = \["idempotent")\]')
BLOCK = re.compile(
    r"(<!-- made by tests/models/worked_change\.py -->\n).*?(<!-- end -->)", re.DOTALL
)
TIMES = re.compile(r"[,]? +[\d.]+ s(?=$|  )| \([\d.]+ s\)$", re.MULTILINE)

COMMANDS = (
    "python spec/generate.py --check",
    "python spec/generate.py",
    "python -m models check --engine search | grep -v ' holds '",
    "python -m models check --engine spin | grep -v ' holds '",
    "python -m models graph --bounds quick",
    "python -m pytest -q tests/spec | grep -o '^FAILED tests[^ ]*'",
)


def told() -> str:
    """Return what every tool says of the change, command by command, times left out."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for one in COPIED:
            if (ROOT / one).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / one, copy / one, ignore=ignored)
            else:
                shutil.copy(ROOT / one, copy / one)
        spec = copy / "spec" / "step.toml"
        changed, count = ROW.subn(r'\1, "queryable"]', spec.read_text(encoding="utf-8"))
        assert count == 1, "the row that is changed is not there any more"
        spec.write_text(changed, encoding="utf-8")
        parts = [f"$ {command}\n{said_by(command, copy)}" for command in COMMANDS]
    return "```console\n" + "\n".join(parts) + "```"


def said_by(command: str, folder: Path) -> str:
    """Return what a command prints in a folder; `python` is the one that runs this."""
    python = f"{sys.executable} -B"
    done = subprocess.run(
        ["sh", "-c", command.replace("python", python, 1)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}/runtime:{folder}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    return TIMES.sub("", done.stdout)


def renewed(page: str, text: str) -> str:
    """Return the page with the block replaced."""
    return BLOCK.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), told()), encoding="utf-8")
