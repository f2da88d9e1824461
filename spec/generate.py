"""Render every projection of the spec in this folder.

    python spec/generate.py           rewrite the projections that are out of date
    python spec/generate.py --check   write nothing; say what is out of date, uncited or unsound

The spec is the truth; a projection is never edited by hand. Only the standard library is used and
nothing of the runtime is imported, so that this runs on a bare checkout.
Exit status: 0 all is well, 1 something is to be mended, 2 a file or the call can't be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if not __package__:  # run as a script: let Python find the package that this file is in
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from spec import invariants, lint, render_markdown, render_python
from spec.digest import file_digest, moves_digest
from spec.model import SpecError, UnreadableSpec
from spec.product import product

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "runtime/agent_replay/lifecycles"
COMMAND = "python spec/generate.py"


def projections(root: Path) -> dict[str, str]:
    """Return the text of each projection by its path below `root`, or raise `SpecError`."""
    folder = root / "spec"
    spec = lint.load(folder)
    promises = invariants.load(folder)
    permitted, _ = product(spec)
    digests = moves_digest(spec), file_digest(folder)
    return {
        f"{PACKAGE}/__init__.py": render_python.package_module(),
        f"{PACKAGE}/step.py": render_python.step_module(spec),
        f"{PACKAGE}/run.py": render_python.run_module(spec),
        f"{PACKAGE}/coupling.py": render_python.coupling_module(spec, permitted, *digests),
        "docs/lifecycles.md": render_markdown.lifecycles_page(spec, permitted, *digests),
        "docs/invariants.md": render_markdown.invariants_page(
            promises, invariants.citations(root, promises)
        ),
    }


def stale(root: Path, texts: dict[str, str]) -> list[str]:
    """Return the paths of the projections whose file differs from its text, or is not there."""
    return [
        name
        for name, text in texts.items()
        if not (root / name).is_file() or (root / name).read_bytes() != text.encode()
    ]


def replace(path: Path, text: str) -> None:
    """Write a file beside `path` and rename it, so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def check(root: Path) -> list[str]:
    """Return what is to be mended: unsound, out of date, uncited."""
    try:
        texts = projections(root)
    except UnreadableSpec:
        raise
    except SpecError as error:
        return list(error.complaints)
    found = [f"{name} is out of date: run {COMMAND}" for name in stale(root, texts)]
    return found + list(invariants.uncited(root, invariants.load(root / "spec")))


def write(root: Path) -> None:
    """Rewrite what is out of date, and say so."""
    texts = projections(root)
    names = stale(root, texts)
    for name in names:
        replace(root / name, texts[name])
        print(f"wrote {name}")
    if not names:
        print(f"nothing to write: all {len(texts)} projections are up to date")


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Render the projections of spec/.")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print what is out of date, uncited or unsound, and exit 1 if any is",
    )
    asked = parser.parse_args(arguments)
    try:
        if not asked.check:
            write(ROOT)
            return 0
        found = check(ROOT)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UnreadableSpec) else 1
    print(
        "\n".join(found) or "the spec is sound, every projection is up to date, every id is cited"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
