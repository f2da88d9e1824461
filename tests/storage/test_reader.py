"""The reading side: one snapshot for each answer, and damage by its name."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from agent_replay import DamagedHistory, Runtime
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import Ledger, plan_of, tools


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
