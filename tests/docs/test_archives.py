"""The page on archives says what is so: its example runs, and its numbers are the code's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from agent_replay.archiving import EVENTS_MAX, RUNS_MAX, Archived
from agent_replay.store.archive.lines import COLUMNS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "archives.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_example_runs_and_runs_again_from_the_archive(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    for said in (["1 run in a file", "{'seen': 'a'}"], ["{'seen': 'a'}"]):
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        assert done.stdout.splitlines() == said


def test_the_numbers_and_names_on_the_page_are_those_of_the_code() -> None:
    assert f"up to {RUNS_MAX} runs or {EVENTS_MAX:,} events" in TEXT
    assert all(f"`{name}`" in TEXT for name in (*COLUMNS, *Archived._fields))
