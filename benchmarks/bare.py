"""The limits: the least that a program could do to make the same steps durable.

None of these validates, hashes, refuses or recovers anything. The loop over SQLite is the one that
bars refer to: WAL, `synchronous=FULL`, prepared statements, two rows a step with the same payloads,
through the same SQLite as the runtime's.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks import work
from benchmarks.work import Payloads

LOG_BYTES = 4 * 1024 * 1024 + 256 * 1024
"""Size of a grown log; as large as the runtime's."""

ADD = "insert into events values (?, ?, ?, ?)"

Tick = Callable[[], None]
"""Called with each step, at the moment of the tool's call."""


def no_tick() -> None:
    """Note nothing."""


def append(folder: Path, steps: int, given: Payloads) -> None:
    """Append the payloads of each step to a file and sync it: what any durable history must do."""
    descriptor = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        for step in range(steps):
            body = given.request(step) + work.text(given.result(step))
            os.write(descriptor, body.encode())
            os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def connect(path: Path, *, grown: bool = True) -> apsw.Connection:
    """Open a database for the loop, made first if there is none."""
    new = not path.exists()
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    if new:
        connection.execute(
            "create table events (run integer, seq integer, kind text, body text, "
            "primary key (run, seq)) without rowid"
        )
        if grown:
            log = Path(f"{path}-wal")
            with log.open("ab") as file:
                file.write(bytes(LOG_BYTES - log.stat().st_size))
                os.fsync(file.fileno())
    return connection


def loop(
    connection: apsw.Connection,
    steps: int,
    given: Payloads,
    *,
    first: int = 0,
    commits: int = 1,
    tick: Tick = no_tick,
) -> None:
    """Keep the steps from `first` on; with one commit, a result goes with the next request."""
    execute = connection.execute
    execute(ADD, (1, 2 * first, "request", given.request(first)))
    for step in range(first, steps):
        tick()
        body = work.text(given.result(step))
        seq = 2 * step + 1
        if commits == 1:
            execute("begin immediate")
        execute(ADD, (1, seq, "result", body))
        if step + 1 < steps:
            execute(ADD, (1, seq + 1, "request", given.request(step + 1)))
        if commits == 1:
            execute("commit")


def recorded(connection: apsw.Connection) -> int:
    """Return how many steps have a result, and forget a request that has none."""
    ((count,),) = connection.execute("select count(*) from events where kind = 'result'")
    connection.execute("delete from events where seq >= ?", (2 * count,))
    return int(count)


class Group:
    """Leader-follower group commit: whoever finds nobody at work commits for all who wait."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._mutex = threading.Lock()
        self._waiting: deque[tuple[list[tuple[int, int, str, str]], threading.Lock]] = deque()
        self._led = False

    def commit(self, rows: list[tuple[int, int, str, str]]) -> None:
        """Make rows durable."""
        woken = threading.Lock()
        woken.acquire()
        with self._mutex:
            self._waiting.append((rows, woken))
            leads, self._led = not self._led, True
        if leads:
            self._lead()
        else:
            woken.acquire()

    def _lead(self) -> None:
        while True:
            with self._mutex:
                batch = list(self._waiting)
                self._waiting.clear()
                if not batch:
                    self._led = False
                    return
            self._connection.execute("begin immediate")
            self._connection.executemany(ADD, (row for rows, _ in batch for row in rows))
            self._connection.execute("commit")
            for _, woken in batch:
                woken.release()

    def run(self, run: int, steps: int, given: Payloads) -> None:
        """Keep the steps of one run."""
        self.commit([(run, 0, "request", given.request(0))])
        for step in range(steps):
            rows = [(run, 2 * step + 1, "result", work.text(given.result(step)))]
            if step + 1 < steps:
                rows.append((run, 2 * step + 2, "request", given.request(step + 1)))
            self.commit(rows)
