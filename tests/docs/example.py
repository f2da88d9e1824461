"""The example of a page: its code, and what the page says that it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def code_of(page: str) -> str:
    """Return the one piece of Python that a page has."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(code)


def check_example(page: str, folder: Path) -> None:
    """Run the example of a page twice: it prints what is said, and again from the record."""
    (said,) = re.findall(r"It prints `(.*?)`", page)
    script = folder / "example.py"
    script.write_text(code_of(page), encoding="utf-8")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        assert done.stdout.strip() == said
