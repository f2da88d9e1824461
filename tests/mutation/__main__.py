"""Break the core on purpose, again and again, and see the tests fail: `make mutants`.

    --only MODULE  a module again, as "store/chain.py"; nothing is recorded
    --again        the survivors again, after tests were added
    --report       no new run: say what the last one found, and record it

What was found is kept in work/mutation: a run that was stopped goes on where it was, and after a
change only the functions that have changed are looked at again.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutation import outcome, running, scope


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; 1 if a bar is missed or a survivor has no reason."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--only", action="append", default=[], choices=scope.MODULES)
    parser.add_argument("--again", action="store_true", help="the survivors again")
    parser.add_argument("--report", action="store_true", help="no new run")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    if not given.report:
        code = running.run(given.only, given.workers, again=given.again)
        if code:
            return code
    return outcome.report(given.only)


if __name__ == "__main__":
    sys.exit(main())
