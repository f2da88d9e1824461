"""What others try with the file of a lab: each is refused, or shown to be harmless.

These go past the runtime, as another program or a faulty one does, and leave the file as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from agent_replay import DatabaseLocked, Event, ReplayError, Runtime
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.store.sql import QUERIES
from agent_replay.store.verify import verify_connection
from crashtests.independent import chains
from tests.stateful.judge import Database, lifecycle
from tests.stateful.process import Process, tools

if TYPE_CHECKING:
    from tests.stateful.lab import Lab

Row = dict[str, Any]


def second_writer(lab: Lab) -> None:
    """Open the file that a living process holds."""
    assert lab.process is not None
    with pytest.raises(DatabaseLocked):
        Runtime(lab.path, adapters=tools(lab.process), log_bytes=0)


# --- moves past the runtime -----------------------------------------------------------------------


def every_move(lab: Lab, name: str, database: Database) -> int:
    """Insert every event by every actor, and then one that is permitted with each column spoilt.

    What the database takes is what the spec's tables permit, read by other code. Returns how many
    were refused.
    """
    assert lab.process is not None
    connection = lab.process.mortal.real
    legal, refused = [], 0
    for event, actor in product([*StepEvent, *RunEvent], Actor):
        row, permitted = _next_row(lab, name, database, event, actor)
        assert _takes(connection, row) == permitted, (event, actor, row)
        refused += not permitted
        legal += [row] if permitted else []
    for row in legal[:2]:
        for spoilt in _spoilt(row):
            assert not _takes(connection, spoilt), spoilt
            refused += 1
    return refused


def _next_row(
    lab: Lab, name: str, database: Database, event: StepEvent | RunEvent, actor: Actor
) -> tuple[Row, bool]:
    """Return the row of a move as the next of a run, and whether the lifecycle has it."""
    run = lab.rehearsal.runs[name]
    stored = next(row for row in database["runs"] if row["id"] == name)
    events = [row for row in database["events"] if row["run"] == stored["run"]]
    states = [step.state.value for step in run.steps]
    number = run.steps.index(run.open)
    others = set(states[:number] + states[number + 1 :])
    of_step = isinstance(event, StepEvent)
    place = (states[number], event.value, actor.value, events[-1]["run_state"], others)
    spec = lifecycle()
    move = spec.move(run.open.contract.value, *place) if of_step else spec.own_move(*place)
    writer = database["writers"][-1]
    adopts, adopted = event is RunEvent.ADOPT, writer["epoch"] == run.epoch
    row = {
        "run": stored["run"],
        "seq": len(events) + 1,
        "event": event.value,
        "coupled": " ".join(move.run_moves) if move else "",
        "actor": actor.value,
        "step": number + 1 if of_step else None,
        "attempt": run.open.attempt + (event in (StepEvent.REQUEST, StepEvent.RESEND))
        if of_step
        else None,
        "state": (move.state if move else states[number]) if of_step else None,
        "run_state": move.run_state if move else events[-1]["run_state"],
        "epoch": writer["epoch"],
        "writer": bytes.fromhex(writer["writer"]),
        "wall_ns": 0,
        "boot_ns": 0,
        "payload": "{}",
        "hash": b"",
    }
    linked = {**row, "writer": row["writer"].hex()}
    row["hash"] = chains.link(bytes.fromhex(events[-1]["hash"]), "event", linked)
    return row, move is not None and adopts != adopted


def _spoilt(row: Row) -> Iterator[Row]:
    """Yield a permitted row with each column in turn as it may not be."""
    other = "paused" if row["run_state"] != "paused" else "running"
    yield {**row, "seq": row["seq"] + 1}
    yield {**row, "seq": row["seq"] - 1}
    yield {**row, "coupled": "" if row["coupled"] else "pause"}
    yield {**row, "run_state": other}
    yield {**row, "state": "in_doubt" if row["state"] != "in_doubt" else "planned"}
    yield {**row, "epoch": row["epoch"] + 1}
    yield {**row, "epoch": row["epoch"] - 1}
    yield {**row, "writer": bytes(16)}
    yield {**row, "attempt": (row["attempt"] or 0) + 1}
    yield {**row, "step": (row["step"] or 0) + 1}


def _takes(connection: apsw.Connection, row: Row) -> bool:
    """Return whether the database takes a row; it is taken back at once."""
    connection.execute(QUERIES["begin"])
    try:
        connection.execute(QUERIES["add_event"], Event(**row))
    except apsw.ConstraintError:
        return False
    finally:
        connection.execute(QUERIES["rollback"])
    return True


# --- damage -------------------------------------------------------------------------------------

DAMAGED = {
    "events": (
        *("event", "coupled", "actor", "step", "attempt", "state", "run_state", "epoch"),
        *("writer", "wall_ns", "boot_ns", "payload", "hash"),
    ),
    "runs": ("id", "plan", "attempts_max", "adapters", "hint", "wall_ns", "boot_ns", "hash"),
    "writers": ("writer", "boot_id", "opened_ns", "pid", "host", "hash"),
}
PLACES = [(table, column) for table, columns in DAMAGED.items() for column in columns]


def damage(lab: Lab, number: int) -> str:
    """Change one value in a copy of the file: verify must find it. Returns what was changed."""
    assert lab.process is not None
    copy = apsw.Connection(":memory:")
    with copy.backup("main", lab.process.mortal.real, "main") as backup:
        backup.step()
    table, column = PLACES[number % len(PLACES)]
    (count,) = next(iter(copy.execute(f"select count(*) from {table}")))  # noqa: S608 - our words
    triggers = list(copy.execute("select name, sql from sqlite_schema where type = 'trigger'"))
    for trigger, _ in triggers:
        copy.execute(f"drop trigger {trigger}")
    row = number // len(PLACES) % count
    change = {
        int: f"{column} + 1",
        str: f"{column} || 'x'",
        bytes: f"randomblob(length({column}))",
        type(None): "0",
    }
    order = "run, seq" if table == "events" else "1"
    keys = list(copy.execute(f"select {_key(table)}, {column} from {table} order by {order}"))  # noqa: S608
    *key, value = keys[row]
    where = " and ".join(f"{name} = ?" for name in _key(table).split(", "))
    new = change[type(value)] if type(value) is not str or column != "state" else "'planned'"
    copy.execute(f"update or replace {table} set {column} = {new} where {where}", key)  # noqa: S608
    for _, sql in triggers:
        copy.execute(sql)
    (after,) = next(iter(copy.execute(f"select {column} from {table} where {where}", key)))  # noqa: S608
    verdict = verify_connection(copy)
    copy.close()
    if after != value:
        assert not verdict.sound, (table, column, row, value)
    return f"{table}.{column}"


def _key(table: str) -> str:
    return {"events": "run, seq", "runs": "run", "writers": "epoch"}[table]


def stopped_writer(lab: Lab, old: Process) -> str:
    """Let a process go on that was stopped while another took its place; return what it met.

    Its lock is gone, as it would be where locks are weak: the database alone refuses it.
    """
    old.runtime._store._still_ours = lambda: None
    met = []
    for name in [*lab.rehearsal.runs, "of the old one"]:
        try:
            old.runtime.cancel(name, who="ann", why="too late") if name in lab.plans else (
                old.runtime.run("old", lab.plans[next(iter(lab.plans))])
            )
        except ReplayError as error:
            met.append(type(error).__name__)
    old.mortal.real.close(force=True)
    assert met, "nobody stopped the old writer"
    return met[-1]
