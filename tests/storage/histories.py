"""Databases with histories of every kind, and the means of a forger.

`every_kind` is written by the runtime: each kind of event that may exist is in it at least once.
`every_head` is written by the store: there is one run for each place where a run can stand. A
forger opens a copy with triggers and checks off, and may compute the chains anew (`reforge`).
"""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import apsw
import pytest

from agent_replay import Evidence, Outcome, Runtime
from agent_replay.chain import event_link, identity_link, registration_link, writer_link
from agent_replay.events import Event, Head, Registration, StepRow, Writer
from agent_replay.history import RunHistory, first_head, next_head
from agent_replay.keys import idempotency_key
from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from agent_replay.live import LiveRun
from agent_replay.plan import Step, plan_digest
from agent_replay.store.archive.record import ArchivedRow, archived_by_number, archived_link
from agent_replay.store.database import Database
from agent_replay.store.writer import Store
from tests.outside import SETTLES_SECONDS, Ledger, ManualClock, plan_of, tools

FILLED = ("identity", "permitted", "writers", "runs", "steps", "events", "heads", "chains")
"""The tables that hold rows in the databases made here."""
TABLES = (*FILLED, "archived")

Value = str | int | bytes | None
Row = tuple[Value, ...]
Rows = dict[str, list[Row]]
Record = TypeVar("Record", Event, Head, Registration, StepRow, Writer, ArchivedRow)

# --- a runtime's database, with every kind of event ---------------------------------------------


def open_runtime(path: Path, ledger: Ledger, clock: ManualClock, attempts_max: int = 3) -> Runtime:
    return Runtime(
        path, adapters=tools(ledger), clock=clock, attempts_max=attempts_max, log_bytes=0
    )


def evidence_of(outcome: Outcome) -> Evidence:
    (doubt,) = outcome.in_doubt
    return Evidence(
        run=outcome.run,
        step=doubt.step,
        attempt=doubt.attempt,
        key=doubt.key,
        kind="ledger",
        content={"line": 7},
        who="ada",
        why="looked it up",
        no_request_can_land=True,
    )


PLANS = {
    "done": plan_of(
        ("a", "look"), ("b", "keyed", {"do": ["unsent", "ok"]}), ("c", "dark"), ("d", "windowed")
    ),
    "died": plan_of(("a", "keyed", {"do": ["interrupt", "ok"]}), ("b", "look")),
    "refused": plan_of(("a", "look"), ("b", "dark", {"do": ["refuse"]}), ("c", "look")),
    "looked-up": plan_of(("a", "asked", {"do": ["lost"]}), ("b", "look")),
    "absent": plan_of(("e", "asked", {"do": ["unsent", "ok"]})),
    "found": plan_of(("a", "dark", {"do": ["interrupt"]})),
    "never": plan_of(("a", "dark", {"do": ["unsent", "ok"]})),
    "closed": plan_of(("a", "dark", {"do": ["lost"]})),
    "cancelled": plan_of(("a", "dark", {"do": ["lost"]}), ("b", "look")),
    "cancelling": plan_of(("a", "dark", {"do": ["lost"]}), ("b", "look")),
    "paused": plan_of(("a", "dark", {"do": ["lost"]}), ("b", "look")),
    "gave-up": plan_of(("a", "look", {"do": ["interrupt"]}), ("b", "look")),
    "exhausted": plan_of(("f", "asked", {"do": ["unsent"]})),
    "exhausted-later": plan_of(("g", "asked", {"do": ["unsent"]})),
    "granted": plan_of(("a", "keyed", {"do": ["lost", "ok"]})),
    "open": plan_of(("a", "look"), ("b", "keyed", {"do": ["interrupt"]}), ("c", "look")),
}
"""The plan of each run in `every_kind`, in the order of their numbers. The ledger goes by step ids,
so steps that a probe must not find are called as no other."""

