"""The two ways in: the shipped writer, and SQL written by hand.

An offer is a draft of a row, by one of the writers, at a reading. `offer` returns "" when the
database has taken the row, else why it was refused. Nothing here knows what ought to happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import apsw

from agent_replay.chain import writer_link
from agent_replay.errors import Fenced, IllegalMove
from agent_replay.events import Event, Registration, StepRow, Writer
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, Contract, StepEvent
from agent_replay.store.sql import QUERIES
from agent_replay.store.writer import Store
from models.graph.plans import registered
from models.graph.states import FORMER, SUCCESSOR, TAKE_OVER
from models.graph.worlds import Seen, World

_STEP_EVENTS = {event.value: event for event in StepEvent}
_RUN_EVENTS = {event.value: event for event in RunEvent}
_ACTORS = {actor.value: actor for actor in Actor}


NOTHING_THERE = "there was no row to change"


class Draft(NamedTuple):
    """A row that is offered: `state` is None in a move of the run itself."""

    event: str
    actor: str
    coupled: str
    of_step: bool
    state: str | None
    run_state: str


class Way(Protocol):
    """A way in. It keeps the writers that have come on the way down, the latest last."""

    name: str

    def offer(self, seen: Seen, draft: Draft, writer: str, reading: int) -> str:
        """Offer a row; "" if it was taken."""

    def writers(self) -> int:
        """Return how many writers have come."""

    def forget(self, writers: int) -> None:
        """Forget all writers but the first so many: the database no longer has them."""


class WriterWay:
    """The way of the runtime: a row is judged by the machines, then appended by a `Store`.

    The machine fills in the coupling and where the row leads, so these are not the draft's.
    """

    name = "writer"

    def __init__(self, world: World) -> None:
        self._world = world
        self._stores = [world.store]
        self._others: dict[int, tuple[Registration, list[StepRow]]] = {}
        self._contracts = [Contract(contract) for contract in world.contracts]

    def writers(self) -> int:
        """Return how many writers have come."""
        return len(self._stores)

    def forget(self, writers: int) -> None:
        """Forget all writers but the first so many."""
        del self._stores[writers:]

    def stores(self) -> tuple[Store, ...]:
        """Return the stores of the writers that have come."""
        return tuple(self._stores)

    def restore(self, stores: Sequence[Store]) -> None:
        """Go on with these stores, the latest of which is reopened where the world is now."""
        self._stores = list(stores)
        stores[-1].reopen(lambda: self._world.connection)

    def offer(self, seen: Seen, draft: Draft, writer: str, reading: int) -> str:
        """Offer a row; "" if it was taken."""
        store = self._store(writer)
        if draft.event == TAKE_OVER:
            self._register_another(store)
            return ""
        contract = self._contracts[seen.head.step - 1] if draft.of_step else None
        events = _STEP_EVENTS if draft.of_step else _RUN_EVENTS
        try:
            row = store.next_event(
                seen.head,
                contract,
                events[draft.event],
                _ACTORS[draft.actor],
                payload=self._world.payload,
                now=self._world.clock.readings[reading],
            )
            store.append([row])
        except (IllegalMove, Fenced) as refusal:
            if writer == SUCCESSOR:
                self._stores.pop()
            return str(refusal)
        return ""

    def _store(self, writer: str) -> Store:
        if writer == SUCCESSOR:
            self._stores.append(Store(self._world.connection, clock=self._world.clock))
        return self._stores[-2 if writer == FORMER else -1]

    def _register_another(self, store: Store) -> None:
        another = self._others.get(store.epoch)
        if another is None:
            contracts = self._world.contracts[:1]
            another = registered(store.identity.namespace, f"by-{store.epoch}", contracts)
            self._others[store.epoch] = another
        store.register(*another, lambda history: ())


class ShellWay:
    """The way of somebody who writes SQL by hand, and knows everything that is in the file."""

    name = "shell"

    def __init__(self, world: World) -> None:
        self._world = world
        rows = world.execute("select writer from writers order by epoch")
        self._writers: list[bytes] = [writer for (writer,) in rows]

    def writers(self) -> int:
        """Return how many writers have come."""
        return len(self._writers)

    def forget(self, writers: int) -> None:
        """Forget all writers but the first so many."""
        del self._writers[writers:]

    def offer(self, seen: Seen, draft: Draft, writer: str, reading: int) -> str:
        """Offer a row; "" if it was taken."""
        if writer != SUCCESSOR:
            return self.insert(self.row(seen, draft, reading, ago=writer == FORMER))
        self._world.execute("savepoint successor")
        known = self.writers()
        refusal = self._add_writer()
        if not refusal and draft.event != TAKE_OVER:
            refusal = self.insert(self.row(seen, draft, reading))
        if refusal:
            self._world.execute("rollback to successor")
            self.forget(known)
        self._world.execute("release successor")
        return refusal

    def row(self, seen: Seen, draft: Draft, reading: int, *, ago: int = 0) -> Event:
        """Return the row of a draft, by the writer that came so many before the latest."""
        epoch = len(self._writers) - ago
        head, of_step = seen.head, draft.of_step
        sends = draft.event in ("request", "resend")
        now = self._world.clock.readings[reading]
        return Event(
            run=head.run,
            seq=head.seq + 1,
            event=draft.event,
            coupled=draft.coupled,
            actor=draft.actor,
            step=head.step if of_step else None,
            attempt=head.attempt + sends if of_step else None,
            state=draft.state,
            run_state=draft.run_state,
            epoch=epoch,
            writer=self._writers[epoch - 1],
            wall_ns=now.wall_ns,
            boot_ns=now.boot_ns,
            payload=self._world.payload,
            hash=(head.seq + 1).to_bytes(32, "big"),
        )

    def insert(self, row: Event) -> str:
        """Insert a row of the history; "" if it was taken."""
        return self._execute(QUERIES["add_event"], row)

    def tamper(self, statement: str) -> str:
        """Execute a statement; "" if it has changed something."""
        before = self._world.connection.total_changes()
        refusal = self._execute(statement, ())
        changed = self._world.connection.total_changes() > before
        return "" if changed and not refusal else refusal or NOTHING_THERE

    def _execute(self, statement: str, values: Sequence[apsw.SQLiteValue]) -> str:
        try:
            self._world.execute(statement, values)
        except apsw.ConstraintError as refusal:
            return str(refusal)
        return ""

    def _add_writer(self) -> str:
        epoch = len(self._writers) + 1
        writer = Writer(epoch, bytes([epoch] * 16), MOVES_DIGEST, "boot", 1, 1, "host", b"")
        ((link,),) = self._world.execute("select hash from chains where name = 'writers'")
        row = writer._replace(hash=writer_link(link, writer))
        refusal = self._execute(QUERIES["add_writer"], row)
        if not refusal:
            self._writers.append(writer.writer)
        return refusal
