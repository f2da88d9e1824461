"""What the database refuses from the stock `sqlite3` command with its default settings.

The shell plays somebody who knows everything that is in the file and writes rows by hand, with
foreign keys and recursive triggers off. Refused means that the shell reports an error of the
database's own, and that no row of any table has changed. Somebody who drops the triggers first is
another matter: that is for `verify` (test_tamper.py).
"""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from agent_replay.events import Event, Head, Registration, StepRow, Writer
from agent_replay.history import first_head
from agent_replay.lifecycles.coupling import MOVES_DIGEST, PERMITTED, Permitted
from agent_replay.lifecycles.run import TERMINAL, RunEvent, RunState
from agent_replay.lifecycles.step import TERMINAL as STEP_TERMINAL
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from agent_replay.store.database import Database
from agent_replay.store.verify import verify
from tests.outside import ManualClock
from tests.storage.histories import (
    FILLED,
    PLACES,
    Place,
    Rows,
    Value,
    add_run,
    altered,
    content,
    copy_of,
    every_head,
    every_kind,
    forger,
    name_of,
    names_of_columns,
)
from tests.storage.shell import VERBS, insert, literal, refusals, row_after, shell, values

pytestmark = pytest.mark.needs("sqlite3")

NO_SUCH_MOVE = "events: the lifecycle has no such move"
FENCED = "events: another writer holds the epoch"
UNADOPTED = "events: the run belongs to another epoch and must be adopted first"
NOT_NEXT = "events: seq must be the next one of its run"
NOT_OPEN = "events: not the open step of the run"

EVENTS: list[StepEvent | RunEvent] = [*StepEvent, *RunEvent]
OUTCOMES = {
    event.value: to.target.value
    for (_, _, event, _, _, _), to in PERMITTED.items()
    if isinstance(event, StepEvent) and to.target in STEP_TERMINAL
}
COUPLINGS = sorted({" ".join(to.coupled) for to in PERMITTED.values()})
OTHER_HASH = b"\x11" * 32
NAMES_OF_CHAINS = ("", "runs", "writers", "archived", "Runs", "other")


@pytest.fixture
def standing(tmp_path: Path) -> Path:
    """Give a database with a run at every place where a run can stand, by one writer."""
    return copy_of(every_head, tmp_path)


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """Give a database that the runtime made: runs in all states, and every kind of event."""
    return copy_of(every_kind, tmp_path)


def heads_of(rows: Rows) -> dict[Place, Head]:
    numbers = {row[1]: row[0] for row in rows["runs"]}
    heads = {row[0]: Head._make(row) for row in rows["heads"]}
    return {place: heads[numbers[name_of(place)]] for place in PLACES}


def writer_of(rows: Rows) -> bytes:
    """Return the writer that holds the database."""
    writer = rows["writers"][-1][1]
    assert isinstance(writer, bytes)
    return writer


def permitted_from(place: Place, head: Head, writer: bytes) -> Iterator[Event]:
    """Yield every row that may follow, adoptions aside."""
    for (contract, source, event, actor, run_state, last), to in PERMITTED.items():
        here = contract in (None, place.contract) and (source, run_state, last) == place[1:]
        if here and event is not RunEvent.ADOPT:
            yield row_after(head, event, actor, to, writer, of_step=contract is not None)


def all_permitted(rows: Rows) -> list[Event]:
    writer = writer_of(rows)
    heads = heads_of(rows)
    return [row for place in PLACES for row in permitted_from(place, heads[place], writer)]


def forbidden_from(place: Place, head: Head, writer: bytes) -> Iterator[Event]:
    """Yield a row for every event and actor that may not follow, with the step and without."""
    for event in EVENTS:
        leads_to = [to for key, to in PERMITTED.items() if key[2] is event]
        to = leads_to[0] if leads_to else Permitted(place.state, (), place.run_state)
        for actor in Actor:
            for contract in (place.contract, None):
                if (contract, place.state, event, actor, place.run_state, place.last) in PERMITTED:
                    continue
                yield row_after(head, event, actor, to, writer, of_step=contract is not None)


def inserts(rows: list[Event]) -> list[str]:
    return [insert("events", row) for row in rows]


