"""What `verify` says of sound, broken and foreign files, and what it costs."""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

import logging
import random
import re
import secrets
import sqlite3
import threading
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_replay import ReplayError, SpecMismatch, UnusableDatabase
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.step import Actor, Contract, StepEvent
from agent_replay.store import schema
from agent_replay.store.connection import connect_memory
from agent_replay.store.database import Database
from agent_replay.store.verify import (
    FINDINGS_MAX,
    ExpectedHead,
    Verdict,
    verify,
    verify_connection,
)
from agent_replay.store.writer import Store
from tests.outside import Ledger, ManualClock, plan_of
from tests.storage.histories import (
    ANSWERED,
    PLACES,
    PLANS,
    Moves,
    add_run,
    content,
    copy_of,
    every_head,
    every_kind,
    forger,
    name_of,
    open_runtime,
    reforge,
)

PAGE_BYTES = 4096


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """Give a database that the runtime made: runs in all states, and every kind of event."""
    return copy_of(every_kind, tmp_path)


def empty(path: Path) -> None:
    Database(path, clock=ManualClock(), log_bytes=0).close()


# --- sound --------------------------------------------------------------------------------------


def test_a_sound_database_is_found_sound_and_counted(lived: Path) -> None:
    events = len(content(lived)["events"])
    assert verify(lived) == Verdict(runs=len(PLANS), events=events, findings=(), complete=True)
    assert verify(str(lived)).sound


def test_an_empty_database_is_sound(tmp_path: Path) -> None:
    path = copy_of(empty, tmp_path)
    assert verify(path) == Verdict(runs=0, events=0, findings=(), complete=True)


def test_a_run_is_sound_wherever_it_stands(tmp_path: Path) -> None:
    path = copy_of(every_head, tmp_path)
    unstarted = [name_of(place) for place, moves in PLACES.items() if not moves and not place.last]
    verdict = verify(path)
    assert (verdict.runs, verdict.complete) == (len(PLACES), True)
    assert len(verdict.findings) == len(unstarted) == len(Contract)
    for name, finding in zip(unstarted, verdict.findings, strict=True):
        assert f"({name}): it has no events" in finding


def test_verify_leaves_the_file_alone_and_calls_nothing(tmp_path: Path) -> None:
    """It has no adapters: there is nothing that it could call."""
    path, ledger = tmp_path / "runs.db", Ledger()
    with open_runtime(path, ledger, ManualClock()) as runtime:
        runtime.run("r", plan_of(("a", "look"), ("b", "asked", {"do": ["unsent"]})))
        calls = list(ledger.calls)
        files = sorted(tmp_path.iterdir())
        before = [
            (file, file.stat().st_size, file.stat().st_mtime_ns)
            for file in files
            if "-shm" not in file.name
        ]
        assert verify(path).sound
        assert [
            (file, file.stat().st_size, file.stat().st_mtime_ns) for file, _, _ in before
        ] == before
    assert verify(path).sound
    assert ledger.calls == calls


def test_a_database_is_verified_beside_its_living_writer(tmp_path: Path) -> None:
    path, plan = tmp_path / "runs.db", plan_of(*((f"s{n}", "look") for n in range(20)))
    with open_runtime(path, Ledger(), ManualClock()) as runtime:
        runtime.run("first", plan)
        worker = threading.Thread(target=lambda: [runtime.run(f"r{n}", plan) for n in range(10)])
        worker.start()
        verdicts = [verify(path)]
        while worker.is_alive():
            verdicts.append(verify(path))
        worker.join()
    assert [verdict.findings for verdict in verdicts if not verdict.sound] == []
    assert [verdict.events for verdict in verdicts] == sorted(
        verdict.events for verdict in verdicts
    )
    assert verify(path) == Verdict(runs=11, events=11 * 40, findings=(), complete=True)


# --- not to the end -----------------------------------------------------------------------------


def test_a_verdict_says_that_it_stopped_after_many_findings(lived: Path) -> None:
    wrong = [ExpectedHead(f"r{n}", 1, "") for n in range(FINDINGS_MAX + 50)]
    verdict = verify(lived, expected=wrong[: FINDINGS_MAX - 1])
    assert (verdict.complete, verdict.sound) == (True, False)
    assert len(verdict.findings) == FINDINGS_MAX - 1
    verdict = verify(lived, expected=wrong)
    assert (verdict.complete, verdict.sound) == (False, False)
    assert len(verdict.findings) == FINDINGS_MAX + 1
    assert "stopped" in verdict.findings[-1]


def test_a_verdict_says_that_the_file_could_not_be_read_to_its_end(lived: Path) -> None:
    with closing(apsw.Connection(str(lived))) as connection:
        ((root,),) = connection.execute("select rootpage from sqlite_schema where name = 'events'")
    image = bytearray(lived.read_bytes())
    image[(root - 1) * PAGE_BYTES : root * PAGE_BYTES] = b"\xa5" * PAGE_BYTES
    lived.write_bytes(image)
    verdict = verify(lived)
    assert (verdict.complete, verdict.sound, verdict.events) == (False, False, 0)
    assert "could not be read to its end" in verdict.findings[-1]


