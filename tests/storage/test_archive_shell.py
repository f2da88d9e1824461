"""What the database refuses about archived runs, from the stock `sqlite3` command."""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from agent_replay.events import Event, Head, Registration, StepRow
from agent_replay.history import first_head
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.store.archive.record import ArchivedRow
from agent_replay.store.verify import verify
from tests.outside import plan_of
from tests.storage.archives import copy_with_archives, opened, rows_of_archived
from tests.storage.histories import (
    Row,
    Value,
    altered,
    content,
    copy_of,
    every_kind,
    names_of_columns,
)
from tests.storage.shell import VERBS, insert, literal, refusals, shell

pytestmark = pytest.mark.needs("sqlite3")

OF_A_RUN = ("events", "steps", "heads")
NOT_ENDED = "archived: the run has not ended as the row says"


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    return copy_of(every_kind, tmp_path)


@pytest.fixture
def archived(tmp_path: Path) -> Path:
    return copy_with_archives(tmp_path)


def right_rows(path: Path) -> list[ArchivedRow]:
    """Return a row for each run, as it could be if the run has ended."""
    rows = content(path)
    plans = {row[0]: str(row[2]) for row in rows["runs"]}
    epoch, writer = rows["writers"][-1][:2]
    assert isinstance(epoch, int)
    assert isinstance(writer, bytes)
    return [
        ArchivedRow(
            run=head.run,
            number=1,
            plan=plans[head.run],
            run_state=head.run_state,
            seq=head.seq,
            head=head.hash,
            file="x",
            file_digest=bytes(32),
            epoch=epoch,
            writer=writer,
            archived_ns=1,
            hash=bytes(32),
        )
        for head in map(Head._make, rows["heads"])
    ]


def deleting(run: Value) -> list[str]:
    return [f"delete from {table} where run = {literal(run)};" for table in OF_A_RUN]


@pytest.mark.invariant("S5")
@pytest.mark.invariant("S16")
def test_rows_are_deleted_only_of_a_run_that_is_archived(lived: Path) -> None:
    rows = right_rows(lived)
    refusals(lived, [statement for row in rows for statement in deleting(row.run)])
    ended = [row for row in rows if row.run_state in TERMINAL]
    assert len(ended) > 5
    for row, other in zip(ended, [*ended[1:], ended[0]], strict=True):
        before = ["begin;", insert("archived", row)]
        assert shell(lived, [*before, *deleting(row.run), "rollback;"]).complaints == {}
        refused = shell(lived, [*before, *deleting(other.run), "rollback;"]).complaints
        assert list(refused) == [3, 4, 5]
        assert all("is never deleted unless it is archived" in said for said in refused.values())
        whole = shell(lived, [*before, *(f"delete from {t};" for t in OF_A_RUN), "rollback;"])
        assert list(whole.complaints) == [3, 4, 5]


@pytest.mark.invariant("S16")
@pytest.mark.parametrize("verb", VERBS)
def test_only_a_run_that_has_ended_as_the_row_says_is_archived(lived: Path, verb: str) -> None:
    rows = right_rows(lived)
    unfinished = [row for row in rows if row.run_state not in TERMINAL]
    assert {row.run_state for row in unfinished} == {"running", "paused", "cancelling"}
    offers = unfinished + [
        row._replace(run_state=str(state)) for row in unfinished for state in TERMINAL
    ]
    ended = [row for row in rows if row.run_state in TERMINAL]
    for row in ended:
        offers += [altered(row, seq=seq) for seq in (0, -1, row.seq - 1, row.seq + 1)]
        offers += [altered(row, head=head) for head in (bytes(32), b"", ended[0].hash)]
        offers += [
            altered(row, run_state=state)
            for state in (*TERMINAL, "running", "")
            if state != row.run_state
        ]
        offers += [altered(row, plan=plan) for plan in ("", "0" * 64)]
        offers += [altered(row, run=run) for run in (0, -1, 99)]
    messages = refusals(lived, [insert("archived", row, verb) for row in offers])
    assert set(messages) == {NOT_ENDED}
    if "ignore" in verb:
        return  # it takes no row that a column refuses either, and says nothing
    strange = [altered(row, **{name: None}) for row in ended for name in ArchivedRow._fields]
    strange += [altered(row, file_digest=b"x") for row in ended]
    strange += [altered(row, hash=b"x") for row in ended]
    refusals(lived, [insert("archived", row, verb) for row in strange])


