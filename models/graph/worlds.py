"""Databases to walk in: real SQL and real triggers, with one run whose graph is wanted.

A walk goes down a history and comes back by savepoints. So that the shipped `Store` can commit on
the way down, its three statements around a transaction become a savepoint inside the walker's: all
other SQL is what ships. `snapshots` tries the same edges with transactions as they ship.

There are two worlds for each plan, so that each state is come to by two histories. They differ in
all that a projection leaves out: how the database was made, its namespace, the numbers and ids of
runs, other runs beside, the instants of the readings, the payloads; and in the settings of the
connection, which in the second are those of a bare shell.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from agent_replay.clock import NANOSECONDS, Reading
from agent_replay.events import Event, Head, Registration, StepRow
from agent_replay.history import UNTOUCHED, RunHistory, advance
from agent_replay.history import OpenStep as Known
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.store.connection import connect_memory
from agent_replay.store.database import Database
from agent_replay.store.schema import Identity, fill
from agent_replay.store.sql import QUERIES
from agent_replay.store.writer import Store
from models.graph.plans import APART_SECONDS, registered
from models.graph.states import UNREAD, OpenStep, Passed, State

Alteration = Callable[[apsw.Connection], object]
"""What a test does to a database before the walk, to see it found."""

_NESTED = {
    "begin immediate": "savepoint written",
    "commit": "release written",
    "rollback": "rollback to written; release written",
}

_HEAD = """
select run, seq, hash, run_state, step, state, attempt, epoch, steps,
  (select max(epoch) from writers)
from heads where run = ?
"""


class NestedCursor(apsw.Cursor):
    """A cursor on which the store's transaction is a savepoint."""

    def execute(
        self,
        statements: str,
        bindings: apsw.Bindings | None = None,
        *,
        can_cache: bool = True,
        prepare_flags: int = 0,
        explain: int = -1,
    ) -> apsw.Cursor:
        """Execute the statements."""
        return super().execute(_NESTED.get(statements, statements), bindings)


class Readings:
    """A clock that shows one of the readings."""

    def __init__(self, start_seconds: int) -> None:
        wall_ns = start_seconds * NANOSECONDS
        self.readings = tuple(
            Reading(wall_ns + later, NANOSECONDS + later, "boot")
            for later in (0, APART_SECONDS * NANOSECONDS)
        )
        self._numbers = {reading.wall_ns: n for n, reading in enumerate(self.readings)}

    def read(self) -> Reading:
        """Return the first reading; each row of a walk is given its own."""
        return self.readings[0]

    def number(self, stamp: tuple[int, int, int] | None) -> int:
        """Return which reading a stamp of the history is."""
        return UNREAD if stamp is None else self._numbers[stamp[1]]


class Seen(NamedTuple):
    """What the database holds of the run, with what the shipped fold makes of it.

    `wrong` says in words that the head's row is not where the shipped fold of the events ends.
    """

    head: Head
    known: Known
    passed: tuple[Passed, ...]
    held: int
    event: Event | None = None
    wrong: str = ""


