"""A module of the checkout run as a program, as a reader of the README would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS_MAX = 300


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m` with these arguments, to its end."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