@pytest.mark.invariant("S7")
@pytest.mark.parametrize("verb", VERBS)
def test_archived_runs_are_numbered_and_written_by_the_writer_that_holds_the_database(
    archived: Path, verb: str
) -> None:
    with opened(archived) as runtime:
        for number in range(2):
            runtime.run(f"new-{number}", LOOK)
        runtime.archive(["new-0"])
    row = next(row for row in right_rows(archived) if row.run_state in TERMINAL)
    count = len(content(archived)["archived"])
    row = row._replace(number=count + 1)
    once = ["begin;", insert("archived", row, verb)]
    assert shell(archived, [*once, "rollback;"]).complaints == {}
    again = row._replace(number=count + 2)
    assert shell(archived, [*once, insert("archived", again, verb), "rollback;"]).complaints == {
        3: "archived: the run is archived already"
    }
    offers = [altered(row, number=number) for number in (None, 0, 1, count, count + 2, 2**62)]
    assert set(refusals(archived, [insert("archived", o, verb) for o in offers])) == {
        "archived: the number must be the next one"
    }
    offers = [altered(row, epoch=epoch) for epoch in (1, row.epoch - 1, row.epoch + 1)]
    offers += [altered(row, writer=writer) for writer in (b"", bytes(16))]
    writers = content(archived)["writers"][:-1]
    offers += [altered(row, epoch=epoch, writer=writer) for epoch, writer, *_ in writers]
    assert set(refusals(archived, [insert("archived", o, verb) for o in offers])) == {
        "archived: another writer holds the epoch"
    }


LOOK = plan_of(("a", "look"))


def _other(value: Value) -> Value:
    if isinstance(value, int):
        return value + 1
    return value + "x" if isinstance(value, str) else bytes(reversed(value or b""))


@pytest.mark.invariant("S16")
def test_where_a_run_is_kept_is_never_changed_or_deleted(archived: Path) -> None:
    rows: list[Row] = list(rows_of_archived(archived))
    names = names_of_columns(archived, "archived")
    script = ["delete from archived;", "delete from archived where run = 1 returning *;"]
    for row in rows:
        changed = (row[0], *map(_other, row[1:]))
        for verb in VERBS:
            script += [insert("archived", changed, verb), insert("archived", row, verb)]
        for name, value in zip(names, row, strict=True):
            where = f"where run = {literal(row[0])}"
            script += [
                f"update archived set {name} = {literal(_other(value))} {where};",
                f"update or replace archived set {name} = {name} {where};",
            ]
        script.append(f"delete from archived where run = {literal(row[0])};")
        plain = insert("archived", row).removesuffix(";")
        script += [
            f"{plain} on conflict do nothing;",
            f"{plain} on conflict do update set file='';",
        ]
    refusals(archived, script)


@pytest.mark.invariant("S5")
@pytest.mark.invariant("S16")
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_put_back_or_added_to_an_archived_run(tmp_path: Path, verb: str) -> None:
    """Least of all to the last one that was registered, whose head and plan came last."""
    path = copy_of(every_kind, tmp_path)
    with opened(path) as runtime:
        runtime.run("last", LOOK)
        before = content(path)
        runtime.archive()
    gone = {row.run for row in rows_of_archived(path)}
    assert before["runs"][-1][0] in gone
    script = []
    for table in OF_A_RUN:
        script += [insert(table, row, verb) for row in before[table] if row[0] in gone]
    for row in [row for row in before["runs"] if row[0] in gone]:
        fresh = first_head(Registration._make(row))
        script += [insert("heads", fresh._replace(epoch=epoch), verb) for epoch in (1, 5, 6)]
        script.append(insert("runs", row, verb))
        script.append(f"delete from runs where run = {literal(row[0])};")
    for row in before["events"]:
        event = Event._make(row)
        if event.run in gone:
            script.append(insert("events", event._replace(seq=event.seq + 1), verb))
            script.append(insert("events", event._replace(seq=1), verb))
    for row in before["steps"]:
        script.append(insert("steps", StepRow._make(row)._replace(step=1), verb))
    refusals(path, script)
    assert verify(path).sound


def test_a_row_that_leaves_the_rows_of_its_run_is_named(lived: Path) -> None:
    """A shell may say that a run is archived; it can't compute the hash, and no file is there."""
    row = next(row for row in right_rows(lived) if row.run_state in TERMINAL)
    assert shell(lived, [insert("archived", row)]).complaints == {}
    verdict = verify(lived)
    assert any("rows of it are left in events" in finding for finding in verdict.findings)
    assert any("does not fit its hash" in finding for finding in verdict.findings)
    assert len(verdict.missing) == 1


def test_the_runtimes_own_connection_is_refused_the_same(lived: Path) -> None:
    before = content(lived)
    with opened(lived) as runtime:
        connection = runtime._store.connection
        for statement in deleting(1):
            with pytest.raises(apsw.ConstraintError, match="is never deleted unless"):
                connection.execute(statement)
    assert content(lived) == before
