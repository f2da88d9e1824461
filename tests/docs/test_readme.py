"""The README says what is so: its example runs, its demo's output is real, its tables are the
code's.
"""

from __future__ import annotations

import re
from pathlib import Path

from agent_replay.cli.exits import Exit
from agent_replay.lifecycles.step import Contract
from tests.docs import readme
from tests.docs.example import check_example, code_of

TEXT = readme.README.read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says_and_again_from_the_record(tmp_path: Path) -> None:
    check_example(TEXT, tmp_path)


def test_the_example_stays_short() -> None:
    assert len([line for line in code_of(TEXT).splitlines() if line.strip()]) <= 15


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
