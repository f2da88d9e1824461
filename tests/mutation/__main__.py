"""Break the core on purpose, again and again, and see the tests fail: `make mutants`.

    --only PATTERN  mutants whose name fits, as "agent_replay.machine*"; the others stay as they are
    --report        no new run: say what the last one found, and write it down

What was found is kept in work/mutation: a run that was stopped goes on where it was, and after a
change only the functions that have changed are looked at again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.mutation import outcome, scope, tree


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; 1 if a bar is missed or a survivor has no reason."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    if not given.report:
        tree.prepare(scope.settings())
        if code := _run(given.only, given.workers):
            return code
    return outcome.report()


def _run(only: list[str], workers: int) -> int:
    """Let mutmut work; it shows its own progress."""
    words = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", str(workers)]
    path = f"{tree.TREE}/mutants/src"
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([*words, *only], cwd=tree.TREE, env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
