"""The README's copy of the demo's output: compared with a fresh one, or renewed.

    python -m tests.docs.readme      renew it

What differs from one run to the next (process ids, times, durations, folders) is put aside before
two outputs are compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
DEMO_SECONDS_MAX = 120
_BLOCK = re.compile(r"(<!-- The output of `make demo`.*?-->\n```text\n)(.*?)(\n```)", re.DOTALL)
_VARIES = (
    (re.compile(r"process \d+"), "process N"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\+\d+\.\d+s"), "+Ns"),
    (re.compile(r"\S*demo-\S*"), "FOLDER"),
    (re.compile(r"[0-9a-f]{64}"), "KEY"),
    (re.compile(r"\b[0-9a-f]{6,63}\b"), "HEX"),
    (re.compile(r"[\s\\]+"), " "),  # a longer path breaks lines elsewhere
)


def recorded() -> str:
    """Return the output that stands in the README."""
    found = _BLOCK.search(README.read_text(encoding="utf-8"))
    assert found is not None, "the README has no block with the demo's output"
    return found[2]


def fresh() -> str:
    """Return the output of a fresh demo."""
    work = ROOT / "work"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demo-", dir=work) as scratch:
        folder = f"{scratch}/demo-1"
        done = subprocess.run(
            [sys.executable, "examples/order/demo.py", "--directory", folder],
            capture_output=True,
            text=True,
            timeout=DEMO_SECONDS_MAX,
            cwd=ROOT,
            check=True,
        )
    short = done.stdout.replace(folder, "work/demo-1").replace(
        os.path.relpath(folder, ROOT), "work/demo-1"
    )
    return short.strip("\n").replace("../../../examples", "../../examples")


def without_what_varies(text: str) -> str:
    """Return the text with process ids, times, folders and white space made alike."""
    for pattern, placeholder in _VARIES:
        text = pattern.sub(placeholder, text)
    return text


def main() -> None:
    """Put a fresh output into the README."""
    text = README.read_text(encoding="utf-8")
    output = fresh()
    README.write_text(
        _BLOCK.sub(lambda found: found[1] + output + found[3], text), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
