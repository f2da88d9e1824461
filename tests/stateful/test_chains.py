"""Faults that chains of hashes have had elsewhere, tried here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_replay import Event, Fenced, IllegalMove
from agent_replay.chain import event_link
from agent_replay.history import next_head
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, Contract, StepEvent
from agent_replay.store.connection import connect_writer
from agent_replay.store.verify import verify, verify_connection
from agent_replay.store.writer import Store
from crashtests.evidence import rows_of
from crashtests.independent import history
from tests.outside import ManualClock
from tests.stateful.judge import lifecycle
from tests.stateful.lab import Lab

START = bytes(32)
ROW = Event(
    *(1, 1, "request", "", "runtime", 1, 1, "requested", "running", 1),
    *(bytes(16), 10, 20, '{"a":"bc"}', b""),
)
TEXTS = [name for name in Event._fields if isinstance(getattr(ROW, name), str)]
MOVES = {
    "in_doubt": StepEvent.REFUTE,
    "planned": StepEvent.REQUEST,
    "requested": StepEvent.SUSPEND,
}
PLAN = [("keyed", ["lost", "ok"], ["ok"]), ("dark", ["lost"], ["ok"])]


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Give a lab with one run, which waits for evidence."""
    found = Lab()
    found.open()
    found.start("r1", PLAN)
    yield found
    found.close()


@pytest.mark.fault("H03")
@pytest.mark.parametrize(("left", "right"), list(pairwise(TEXTS)))
def test_a_character_that_moves_to_the_next_column_changes_the_hash(left: str, right: str) -> None:
    row = Event(**{**ROW._asdict(), left: "ab", right: "cd"})
    moved = Event(**{**ROW._asdict(), left: "a", right: "bcd"})
    assert event_link(START, row) != event_link(START, moved)


_rows = st.builds(
    ROW._replace,
    event=st.text(max_size=3),
    coupled=st.text(max_size=3),
    actor=st.text(max_size=3),
    step=st.none() | st.integers(0, 11),
    attempt=st.none() | st.integers(0, 11),
    state=st.none() | st.text(max_size=3),
    writer=st.binary(max_size=3),
    payload=st.text(max_size=3),
)


@pytest.mark.fault("H03")
@given(one=_rows, other=_rows)
def test_different_rows_have_different_hashes(one: Event, other: Event) -> None:
    assert (event_link(START, one) == event_link(START, other)) == (one == other)


@pytest.mark.fault("H05")
def test_of_two_appends_at_once_one_is_refused_and_the_chain_is_whole(lab: Lab) -> None:
    """Both drew the same predecessor; so for the first row that either writes, too."""
    lab.close_process()
    for _ in range(10):
        met = _both_append(lab.path)
        assert sorted(met) == ["appended", "refused"]
        assert verify(lab.path).sound


def _both_append(path: Path) -> list[str]:
    connections = [connect_writer(str(path)) for _ in range(2)]
    stores = [Store(connection, clock=ManualClock()) for connection in connections]
    barrier, met = threading.Barrier(2), list[str]()

    def append(store: Store) -> None:
        head = store.read("r1").head
        now = ManualClock().read()
        adopt = (None, RunEvent.ADOPT, Actor.RECOVERY)
        move = (
            Contract.OPAQUE,
            MOVES[head.state],
            Actor.OPERATOR if head.state == "in_doubt" else Actor.RUNTIME,
        )
        rows = list[Event]()
        for contract, event, actor in (adopt, move):
            row = store.next_event(head, contract, event, actor, payload="{}", now=now)
            rows, head = [*rows, row], next_head(head, row)
        barrier.wait(10)
        try:
            store.append(rows)
        except (Fenced, IllegalMove):
            met.append("refused")
        else:
            met.append("appended")

    threads = [threading.Thread(target=append, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for connection in connections:
        connection.close()
    return met


@pytest.mark.fault("H06")
def test_the_stored_bytes_alone_give_the_hashes(lab: Lab) -> None:
    """Other code, with another SQLite library, computes them from the closed file."""
    lab.outside.time.pass_by(1)
    lab.settle("r1", "refute", step="s2", attempt=1, key_of=("r1", "s2"))
    lab.close_process()
    database = rows_of(lab.path)
    assert list(history.complaints(database, lifecycle())) == []
    assert len(database["events"]) > 5
    database["events"][2]["wall_ns"] += 1
    assert list(history.complaints(database, lifecycle())) != []


@pytest.mark.fault("H11")
@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_history_without_its_oldest_rows_is_not_sound(
    lab: Lab, count: int, renumbered: bool
) -> None:
    assert lab.process is not None
    copy = apsw.Connection(":memory:")
    with copy.backup("main", lab.process.mortal.real, "main") as backup:
        backup.step()
    assert verify_connection(copy).sound
    triggers = list(copy.execute("select name, sql from sqlite_schema where type = 'trigger'"))
    for name, _ in triggers:
        copy.execute(f"drop trigger {name}")
    copy.execute("delete from events where seq <= ?", (count,))
    if renumbered:
        copy.execute("update events set seq = seq - ?", (count,))
    for _, sql in triggers:
        copy.execute(sql)
    verdict = verify_connection(copy)
    copy.close()
    assert any("seq" in finding for finding in verdict.findings), verdict