# --- broken files -------------------------------------------------------------------------------


def judged(path: Path) -> Verdict | None:
    """Return the verdict, or None if the file cannot be opened at all; nothing else may happen."""
    try:
        return verify(path)
    except ReplayError:
        return None


def test_a_truncated_file_is_never_sound(tmp_path: Path) -> None:
    path = copy_of(every_kind, tmp_path)
    image = path.read_bytes()
    pages = len(image) // PAGE_BYTES
    for length in [*range(0, len(image), max(1, pages // 20) * PAGE_BYTES), 1, 99, 100, 512]:
        for kept in {length, max(0, length - 1), min(length + 1000, len(image) - 1)}:
            path.write_bytes(image[:kept])
            verdict = judged(path)
            assert verdict is None or not verdict.sound, kept


def damage(path: Path, image: bytes, place: int, bit: int) -> Path:
    """Write the database with one bit flipped, and nothing in its log."""
    damaged = bytearray(image)
    damaged[place] ^= bit
    path.write_bytes(damaged)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    return path


SEED = secrets.randbits(32)


@pytest.mark.fault("H01")
def test_a_flipped_byte_is_found_or_changes_nothing(tmp_path: Path) -> None:
    """Many places are free. A verdict of sound must mean that no row has changed."""
    print(f"seed: {SEED}")
    chance = random.Random(SEED)
    path = copy_of(every_kind, tmp_path)
    image, rows = path.read_bytes(), content(path)
    for _ in range(60):
        place, bit = chance.randrange(len(image)), 1 << chance.randrange(8)
        verdict = judged(damage(path, image, place, bit))
        if verdict is not None and verdict.sound:
            assert content(path) == rows, f"seed {SEED}: byte {place}, bit {bit}"


@pytest.mark.fault("H01")
def test_a_flipped_byte_of_a_row_is_found(tmp_path: Path) -> None:
    """Pages keep pieces of rows that were moved; only where those are nothing has changed."""
    path = copy_of(every_kind, tmp_path)
    image, rows = path.read_bytes(), content(path)
    for mark in (b"looked it up", b"exhausted-later", b"boot-1", b'"do":["unsent"', b"receipt"):
        places = [found.start() for found in re.finditer(re.escape(mark), image)]
        for bit in (1, 128):
            sound = 0
            for place in places:
                verdict = judged(damage(path, image, place, bit))
                if verdict is not None and verdict.sound:
                    assert content(path) == rows, (mark, place, bit)
                    sound += 1
            assert sound < len(places), (mark, bit)


NO_DATABASE = {
    "nothing": b"",
    "a text": b"This is not a database.\n" * 400,
    "zeros": bytes(3 * PAGE_BYTES),
    "the name alone": b"SQLite format 3\0" + bytes(5000),
}


@pytest.mark.parametrize("kind", NO_DATABASE)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(NO_DATABASE[kind])
    with pytest.raises(ReplayError, match=r"runs\.db"):
        verify(path)
    assert path.read_bytes() == NO_DATABASE[kind]


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table runs (run integer primary key)")
    with pytest.raises(UnusableDatabase, match="another program"):
        verify(path)
    with pytest.raises(UnusableDatabase, match="no database"):
        verify(tmp_path / "missing.db")


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_identities_is_a_finding(lived: Path, count: int) -> None:
    """The file can be opened, so there is a verdict."""
    with forger(lived) as connection:
        connection.execute("delete from identity")
        for one in range(count):
            connection.execute("insert into identity values (?, 'n', 1, ?)", (one, MOVES_DIGEST))
    verdict = verify(lived)
    assert f"{count} identities" in verdict.findings[-1]
    assert not verdict.complete


# --- another spec -------------------------------------------------------------------------------


def test_a_database_of_another_spec_is_named_and_not_run(lived: Path) -> None:
    spec = "5" * 64
    with forger(lived) as connection:
        for table in ("identity", "writers", "permitted"):
            connection.execute(f"update {table} set spec = ?", (spec,))
        reforge(connection)
    findings = verify(lived).findings
    assert any(finding.startswith("identity: the spec 555555555555 ") for finding in findings)
    assert any(finding.startswith("writers, epoch 5: ") for finding in findings)
    assert not any("hash" in finding for finding in findings)
    with pytest.raises(SpecMismatch):
        open_runtime(lived, Ledger(), ManualClock())


# --- the schema ---------------------------------------------------------------------------------


TRIGGERS = [name for kind, name, _, _ in schema.shipped_schema() if kind == "trigger"]
SHIPPED = [name for kind, name, _, _ in schema.shipped_schema() if kind == "table"]


def findings_after(path: Path, statements: Sequence[str]) -> list[str]:
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.pragma("writable_schema", 1)
        for statement in statements:
            connection.execute(statement)
    verdict = judged(path)
    return ["the file cannot be opened"] if verdict is None else list(verdict.findings)


def test_every_shipped_trigger_is_missed_when_it_is_dropped(lived: Path) -> None:
    assert len(TRIGGERS) >= 20
    with closing(apsw.Connection(str(lived))) as connection:
        for trigger in TRIGGERS:
            connection.execute(f"begin; drop trigger {trigger}")
            assert verify_connection(connection).findings == (f"the trigger {trigger} is missing",)
            connection.execute("rollback")


ALTERED = {
    "events_are_judged": ("new.seq is not head.seq + 1", "false"),
    "events_move_the_head": ("after insert", "after delete"),
    "runs_stay": ("before update on runs", "before update of hint on runs"),
    "permitted_is_closed": ("select raise", "select 1 where false and raise"),
    "heads_remain": ("history", "History"),
}


@pytest.mark.parametrize("trigger", ALTERED)
def test_an_altered_trigger_is_named(lived: Path, trigger: str) -> None:
    old, new = ALTERED[trigger]
    change = f"update sqlite_schema set sql = replace(sql, '{old}', '{new}')"
    findings = findings_after(lived, [f"{change} where name = '{trigger}'"])
    assert findings == [f"the trigger {trigger} differs from the shipped one"]


def test_a_schema_that_cannot_be_read_is_an_error_of_ours(lived: Path) -> None:
    statement = "update sqlite_schema set sql = sql || 'x' where name = 'runs_stay'"
    assert findings_after(lived, [statement]) == ["the file cannot be opened"]


@pytest.mark.parametrize("table", SHIPPED)
def test_an_altered_table_is_named(lived: Path, table: str) -> None:
    findings = findings_after(
        lived, [f"update sqlite_schema set sql = sql || ' ' where name = '{table}'"]
    )
    assert findings == [f"the table {table} differs from the shipped one"]


FOREIGN = {
    "table extra": "create table extra (x)",
    "table runs_": "create table runs_ (run integer primary key)",
    "index by_event": "create index by_event on events (event)",
    "index once": "create unique index once on events (run, seq)",
    "view paused": "create view paused as select * from heads where run_state = 'paused'",
    "trigger also": "create trigger also after insert on events begin select 1; end",
    "trigger sqlite_also": "insert into sqlite_schema values ('trigger', 'sqlite_also', 'events', "
    "0, 'create trigger sqlite_also before insert on events begin select raise(ignore); end')",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_was_added_to_the_schema_is_named(lived: Path, name: str) -> None:
    findings = findings_after(lived, [FOREIGN[name]])
    assert findings == [f"there is a foreign {name}"]


@pytest.mark.parametrize("table", SHIPPED)
def test_a_dropped_table_is_a_finding(lived: Path, table: str) -> None:
    with closing(apsw.Connection(str(lived))) as connection:
        connection.pragma("foreign_keys", 0)
        connection.execute(f"drop table {table}")
    verdict = judged(lived)
    assert verdict is not None
    assert f"the table {table} is missing" in verdict.findings


# --- what it costs ------------------------------------------------------------------------------


def in_memory(runs: int, moves: Moves) -> apsw.Connection:
    """Return a database with some runs that all made these moves."""
    connection = connect_memory()
    schema.fill(connection, schema.Identity("cost", 0, MOVES_DIGEST))
    store = Store(connection, clock=ManualClock())
    for number in range(runs):
        add_run(store, f"r{number}", [Contract.READ_ONLY] * 2, moves)
    return connection


def one_run(events: int) -> apsw.Connection:
    again = ((StepEvent.RESEND, Actor.RUNTIME),) * (events - 1)
    return in_memory(1, ((StepEvent.REQUEST, Actor.RUNTIME), *again))


def many_runs(events: int) -> apsw.Connection:
    return in_memory(events // 4, ANSWERED * 2)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_history() -> None:
    peaks = []
    for events in (500, 5_000):
        with closing(one_run(events)) as connection:
            tracemalloc.start()
            verdict = verify_connection(connection)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert (verdict.sound, verdict.events) == (True, events)
    assert peaks[1] < peaks[0] + 100_000, peaks
    assert peaks[1] < 2_000_000, peaks


ROUNDS_MAX = 10


@pytest.mark.slow
@pytest.mark.fault("K03")
@pytest.mark.parametrize(
    ("make", "few", "many"), [(one_run, 2_000, 20_000), (many_runs, 400, 4_000)]
)
def test_cost_grows_with_the_history_and_not_with_its_square(
    make: object, few: int, many: int
) -> None:
    """The least of several rounds counts, and rounds end once it is good: noise only adds."""
    assert callable(make)
    seconds: dict[int, list[float]] = {few: [], many: []}
    with closing(make(few)) as small, closing(make(many)) as large:
        for _ in range(ROUNDS_MAX):
            for events, connection in ((few, small), (many, large)):
                begun = time.process_time()
                verdict = verify_connection(connection)
                seconds[events].append(time.process_time() - begun)
                assert (verdict.sound, verdict.events) == (True, events)
            if min(seconds[many]) / many < 1.5 * min(seconds[few]) / few:
                return
    pytest.fail(f"seconds by number of events: {seconds}")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="agent_replay")
