"""The files of this checkout, for the checks that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "agent_replay"

SIZED = ("spec", "runtime", "models", "crashtests", "examples", "benchmarks")
"""The folders in which files and functions stay small; a test may be as long as its table."""

NOT_OURS = {"__pycache__", "build", "dist", "work"}


def project_files() -> Iterator[Path]:
    """Yield every file that people wrote or that is generated and committed."""
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            hidden = path.name.startswith(".") and path.name not in (".ci", ".gitignore")
            if hidden or path.name in NOT_OURS:
                continue
            if path.is_dir():
                folders.append(path)
            else:
                yield path


FILES = list(project_files())
PYTHON = [path for path in FILES if path.suffix == ".py"]
SOURCES = [path for path in PYTHON if path.relative_to(ROOT).parts[0] in SIZED]
LIBRARY = [path for path in SOURCES if path.is_relative_to(PACKAGE)]
PAGES = [path for path in FILES if path.suffix == ".md"]


def name_of(path: Path) -> str:
    """Return how a file is called in messages."""
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    """Return the text of a file, or nothing if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file of Python."""
    return ast.parse(text_of(path), name_of(path))