def test_the_shell_is_one_with_default_settings(standing: Path) -> None:
    said = shell(standing, ["pragma foreign_keys;", "pragma recursive_triggers;"])
    assert said == (["0", "0"], {})


# --- moves --------------------------------------------------------------------------------------


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S5")
@pytest.mark.invariant("S13")
def test_no_other_move_is_taken_from_any_place(standing: Path) -> None:
    rows = content(standing)
    heads, writer = heads_of(rows), writer_of(rows)
    offers = [row for place in PLACES for row in forbidden_from(place, heads[place], writer)]
    mine = sum(1 for key in PERMITTED if key[0] is not None)
    of_runs = len(all_permitted(rows)) - mine
    adopted = [place for place in PLACES if place.run_state not in TERMINAL]
    assert len(offers) == len(PLACES) * len(EVENTS) * len(Actor) * 2 - mine - of_runs - len(adopted)
    messages = refusals(standing, inserts(offers))
    for offer, message in zip(offers, messages, strict=True):
        adopts = offer.event == RunEvent.ADOPT
        assert message == ("events: the run is adopted already" if adopts else NO_SUCH_MOVE)


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S9")
def test_every_permitted_move_is_taken(standing: Path) -> None:
    """Without this, a database that refuses everything would pass."""
    script, wanted = [], []
    for row in all_permitted(content(standing)):
        script += ["begin;", insert("events", row)]
        script += [f"select seq, run_state, attempt, state from heads where run = {row.run};"]
        script += ["rollback;"]
        opens = row.state == StepState.SUCCEEDED and not _is_last(row)
        attempt, state = ("0", "planned") if opens else (str(row.attempt), str(row.state))
        wanted.append((str(row.seq), row.run_state, attempt, state))
    said = shell(standing, script)
    assert said.complaints == {}
    for line, expected in zip(said.output, wanted, strict=True):
        got = line.split("|")
        assert got[:2] == list(expected[:2])
        if expected[3] != "None":  # else it is a move of the run, which leaves the step
            assert got[2:] == list(expected[2:])


def _is_last(row: Event) -> bool:
    return list(PLACES)[row.run - 1].last


WRONG: dict[str, list[Value]] = {
    "run": [None, 0, -1, 1_000_000],
    "event": [None, "", "REQUEST", "request ", "approve"],
    "coupled": [None, *COUPLINGS, "pause pause", "complete resume", "PAUSE"],
    "actor": [None, "", "nobody", "Runtime"],
    "step": [None, 0, 1, 2, 3],
    "attempt": [None, -1, 0, 1, 2, 3, 4],
    "state": [None, "", *(state.value for state in StepState)],
    "run_state": [None, "", *(state.value for state in RunState)],
    "epoch": [None, -1, 0, 2],
    "writer": [None, b"", bytes(16), b"\x11" * 17],
}
"""What each judged column of an event might hold instead; what is right is left out."""


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S7")
@pytest.mark.parametrize("column", WRONG)
def test_a_permitted_move_with_one_wrong_column_is_refused(standing: Path, column: str) -> None:
    offers = []
    for row in all_permitted(content(standing)):
        right = getattr(row, column)
        offers += [altered(row, **{column: value}) for value in WRONG[column] if value != right]
    refusals(standing, inserts(offers))


@pytest.mark.parametrize("verb", VERBS)
def test_no_number_is_skipped_or_used_again(standing: Path, verb: str) -> None:
    offers = []
    for row in {row.run: row for row in all_permitted(content(standing))}.values():
        numbers = [None, *range(row.seq), row.seq + 1, row.seq + 2, 2**62]
        offers += [altered(row, seq=number) for number in numbers]
    messages = refusals(standing, [insert("events", row, verb) for row in offers])
    assert set(messages) == {NOT_NEXT}


@pytest.mark.invariant("S5")
@pytest.mark.invariant("S13")
def test_no_step_gets_a_second_outcome(lived: Path) -> None:
    rows = content(lived)
    writer, epoch = writer_of(rows), len(rows["writers"])
    heads = {row[0]: Head._make(row) for row in rows["heads"]}
    settled = [
        Event._make(row) for row in rows["events"] if row[7] in ("succeeded", "failed", "abandoned")
    ]
    assert len({(row.state, row.event) for row in settled}) == 5
    offers = []
    for row in settled:
        head = heads[row.run]
        next_row = row._replace(seq=head.seq + 1, writer=writer, run_state=head.run_state)
        offers += [
            next_row._replace(epoch=at, event=event, actor=actor, state=state)
            for at in {epoch, head.epoch}
            for event, state in OUTCOMES.items()
            for actor in Actor
        ]
    refusals(lived, inserts(offers))


