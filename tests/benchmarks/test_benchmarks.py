"""The measures work, and what the page says is what the record has. No time is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bars, machine, page, processes, table, verifying
from benchmarks.__main__ import main
from benchmarks.bars import BARS, FULL, QUICK, Size
from crashtests import provenance, sources

SMALL = Size(1, 12, 40, 3, 3, 2, 100)
RECORD = sources.ROOT / "results" / "benchmarks.json"


def silent(_words: str) -> None:
    """Show no progress."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("bench")
    return {name: work() for name, work in bars.measures(SMALL, place, silent).items()}


@pytest.fixture(scope="module")
def record() -> Any:
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_each_measure_works_and_each_bar_finds_its_figure(measured: dict[str, Any]) -> None:
    for bar in BARS:
        figure = bar.value(measured)
        assert figure > 0 or bar.figure == ("growth",)  # of so few steps it is all noise
        assert (bar.least is None) != (bar.most is None)
    assert {bar.measure for bar in BARS} <= measured.keys()


@pytest.mark.slow
def test_a_step_is_one_sync(measured: dict[str, Any]) -> None:
    """Counted, not timed: one for each step, the first request, and the header of the new log."""
    steps = measured["files, long"]["steps"]
    assert measured["files, long"]["ours"]["syncs"] == (steps + 2) / steps


def test_memory_is_that_of_the_verifier_and_not_of_its_parent(tmp_path: Path) -> None:
    ballast = b"x" * 200_000_000
    found = verifying.measured(100, 1, tmp_path, silent)
    assert found["memory_bytes"] < len(ballast) / 2


def test_growth_tells_linear_from_quadratic() -> None:
    start = 0.3
    assert processes.growth([start + n for n in (1, 2, 4)]) == pytest.approx(1)
    assert processes.growth([start + n * n for n in (1, 2, 4)]) == pytest.approx(1.2)


def test_a_bar_that_is_missed_is_said_to_be_missed() -> None:
    low, high = {"new log": {"ratio": {"median": 0.7}}}, {"new log": {"ratio": {"median": 0.8}}}
    assert [one["reached"] for one in bars.judged(low, FULL)] == [False]
    assert [one["reached"] for one in bars.judged(high, FULL)] == [True]


def test_a_figure_of_another_size_is_not_judged() -> None:
    found = bars.judged({"new log": {"ratio": {"median": 0.8}}}, QUICK)
    assert [one["reached"] for one in found] == [None]


def test_what_is_not_the_whole_is_never_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "record.json"
    words = ["--quick", "--only", "files", "--place", str(tmp_path), "--output", str(output)]
    assert main(words) == 0
    assert "not written" in capsys.readouterr().err
    assert not output.exists()


def test_a_measure_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", "nonsense", "--place", str(tmp_path)]) == 2
    assert "'nonsense'" in capsys.readouterr().err


def test_the_record_says_how_it_was_made(record: Any) -> None:
    assert provenance.findings(record["about"], recorded=True) == []
    assert record["size"] == FULL._asdict()
    assert record["machine"].keys() == machine.described().keys()


def test_the_verdicts_follow_from_the_figures(record: Any) -> None:
    assert record["bars"] == bars.judged(record["measures"], FULL)
    assert len(record["bars"]) == len(BARS)


def test_the_page_says_what_the_record_has(record: Any) -> None:
    """If this fails on purpose: make bench."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.renewed(text, "make bench", table.tables(record)) == text
    for picture in ("benchmarks.svg", "benchmarks-length.svg"):
        assert Path(RECORD.parent / picture).is_file()