class World:
    """A database in memory with the run that is walked."""

    def __init__(
        self,
        connection: apsw.Connection,
        contracts: tuple[str, ...],
        *,
        clock: Readings,
        run_id: str,
        payload: str,
        before: str = "",
        nested: bool = True,
    ) -> None:
        """Register the run, after another one if `before` gives it an id.

        Unless `nested`, the store's transactions are left as they ship, and nothing can be undone.
        """
        self.connection = connection
        self.contracts = contracts
        self.clock = clock
        self.payload = payload
        self.store = Store(connection, clock=clock)
        if before:
            self._register(before)
        self.registration, self.steps = self._register(run_id)
        self.execute = apsw.Cursor(connection).execute
        if nested:
            connection.cursor_factory = NestedCursor
            self.execute("begin")

    def _register(self, run_id: str) -> tuple[Registration, list[StepRow]]:
        unnumbered, steps = registered(self.store.identity.namespace, run_id, self.contracts)
        history, _ = self.store.register(unnumbered, steps, lambda history: ())
        return history.registration, list(history.steps)

    def restore(self, connection: apsw.Connection) -> None:
        """Go on in another copy of the database."""
        self.connection = connection
        self.execute = apsw.Cursor(connection).execute

    def start(self) -> Seen:
        """Return what is seen before the first event."""
        history = RunHistory(self.registration, self.steps)
        head, held = self._head()
        return Seen(history.head, UNTOUCHED, (), held, None, _difference(head, history.head))

    def look(self, before: Seen) -> Seen:
        """Return what is seen now, one event (or one other writer) after `before`."""
        head, held = self._head()
        if head.seq == before.head.seq:
            return before._replace(held=held, event=None, wrong=_difference(head, before.head))
        ((*row,),) = self.execute(QUERIES["event_at"], (head.run, head.seq))
        event = Event._make(row)
        contract = self.contracts[before.head.step - 1]
        told, known = advance(before.head, before.known, contract, event)
        passed = before.passed
        if told.step > before.head.step:
            passed = (*passed, Passed(before.head.attempt, _basis(event)))
        return Seen(told, known, passed, held, event, _difference(head, told))

    def _head(self) -> tuple[Head, int]:
        """Return the row of the run in `heads`, and the latest epoch."""
        ((*row, held),) = self.execute(_HEAD, (self.registration.run,))
        return Head._make(row), held

    def project(self, seen: Seen) -> State:
        """Return the state that is seen."""
        head, known = seen.head, seen.known
        return State(
            head.run_state,
            seen.passed,
            OpenStep(
                head.state,
                head.attempt,
                known.grants,
                known.refuted,
                self.clock.number(known.first),
                self.clock.number(known.suspended),
                "" if known.last is None else _basis(known.last),
            ),
            head.epoch,
            seen.held,
        )

    def read_anew(self) -> State:
        """Return the state as the shipped reader tells it from all rows of the run."""
        history = self.store.read(self.registration.id)
        events = self.execute(
            "select event, actor, attempt from events where run = ? and state = 'succeeded' "
            "order by seq",
            (history.head.run,),
        )
        passed = [Passed(attempt, f"{event} by {actor}") for event, actor, attempt in events]
        _, held = self._head()
        before_open = tuple(passed[: history.head.step - 1])
        return self.project(Seen(history.head, history.open, before_open, held))


def _basis(event: Event) -> str:
    return f"{event.event} by {event.actor}"


def _difference(head: Head, told: Head) -> str:
    return "" if head == told else f"the head says {head[1:]}, its events say {told[1:]}"


# --- the two worlds -----------------------------------------------------------------------------


def keep(connection: apsw.Connection) -> None:
    """Alter nothing."""


def first_world(
    contracts: tuple[str, ...], alter: Alteration = keep, *, nested: bool = True
) -> World:
    """Return a world in a file that the package has made, read as an image."""
    connection = connect_memory()
    connection.deserialize("main", new_file())
    alter(connection)
    return World(
        connection,
        contracts,
        clock=Readings(1_000),
        run_id="run",
        payload='{"result":null}',
        nested=nested,
    )


def second_world(contracts: tuple[str, ...], alter: Alteration = keep) -> World:
    """Return a world in which the run is the second one, on a connection like a bare shell's."""
    connection = connect_memory()
    fill(connection, Identity("elsewhere", 7, MOVES_DIGEST))
    connection.pragma("foreign_keys", 0)
    connection.pragma("recursive_triggers", 0)
    alter(connection)
    return World(
        connection,
        contracts,
        clock=Readings(900_000),
        run_id="another-run",
        payload='{"evidence":{"kind":"ledger"},"result":{"lines":[7]}}',
        before="before",
    )


@cache
def new_file() -> bytes:
    """Return the bytes of a database file as the package makes it, fit for an image in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        Database(path, clock=Readings(1_000), namespace="here", log_bytes=0).close()
        return as_image(path.read_bytes())


def as_image(content: bytes) -> bytes:
    """Return a database in WAL mode as one that SQLite takes as an image.

    The versions at bytes 18 and 19 say that there is a log beside it; in memory there is none.
    """
    changed = bytearray(content)
    changed[18:20] = b"\x01\x01"
    return bytes(changed)