@pytest.mark.invariant("S15")
def test_only_the_open_step_moves(standing: Path) -> None:
    offers = []
    for row in all_permitted(content(standing)):
        if row.step is not None:
            offers += [row._replace(step=step) for step in (0, 1, 2, 3, -1) if step != row.step]
    assert set(refusals(standing, inserts(offers))) == {NOT_OPEN}


# --- writers ------------------------------------------------------------------------------------


@pytest.fixture
def taken_over(standing: Path) -> Path:
    """Give the database with a run at every place, after another writer has come."""
    with Database(standing, clock=ManualClock(), log_bytes=0) as database:
        add_run(database.store, "new", [Contract.OPAQUE], [(StepEvent.REQUEST, Actor.RUNTIME)])
    return standing


@pytest.mark.invariant("S7")
@pytest.mark.fault("B01")
def test_a_writer_that_was_replaced_changes_nothing(taken_over: Path) -> None:
    rows = content(taken_over)
    first = rows["writers"][0][1]
    assert isinstance(first, bytes)
    old = [row._replace(writer=first) for row in all_permitted(rows)]
    adopts = [row._replace(event="adopt", actor="recovery", epoch=2) for row in old]
    assert set(refusals(taken_over, inserts(old + adopts))) == {FENCED}
    run = Registration._make(rows["runs"][-1])._replace(run=len(PLACES) + 2, id="x", epoch=1)
    offers = [
        run._replace(writer=first),
        run._replace(writer=first, epoch=2),
        run._replace(epoch=1),
    ]
    messages = refusals(taken_over, [insert("runs", row) for row in offers])
    assert set(messages) == {"runs: another writer holds the epoch"}


@pytest.mark.invariant("S7")
def test_a_run_of_another_epoch_is_adopted_first(taken_over: Path) -> None:
    rows = content(taken_over)
    now = [row._replace(epoch=2) for row in all_permitted(rows)]
    assert set(refusals(taken_over, inserts(now))) == {UNADOPTED}
    heads, writer = heads_of(rows), writer_of(rows)
    right: list[Event] = []
    wrong: list[Event] = []
    for place, head in heads.items():
        to = Permitted(place.state, (), place.run_state)
        for actor in Actor:
            for of_step in (False, True):
                row = row_after(head, RunEvent.ADOPT, actor, to, writer, of_step=of_step, epoch=2)
                may = place.run_state not in TERMINAL and actor is Actor.RECOVERY and not of_step
                (right if may else wrong).append(row)
    assert set(refusals(taken_over, inserts(wrong))) == {NO_SUCH_MOVE}
    others = [row._replace(coupled=coupled) for row in right for coupled in COUPLINGS if coupled]
    others += [
        row._replace(run_state=state)
        for row in right
        for state in RunState
        if state != row.run_state
    ]
    refusals(taken_over, inserts(others))
    assert shell(taken_over, ["begin;", *inserts(right), "rollback;"]).complaints == {}
    again = [row._replace(seq=row.seq + 1) for row in right]
    with Database(taken_over, clock=ManualClock(), log_bytes=0) as database:
        for row in right:
            database.store.connection.execute(insert("events", row))
    assert set(refusals(taken_over, inserts(again))) == {"events: the run is adopted already"}


@pytest.mark.invariant("S7")
def test_no_writer_comes_out_of_turn_or_under_another_spec(lived: Path) -> None:
    last = Writer._make(content(lived)["writers"][-1])
    offers = [
        altered(last, epoch=epoch)
        for epoch in (None, -1, 0, 1, last.epoch - 1, last.epoch, last.epoch + 2, 2**62)
    ]
    offers += [last._replace(epoch=last.epoch + 1, spec=spec) for spec in ("", "0" * 64)]
    refusals(lived, [insert("writers", row, verb) for row in offers for verb in VERBS])
    right = insert("writers", last._replace(epoch=last.epoch + 1, writer=bytes(16)))
    assert shell(lived, ["begin;", right, "rollback;"]).complaints == {}


