"""A sample is counted where the time goes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

import agent_replay
from agent_replay import Request, Runtime, adapter, idempotent
from agent_replay.store.writer import Store
from benchmarks import sampling
from tests.outside import plan_of


def test_what_sqlite_calls_back_is_sqlites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a sample that comes late, after a commit, is not counted as the store's own."""
    seen = []

    def hook(_writer: Store, *_told: Any) -> int:
        seen.append(sampling.part_of(sys._getframe()))
        return apsw.SQLITE_OK

    monkeypatch.setattr(Store, "_committed", hook)
    assert parts_of_a_run(tmp_path) == {sampling.PARTS["driver.py"]}
    assert set(seen) == {sampling.SQLITE}


def test_what_is_no_part_of_the_library_is_the_rest() -> None:
    assert sampling.part_of(sys._getframe()) == sampling.REST
    assert sampling.part_of(None) == sampling.REST


def parts_of_a_run(folder: Path) -> set[str]:
    seen = set()

    @adapter(name="keyed", contract=idempotent())
    def keyed(_request: Request) -> None:
        seen.add(sampling.part_of(sys._getframe()))

    with Runtime(folder / "a.db", adapters=[keyed]) as runtime:
        assert runtime.run("r", plan_of(("a", "keyed"))).completed
    return seen


def test_samples_come_while_it_lasts_and_not_after() -> None:
    found: Counter[str] = Counter()
    with sampling.samples(found):
        while not found:
            pass
    before = found.total()
    sum(range(2_000_000))
    assert found.total() == before


def test_every_part_is_a_file_or_folder_of_the_library() -> None:
    """Else a share would go to the rest after a file has got another name."""
    library = Path(agent_replay.__file__).parent
    assert [name for name in sampling.PARTS if not (library / name).exists()] == []
