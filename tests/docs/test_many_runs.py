"""The page on many runs says what is so: its example runs, and its order is the code's."""

from __future__ import annotations

from pathlib import Path

from agent_replay.cli.exits import WORST_FIRST
from agent_replay.runtime import WORKERS, WORKERS_LIMIT
from tests.docs.example import check_example

PAGE = Path(__file__).resolve().parents[2] / "docs" / "many-runs.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_says_and_again_from_the_record(tmp_path: Path) -> None:
    check_example(TEXT, tmp_path)


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"worst run: {', '.join(str(code.value) for code in WORST_FIRST)}," in TEXT
    assert f"at most `workers` ({WORKERS} if left out, {WORKERS_LIMIT:,} at" in " ".join(
        TEXT.split()
    )
