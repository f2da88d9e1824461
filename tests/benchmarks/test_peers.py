"""The measures of the peers work, tried with ours and the bare loop. No time is judged here."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page
from benchmarks import work as steps_of_work
from benchmarks.peers import child, environments, look, measures, table
from benchmarks.peers.environments import PEERS, PINS, Peer, Unavailable
from benchmarks.peers.measures import FULL, QUICK, Size
from crashtests import provenance, sources

SMALL = Size(1, 6, 3, 2)
RECORD = sources.ROOT / "results" / "benchmarks-peers.json"


def silent(_words: str) -> None:
    """Show no progress."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("peers")
    return measures.all_of(SMALL, measures.OURS, place, silent)


@pytest.mark.slow
def test_each_measure_works_for_what_needs_no_environment(measured: dict[str, Any]) -> None:
    for what in ("sequential", "concurrent", "start"):
        assert measured[what].keys() == measures.OURS.keys()
        for found in measured[what].values():
            assert found["seconds"]["median"] > 0


@pytest.mark.slow
def test_ours_skips_nothing_and_is_seen_to(measured: dict[str, Any]) -> None:
    """The files are looked at in each call: its arguments and the result before are there."""
    assert measured["look"]["ours"] == {"arguments": 1, "result_before": 1}
    assert measured["sequential"]["ours"]["synchronous"] == "FULL"
    assert table.skipped("ours", measured) == []


@pytest.mark.slow
def test_a_step_of_ours_is_one_sync(measured: dict[str, Any]) -> None:
    """As strace counts it, where there is strace."""
    assert measured["syncs"]["ours"] in (1.0, None)


def test_what_is_skipped_is_said() -> None:
    found = {
        "sequential": {"x": {"synchronous": "NORMAL"}},
        "look": {"x": {"arguments": 0, "result_before": 0.75}},
        "syncs": {"x": 0.0},
    }
    assert table.skipped("x", found) == [
        "the arguments of a call are not on file before it",
        "the result of a step is not on file before the next in 25% of the calls",
        "synchronous is NORMAL",
    ]


def test_a_text_is_found_in_a_file_plain_or_encoded_and_else_not(tmp_path: Path) -> None:
    step = 3
    path = steps_of_work.arguments(step)["path"].encode()
    assert look.seen(tmp_path, step)["arguments"] is False
    for before in range(4):
        content = b"?" * before + path + b"tail"
        for form in (content, base64.b64encode(content)):
            (tmp_path / "file").write_bytes(form)
            assert look.seen(tmp_path, step)["arguments"] is True
    (tmp_path / "file").write_bytes(path[:-6])
    assert look.seen(tmp_path, step)["arguments"] is False


def test_a_bar_has_its_verdict_at_full_size_only_and_none_without_its_peer() -> None:
    def factor(value: float) -> dict[str, Any]:
        return {"against_ours": {"median": value}}

    found = {
        "sequential": {"ours": factor(1), "agent-once": factor(1.9), "dbos": factor(9)},
        "concurrent": {"ours": factor(1), "agent-once": factor(9), "dbos": factor(4.5)},
    }
    full = [(one["value"], one["reached"]) for one in table.judged(found, FULL)]
    assert full == [(1.9, False), (None, None), (9, True), (4.5, True)]
    assert {one["reached"] for one in table.judged(found, QUICK)} == {None}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_package_of_a_peer_is_pinned(peer: Peer) -> None:
    lines = (PINS / f"{peer.pins}.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==\d[\w.]*", line) for line in lines)
    assert environments.version(peer)
    assert peer.name in child.CONTENDERS


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "PLACE", tmp_path)
    monkeypatch.setattr("sys._base_executable", "/bin/false", raising=False)
    with pytest.raises(Unavailable, match=r"^agent-once could not be installed: "):
        environments.python_of(PEERS[0], silent)


def test_the_page_says_what_the_record_has() -> None:
    """If this fails on purpose: make bench-peers."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert provenance.findings(record["about"], recorded=True) == []
    assert record["size"] == FULL._asdict()
    assert record["bars"] == table.judged(record["measures"], FULL)
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.renewed(text, "make bench-peers", table.tables(record)) == text
    assert RECORD.with_suffix(".svg").is_file()