# --- rows that are there ------------------------------------------------------------------------


def _another(value: Value) -> Value:
    """Return another value of the same type."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value + 1
    return value + "x" if isinstance(value, str) else value + b"x"


KEY_COLUMNS = {"permitted": 7, "steps": 2, "events": 2}
"""How many columns are the key; of the others it is the first."""


@pytest.mark.invariant("S5")
@pytest.mark.parametrize("table", FILLED)
def test_no_row_is_replaced_or_written_over(lived: Path, table: str) -> None:
    """OR REPLACE deletes the row that is in the way, and no delete trigger fires for it."""
    rows = content(lived)[table]
    names = names_of_columns(lived, table)
    width = KEY_COLUMNS.get(table, 1)
    script = []
    for number, row in enumerate(rows):
        changed = (*row[:width], *map(_another, row[width:]))
        script += [insert(table, changed, verb) for verb in VERBS]
        script += [insert(table, row, "insert or replace into")]
        name = names[width + number % (len(names) - width)]
        plain = f"insert into {table} values {values(changed)} on conflict"
        script += [f"{plain} do nothing;", f"{plain} do update set {name} = excluded.{name};"]
    refusals(lived, script)


@pytest.mark.invariant("S5")
@pytest.mark.parametrize("table", FILLED)
def test_no_column_of_any_row_is_changed(lived: Path, table: str) -> None:
    rows = content(lived)[table]
    names = names_of_columns(lived, table)
    verbs = [
        verb.replace("insert", "update").replace(" into", "") for verb in VERBS if "insert" in verb
    ]
    script = []
    for position, name in enumerate(names):
        for verb in verbs:
            script.append(f"{verb} {table} set {name} = {name};")
            script.append(f"{verb} {table} set {name} = {literal(_another(rows[0][position]))};")
        for row in (rows[0], rows[-1]):
            where = " and ".join(f"{n} is {literal(v)}" for n, v in zip(names, row, strict=True))
            other = literal(_another(row[position]))
            script.append(f"update {table} set {name} = {other} where {where};")
            script.append(f"update {table} set {name} = null where {where};")
    refusals(lived, script)


def test_a_head_or_a_chain_is_not_moved_by_hand(lived: Path) -> None:
    rows = content(lived)
    script = []
    for head in [Head._make(row) for row in rows["heads"]]:
        hashes = [row[-1] for row in rows["events"] if row[0] == head.run] + [OTHER_HASH]
        script += [
            f"update heads set seq = {seq}, hash = {literal(link)} where run = {head.run};"
            for seq in range(head.seq + 3)
            for link in hashes
        ]
    for name, table in (("runs", "runs"), ("writers", "writers"), ("archived", "runs")):
        script += [
            f"update chains set count = {count}, hash = {literal(row[-1])} where name = '{name}';"
            for count in range(len(rows[table]) + 3)
            for row in rows[table]
        ]
    refusals(lived, script)


@pytest.mark.parametrize("table", FILLED)
def test_no_row_is_deleted(lived: Path, table: str) -> None:
    key = names_of_columns(lived, table)[0]
    script = [
        f"delete from {table};",
        f"delete from {table} where true;",
        f"delete from {table} where {key} = (select max({key}) from {table});",
        f"with doomed as (select {key} from {table}) delete from {table} where {key} in doomed;",
        f"delete from {table} returning *;",
    ]
    refusals(lived, script)


# --- rows that are not there yet ----------------------------------------------------------------


@pytest.mark.invariant("S6")
@pytest.mark.parametrize("verb", VERBS)
def test_no_move_is_added_to_those_that_are_permitted(lived: Path, verb: str) -> None:
    rows = content(lived)["permitted"]
    width = KEY_COLUMNS["permitted"]
    offers: list[tuple[Value, ...]] = []
    for row in rows:
        offers += [
            (*row[:position], _another(row[position]), *row[position + 1 :])
            for position in range(width)
        ]
    refusals(lived, [insert("permitted", row, verb) for row in offers])


@pytest.mark.parametrize("verb", VERBS)
def test_there_is_one_identity_one_head_for_a_run_and_three_chains(lived: Path, verb: str) -> None:
    rows = content(lived)
    (identity,) = rows["identity"]
    head = rows["heads"][-1]
    run, others = head[0], head[1:]
    assert isinstance(run, int)
    fresh = (run, 0, rows["runs"][-1][-1], "running", 1, "planned", 0, 5, 3)
    offers: list[tuple[str, tuple[Value, ...]]] = [
        *(("identity", (one, *identity[1:])) for one in (None, 0, 1, 2)),
        *(("heads", (number, *others)) for number in (None, -1, 0, run, run + 1)),
        *(("heads", (number, *fresh[1:])) for number in (run, run + 1)),
        *(
            ("chains", (name, 0, bytes(32)))
            for name in ("", "runs", "writers", "archived", "Runs", "other")
        ),
    ]
    refusals(lived, [insert(table, row, verb) for table, row in offers])


@pytest.fixture
def next_run(lived: Path) -> Registration:
    """Give the registration that could come next."""
    rows = content(lived)
    last = Registration._make(rows["runs"][-1])
    epoch = len(rows["writers"])
    return last._replace(run=last.run + 1, id="next", epoch=epoch, writer=writer_of(rows), steps=2)


@pytest.mark.invariant("S13")
@pytest.mark.fault("C05")
@pytest.mark.parametrize("verb", VERBS)
def test_a_run_is_registered_once_and_in_order(
    lived: Path, next_run: Registration, verb: str
) -> None:
    assert shell(lived, ["begin;", insert("runs", next_run, verb), "rollback;"]).complaints == {}
    used = [row[1] for row in content(lived)["runs"]]
    offers = [next_run._replace(id=str(name)) for name in used]
    assert set(refusals(lived, [insert("runs", row, verb) for row in offers])) == {
        "runs: the id is in use"
    }
    numbers = [None, -1, *range(next_run.run), next_run.run + 1, next_run.run + 2, 2**62]
    offers = [altered(next_run, run=number) for number in numbers]
    assert set(refusals(lived, [insert("runs", row, verb) for row in offers])) == {
        "runs: the number must be the next one"
    }
    offers = [altered(next_run, epoch=epoch) for epoch in (None, 0, 1, next_run.epoch + 1)]
    offers += [next_run._replace(writer=writer) for writer in (b"", bytes(16))]
    refusals(lived, [insert("runs", row, verb) for row in offers])


@pytest.mark.invariant("S13")
@pytest.mark.parametrize("verb", VERBS)
def test_no_step_is_added_to_a_run(lived: Path, verb: str) -> None:
    rows = content(lived)
    offers = []
    for row in rows["steps"]:
        step = StepRow._make(row)
        offers += [altered(step, step=number, id="more") for number in (None, 0, -1, 1, 2, 3, 4, 5)]
        offers += [altered(step, run=number) for number in (None, 0, -1, 1_000)]
    refusals(lived, [insert("steps", row, verb) for row in offers])


@pytest.mark.invariant("S13")
def test_a_plan_is_written_in_order_and_whole_before_the_first_event(
    lived: Path, next_run: Registration
) -> None:
    step = StepRow._make(content(lived)["steps"][-1])._replace(run=next_run.run)
    one, two = step._replace(step=1, id="a"), step._replace(step=2, id="b")
    head = first_head(next_run)
    to = Permitted(StepState.REQUESTED, (), RunState.RUNNING)
    request = row_after(head, StepEvent.REQUEST, Actor.RUNTIME, to, next_run.writer, of_step=True)
    register = insert("runs", next_run)
    first, second, sent = insert("steps", one), insert("steps", two), insert("events", request)
    whole = ["begin;", register, first, second, sent, "rollback;"]
    assert shell(lived, whole).complaints == {}
    for bad, before in (
        (sent, []),
        (sent, [first]),
        (second, []),
        (first, [first]),
        (insert("steps", two._replace(step=3)), [first]),
        (insert("steps", two._replace(step=3)), [first, second]),
        (insert("steps", one._replace(contract="")), []),
        (insert("steps", one._replace(contract="exactly_once")), []),
        (insert("steps", two._replace(run=next_run.run - 1)), [first]),
        (second, [first, second, sent]),
    ):
        script = ["begin;", register, *before, bad, "rollback;"]
        assert list(shell(lived, script).complaints) == [len(script) - 1], bad


# --- more rows at once, and other ways in -------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_stays_of_rows_of_which_one_is_bad(standing: Path, verb: str) -> None:
    rows = all_permitted(content(standing))
    script = []
    for row, other in pairwise(rows):
        bad = row._replace(payload="{}")
        script += [f"{verb} events values {values(row)}, {values(bad)};"]
        if other.run != row.run:
            wrong = other._replace(actor="nobody")
            script += [f"{verb} events values {values(row)}, {values(wrong)};"]
    refusals(standing, script)


def _selected(columns: tuple[str, ...], **others: str) -> str:
    return ", ".join(others.get(name, name) for name in columns)


@pytest.mark.parametrize("verb", VERBS)
def test_a_select_inserts_no_more_than_values_do(lived: Path, verb: str) -> None:
    settled = {
        "seq": "heads.seq + 1",
        "event": "'acknowledge'",
        "coupled": "'complete'",
        "state": "'succeeded'",
        "run_state": "'completed'",
    }
    ending = _selected(
        Event._fields, **settled, run="run", epoch="epoch", hash="heads.hash", step="heads.step"
    )
    script = [f"{verb} {table} select * from {table};" for table in FILLED]
    script += [
        f"{verb} events select {_selected(Event._fields, seq='seq + 1')} from events;",
        f"{verb} events select {_selected(Event._fields, seq='seq + 100')} from events;",
        f"{verb} events select {_selected(Event._fields, run='17 - run')} from events;",
        f"{verb} events select {ending.replace('attempt', 'heads.attempt')} from heads "
        "join events using (run, epoch);",
        f"{verb} steps select {_selected(StepRow._fields, step='step + 1')} from steps;",
        f"{verb} runs select {_selected(Registration._fields, run='run + 16')} from runs;",
        f"{verb} writers select {_selected(Writer._fields, epoch='epoch + 4')} from writers;",
    ]
    refusals(lived, script)


def test_a_later_commit_makes_nothing_good(standing: Path) -> None:
    rows = all_permitted(content(standing))
    bad = [insert("events", row._replace(seq=row.seq + 1)) for row in rows]
    before = content(standing)
    script = []
    for statement in bad:
        script += ["begin;", statement, "commit;", "savepoint s;", statement, "release s;"]
    said = shell(standing, script)
    assert len(said.complaints) == 2 * len(bad)
    assert content(standing) == before


def test_an_attached_database_refuses_the_same(standing: Path, tmp_path: Path) -> None:
    row = all_permitted(content(standing))[0]
    before = content(standing)
    script = [
        f"attach {literal(str(standing))} as other;",
        insert("other.events", row._replace(seq=row.seq + 1)),
        insert("other.events", row._replace(state="succeeded")),
        "update other.events set payload = '';",
        "delete from other.runs;",
        "replace into other.writers select * from other.writers;",
    ]
    said = shell(tmp_path / "empty.db", script)
    assert list(said.complaints) == [2, 3, 4, 5, 6]
    assert content(standing) == before


def right_row(rows: Rows, epoch: int | None = None) -> Event:
    """Return the row that answers the one open request of a database that has lived."""
    (head,) = [Head._make(row) for row in rows["heads"] if row[3] == "running"]
    to = Permitted(StepState.SUCCEEDED, (), RunState.RUNNING)
    event, actor = StepEvent.ACKNOWLEDGE, Actor.RUNTIME
    return row_after(head, event, actor, to, writer_of(rows), of_step=True, epoch=epoch)


def test_a_column_takes_its_own_type_only(lived: Path, next_run: Registration) -> None:
    before = content(lived)
    writer = Writer._make(before["writers"][-1])._replace(epoch=next_run.epoch + 1)
    right: dict[str, tuple[Value, ...]] = {
        "events": right_row(before),
        "runs": next_run,
        "writers": writer,
    }
    script = []
    for table, row in right.items():
        assert shell(lived, ["begin;", insert(table, row), "rollback;"]).complaints == {}
        for position, value in enumerate(row):
            bad = (
                [b"\xff", None] if isinstance(value, int | str) else ["text", b"", bytes(33), None]
            )
            script += [insert(table, (*row[:position], v, *row[position + 1 :])) for v in bad]
    said = shell(lived, script)
    assert len(said.complaints) == len(script)
    assert content(lived) == before


@pytest.mark.invariant("S6")
def test_a_move_of_another_spec_permits_nothing(lived: Path, next_run: Registration) -> None:
    """An upgraded database would keep the moves under which its old rows were written."""
    foreign = ("0" * 64, "idempotent", "requested", "confirm", "runtime", "running", 0)
    with forger(lived) as connection:
        for row in (foreign, (foreign[0], "exactly_once", *foreign[2:])):
            statement = insert("permitted", (*row, "succeeded", "", "running"))
            connection.execute(statement)
    rows = content(lived)
    offer = insert("events", right_row(rows)._replace(event="confirm"))
    assert refusals(lived, [offer]) == [NO_SUCH_MOVE]
    step = StepRow._make(rows["steps"][-1])
    step = step._replace(run=next_run.run, step=1, contract="exactly_once")
    script = ["begin;", insert("runs", next_run), insert("steps", step), "rollback;"]
    assert list(shell(lived, script).complaints) == [3]


# --- what is not refused, and who else is -------------------------------------------------------


@pytest.mark.invariant("S9")
@pytest.mark.fault("H01")
def test_a_row_that_the_shell_may_append_is_named_by_verify(lived: Path) -> None:
    """The database judges moves and not hashes, which SQL cannot compute."""
    assert verify(lived).sound
    rows = content(lived)
    row = right_row(rows)
    assert shell(lived, [insert("events", row)]).complaints == {}
    after = content(lived)
    assert after["events"] == [*rows["events"], row]
    (head,) = [Head._make(head) for head in after["heads"] if head[0] == row.run]
    assert (head.seq, head.step, head.state) == (row.seq, 3, "planned")
    (finding,) = verify(lived).findings
    assert finding.startswith(f"run {row.run} (open), seq {row.seq}: the row does not fit its hash")


def _wrong_statements(rows: Rows) -> dict[str, str]:
    right = right_row(rows)
    completes = (MOVES_DIGEST, "", "planned", "complete", "runtime", "running", 0)
    return {
        "a gap": insert("events", right._replace(seq=right.seq + 1)),
        "a second time": insert("events", right._replace(seq=right.seq - 1), "replace into"),
        "a forbidden move": insert("events", right._replace(event="confirm")),
        "a wrong state": insert("events", right._replace(state="failed")),
        "a wrong coupling": insert("events", right._replace(coupled="complete")),
        "another writer": insert("events", right._replace(writer=bytes(16))),
        "a former epoch": insert("events", right._replace(epoch=right.epoch - 1)),
        "an update": "update events set payload = '{}' where run = 1 and seq = 1;",
        "a delete": "delete from events where run = 1 and seq = 1;",
        "a deleted run": "delete from runs where run = 1;",
        "a used id": "replace into runs select * from runs where run = 1;",
        "a changed head": "update heads set run_state = 'completed' where run = 1;",
        "a new move": insert("permitted", (*completes, "planned", "", "completed")),
        "a new identity": "update identity set namespace = 'x';",
    }


@pytest.mark.invariant("S6")
def test_the_runtimes_own_connection_is_refused_the_same(lived: Path) -> None:
    before = content(lived)
    with Database(lived, clock=ManualClock(), log_bytes=0) as database:
        connection = database.store.connection
        for name, statement in _wrong_statements(before).items():
            with pytest.raises(apsw.ConstraintError, match=r"^[a-z]+: "):
                connection.execute(statement)
            assert content(lived) == before, name


@pytest.mark.invariant("S6")
def test_a_living_writer_is_not_disturbed(lived: Path) -> None:
    rows = content(lived)
    with Database(lived, clock=ManualClock(), log_bytes=0) as database:
        refusals(lived, _wrong_statements(rows).values())
        add_run(database.store, "new", [Contract.OPAQUE], [(StepEvent.REQUEST, Actor.RUNTIME)])
        refusals(lived, _wrong_statements(rows).values())
    assert verify(lived).sound