_ONE_ATTEMPT = ("gave-up", "exhausted", "exhausted-later", "granted")


def every_kind(path: Path) -> None:
    """Make a database in which each kind of event occurs, written by four writers."""
    ledger, clock = Ledger(), ManualClock()
    _start(path, ledger, clock, [name for name in PLANS if name not in (*_ONE_ATTEMPT, "open")], 3)
    _start(path, ledger, clock, _ONE_ATTEMPT, 1)
    clock.pass_by(SETTLES_SECONDS + 1)
    with Database(path, clock=clock, log_bytes=0) as database:
        live = LiveRun(database.store, database.store.read("exhausted-later"), clock, None)
        live.draft(StepEvent.REFUTE, Actor.PROBE, '{"why":"probe_absent"}')
        live.commit()
    with open_runtime(path, ledger, clock) as runtime:
        _go_on(runtime)
    _start(path, ledger, clock, ["open"], 3)


def _start(
    path: Path, ledger: Ledger, clock: ManualClock, names: Sequence[str], attempts_max: int
) -> None:
    with open_runtime(path, ledger, clock, attempts_max) as runtime:
        for name in names:
            clock.pass_by(1)
            if "interrupt" in str(PLANS[name]):
                with pytest.raises(KeyboardInterrupt):
                    runtime.run(name, PLANS[name])
            else:
                runtime.run(name, PLANS[name])


def _go_on(runtime: Runtime) -> None:
    """Let a new writer and a person do what each run that stopped is owed."""
    for name in ("died", "gave-up", "absent", "exhausted", "exhausted-later"):
        runtime.resume(name)
    runtime.confirm(evidence_of(runtime.resume("found")), result={"line": 7})
    runtime.refute(evidence_of(runtime.resume("never")))
    runtime.resume("never")
    runtime.abandon(evidence_of(runtime.outcome("closed")))
    runtime.resend(evidence_of(runtime.outcome("granted")))
    for name in ("cancelled", "cancelling"):
        runtime.cancel(name, who="ada", why="not wanted")
    runtime.confirm(evidence_of(runtime.outcome("cancelled")), result=None)


KINDS = sorted({(event.value, actor.value) for _, _, event, actor, _, _ in PERMITTED})
"""The kinds of event that there are: what happened, and who made it happen."""


# --- a store's database, with a run at every place ----------------------------------------------


class Place(NamedTuple):
    """Where a run can stand."""

    contract: Contract
    state: StepState
    run_state: RunState
    last: bool


Move = tuple[StepEvent | RunEvent, Actor]
Moves = tuple[Move, ...]

ANSWERED: Moves = (
    (StepEvent.REQUEST, Actor.RUNTIME),
    (StepEvent.ACKNOWLEDGE, Actor.RUNTIME),
)


def places() -> dict[Place, Moves]:
    """Return where the permitted moves lead to, each place with moves that lead there."""
    found: dict[Place, Moves] = {}
    todo: list[tuple[Place, Moves]] = [
        (Place(contract, StepState.PLANNED, RunState.RUNNING, last), ())
        for contract in Contract
        for last in (False, True)
    ]
    for place, moves in todo:  # which grows
        moved_on = place.state is StepState.SUCCEEDED and place.run_state is RunState.RUNNING
        if place in found or moved_on:
            continue
        found[place] = moves
        for (contract, source, event, actor, run_state, last), to in PERMITTED.items():
            here = contract in (None, place.contract) and (source, run_state, last) == place[1:]
            if here and event is not RunEvent.ADOPT:
                reached = place._replace(state=to.target, run_state=to.run_target)
                todo.append((reached, (*moves, (event, actor))))
    return found


PLACES = places()


def name_of(place: Place) -> str:
    """Return the id of the run at a place."""
    where = "last" if place.last else "more"
    return f"{place.contract}-{place.state}-{place.run_state}-{where}"


