"""Commits shared between threads: the first that waits becomes the leader and commits for all.

A thread that finds nobody at work leads at once, so that a single run pays no hand-over. Whoever
comes while a leader is at work waits; when it is done it wakes those for whom it has committed,
and the first of those who came meanwhile, who leads for all of them. Nothing here knows SQLite: a
transaction is a function that runs writes and makes them durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, RLock
from typing import Protocol

from agent_replay.errors import (
    ArchiveError,
    Fenced,
    IllegalMove,
    InvalidInput,
    ReplayError,
    StorageError,
)

Write = Callable[[], None]
"""Writes one run's rows in the transaction that is open; it may be asked to do so again."""

TOGETHER_MAX = 256
"""Runs that share one transaction at most: nobody waits for more rows than these."""
LOST_SECONDS = 1.0
"""So long a thread waits before it looks whether anybody is at work."""


class Transaction(Protocol):
    """Runs writes in a transaction of its own; calls `done` when they are durable, also if an
    interrupt comes right then.

    Raises `IllegalMove` or `Fenced` if the database refuses a row, and what a write raises: then
    nothing is written. Raises any other `ReplayError` if the storage fails, with
    `StorageError.outcome_unknown` where it did so at the commit. After a failure it takes nothing
    more, unless it is told to try `once_more`.
    """

    def __call__(
        self, writes: Sequence[Write], done: Callable[[], None], *, once_more: bool = False
    ) -> None:
        """Write, and commit."""


class Pending:
    """What one run wants written, and what came of it."""

    __slots__ = ("error", "kept", "kept_alone", "leads", "settled", "woken", "write")

    def __init__(self, write: Write, kept: Write | None) -> None:
        self.write = write
        self.kept = kept
        self.leads = False
        """Whether its thread has been made the leader while it waited."""
        self.settled = False
        self.kept_alone = False
        self.error: Exception | None = None
        self.woken = Lock()
        self.woken.acquire()

    def keep(self) -> None:
        """Note that the part which can stand alone is durable."""
        self.kept_alone = True

    def settle(self, error: Exception | None = None) -> None:
        """Note what came of it, and wake its thread."""
        if not self.settled:
            self.error = error
            self.settled = True
            if self.woken.locked():  # not so if it waits no longer
                self.woken.release()

    def came_to(self) -> Exception | None:
        """Return or raise what `Commits.commit` returns or raises."""
        if self.error is not None and not self.kept_alone:
            raise self.error
        return self.error


class Commits:
    """The threads that want to write, in the order in which they came."""

    def __init__(self, lock: RLock, transaction: Transaction) -> None:
        """Commit under a lock, which whoever reads holds too."""
        self._lock = lock
        self._transaction = transaction
        self._mutex = Lock()
        self._waiting: deque[Pending] = deque()
        self._led = False

    def commit(self, write: Write, *, kept: Write | None = None) -> Exception | None:
        """Make the writes durable, or raise; `kept` is a part of them that can stand alone.

        If the whole fails before its commit, that part is committed by itself: then the error is
        returned. A refusal is about one run's rows and touches nobody else's; a failing storage is
        told to each that was in the transaction. Raises `InvalidInput` where the thread is writing
        already, as in a signal handler.
        """
        leads, pending = False, None
        try:
            with self._mutex:
                leads = not self._led
                if leads:
                    self._led = True
                elif _is_held_here(self._lock):
                    raise InvalidInput(
                        "this thread is at work in the store just now: a signal handler cannot "
                        "write; let it set a flag, and act on that later"
                    )
                else:
                    pending = Pending(write, kept)
                    self._waiting.append(pending)
            if pending is not None:
                return self._follow(pending)
            with self._lock:
                return self._lead(Pending(write, kept))
        finally:
            if leads:
                self._hand_over()

    def _follow(self, pending: Pending) -> Exception | None:
        """Wait until somebody has committed this, or until it is this thread's turn to lead."""
        try:
            while not pending.woken.acquire(timeout=LOST_SECONDS):
                if self._nobody_is_at_work(pending):
                    break
        except BaseException:
            self._withdraw(pending)
            raise
        if not pending.leads:
            return pending.came_to()
        try:
            with self._lock:
                return self._lead(pending)
        finally:
            self._hand_over()

    def _nobody_is_at_work(self, pending: Pending) -> bool:
        """Return whether the thread of this one has waited long enough; unless it is settled, it
        leads now.

        An interrupt may end a leader between any two lines, as it takes others' writes, settles
        them or hands over. Whoever has taken writes holds the lock until they are settled, so
        where the lock is free nobody has them. Two who lead at once take turns by the lock.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            with self._mutex:
                if pending in self._waiting:
                    self._waiting.remove(pending)
                pending.leads = not pending.settled
            return True
        finally:
            self._lock.release()

    def _withdraw(self, pending: Pending) -> None:
        """Leave the queue after an interrupt; a leader that has taken it already goes on."""
        with self._mutex:
            if pending in self._waiting:
                self._waiting.remove(pending)
        if pending.leads:
            self._hand_over()

    def _hand_over(self) -> None:
        """Wake the next leader, if anybody waits."""
        with self._mutex:
            self._led = bool(self._waiting)
            if self._led:
                successor = self._waiting.popleft()
                successor.leads = True
                successor.woken.release()

    def _lead(self, own: Pending) -> Exception | None:
        """Commit for this thread and for all who wait."""
        with self._mutex:
            count = min(len(self._waiting), TOGETHER_MAX - 1)
            batch = [own, *(self._waiting.popleft() for _ in range(count))]
        try:
            self._commit_together(batch)
        except BaseException:
            # An interrupt of this thread. What is the others' they will commit themselves.
            with self._mutex:
                self._waiting.extendleft(one for one in reversed(batch[1:]) if not one.settled)
            raise
        return own.came_to()

    def _commit_together(self, batch: Sequence[Pending]) -> None:
        if len(batch) > 1:
            try:
                self._transaction([one.write for one in batch], lambda: _settle(batch))
            except Exception as error:  # noqa: BLE001 - told to the threads whose rows these are
                if _is_failure(error):
                    for pending in batch:
                        self._failed(pending, error)
                # Else the rows of one are at fault, and nothing was written: now each by itself.
        for pending in batch:
            if not pending.settled:
                self._commit_alone(pending)

    def _commit_alone(self, pending: Pending) -> None:
        try:
            self._transaction((pending.write,), pending.settle)
        except Exception as error:  # noqa: BLE001 - told to the thread whose rows these are
            self._failed(pending, error)

    def _failed(self, pending: Pending, error: Exception) -> None:
        """Commit what can stand alone, and note the first error, which is the true one."""
        unknown = isinstance(error, StorageError) and error.outcome_unknown
        if pending.kept is not None and not unknown:
            with suppress(ReplayError):
                self._transaction((pending.kept,), pending.keep, once_more=True)
        pending.settle(error)


def _is_held_here(lock: RLock) -> bool:
    """Return whether this thread holds a lock, as `threading.Condition` asks it."""
    held: bool = lock._is_owned()  # type: ignore[attr-defined]  # typeshed does not have it
    return held


def _settle(batch: Sequence[Pending]) -> None:
    for pending in batch:
        pending.settle()


def _is_failure(error: Exception) -> bool:
    """Return whether the storage failed, and not the rows of one run."""
    of_a_run = isinstance(error, (IllegalMove, Fenced, ArchiveError))
    return isinstance(error, ReplayError) and not of_a_run
