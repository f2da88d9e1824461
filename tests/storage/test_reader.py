"""The reading side: one snapshot for each answer, and damage by its name."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from agent_replay import DamagedHistory, NoSuchRun, Runtime
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import Ledger, plan_of, tools
from tests.storage.archives import opened
from tests.storage.histories import copy_of, every_kind, loose_forger


def test_a_reader_sees_one_moment_of_a_run_that_goes_on(tmp_path: Path) -> None:
    """Events and head are read in one transaction: else a writer between them looks like damage."""
    path = tmp_path / "runs.db"
    plan = plan_of(*[(f"s{number}", "dark") for number in range(300)])
    seen: list[int] = []

    def work() -> None:
        with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
            started.set()
            runtime.run("r", plan)

    started = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(timeout=20)
    while thread.is_alive():
        with Reader(path) as reader:
            if reader.summaries():
                history, events = reader.read("r")
                assert history.head.seq == len(events)
                seen.append(len(events))
    thread.join(timeout=60)
    assert sorted(seen) == seen


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("adapters", "cast(x'7bff7d' as text)"),
        ("adapters", "'{\"dark@1\": 3}'"),
        ("adapters", "'{\"dark@1\": {}}'"),
        ("adapters", '\'{"dark@1": {"contract": "opaque", "key_window_ns": "x"}}\''),
        ("adapters", "'[]'"),
        ("id", "cast(x'72ff' as text)"),
    ],
)
def test_what_the_runtime_never_wrote_is_damage_and_never_another_error(
    tmp_path: Path, column: str, value: str
) -> None:
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        runtime.run("r", plan_of(("a", "dark")))
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.execute(f"update runs set {column} = {value}")  # noqa: S608 - of the table above
    connection.close()
    verdict = verify(path)
    assert verdict.findings
    with Reader(path) as reader:
        if column == "adapters":
            with pytest.raises(DamagedHistory):
                reader.read("r")
        else:
            with pytest.raises(DamagedHistory):
                reader.summaries()


def test_a_reader_names_who_is_at_work(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        runtime.run("r", plan_of(("a", "dark")))
        with Reader(path) as reader:
            assert reader.writer_at_work() is not None
    with Reader(path) as reader:
        assert reader.writer_at_work() is None
        assert [writer.epoch for writer in reader.writers()] == [1]


def test_the_steps_of_a_run_are_read_without_its_events(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        runtime.run("one", plan_of(("z", "look")))
        runtime.run("two", plan_of(("a", "dark"), ("b", "keyed")))
    with Reader(path) as reader:
        assert [(row.step, row.id) for row in reader.steps("two")] == [(1, "a"), (2, "b")]
        with pytest.raises(NoSuchRun, match="there is no run 'three'"):
            reader.steps("three")
        found = reader.step(2, 2)
        assert found is not None
        assert (found.run, found.id, found.adapter) == (2, "b", "keyed@1")
        assert found == reader.steps("two")[1]
        assert reader.step(2, 3) is None


def test_a_value_of_another_type_is_damage_and_its_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        runtime.run("r", plan_of(("a", "dark"), ("b", "dark")))
    with loose_forger(path) as connection:
        connection.execute("update steps set arguments = x'00' where step = 2")
        connection.execute("update events set wall_ns = 'now' where seq = 2")
        connection.execute("update heads set state = x'00'")
    with Reader(path) as reader:
        assert reader.step(1, 1) is not None
        with pytest.raises(DamagedHistory, match=r"^run 1, step 2: a value in the row is of anot"):
            reader.step(1, 2)
        with pytest.raises(DamagedHistory, match=r"^run 1, step 2: a value in the row is of anot"):
            reader.steps("r")
    with loose_forger(path) as connection:
        connection.execute("update steps set arguments = '{}' where step = 2")
    told = r"^run 1 \(r\), seq 2: a value in the row is of another type$"
    with Reader(path) as reader, pytest.raises(DamagedHistory, match=told):
        reader.read("r")
    with loose_forger(path) as connection:
        connection.execute("update runs set hint = x'00'")
    with (
        Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime,
        pytest.raises(DamagedHistory, match=r"^runs: run 1: a value in the row is of another type"),
    ):
        runtime.archive()


def test_the_writers_of_a_run_are_those_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    for name in ("one", "two"):
        with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
            runtime.run(name, plan_of(("a", "dark")))
    with Reader(path) as reader:
        for epoch, name in enumerate(("one", "two"), start=1):
            history, _ = reader.read(name)
            assert [writer.epoch for writer in reader.writers_of(history)] == [epoch]
        assert [summary.id for summary in reader.summaries()] == ["one", "two"]
        assert reader.unfinished() == []
        assert reader.boot_of(3) == ""


def test_a_database_at_rest_is_confirmed_and_its_unfinished_runs_are_found(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    plan = plan_of(("a", "dark", {"do": ["lost"]}))
    with Runtime(path, adapters=tools(Ledger()), log_bytes=0) as runtime:
        assert runtime.run("r", plan).waits
    with Reader(path) as reader:
        assert reader.unconfirmed is False
        assert reader.unfinished() == [(1, "r")]
        assert reader.unfinished(after=1) == []
        (writer,) = reader.writers_of(reader.read("r")[0])
        assert reader.boot_of(1) == writer.boot_id != ""


def test_an_archived_run_is_read_page_by_page_as_any_other(tmp_path: Path) -> None:
    path = copy_of(every_kind, tmp_path)
    with Reader(path) as reader:
        before = [reader.read("done", after=seq, limit=2) for seq in range(9)]
        whole = reader.read("done")
    with opened(path) as runtime:
        runtime.archive(["done"])
    with Reader(path) as reader:
        for seq, (history, events) in enumerate(before):
            archived, found = reader.read("done", after=seq, limit=2)
            assert found == events
            assert archived.head == history.head
        assert reader.read("done")[1] == whole[1]
        assert len(whole[1]) > 4
