"""A plugin of pytest, for runs that judge mutants.

Tests are run by name, so parametrised ones are called by plain words: pytest does not find a test
again by a name that it has escaped. And the package is that with the mutants, whatever the process
that started this one has done to the path.
"""

from __future__ import annotations

import sys
from pathlib import Path

MUTATED = Path(__file__).resolve().parents[2] / "src"
if MUTATED.is_dir():
    sys.path.insert(0, str(MUTATED))


def pytest_make_parametrize_id(val: object) -> str | None:
    from tests.outside import plain  # here: it imports the package

    return plain(val) if isinstance(val, (str, bytes)) else None
