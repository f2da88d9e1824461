"""What is read ahead for many runs is what each run would be given alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_replay.store import ahead
from agent_replay.store.ahead import Ahead
from agent_replay.store.sql import QUERIES
from agent_replay.store.verify import Verdict, verify
from tests.scale.many import Shape, make
from tests.storage.histories import copy_of, every_kind, forger, loose_forger

DAMAGES = {
    "nothing": "select 1",
    "a text that is none": "update events set payload = cast(x'7bff7d' as text) where run = 4",
    "an actor that is no text": "update events set actor = cast(x'ff' as text) where run = 16",
    "a number that is a text": "update events set wall_ns = 'x' where run = 3 and seq = 2",
    "a payload that is a number": "update events set payload = 7 where run = 3 and seq = 2",
    "a payload that is missing": "update events set payload = null where run = 5 and seq = 1",
    "a run that is a text": "update events set run = 'x' where run = 6 and seq = 1",
    "a run that is a blob": "update steps set run = x'00' where run = 6 and step = 1",
    "a run that is no integer": "update events set run = 2.5 where run = 2 and seq = 1",
    "a run without events": "delete from events where run = 7",
    "a run without steps": "delete from steps where run = 7",
    "rows of no run": "update events set run = 99 where run = 8",
    "an argument": "update steps set arguments = '[1]' where run = 9 and step = 1",
    "a step that is a blob": "update steps set id = x'00' where run = 9 and step = 1",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_same_is_found_however_much_is_read_ahead(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy_of(every_kind, tmp_path)
    with loose_forger(path) as connection:
        connection.execute(DAMAGES[damage])
    found: list[Verdict] = []
    for rows_max, bytes_max in ((1, 1), (3, 10_000), (10, 10_000), (250, 500), (250, 10**6)):
        monkeypatch.setattr(ahead, "ROWS_MAX", rows_max)
        monkeypatch.setattr(ahead, "BYTES_MAX", bytes_max)
        monkeypatch.setattr(ahead, "RUNS_ALONE", 2)
        found.append(verify(path))
    assert [verdict for verdict in found if verdict != found[0]] == []
    assert found[0].sound == (damage == "nothing")


def test_rows_are_handed_out_run_by_run(tmp_path: Path) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=300, steps=5))
    with forger(path) as connection:
        connection.execute("delete from events where run in (1, 50, 51, 300)")
    with closing(apsw.Connection(str(path))) as connection:
        queries = {"ahead": QUERIES["events_from"], "alone": QUERIES["events"]}
        events = Ahead(connection, **queries, text=13)
        for run in range(1, 301):
            expected = list(connection.execute(QUERIES["events"], (run,)))
            assert list(events.of(run)) == expected
            assert len(expected) == (0 if run in (1, 50, 51, 300) else 10)
