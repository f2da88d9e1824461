"""The writing side of a history: it writes only what the machine permits, one transaction at a
time.

`Store` works on an open connection that it is given, so that a checker can hand it one in memory.
It holds one lock around each transaction; decisions are made by its callers. What it promises:

- what `append` or `register` returned without an error is durable;
- an error before the commit changed nothing, one at the commit leaves the outcome unknown; after
  either the store takes nothing more until `reopen`;
- a refusal by the database (a constraint or a trigger) touches the caller's run only.

The epoch is claimed with the first row that is written, so that opening and looking adds nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock

import apsw

from agent_replay import machine
from agent_replay.chain import event_link, registration_link, writer_link
from agent_replay.clock import Clock, Reading
from agent_replay.errors import (
    DatabaseLocked,
    Fenced,
    ReplayError,
    StorageError,
    WrongProcess,
)
from agent_replay.events import Event, Head, Registration, Stamp, StepRow, Writer
from agent_replay.history import RunHistory, expected_attempt
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.store import rows
from agent_replay.store.commits import Commits, Write
from agent_replay.store.connection import reading_error, refusal, storage_error
from agent_replay.store.inserts import Rows, carry_out, insert
from agent_replay.store.schema import check_spec, read_identity
from agent_replay.store.sql import QUERIES

logger = logging.getLogger("agent_replay")

LOG_PAGES_MAX = 1000
"""Pages in the log after which the writer checkpoints, between two steps."""

_BEGIN = QUERIES["begin"]
_COMMIT = QUERIES["commit"]


class Store:
    """One writer's view of a database."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        clock: Clock,
        log_pages_max: int = LOG_PAGES_MAX,
        still_ours: Callable[[], None] = lambda: None,
    ) -> None:
        """Write on an open connection; `still_ours` raises if its files are no longer ours."""
        self._clock = clock
        self._still_ours = still_ours
        self._log_pages_max = log_pages_max
        self._lock = RLock()
        self._commits = Commits(self._lock, self._transaction)
        self._pid = os.getpid()
        self._failure: ReplayError | None = None
        self._writer = os.urandom(16)
        self._attach(connection)
        self._announced = False
        last = rows.last_writer(connection)
        self.epoch = 1 if last is None else last.epoch + 1

    def _attach(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.identity = read_identity(connection)
        check_spec(self.identity)
        self._log_pages = 0
        self._boots: dict[int, str] = {}
        connection.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def reopen(self, connect: Callable[[], apsw.Connection]) -> None:
        """Go on after a storage error, on a new connection, as the same writer in the same epoch.

        The old connection must be closed. Whether the last transaction is durable shows in what is
        read.
        """
        with self._lock:
            self._attach(connect())
            last = rows.last_writer(self.connection)
            if last is not None and last.epoch >= self.epoch and last.writer != self._writer:
                raise Fenced(
                    f"another writer (epoch {last.epoch}, process {last.pid}) has taken the "
                    "database over"
                )
            self._announced = last is not None and last.writer == self._writer
            self._failure = None

    # --- reading --------------------------------------------------------------------------------

    def find(self, run_id: str) -> Registration | None:
        """Return the registration of a run, or None if the id is free."""
        with self._lock, self._reading():
            return rows.find_run(self.connection, run_id)

    def read(self, run_id: str) -> RunHistory:
        """Return a run with its validated history; raises `NoSuchRun` or `DamagedHistory`."""
        with self._lock, self._reading():
            found = rows.find_history(self.connection, rows.known_run(self.connection, run_id))
        return found if isinstance(found, RunHistory) else found.read().history

    def unfinished(self, *, after: int, limit: int) -> list[tuple[int, str]]:
        """Return number and id of unfinished runs with a number above `after`, in order."""
        with self._lock, self._reading():
            return list(self.connection.execute(QUERIES["unfinished"], (after, limit)))

    @property
    def failed(self) -> bool:
        """Return whether a storage error has stopped the store."""
        return self._failure is not None

    def reading_of(self, stamp: Stamp) -> Reading:
        """Return what the clocks showed when an event was written."""
        with self._lock, self._reading():
            boot_id = self._boots.get(stamp.epoch)
            if boot_id is None:
                boot_id = self._boot_of(stamp.epoch)
                self._boots[stamp.epoch] = boot_id
        return Reading(stamp.wall_ns, stamp.boot_ns, boot_id)

    def _boot_of(self, epoch: int) -> str:
        for (boot_id,) in self.connection.execute(QUERIES["boot"], (epoch,)):
            return str(boot_id)
        return self._clock.read().boot_id  # the writer's own row comes with its first transaction

    def _reading(self) -> _Guard:
        return _Guard(self)

    # --- writing --------------------------------------------------------------------------------

    def next_event(
        self,
        head: Head,
        contract: str | None,
        event: StepEvent | RunEvent,
        actor: Actor,
        *,
        payload: str,
        now: Reading,
    ) -> Event:
        """Return the row that follows the head, judged by the machine, or raise `IllegalMove`.

        `contract` is that of the open step, or None for a move of the run itself. Nothing is
        written.
        """
        to = machine.verdict(
            contract,
            head.state,
            event,
            actor,
            head.run_state,
            last=head.step == head.steps,
        )
        step = None if contract is None else head.step
        columns = (
            head.run,
            head.seq + 1,
            to.event,
            to.coupled,
            to.actor,
            step,
            expected_attempt(head, to.event, step),
            None if contract is None else to.state,
            to.run_state,
            self.epoch,
            self._writer,
            now.wall_ns,
            now.boot_ns,
            payload,
        )
        return Event(*columns, event_link(head.hash, Event(*columns, b"")))

    def append(self, events: Sequence[Event], *, keep: int = 0) -> Exception | None:
        """Write the events in one transaction, which other runs may share; durable when it returns.

        If that fails before the commit, the first `keep` events are committed by themselves: then
        the error is returned, and these are durable. Otherwise an error is raised.
        """
        self.check_process()
        kept = Rows(self.connection, events[:keep]) if 0 < keep < len(events) else None
        return self._commits.commit(Rows(self.connection, events), kept=kept)

    def write(self, write: Write) -> None:
        """Carry out other writes in one transaction; durable when it returns."""
        self.check_process()
        self._commits.commit(write)

    def register(
        self,
        unnumbered: Registration,
        steps: Sequence[StepRow],
        first: Callable[[RunHistory], Sequence[Event]],
    ) -> tuple[RunHistory, Sequence[Event]]:
        """Register a run with its plan and its first events in one transaction; durable when it
        returns.

        `unnumbered` lacks number, epoch, writer and hash, the steps lack their run: they are filled
        in here. `first` gets the run and returns the rows to be written with it; it is asked again
        if another run took the number meanwhile. The history that is returned has not taken the
        rows in.
        """
        drafted = self._drafted(unnumbered, steps, first)

        def write() -> None:
            nonlocal drafted
            if drafted[0].registration.run != self._last_run()[0] + 1:
                drafted = self._drafted(unnumbered, steps, first)
            history, events = drafted
            self.connection.execute(QUERIES["add_run"], history.registration)
            self.connection.executemany(QUERIES["add_step"], history.steps)
            insert(self.connection, events)

        self._commits.commit(write)
        return drafted

    def _drafted(
        self,
        unnumbered: Registration,
        steps: Sequence[StepRow],
        first: Callable[[RunHistory], Sequence[Event]],
    ) -> tuple[RunHistory, Sequence[Event]]:
        with self._lock, self._reading():
            count, link = self._last_run()
        registration = unnumbered._replace(run=count + 1, epoch=self.epoch, writer=self._writer)
        registration = registration._replace(hash=registration_link(link, registration))
        history = RunHistory(registration, [step._replace(run=count + 1) for step in steps])
        return history, first(history)

    def _last_run(self) -> tuple[int, bytes]:
        ((count, link),) = self.connection.execute(QUERIES["chain"], ("runs",))
        return count, link

    def check_files(self) -> None:
        """Raise if the files are no longer ours; every transaction looks itself."""
        self._still_ours()

    def checkpoint_if_due(self) -> None:
        """Move the log into the database when it has grown; an error here is a storage error like
        any other.

        SQLite's own automatic checkpoints are off, since they swallow errors.
        """
        if self._log_pages >= self._log_pages_max:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Move as much of the log into the database as readers permit."""
        with self._lock, self._reading():
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._log_pages = 0

    def check_process(self) -> None:
        """Raise `WrongProcess` in a forked child, which shares the parent's descriptors."""
        if os.getpid() != self._pid:
            raise WrongProcess(
                f"this store belongs to process {self._pid}; a child process must open its own"
            )

    def check_working(self) -> None:
        """Raise in a forked child, and after a storage error: then this store does no more work."""
        self.check_process()
        if self._failure is not None:
            raise StorageError(f"the store has stopped after an error: {self._failure}; reopen it")

    def _transaction(
        self, writes: Sequence[Write], done: Callable[[], None], *, once_more: bool = False
    ) -> None:
        """Run the writes in a transaction of their own, as `commits.Transaction` says."""
        failure, self._failure = self._failure, None if once_more else self._failure
        self.check_working()
        committing = False
        try:
            self.connection.execute(_BEGIN)
            if not self._announced:
                self._announce()
            carry_out(self.connection, writes)
            self._check_transaction()
            self._still_ours()
            committing = True
            self.connection.execute(_COMMIT)
            self._announced = True
            done()
        except apsw.ConstraintError as error:
            self._roll_back()
            raise refusal(error) from error
        except apsw.Error as error:
            # The first error is the true one: SQLite may have rolled back already, and a rollback
            # that fails now would say only that there is no transaction.
            self._roll_back()
            stopped = storage_error(error, outcome_unknown=committing)
            if not isinstance(stopped, DatabaseLocked):
                self._failure = stopped  # another program's lock has changed nothing
            raise stopped from error
        except BaseException:
            if committing and not self.connection.in_transaction:
                done()  # an interrupt came right after the commit
            self._roll_back()
            raise
        finally:
            self._failure = self._failure or failure

    def _check_transaction(self) -> None:
        if not self.connection.in_transaction:
            raise StorageError("the transaction ended before its commit; reopen the store")

    def _roll_back(self) -> None:
        try:
            if self.connection.in_transaction:
                self.connection.execute(QUERIES["rollback"])
        except apsw.Error as error:
            self._failure = storage_error(error)

    def _announce(self) -> None:
        """Write this writer's row, inside the first transaction."""
        last = rows.last_writer(self.connection)
        if last is not None and last.writer == self._writer:
            return  # an interrupt came between the commit and its return
        ((_, link),) = self.connection.execute(QUERIES["chain"], ("writers",))
        reading = self._clock.read()
        writer = Writer(
            epoch=self.epoch,
            writer=self._writer,
            spec=MOVES_DIGEST,
            boot_id=reading.boot_id,
            opened_ns=reading.wall_ns,
            pid=self._pid,
            host=os.uname().nodename,
            hash=b"",
        )
        self.connection.execute(
            QUERIES["add_writer"], writer._replace(hash=writer_link(link, writer))
        )

    def abandon_connection(self) -> None:
        """Close a connection that has failed; what that says adds nothing to the first error."""
        with self._lock:
            self._failure = self._failure or StorageError("the connection was closed")
            with suppress(apsw.Error):
                self.connection.close(force=True)

    def close(self) -> None:
        """Close the connection; the log is moved into the database first, if that is possible."""
        with self._lock:
            self.check_process()
            try:
                if self._log_pages and self._failure is None:
                    self.checkpoint()
            except ReplayError as error:
                # Nothing is lost: what is in the log is durable, and the next writer moves it.
                logger.warning("the log could not be moved into the database: %s", error)
            finally:
                self.connection.close()


class _Guard:
    """Turn SQLite's errors into the library's, for whoever holds the store's lock.

    It does not take the lock: an interrupt inside of a method written in Python could leave it
    taken for ever.
    """

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store.check_working()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise reading_error(error) from error  # one run's rows; the storage works
        if isinstance(error, apsw.Error):
            failure = storage_error(error)
            self._store._failure = failure
            raise failure from error
