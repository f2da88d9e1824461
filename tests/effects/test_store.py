"""The effect store keeps what it promises: the other tests count on it."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from agent_replay.effects import EffectStore, KeyReused
from agent_replay.errors import UnusableDatabase
from agent_replay.values import Json

CONTENT: dict[str, Json] = {"amount_cents": 8400, "currency": "EUR"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects.db"


# --- keys ---------------------------------------------------------------------------------------


def test_a_key_that_is_known_gets_its_receipt_and_no_second_effect(path: Path) -> None:
    with EffectStore(path) as store:
        first = store.apply("k1", "charge", CONTENT)
        second = store.apply("k1", "charge", dict(reversed(CONTENT.items())))
        assert second == first
        assert store.count("k1") == 1
        assert store.arrivals("k1") == 2


def test_another_key_is_another_request(path: Path) -> None:
    with EffectStore(path) as store:
        receipts = [store.apply(key, "charge", CONTENT) for key in ("k1", "k2", "K1", "", "k1 ")]
        assert [receipt.number for receipt in receipts] == [1, 2, 3, 4, 5]
        assert store.effects() == receipts


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("charge", {"amount_cents": 8401, "currency": "EUR"}),
        ("charge", {"amount_cents": 8400.0, "currency": "EUR"}),
        ("charge", {}),
        ("charge", None),
        ("refund", CONTENT),
    ],
)
def test_a_key_with_another_request_is_refused(path: Path, kind: str, content: Json) -> None:
    with EffectStore(path) as store:
        first = store.apply("k1", "charge", CONTENT)
        with pytest.raises(KeyReused, match=r"key 'k1' .* another key"):
            store.apply("k1", kind, content)
        assert store.effects() == [first]
        assert store.arrivals("k1") == 1
        assert store.apply("k1", "charge", CONTENT) == first


def test_the_refusal_does_not_repeat_what_was_asked_for(path: Path) -> None:
    with EffectStore(path) as store:
        store.apply("k1", "charge", {"card": "4000-first"})
        with pytest.raises(KeyReused) as refused:
            store.apply("k1", "charge", {"card": "4000-second"})
    assert "4000" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [None, False, 0, "", [], {}, 1.0, -0.0, 2**70, "é\u2028\0", {"": [{"a": None}]}, [[[]]]],
    ids=repr,
)
def test_every_answer_for_a_key_is_the_first_one(path: Path, content: Json) -> None:
    with EffectStore(path) as store:
        first = store.apply("k1", "charge", content)
        assert store.apply("k1", "charge", content) == first
    with EffectStore(path) as reopened:
        assert reopened.apply("k1", "charge", content) == first
        assert reopened.look_up("k1") == first
        assert repr(first.content) == repr(content)


def test_a_key_that_never_arrived_is_not_known(path: Path) -> None:
    with EffectStore(path) as store:
        store.apply("k1", "charge", CONTENT)
        assert store.look_up("k2") is None
        assert store.count("k2") == 0
        assert store.arrivals("k2") == 0
        assert store.effects("k2") == []


# --- the baseline -------------------------------------------------------------------------------


def test_the_baseline_does_it_again(path: Path) -> None:
    with EffectStore(path) as store:
        first = store.apply_blindly("k1", "mail", CONTENT)
        second = store.apply_blindly("k1", "mail", CONTENT)
        assert [first.number, second.number] == [1, 2]
        assert store.effects("k1") == [first, second]
        assert store.arrivals("k1") == 2


def test_what_the_baseline_did_can_be_looked_up(path: Path) -> None:
    with EffectStore(path) as store:
        assert store.look_up("k1") is None
        first = store.apply_blindly("k1", "mail", CONTENT)
        store.apply_blindly("k1", "mail", CONTENT)
        assert store.look_up("k1") == first


# --- the file -----------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, str]:
    return {one.name: f"{stat.S_IMODE(one.stat().st_mode):o}" for one in folder.iterdir()}


def test_only_its_owner_can_read_the_file_and_its_journal(path: Path) -> None:
    before = os.umask(0)
    try:
        with EffectStore(path) as store, store._transaction():
            store._add_effect("k1", "charge", "{}")
            assert modes(path.parent) == {"effects.db": "600", "effects.db-journal": "600"}
    finally:
        os.umask(before)
    assert modes(path.parent) == {"effects.db": "600"}


def test_the_commit_is_synced_down_to_the_folder(path: Path) -> None:
    with EffectStore(path) as store:
        read = [store._value(name) for name in ("use_rollback_journal", "synchronous")]
        assert read == ["delete", 3]
        assert store._connection.isolation_level is None


def test_a_store_in_wal_mode_is_taken_out_of_it(path: Path) -> None:
    with EffectStore(path) as store:
        first = store.apply("k1", "charge", CONTENT)
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("pragma journal_mode = wal")
    with EffectStore(path) as store:
        assert store.apply("k1", "charge", CONTENT) == first
    assert modes(path.parent) == {"effects.db": "600"}


@pytest.mark.parametrize("name", [":memory:", "file:effects.db?mode=memory", "100%_é.db"])
def test_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with EffectStore(name) as store:
        store.apply("k1", "charge", CONTENT)
    with EffectStore(tmp_path / name) as store:
        assert store.count() == 1


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """A process may have died right after it had made the file."""
    path.touch(mode=0o600)
    with EffectStore(path) as store:
        assert store.apply("k1", "charge", CONTENT).number == 1


def test_a_database_of_something_else_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table effects (number integer primary key)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(UnusableDatabase, match=r"not an effect store .*give another path"):
        EffectStore(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("order-42 was sent to ada@example.com\n" * 100)
    before = path.read_bytes()
    with pytest.raises(UnusableDatabase, match="not a database"):
        EffectStore(path)
    assert path.read_bytes() == before


def test_who_cannot_write_in_time_is_told_and_has_done_nothing(path: Path) -> None:
    with EffectStore(path) as store, EffectStore(path, wait_seconds=0) as hasty:
        with store._transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
            hasty.apply("k1", "charge", CONTENT)
        assert hasty.count() == 0
        assert hasty.apply("k1", "charge", CONTENT).number == 1


def test_what_failed_between_two_statements_has_not_happened(path: Path) -> None:
    def fail() -> None:
        with store._transaction():
            store._add_effect("k1", "charge", "{}")
            raise ZeroDivisionError

    with EffectStore(path) as store:
        with pytest.raises(ZeroDivisionError):
            fail()
        assert store.count() == 0
        assert store.look_up("k1") is None
        assert store.apply("k1", "charge", CONTENT).number == 1
