"""Databases with many runs or long ones, made without a commit for each step.

The rows are those that a writer would have written, which `verify` finds sound; they are inserted
with the triggers off, since judging a million rows would take minutes.

    python -m tests.scale.many PATH --runs 100000 --steps 5
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import apsw

from agent_replay.chain import ZERO, event_link, identity_link, registration_link, writer_link
from agent_replay.clock import NANOSECONDS, Clock, Reading
from agent_replay.events import Event, Head, Registration, StepRow, Writer
from agent_replay.history import expected_attempt, first_head, next_head
from agent_replay.keys import idempotency_key
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, Contract, StepEvent
from agent_replay.machine import verdict
from agent_replay.plan import Step, plan_digest
from agent_replay.store.database import Database
from agent_replay.store.sql import QUERIES

BEGUN_NS = 1_800_000_000 * NANOSECONDS
NAMESPACE = "many"
ADAPTER = "tool@1"
TERMS = '{"tool@1":{"contract":"opaque","source":""}}'
_WRITER = bytes(range(16))
_RUNS_AT_ONCE = 500


class Shape(NamedTuple):
    """Which runs to make: how many, of how many steps, and how many of them stand still.

    Each `waits_each`-th run stays in doubt at its last step, if that is not 0.
    """

    runs: int
    steps: int
    waits_each: int = 0
    payload: str = '{"result":{"ok":true,"receipt":"r-0001"}}'


class _StillClock(Clock):
    def read(self) -> Reading:
        return Reading(BEGUN_NS, 0, "boot-1")


def make(path: Path, shape: Shape) -> Path:
    """Make a database with these runs, all written by one writer, and return its path."""
    with Database(path, clock=_StillClock(), namespace=NAMESPACE, log_bytes=0):
        pass
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.pragma("synchronous", 0)
        with connection:
            _fill(connection, shape)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return path


def _fill(connection: apsw.Connection, shape: Shape) -> None:
    ((namespace, created_ns, spec, _),) = connection.execute(QUERIES["identity"])
    start = identity_link(namespace, created_ns, spec)
    writer = Writer(1, _WRITER, MOVES_DIGEST, "boot-1", BEGUN_NS, 1, "host", b"")
    writer = writer._replace(hash=writer_link(start, writer))
    connection.execute(QUERIES["add_writer"], writer)
    link = start
    runs = _runs(start, shape)
    while some := list(islice(runs, _RUNS_AT_ONCE)):
        connection.executemany(QUERIES["add_run"], [run.registration for run in some])
        connection.executemany(QUERIES["add_step"], [row for run in some for row in run.steps])
        connection.executemany(QUERIES["add_event"], [row for run in some for row in run.events])
        add_head = "insert into heads values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        connection.executemany(add_head, [run.head for run in some])
        link = some[-1].registration.hash
    set_chain = "update chains set count = ?, hash = ? where name = ?"
    connection.execute(set_chain, (shape.runs, link, "runs"))
    connection.execute(set_chain, (1, writer.hash, "writers"))


class _Run(NamedTuple):
    registration: Registration
    steps: Sequence[StepRow]
    events: Sequence[Event]
    head: Head


def _runs(link: bytes, shape: Shape) -> Iterator[_Run]:
    plan = [Step(f"s{number}", "tool", "1", Contract.OPAQUE, "{}") for number in _upto(shape.steps)]
    digest = plan_digest(plan)
    for run in _upto(shape.runs):
        registration = Registration(
            run, f"run-{run:06}", digest, len(plan), 3, TERMS, "", 1, _WRITER, BEGUN_NS, 0, b""
        )
        registration = registration._replace(hash=registration_link(link, registration))
        link = registration.hash
        steps = [
            StepRow(run, number, step.id, ADAPTER, "opaque", "{}", _key(registration.id, step))
            for number, step in enumerate(plan, start=1)
        ]
        waits = shape.waits_each > 0 and run % shape.waits_each == 0
        yield _Run(registration, steps, *_events(registration, shape, waits=waits))


def _upto(count: int) -> range:
    return range(1, count + 1)


def _key(run: str, step: Step) -> str:
    return idempotency_key(NAMESPACE, run, step.id, step.adapter, step.arguments_text)


def _events(
    registration: Registration, shape: Shape, *, waits: bool
) -> tuple[Sequence[Event], Head]:
    moves = [(StepEvent.REQUEST, "{}"), (StepEvent.ACKNOWLEDGE, shape.payload)] * shape.steps
    if waits:
        moves[-1] = (StepEvent.SUSPEND, '{"why":"raised"}')
    events, head = [], first_head(registration)
    for event, payload in moves:
        row = _row(head, event, payload)
        events.append(row)
        head = next_head(head, row)
    return events, head


def _row(head: Head, event: StepEvent | RunEvent, payload: str) -> Event:
    last = head.step == head.steps
    to = verdict("opaque", head.state, event, Actor.RUNTIME, head.run_state, last=last)
    row = Event(
        head.run, head.seq + 1, to.event, to.coupled, to.actor, head.step,
        expected_attempt(head, to.event, head.step), to.state, to.run_state,
        1, _WRITER, BEGUN_NS + head.seq, head.seq, payload, ZERO,
    )  # fmt: skip
    return row._replace(hash=event_link(head.hash, row))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a database with many runs.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--waits-each", type=int, default=0)
    options = parser.parse_args()
    make(options.path, Shape(options.runs, options.steps, options.waits_each))


if __name__ == "__main__":
    main()