def every_head(path: Path) -> None:
    """Make a database with a run of two steps at every place, all by one writer."""
    with Database(path, clock=ManualClock(), log_bytes=0) as database:
        for place, moves in PLACES.items():
            before = ANSWERED if place.last else ()
            add_run(database.store, name_of(place), [place.contract] * 2, (*before, *moves))


def add_run(
    store: Store, run_id: str, contracts: Sequence[Contract], moves: Sequence[Move]
) -> Registration:
    """Register a run, and make these moves of it in the same transaction."""
    steps = [
        Step(id=f"s{n}", adapter=str(contract), version="1", contract=contract, arguments_text="{}")
        for n, contract in enumerate(contracts, start=1)
    ]
    pinned = ",".join(f'"{name}@1":{{"contract":"{name}"}}' for name in sorted(set(contracts)))
    unnumbered = Registration(
        run=0,
        id=run_id,
        plan=plan_digest(steps),
        steps=len(steps),
        attempts_max=3,
        adapters=f"{{{pinned}}}",
        hint="",
        epoch=0,
        writer=b"",
        wall_ns=1,
        boot_ns=1,
        hash=b"",
    )
    rows = [
        StepRow(
            run=0,
            step=number,
            id=step.id,
            adapter=f"{step.adapter}@1",
            contract=str(step.contract),
            arguments="{}",
            key=idempotency_key(store.identity.namespace, run_id, step.id, step.adapter, "{}"),
        )
        for number, step in enumerate(steps, start=1)
    ]
    history, _ = store.register(unnumbered, rows, lambda history: _made(store, history, moves))
    return history.registration


def _made(store: Store, history: RunHistory, moves: Sequence[Move]) -> list[Event]:
    head = history.head
    now = ManualClock().read()
    events = []
    for event, actor in moves:
        contract = Contract(history.steps[head.step - 1].contract)
        of_step = contract if isinstance(event, StepEvent) else None
        row = store.next_event(head, of_step, event, actor, payload='{"result":null}', now=now)
        events.append(row)
        head = next_head(head, row)
    return events


# --- looking and forging ------------------------------------------------------------------------


def rows_of(connection: apsw.Connection) -> Rows:
    """Return every row of every table."""
    return {table: list(connection.execute(f"select * from {table}")) for table in TABLES}


def fingerprint(connection: apsw.Connection) -> list[tuple[str, ...]]:
    """Return every row that a writer could have added, in hex, whatever bytes are in it."""
    found: list[tuple[str, ...]] = []
    for table in ("writers", "runs", "steps", "events", "heads", "chains", "archived"):
        names = ", ".join(f"hex({name})" for name, _ in columns(connection, table))
        found += connection.execute(f"select '{table}', {names} from {table}")
    return found


