"""The measures work, and what the page says is what the record has. No time is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bars, page, table
from benchmarks.bars import BARS, Size
from crashtests import sources

SMALL = Size(1, 12, 40, 3, 3, 2, 100)
RECORD = sources.ROOT / "results" / "benchmarks.json"


def silent(_words: str) -> None:
    """Show no progress."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("bench")
    return {name: work() for name, work in bars.measures(SMALL, place, silent).items()}


def test_each_measure_works_and_each_bar_finds_its_figure(measured: dict[str, Any]) -> None:
    for bar in BARS:
        assert bar.value(measured) > 0
        assert (bar.least is None) != (bar.most is None)
    assert {bar.measure for bar in BARS} <= measured.keys()


def test_a_step_is_one_sync(measured: dict[str, Any]) -> None:
    """Counted, not timed: one for each step, the first request, and the header of the new log."""
    steps = measured["files, long"]["steps"]
    assert measured["files, long"]["ours"]["syncs"] == (steps + 2) / steps


def test_a_bar_that_is_missed_is_said_to_be_missed() -> None:
    low, high = {"new log": {"ratio": {"median": 0.7}}}, {"new log": {"ratio": {"median": 0.8}}}
    assert [BARS[0].reached(low), BARS[0].reached(high)] == [False, True]
    assert [one["reached"] for one in table.judged(low)] == [False]


def test_the_page_says_what_the_record_has() -> None:
    """If this fails on purpose: make bench."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.renewed(text, record) == text
    assert [one["reached"] for one in record["bars"]] == [
        one["reached"] for one in table.judged(record["measures"])
    ]
    assert len(record["bars"]) == len(BARS)
    for picture in ("benchmarks.svg", "benchmarks-length.svg"):
        assert Path(RECORD.parent / picture).is_file()
