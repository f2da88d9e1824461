"""A database file with its one writer: lock, log, connection and store, opened and closed in that
order."""

from __future__ import annotations

import os
from types import TracebackType

from agent_replay.clock import Clock
from agent_replay.errors import InvalidInput, UnusableDatabase
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.store import files
from agent_replay.store.connection import connect_writer
from agent_replay.store.lock import WriterLock
from agent_replay.store.schema import Identity, fill
from agent_replay.store.writer import LOG_PAGES_MAX, Store

LOG_BYTES = 4 * 1024 * 1024 + 256 * 1024
"""Size to which a new log is grown: the pages after which it is checkpointed, and some more.

A log that grows pays for the file system's own record of its size with each sync.
"""
NAMESPACE_LENGTH_MAX = 200


class Database:
    """The writer's hold on a database file; `store` is what it may write with."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock,
        wait: bool = False,
        namespace: str | None = None,
        log_bytes: int = LOG_BYTES,
        log_pages_max: int = LOG_PAGES_MAX,
    ) -> None:
        """Open the database as its writer, made first if there is none.

        Raises `DatabaseLocked` if another writer holds it (or waits for it, if asked to),
        `UnusableDatabase` if the file may not be used, `StorageError` if the storage fails.
        """
        self.path = files.check_path(path)
        _make_if_missing(self.path, clock, namespace)
        self._lock = WriterLock.acquire(self.path, wait=wait)
        try:
            # Before SQLite looks at the log, what it is about to read must be durable: otherwise
            # this
            # process could act on rows that a power loss takes away.
            files.sync_log(self.path)
            connection = connect_writer(self.path)
            try:
                files.sync_directory(self.path)
                self.store = Store(
                    connection,
                    clock=clock,
                    log_pages_max=log_pages_max,
                    still_ours=self._check_files,
                )
                self._log_identity = _identity(f"{self.path}-wal")
                self._lock.hold_shared_memory()
                files.grow_log(self.path, log_bytes)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        if namespace is not None and self.store.identity.namespace != namespace:
            found = self.store.identity.namespace
            self.close()
            raise InvalidInput(
                f"{self.path} has the namespace {found!r}, not {namespace!r}; leave it out, or "
                "open another file"
            )

    def reopen(self) -> None:
        """Go on after a storage error, in the same epoch; the lock is held throughout."""
        self.store.check_process()
        self.store.abandon_connection()
        self._lock.release_shared_memory()
        self._lock.confirm()
        files.sync_log(self.path)
        self.store.reopen(lambda: connect_writer(self.path))
        self._log_identity = _identity(f"{self.path}-wal")
        self._lock.hold_shared_memory()

    def _check_files(self) -> None:
        """Raise `UnusableDatabase` if database or log were deleted or replaced meanwhile."""
        self._lock.confirm()
        if self._log_identity != _identity(f"{self.path}-wal"):
            raise UnusableDatabase(
                f"{self.path}-wal: the log that this process writes to is no longer there, or "
                "another "
                "was put in its place; stop, and put it back before anything else is written"
            )

    def close(self) -> None:
        """Close the store, then let go of the lock."""
        try:
            self.store.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _make_if_missing(path: str, clock: Clock, namespace: str | None) -> None:
    if namespace is not None and not (
        0 < len(namespace) <= NAMESPACE_LENGTH_MAX and namespace.isprintable()
    ):
        raise InvalidInput(
            f"namespace: use 1 to {NAMESPACE_LENGTH_MAX} printable characters, not {namespace!a}"
        )
    if os.path.lexists(path):
        return
    identity = Identity(namespace or os.urandom(16).hex(), clock.read().wall_ns, MOVES_DIGEST)
    files.create(path, lambda connection: fill(connection, identity))