@functools.cache
def _image(make: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        make(path)
        return path.read_bytes()  # it is closed, so nothing is in the log alone


def copy_of(make: Callable[[Path], None], folder: Path) -> Path:
    """Return a fresh copy of a database that `every_kind`, say, has made once for this process."""
    path = folder / "runs.db"
    path.write_bytes(_image(make))
    return path


def content(path: Path) -> Rows:
    """Return every row of a database, read by a plain SQLite."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return rows_of(connection)


def altered(record: Record, **values: Value) -> Record:
    """Return a record with other values in some columns, whatever their types."""
    return type(record)._make({**record._asdict(), **values}.values())


def names_of_columns(path: Path, table: str) -> list[str]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return [name for name, _ in columns(connection, table)]


def columns(connection: apsw.Connection, table: str) -> list[tuple[str, str]]:
    """Return name and type of each column."""
    return [(row[1], row[2]) for row in connection.execute(f"pragma table_info({table})")]


@contextmanager
def forger(path: Path) -> Iterator[apsw.Connection]:
    """Give a connection that may do anything with a database, and leaves its schema as it is."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.pragma("ignore_check_constraints", 1)
        connection.pragma("foreign_keys", 0)
        connection.pragma("synchronous", 0)
        connection.pragma("wal_autocheckpoint", 0)
        yield connection


@contextmanager
def loose_forger(path: Path) -> Iterator[apsw.Connection]:
    """Give a forger for whom a column takes values of any type, as a flipped bit makes them.

    It keeps the schema that it read, and the file has the shipped one again by then.
    """
    with closing(apsw.Connection(str(path))) as other:
        other.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        other.pragma("writable_schema", 1)
        shipped = list(other.execute("select sql, name from sqlite_schema where type = 'table'"))
        change = "update sqlite_schema set sql = ? where name = ? and type = 'table'"
        for sql, name in shipped:
            loose = sql.replace(") strict, without", ") without").replace(") strict", ")")
            other.execute(change, (loose.replace("not null", ""), name))
        with forger(path) as connection:
            rows_of(connection)
            other.executemany(change, shipped)
            yield connection


def reforge(connection: apsw.Connection) -> None:
    """Compute everything anew that is computed: links, digests, keys, heads and chains."""
    ((namespace, created_ns, spec),) = connection.execute(
        "select namespace, created_ns, spec from identity"
    )
    start = identity_link(namespace, created_ns, spec)
    with connection:
        _reforge_writers(connection, start)
        link, count = start, 0
        for run in list(map(Registration._make, connection.execute("select * from runs"))):
            steps = _reforged_steps(connection, namespace, run)
            run = run._replace(plan=plan_digest(steps))
            link, count = registration_link(link, run), count + 1
            statement = "update runs set plan = ?, hash = ? where run = ?"
            connection.execute(statement, (run.plan, link, run.run))
            _reforge_events(connection, run._replace(hash=link))
        _set_chain(connection, "runs", count, link)
        _reforge_archived(connection, start)


def _reforge_archived(connection: apsw.Connection, link: bytes) -> None:
    rows = list(archived_by_number(connection))
    for row in rows:
        link = archived_link(link, row)
        connection.execute("update archived set hash = ? where run = ?", (link, row.run))
    _set_chain(connection, "archived", len(rows), link)


def _set_chain(connection: apsw.Connection, name: str, count: int, link: bytes) -> None:
    connection.execute("update chains set count = ?, hash = ? where name = ?", (count, link, name))


def _reforge_writers(connection: apsw.Connection, link: bytes) -> None:
    rows = list(map(Writer._make, connection.execute("select * from writers")))
    for row in rows:
        link = writer_link(link, row)
        connection.execute("update writers set hash = ? where epoch = ?", (link, row.epoch))
    _set_chain(connection, "writers", len(rows), link)


def _reforged_steps(connection: apsw.Connection, namespace: str, run: Registration) -> list[Step]:
    steps = []
    query = "select * from steps where run = ? order by step"
    for row in list(map(StepRow._make, connection.execute(query, (run.run,)))):
        name, _, version = row.adapter.partition("@")
        contract = Contract(row.contract)
        steps.append(
            Step(
                id=row.id,
                adapter=name,
                version=version,
                contract=contract,
                arguments_text=row.arguments,
            )
        )
        key = idempotency_key(namespace, run.id, row.id, name, row.arguments)
        connection.execute(
            "update steps set key = ? where run = ? and step = ?", (key, run.run, row.step)
        )
    return steps


def _reforge_events(connection: apsw.Connection, run: Registration) -> None:
    head = first_head(run)
    query = "select * from events where run = ? order by seq"
    for event in list(map(Event._make, connection.execute(query, (run.run,)))):
        event = event._replace(hash=event_link(head.hash, event))
        connection.execute(
            "update events set hash = ? where run = ? and seq = ?",
            (event.hash, event.run, event.seq),
        )
        head = next_head(head, event)
    connection.execute("insert or replace into heads values (?, ?, ?, ?, ?, ?, ?, ?, ?)", head)
