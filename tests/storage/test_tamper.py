"""What `verify` finds, and what the runtime refuses to believe, after the file was changed.

The forger of these tests has the triggers off and the schema as it was. One changed value is always
found, with its place. A forger who also computes all chains anew is not found by the file alone:
those tests say so, and that heads which were written down elsewhere find him.
"""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import pytest

from agent_replay import DamagedHistory, NoSuchRun, Runtime
from agent_replay.chain import event_link
from agent_replay.events import Event, Head, Registration
from agent_replay.store.verify import ExpectedHead, verify, verify_connection
from tests.outside import Ledger, ManualClock
from tests.storage.histories import (
    FILLED,
    KINDS,
    PLANS,
    TABLES,
    Row,
    Rows,
    Value,
    columns,
    content,
    copy_of,
    every_kind,
    fingerprint,
    forger,
    loose_forger,
    open_runtime,
    reforge,
)

pytestmark = pytest.mark.fault("H01")

OWN = ("runs", "steps", "events", "heads")
"""The tables that hold rows of one run."""


class Scene:
    """A database with every kind of event, a forger at it, and a runtime that has it open."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path = path
        self.forger = connection
        self.ledger = Ledger()
        self.rows = content(path)
        self.columns = {table: columns(connection, table) for table in TABLES}
        self.names = {row[0]: str(row[1]) for row in self.rows["runs"]}

    @contextmanager
    def replaced(self, table: str, old: Row, new: Row) -> Iterator[None]:
        """Put one row in the place of another for a while."""
        self._put(table, old, new)
        yield
        self._put(table, new, old)

    def _put(self, table: str, old: Row, new: Row) -> None:
        where = " and ".join(f"{name} is ?" for name, _ in self.columns[table])
        with self.forger:
            self.forger.execute(f"delete from {table} where {where}", old)
            assert self.forger.changes() == 1
            self.forger.execute(f"insert into {table} values ({', '.join('?' * len(new))})", new)

    def other_rows(self, table: str, row: Row, position: int, turn: int) -> Iterator[Row]:
        """Yield the row with other values in one column, another one first at each turn."""
        pool = [other[position] for other in self.rows[table]]
        values = others(row[position], pool)
        for value in values[turn % len(values) :] + values:
            yield (*row[:position], value, *row[position + 1 :])

    @contextmanager
    def changed(self, table: str, row: Row, position: int, turn: int) -> Iterator[Row]:
        """Change one column of a row for a while, to a value that the table has place for."""
        with ExitStack() as stack:
            for other in self.other_rows(table, row, position, turn):
                try:
                    stack.enter_context(self.replaced(table, row, other))
                except apsw.ConstraintError:  # a key in use
                    continue
                break
            else:
                pytest.fail(f"{table}: nothing else fits into column {position}")
            yield other

    def assert_found(self, *places: str) -> None:
        """Assert that some finding names one of the places."""
        verdict = verify(self.path)
        assert not verdict.sound
        named = [finding for finding in verdict.findings if any(p in finding for p in places)]
        assert named, (places, verdict.findings)

    def assert_refused(self, runtime: Runtime, name: str) -> None:
        """Assert that the runtime believes nothing of a run, calls nothing and writes nothing."""
        before = fingerprint(self.forger)
        with pytest.raises(DamagedHistory):
            runtime.resume(name)
        if name in PLANS:
            with pytest.raises(DamagedHistory):
                runtime.run(name, PLANS[name])
        assert self.ledger.calls == []
        assert fingerprint(self.forger) == before


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    path = copy_of(every_kind, tmp_path)
    with forger(path) as connection:
        yield Scene(path, connection)


@pytest.fixture
def runtime(scene: Scene) -> Iterator[Runtime]:
    with open_runtime(scene.path, scene.ledger, ManualClock()) as runtime:
        yield runtime


def others(value: Value, pool: list[Value]) -> list[Value]:
    """Return other values of the same type, or of the type that the pool has."""
    if value is None:
        return list(dict.fromkeys(other for other in pool if other is not None))
    found: list[Value] = []
    if isinstance(value, int):
        found = [value + 1, value - 1, -value - 1, value + 1000, 2**62]
    elif isinstance(value, bytes):
        found = [bytes([value[0] ^ 1]) + value[1:], value[:-1], value + b"\0", b"", value[::-1]]
    else:
        found = [value + "x", value.upper(), " " + value, "", *pool[:3]]
    if None in pool:
        found.append(None)
    return [other for other in dict.fromkeys(found) if other != value]


def place_of(table: str, row: Row) -> list[str]:
    """Return what names the row: a finding has one of these in it."""
    first, *others = map(str, row)
    if table == "identity":  # it has no link of its own; the first that hang on it do not fit
        return ["identity", "writers, epoch 1:"]
    if table == "permitted":
        return [f"permitted: the move {' '.join(others[:5])}"]
    if table == "writers":
        return [f"writers, epoch {first}:", f"writers: epoch {first} "]
    if table == "chains":
        return [f"chains, {first}"]
    return [f"run {first} ("]


# --- one value ----------------------------------------------------------------------------------


def test_the_history_has_every_kind_of_event(scene: Scene) -> None:
    assert sorted({(str(row[2]), str(row[4])) for row in scene.rows["events"]}) == KINDS
    assert len(scene.rows["writers"]) == 5
    assert {row[3] for row in scene.rows["heads"]} == {
        "running", "paused", "cancelling", "completed", "failed", "cancelled"
    }  # fmt: skip
    verdict = verify(scene.path)
    assert (verdict.sound, verdict.findings) == (True, ())
    assert (verdict.runs, verdict.events) == (len(PLANS), len(scene.rows["events"]))


@pytest.mark.invariant("S9")
@pytest.mark.parametrize("position", range(len(Event._fields)), ids=Event._fields)
def test_a_changed_column_of_an_event_is_found_and_refused(
    scene: Scene, runtime: Runtime, position: int
) -> None:
    kinds = {(row[2], row[4]): row for row in scene.rows["events"]}
    for turn, row in enumerate(kinds.values()):
        with scene.changed("events", row, position, turn):
            event = Event._make(row)
            name = scene.names[event.run]
            moved = Event._fields[position] in ("run", "seq")  # then it is missing where it was
            scene.assert_found(
                f"run {event.run} ({name})" + ("" if moved else f", seq {event.seq}")
            )
            scene.assert_refused(runtime, name)
    assert verify(scene.path).sound


OTHER_COLUMNS = [
    (table, name)
    for table, names in {
        "identity": ("one", "namespace", "created_ns", "spec"),
        "permitted": ("spec", "contract", "source", "event", "actor", "run_state", "last",
                      "target", "coupled", "run_target"),
        "writers": ("epoch", "writer", "spec", "boot_id", "opened_ns", "pid", "host", "hash"),
        "runs": Registration._fields,
        "steps": ("run", "step", "id", "adapter", "contract", "arguments", "key"),
        "heads": Head._fields,
        "chains": ("name", "count", "hash"),
    }.items()
    for name in names
]  # fmt: skip


def test_every_column_of_every_table_is_tampered_with(scene: Scene) -> None:
    """Those of `archived` are so in test_archive_tamper.py."""
    found = [(table, name) for table in FILLED for name, _ in scene.columns[table]]
    tried = [*OTHER_COLUMNS, *(("events", name) for name in Event._fields)]
    assert sorted(tried) == sorted(found)


@pytest.mark.slow
@pytest.mark.fault("C01")
@pytest.mark.invariant("S9")
@pytest.mark.parametrize(("table", "column"), OTHER_COLUMNS)
def test_a_changed_column_of_another_row_is_found_and_refused(
    scene: Scene, runtime: Runtime, table: str, column: str
) -> None:
    position = [name for name, _ in scene.columns[table]].index(column)
    rows = scene.rows[table]
    every = {"permitted": 40, "runs": 3, "steps": 3, "heads": 3}.get(table, 1)
    for turn, row in enumerate(rows[position % every :: every]):
        with scene.changed(table, row, position, turn) as other:
            found_at = other if (table, column) == ("runs", "run") else row
            scene.assert_found(*place_of(table, row), *place_of(table, found_at))
            if table in OWN:
                name = other[1] if (table, column) == ("runs", "id") else scene.names[row[0]]
                scene.assert_refused(runtime, str(name))
    assert verify(scene.path).sound


def test_under_its_old_id_a_run_with_a_changed_id_is_not_known(
    scene: Scene, runtime: Runtime
) -> None:
    """Only `verify` can tell this from a run that was never there."""
    row = scene.rows["runs"][0]
    with scene.replaced("runs", row, (row[0], "other", *row[2:])):
        with pytest.raises(NoSuchRun):
            runtime.resume("done")
        scene.assert_found("run 1 (other)")


@pytest.mark.parametrize("table", FILLED)
def test_bytes_that_are_no_text_are_found_and_refused(
    scene: Scene, runtime: Runtime, table: str
) -> None:
    """One flipped bit does that to a text, and SQLite does not mind."""
    row = scene.rows[table][-1]
    names = [name for name, _ in scene.columns[table]]
    for position, name in enumerate(names):
        old = row[position]
        if not isinstance(old, str):
            continue
        where = " and ".join(f"cast({name} as blob) is cast(? as blob)" for name in names)
        update = f"update {table} set {name} = cast(? as text) where {where}"
        bad = b"\xff" + old.encode()
        damaged = (*row[:position], bad, *row[position + 1 :])
        scene.forger.execute(update, (bad, *row))
        assert scene.forger.changes() == 1
        scene.assert_found(table, *place_of(table, row))
        if table in OWN and (table, name) != ("runs", "id"):
            scene.assert_refused(runtime, scene.names[row[0]])
        scene.forger.execute(update, (old, *damaged))
    assert verify(scene.path).sound


OTHER_TYPES: dict[type, tuple[object, ...]] = {
    str: (b"x", 7, 0.5, None),
    int: ("x", 0.5, b"x", None),
    bytes: ("x", 7, 0.5, None),
    type(None): (b"x", 0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("table", FILLED)
def test_a_value_of_another_type_is_found_and_refused(tmp_path: Path, table: str) -> None:
    """One flipped bit before a row turns a text into a blob, or a number into another kind."""
    path = copy_of(every_kind, tmp_path)
    with loose_forger(path) as connection:
        scene = Scene(path, connection)
        row = scene.rows[table][-1]
        names = [name for name, _ in scene.columns[table]]
        tried = 0
        for position, name in enumerate(names):
            for value in OTHER_TYPES[type(row[position])]:
                tried += _is_noticed(scene, table, row, name, value)
        assert tried >= 2 * len(names)
    assert verify(path).sound


def _is_noticed(scene: Scene, table: str, row: Row, name: str, value: object) -> bool:
    """Return whether the value fits in; it is found and refused then."""
    names = [column for column, _ in scene.columns[table]]
    where = " and ".join(f"{column} is ?" for column in names)
    damaged = tuple(value if column == name else v for column, v in zip(names, row, strict=True))
    try:
        scene.forger.execute(f"update {table} set {name} = ? where {where}", (value, *row))
    except (apsw.ConstraintError, apsw.MismatchError):  # a key
        return False
    assert scene.forger.changes() == 1
    scene.assert_found(table, *place_of(table, row))
    if table in OWN and (table, name) != ("runs", "id"):
        with open_runtime(scene.path, scene.ledger, ManualClock()) as runtime:
            scene.assert_refused(runtime, scene.names[row[0]])
    old = row[names.index(name)]
    scene.forger.execute(f"update {table} set {name} = ? where {where}", (old, *damaged))
    return scene.forger.changes() == 1


SHAPES = (
    "", "x", "null", "1", "[]", "{}", '{"a":1}', '{"keyed@1":null}', '{"keyed@1":{}}',
    '{"keyed@1":{"contract":null}}', '{"keyed@1":{"contract":"x"}}',
    '{"keyed@1":{"contract":"idempotent","key_window_ns":"x"}}',
    '{"keyed@1":{"contract":"idempotent","other_ns":1}}', "[" * 100_000, "9" * 5000, '"\\ud800"',
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("forged", [False, True], ids=["changed", "forged"])
@pytest.mark.parametrize(
    ("table", "column"), [("runs", "adapters"), ("events", "payload"), ("steps", "arguments")]
)
def test_json_of_another_shape_is_found_or_told(
    scene: Scene, table: str, column: str, forged: bool
) -> None:
    """Whatever the text says, and even if it has the right hash, nothing fails in another way."""
    place = "run = 16 and seq = 2" if table == "events" else "run = 16"
    for shape in SHAPES:
        scene.forger.execute("begin")
        scene.forger.execute(f"update {table} set {column} = ? where {place}", (shape,))
        if forged:
            reforge(scene.forger)
        verdict = verify_connection(scene.forger)
        assert forged or any("run 16 (open)" in finding for finding in verdict.findings), shape
        scene.forger.execute("rollback")
    assert verify(scene.path).sound


# --- rows that are gone -------------------------------------------------------------------------


def events_of(rows: Rows, run: int) -> list[Event]:
    return [Event._make(row) for row in rows["events"] if row[0] == run]


def expected_of(rows: Rows) -> list[ExpectedHead]:
    """Return the heads as somebody would write them down elsewhere."""
    names = {row[0]: str(row[1]) for row in rows["runs"]}
    heads = [Head._make(row) for row in rows["heads"]]
    return [ExpectedHead(names[head.run], head.seq, head.hash.hex()) for head in heads]


@contextmanager
def undone(connection: apsw.Connection) -> Iterator[None]:
    """Take back what is done meanwhile."""
    connection.execute("begin")
    try:
        yield
    finally:
        connection.execute("rollback")


NUMBERS = {name: run for run, name in enumerate(PLANS, start=1)}
SOME = ("done", "died", "cancelled", "cancelling", "exhausted-later", "open")


@pytest.mark.parametrize("name", PLANS)
def test_a_cut_tail_is_found(scene: Scene, name: str) -> None:
    """The head is kept apart from the events, and says how many there were."""
    run = NUMBERS[name]
    for kept in range(len(events_of(scene.rows, run))):
        with undone(scene.forger):
            scene.forger.execute("delete from events where run = ? and seq > ?", (run, kept))
            findings = verify_connection(scene.forger).findings
            assert findings
            assert all(finding.startswith(f"run {run} ({name})") for finding in findings)


@pytest.mark.parametrize("name", SOME)
def test_a_tail_that_was_cut_with_its_head_is_found_by_what_was_expected(
    scene: Scene, name: str
) -> None:
    """Such a file is what a backup of an earlier hour would be: by itself it is sound."""
    run = NUMBERS[name]
    events = events_of(scene.rows, run)
    expected = expected_of(scene.rows)
    assert verify_connection(scene.forger, expected=expected).sound
    for kept in range(len(events)):
        with undone(scene.forger):
            scene.forger.execute("delete from events where run = ? and seq > ?", (run, kept))
            reforge(scene.forger)
            alone = verify_connection(scene.forger)
            never_written = kept == 0 or events[kept - 1].event == "adopt"
            assert alone.sound == (not never_written)
            assert all(finding.startswith(f"run {run} ({name})") for finding in alone.findings)
            findings = verify_connection(scene.forger, expected=expected).findings
            assert f"run {name}, seq {len(events)}: it was expected" in findings[-1]


@pytest.mark.parametrize("head", ["left", "moved"])
@pytest.mark.parametrize("renumber", [False, True], ids=["gap", "renumbered"])
def test_events_that_are_gone_from_the_front_or_the_middle_are_found(
    scene: Scene, renumber: bool, head: str
) -> None:
    for name in SOME[:3]:
        run = NUMBERS[name]
        last = len(events_of(scene.rows, run))
        for first, gone in ((1, 1), (1, 2), (2, 1), (1, last - 1), (last - 1, 1)):
            if not 1 <= first <= first + gone - 1 < last:
                continue
            with undone(scene.forger):
                _remove_events(scene.forger, run, first, gone, renumber, head == "moved")
                findings = verify_connection(scene.forger).findings
            assert findings
            assert findings[0].startswith(f"run {run} ({name}), seq ")


def _remove_events(
    connection: apsw.Connection, run: int, first: int, count: int, renumber: bool, move_head: bool
) -> None:
    connection.execute(
        "delete from events where run = ? and seq between ? and ?", (run, first, first + count - 1)
    )
    if renumber:
        rows = list(
            connection.execute(
                "select seq from events where run = ? and seq >= ? order by seq", (run, first)
            )
        )
        for (seq,) in rows:
            connection.execute(
                "update events set seq = ? where run = ? and seq = ?", (seq - count, run, seq)
            )
    if move_head:
        connection.execute(
            "update heads set seq = (select max(seq) from events where run = heads.run)"
        )


def _remove_run(scene: Scene, run: int, tables: tuple[str, ...], renumber: bool) -> None:
    for table in tables:
        scene.forger.execute(f"delete from {table} where run = ?", (run,))
        for later in range(run + 1, len(PLANS) + 1) if renumber else ():
            scene.forger.execute(f"update {table} set run = run - 1 where run = ?", (later,))


def _set_chain_of_runs(scene: Scene) -> None:
    scene.forger.execute(
        "update chains set count = (select count(*) from runs), "
        "hash = (select hash from runs order by run desc limit 1) where name = 'runs'"
    )


@pytest.mark.invariant("S13")
@pytest.mark.parametrize("chain", ["left", "moved"])
@pytest.mark.parametrize("renumber", [False, True], ids=["gap", "renumbered"])
@pytest.mark.parametrize("tables", [OWN, ("runs",)], ids=["whole", "registration"])
@pytest.mark.parametrize("run", [1, 8], ids=["first", "middle"])
def test_a_run_that_is_gone_is_found(
    scene: Scene, run: int, tables: tuple[str, ...], renumber: bool, chain: str
) -> None:
    _remove_run(scene, run, tables, renumber)
    if chain == "moved":
        _set_chain_of_runs(scene)
    scene.assert_found(f"run {run} (" if renumber else f"from run {run} on")


@pytest.mark.invariant("S13")
@pytest.mark.parametrize("tables", [OWN, ("runs",)], ids=["whole", "registration"])
def test_a_last_run_that_is_gone_is_found(scene: Scene, tables: tuple[str, ...]) -> None:
    _remove_run(scene, len(PLANS), tables, renumber=False)
    scene.assert_found("chains, runs: 15 rows")


@pytest.mark.invariant("S13")
def test_a_last_run_that_is_gone_with_its_link_is_found_by_what_was_expected(scene: Scene) -> None:
    """Such a file is what it was before the run: by itself it is sound."""
    _remove_run(scene, len(PLANS), OWN, renumber=False)
    _set_chain_of_runs(scene)
    assert verify(scene.path).sound
    (finding,) = verify(scene.path, expected=expected_of(scene.rows)).findings
    assert finding.startswith("run open: a head was expected")


@pytest.mark.parametrize("table", ["steps", "events", "heads"])
def test_what_is_gone_of_a_run_is_found_and_refused(
    scene: Scene, runtime: Runtime, table: str
) -> None:
    kinds = {(row[0] if table == "heads" else row[2:5]): row for row in scene.rows[table]}
    for row in kinds.values():
        name = scene.names[row[0]]
        where = " and ".join(f"{column} is ?" for column, _ in scene.columns[table])
        scene.forger.execute(f"delete from {table} where {where}", row)
        scene.assert_found(*place_of(table, row))
        scene.assert_refused(runtime, name)
        marks = ", ".join("?" * len(row))
        scene.forger.execute(f"insert into {table} values ({marks})", row)
    assert verify(scene.path).sound


@pytest.mark.parametrize("count", [1, 2, 4])
def test_writers_that_are_gone_are_found(scene: Scene, count: int) -> None:
    for first in range(1, 6 - count + 1):
        with undone(scene.forger):
            last = first + count - 1
            scene.forger.execute("delete from writers where epoch between ? and ?", (first, last))
            findings = verify_connection(scene.forger).findings
            assert any(finding.startswith(("writers", "chains, writers")) for finding in findings)


@pytest.mark.parametrize("table", ["identity", "chains", "permitted"])
def test_what_is_gone_of_the_database_is_found(scene: Scene, table: str) -> None:
    for row in scene.rows[table][::20]:
        with undone(scene.forger):
            where = " and ".join(f"{column} is ?" for column, _ in scene.columns[table])
            scene.forger.execute(f"delete from {table} where {where}", row)
            findings = verify_connection(scene.forger).findings
            assert any(place in finding for finding in findings for place in (table, "identities"))


# --- rows that are moved or added ---------------------------------------------------------------


@pytest.mark.parametrize("what", ["rows", "payloads", "hashes", "times"])
def test_two_swapped_events_are_found_and_refused(
    scene: Scene, runtime: Runtime, what: str
) -> None:
    columns_of = {
        "rows": [name for name in Event._fields if name not in ("run", "seq")],
        "payloads": ["payload"],
        "hashes": ["hash"],
        "times": ["wall_ns", "boot_ns"],
    }[what]
    for name in SOME:
        run = NUMBERS[name]
        for one, two in zip(
            events_of(scene.rows, run), events_of(scene.rows, run)[1:], strict=False
        ):
            new = one._replace(**{column: getattr(two, column) for column in columns_of})
            other = two._replace(**{column: getattr(one, column) for column in columns_of})
            if new == one:
                continue
            with scene.replaced("events", one, new), scene.replaced("events", two, other):
                scene.assert_found(f"run {run} ({name}), seq {one.seq}:")
                scene.assert_refused(runtime, name)
            break
    assert verify(scene.path).sound


def test_events_of_two_runs_that_were_swapped_are_found(scene: Scene) -> None:
    """Both are well-formed histories of such a plan."""
    closed, paused = NUMBERS["cancelling"], NUMBERS["paused"]
    with undone(scene.forger):
        for table in ("events", "heads"):
            for old, new in ((closed, 0), (paused, closed), (0, paused)):
                scene.forger.execute(f"update {table} set run = ? where run = ?", (new, old))
        findings = verify_connection(scene.forger).findings
    assert [finding.partition(":")[0] for finding in findings[:2]] == [
        f"run {closed} (cancelling), seq 1", f"run {paused} (paused), seq 1"
    ]  # fmt: skip


NEIGHBOURS = [
    ("events", "event", "coupled"),
    ("events", "coupled", "actor"),
    ("events", "state", "run_state"),
    ("runs", "id", "plan"),
    ("runs", "adapters", "hint"),
    ("writers", "spec", "boot_id"),
    ("steps", "id", "adapter"),
    ("steps", "adapter", "contract"),
    ("steps", "contract", "arguments"),
    ("steps", "arguments", "key"),
]


@pytest.mark.parametrize(("table", "left", "right"), NEIGHBOURS)
def test_a_character_that_moved_to_the_next_column_is_found(
    scene: Scene, table: str, left: str, right: str
) -> None:
    names = [name for name, _ in scene.columns[table]]
    at = names.index(left)
    assert names[at + 1] == right
    moved = 0
    for row in scene.rows[table]:
        one, two = row[at], row[at + 1]
        if not isinstance(one, str) or not isinstance(two, str):
            continue
        for new in ((one[:-1], one[-1:] + two), (one + two[:1], two[1:])):
            if new == (one, two):
                continue
            other = (*row[:at], *new, *row[at + 2 :])
            with scene.replaced(table, row, other):
                scene.assert_found(*place_of(table, row))
                moved += 1
        if moved >= 4:
            break
    assert moved


def test_a_digit_that_moved_to_the_next_column_is_found(scene: Scene) -> None:
    row = Event._make(scene.rows["events"][-1])
    for number, other in ((row.wall_ns, row.boot_ns), (row.boot_ns, row.wall_ns)):
        new = row._replace(wall_ns=number // 10, boot_ns=int(f"{number % 10}{other}"))
        with scene.replaced("events", row, new):
            scene.assert_found(f"run {row.run} (open), seq {row.seq}:")


def test_a_foreign_row_is_found(scene: Scene) -> None:
    rows = scene.rows
    head = Head._make(rows["heads"][-1])
    last = events_of(rows, head.run)[-1]
    extra = last._replace(seq=last.seq + 1, event="acknowledge", state="succeeded")
    extra = extra._replace(hash=event_link(last.hash, extra))
    step, writer, (identity,) = rows["steps"][-1], rows["writers"][-1], rows["identity"]
    foreign: list[tuple[str, Row, str]] = [
        ("events", extra, f"run {head.run} (open)"),
        ("events", last._replace(run=99), "events: a row (99, "),
        ("events", last._replace(run=0), "events: a row (0, "),
        ("events", last._replace(seq=0), f"run {head.run} (open), seq 0"),
        ("steps", (step[0], 4, *step[2:]), f"run {head.run} (open)"),
        ("steps", (step[0], 0, *step[2:]), f"run {head.run} (open)"),
        ("steps", (99, *step[1:]), "steps: a row (99, "),
        ("heads", (99, *head[1:]), "heads: a row (99"),
        ("runs", (head.run + 1, "x", *rows["runs"][-1][2:]), f"run {head.run + 1} (x)"),
        ("runs", (0, "x", *rows["runs"][-1][2:]), "run 0 (x)"),
        ("writers", (6, *writer[1:]), "writers, epoch 6"),
        ("writers", (0, *writer[1:]), "writers, epoch 0"),
        ("chains", ("other", 0, bytes(32)), "chains"),
        ("identity", (2, *identity[1:]), "2 identities"),
        ("permitted", (rows["permitted"][0][0], "x", *rows["permitted"][0][2:]), "permitted: "),
        ("permitted", ("0" * 64, *rows["permitted"][0][1:]), "permitted: "),
    ]
    unnoticed = []
    for table, row, place in foreign:
        with undone(scene.forger):
            marks = ", ".join("?" * len(row))
            scene.forger.execute(f"insert into {table} values ({marks})", row)
            findings = verify_connection(scene.forger).findings
            if not any(place in finding for finding in findings):
                unnoticed.append((table, row, findings))
    assert unnoticed == []


@pytest.mark.parametrize("name", ["done", "open"])
def test_a_run_that_is_there_twice_is_found(scene: Scene, name: str) -> None:
    run, new = NUMBERS[name], len(PLANS) + 1
    for table in OWN:
        for row in scene.rows[table]:
            if row[0] == run:
                double = (new, "twice", *row[2:]) if table == "runs" else (new, *row[1:])
                marks = ", ".join("?" * len(row))
                scene.forger.execute(f"insert into {table} values ({marks})", double)
    scene.assert_found(f"run {new} (twice): the registration does not fit its hash")
    scene.forger.execute("update chains set count = ? where name = 'runs'", (new,))
    scene.assert_found(f"run {new} (twice): the registration does not fit its hash")


# --- who computes the chains anew ---------------------------------------------------------------


EVENTS_THAT_CANNOT_BE = {
    "a forbidden actor": (1, 2, "actor = 'operator'"),
    "a move from elsewhere": (1, 2, "event = 'confirm'"),
    "another state": (1, 2, "state = 'failed'"),
    "a missing ride": (11, 2, "coupled = ''"),
    "a run that goes on": (11, 2, "run_state = 'running'"),
    "an attempt too many": (1, 1, "attempt = 2"),
    "a later step": (1, 1, "step = 2"),
    "a later epoch": (1, 2, "epoch = 2"),
    "another writer": (1, 2, "writer = zeroblob(16)"),
    "no result": (1, 2, "payload = '{}'"),
}
"""Run, seq and what is set there."""


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S7")
@pytest.mark.parametrize("name", EVENTS_THAT_CANNOT_BE)
def test_an_event_that_cannot_be_is_found_though_every_hash_fits(scene: Scene, name: str) -> None:
    run, seq, change = EVENTS_THAT_CANNOT_BE[name]
    scene.forger.execute(f"update events set {change} where run = ? and seq = ?", (run, seq))
    reforge(scene.forger)
    scene.assert_found(f"run {run} ({list(PLANS)[run - 1]}), seq {seq}:")
    assert not any("does not fit its hash" in finding for finding in verify(scene.path).findings)


ROWS_THAT_CANNOT_BE = {
    "no object": ("events set payload = '[]' where run = 1 and seq = 1", "seq 1: the payload"),
    "a registrar who was not there": ("runs set writer = zeroblob(16) where run = 1", "run 1 ("),
    "another contract": ("steps set contract = 'opaque' where run = 1 and step = 1", "run 1 ("),
    "an adapter not pinned": ("steps set adapter = 'x@1' where run = 1 and step = 1", "run 1 ("),
    "a step too many": ("runs set steps = 5 where run = 1", "run 1 ("),
    "a step elsewhere": ("steps set step = 9 where run = 1 and step = 4", "run 1 ("),
    "a gap between runs": ("runs set run = 99 where run = 16", "runs"),
    "a gap between writers": ("writers set epoch = 99 where epoch = 5", "writers"),
    "a writer of another spec": ("writers set spec = 'x' where epoch = 5", "writers, epoch 5"),
}
"""What is updated, and the place that is found."""


@pytest.mark.invariant("S6")
@pytest.mark.parametrize("name", ROWS_THAT_CANNOT_BE)
def test_a_row_that_cannot_be_is_found_though_every_hash_fits(scene: Scene, name: str) -> None:
    change, place = ROWS_THAT_CANNOT_BE[name]
    scene.forger.execute(f"update {change}")
    assert scene.forger.changes() == 1
    reforge(scene.forger)
    scene.assert_found(place)
    assert not any("does not fit its hash" in finding for finding in verify(scene.path).findings)


def test_an_adoption_without_anything_else_is_found(scene: Scene) -> None:
    scene.forger.execute("delete from events where run = 10 and seq > 3")
    reforge(scene.forger)
    scene.assert_found("run 10 (cancelling), seq 3: an adopt")


FORGERIES = {
    "a result": 'update events set payload = \'{"result":"paid"}\' where run = 1 and seq = 2',
    "a time": "update events set wall_ns = 1 where run = 1 and seq = 2",
    "an argument": "update steps set arguments = '[1]' where run = 1 and step = 1",
    "the namespace": "update identity set namespace = 'other'",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forger_who_computes_all_anew_is_found_by_expected_heads_alone(
    scene: Scene, name: str
) -> None:
    """A chain without a key shows accidents: this is its limit."""
    scene.forger.execute(FORGERIES[name])
    assert scene.forger.changes()
    reforge(scene.forger)
    assert verify(scene.path).sound
    findings = verify(scene.path, expected=expected_of(scene.rows)).findings
    assert findings[0] == "run done, seq 9: another hash was expected"


def test_the_rows_of_writers_are_under_no_head_of_a_run(scene: Scene) -> None:
    """Their chain is their own: a forged one is not found by the heads of runs either."""
    scene.forger.execute("update writers set host = 'elsewhere' where epoch = 1")
    scene.assert_found("writers, epoch 1")
    reforge(scene.forger)
    assert verify(scene.path, expected=expected_of(scene.rows)).sound


def test_expected_heads_are_about_events_that_are_there(scene: Scene) -> None:
    head = expected_of(scene.rows)[0]
    earlier = ExpectedHead("done", 2, events_of(scene.rows, 1)[1].hash.hex().upper())
    assert verify(scene.path, expected=[head, earlier]).sound
    for wrong, finding in (
        (head._replace(run="nobody"), "run nobody: a head was expected, but there is no such run"),
        (head._replace(seq=10), "run done, seq 10: it was expected"),
        (head._replace(seq=0), "run done, seq 0: it was expected"),
        (head._replace(seq=8), "run done, seq 8: another hash was expected"),
        (head._replace(hash=""), "run done, seq 9: another hash was expected"),
    ):
        (found,) = verify(scene.path, expected=[wrong]).findings
        assert found.startswith(finding)
