"""The README says what is so: its example runs, its demo's output is real, its tables are the
code's.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from agent_replay.cli.exits import Exit
from agent_replay.lifecycles.step import Contract
from tests.docs import readme

TEXT = readme.README.read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says_and_again_from_the_record(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (said,) = re.findall(r"It prints `(.*?)`", TEXT)
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        assert done.stdout.strip() == said


def test_the_example_stays_short() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15


def test_the_demos_output_in_the_readme_is_that_of_a_fresh_demo() -> None:
    """Renew it with `make readme`."""
    then, now = (readme.without_what_varies(text) for text in (readme.recorded(), readme.fresh()))
    assert then == now


def test_every_exit_code_is_in_the_readme() -> None:
    table = TEXT[TEXT.index("| exit code |") : TEXT.index("## Where things are")]
    found = {int(code) for code in re.findall(r"\| (\d+) \|", table)}
    assert found == {int(code) for code in Exit}


def test_every_contract_is_in_the_readme() -> None:
    for contract in Contract:
        assert f"`{contract.value}(" in TEXT
