"""Verify a whole database: every row against the chains, the lifecycle table and the shipped
schema.

Rows are streamed, in one read transaction, so memory does not grow with the history. A damaged run
is named with its first bad row, and the next run is looked at. What cannot be detected: rows, heads
and registrations that were all rewritten consistently, by somebody who computed the chains anew.
Against that, heads that were written down elsewhere can be given (`expected`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import apsw

from agent_replay.chain import event_link, identity_link, registration_link, writer_link
from agent_replay.errors import DamagedHistory, ReplayError
from agent_replay.events import Event, Head, Registration, StepRow
from agent_replay.follow import Follower, event_of
from agent_replay.history import RunHistory, complaints, next_head, payload_of
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import StepState
from agent_replay.outcome import terms_of
from agent_replay.store import files, rows, schema
from agent_replay.store.ahead import Ahead
from agent_replay.store.archive.inventory import Inventory, chain_findings
from agent_replay.store.connection import connect_reader, damages, reading_error
from agent_replay.store.sql import QUERIES

FINDINGS_MAX = 100


class ExpectedHead(NamedTuple):
    """A head that was written down elsewhere: the run's event `seq` has this hash (in hex)."""

    run: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was checked, and what was found; `complete` says that every row was looked at.

    `archived` counts those of the runs that are in archives, `archives` the files that were looked
    into; `missing` names the archives that are not where they should be.
    """

    runs: int
    events: int
    findings: tuple[str, ...]
    complete: bool
    archived: int = 0
    archives: int = 0
    missing: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Return whether everything was checked and nothing found."""
        return self.complete and not self.findings


def verify(
    path: str | os.PathLike[str],
    *,
    expected: Iterable[ExpectedHead] = (),
    archives: bool = True,
) -> Verdict:
    """Verify a database and return what was found; raises only if the file cannot be opened at
    all.

    Its archives are verified too, unless that is not wanted.
    """
    connection = connect_reader(files.check_path(path))
    try:
        return verify_connection(connection, expected=expected, archives=archives)
    finally:
        connection.close()


def verify_connection(
    connection: apsw.Connection,
    *,
    expected: Iterable[ExpectedHead] = (),
    archives: bool = True,
) -> Verdict:
    """Verify the database behind an open connection."""
    check = _Check(connection, archives=archives)
    complete = True
    findings: list[str] = []
    try:
        with connection:
            for finding in check.everything(tuple(expected)):
                findings.append(finding)
                if len(findings) >= FINDINGS_MAX:
                    findings.append(f"and perhaps more: stopped after {FINDINGS_MAX}")
                    complete = False
                    break
    except apsw.Error as error:
        findings.append(f"the file could not be read to its end: {reading_error(error)}")
        complete = False
    complete = complete and check.complete
    return Verdict(
        runs=check.runs,
        events=check.events,
        findings=tuple(findings),
        complete=complete,
        archived=check.archived,
        archives=check.archives,
        missing=check.missing,
    )


class _Check:
    """One pass over a database.

    `runs` and `events` count what was looked at; `complete` says that nothing had to be left out.
    """

    def __init__(self, connection: apsw.Connection, *, archives: bool) -> None:
        self._connection = connection
        self.runs = 0
        self.archived = 0
        self.archives = 0
        self.missing: tuple[str, ...] = ()
        self.complete = True
        self._looks_into_archives = archives
        self._archived_events = 0
        self._of_a_run = RunCheck(
            Ahead(connection, ahead=QUERIES["steps_from"], alone=QUERIES["steps"], text=5),
            Ahead(connection, ahead=QUERIES["events_from"], alone=QUERIES["events"], text=13),
            partial(rows.read_head, connection),
        )

    @property
    def events(self) -> int:
        """Return how many events were looked at."""
        return self._of_a_run.events + self._archived_events

    def everything(self, expected: tuple[ExpectedHead, ...]) -> Iterator[str]:
        """Yield all findings."""
        for message in damages(self._connection):
            yield f"file: {message}"
        yield from self._readable("permitted", schema.differences(self._connection))
        identity = yield from self._identity()
        if identity is None:
            return
        if identity.spec != MOVES_DIGEST:
            yield (
                f"identity: the spec {identity.spec[:12]} is not the one that this program "
                f"can judge ({MOVES_DIGEST[:12]})"
            )
        start = identity_link(*identity)
        yield from self._readable("writers", self._all_writers(start))
        yield from self._readable("runs", self._all_runs(start, identity.namespace))
        yield from self._readable("archived", self._all_archived(start))
        if self._looks_into_archives and self.archived:
            yield from self._readable("archived", self._archives(identity))
        yield from self._readable("chains", self._other_chains())
        yield from self._readable("strays", self._strays())
        for head in expected:
            yield from self._expected(head)

    def _identity(self) -> Generator[str, None, schema.Identity | None]:
        """Yield what is wrong with the identity; return it if it can be had."""
        try:
            return schema.read_identity(self._connection)
        except ReplayError as error:
            yield str(error)
        except UnicodeDecodeError:
            yield "identity: a text in it is not UTF-8"
        self.complete = False
        return None

    def _readable(self, place: str, findings: Iterator[str]) -> Iterator[str]:
        """Yield the findings; a text that is none ends them, is a finding, and is not the end of
        all.
        """
        try:
            yield from findings
        except UnicodeDecodeError:
            self.complete = False
            yield f"{place}: a text in it is not UTF-8"
        except DamagedHistory as damage:
            self.complete = False
            yield str(damage)

    def _other_chains(self) -> Iterator[str]:
        for name, *_ in self._connection.execute(QUERIES["chains"]):
            if name not in schema.CHAINS:
                yield f"chains: there is a foreign one, {name!r}"

    def _chain(self, name: str, count: int, link: bytes) -> Iterator[str]:
        for found in self._connection.execute(QUERIES["chain"], (name,)):
            if found != (count, link):
                yield (
                    f"chains, {name}: {count} rows are there, {found[0]} were written "
                    "(or the last one differs)"
                )
            return
        yield f"chains, {name}: the row is missing"

    def _all_writers(self, link: bytes) -> Iterator[str]:
        count = 0
        for row in rows.read_writers(self._connection):
            count += 1
            if row.epoch != count:
                yield f"writers: epoch {count} is missing before epoch {row.epoch}"
                count = row.epoch
            if writer_link(link, row) != row.hash:
                yield f"writers, epoch {row.epoch}: the row does not fit its hash"
            if row.spec != MOVES_DIGEST:
                yield f"writers, epoch {row.epoch}: it wrote under the unknown spec {row.spec[:12]}"
            self._of_a_run.writers[row.epoch] = row.writer
            link = row.hash
        yield from self._chain("writers", count, link)

    def _all_runs(self, link: bytes, namespace: str) -> Iterator[str]:
        count = 0
        archived = Inventory(self._connection)
        for row in rows.read_registrations(self._connection):
            count += 1
            self.runs += 1
            if row.run != count:
                yield f"runs: {row.run - count} missing before run {row.run}, from run {count} on"
                count = row.run
            if registration_link(link, row) != row.hash:
                yield f"run {row.run} ({row.id}): the registration does not fit its hash"
            link = row.hash
            place = f"run {row.run} ({row.id})"
            left = archived.take(row.run)
            if left is not None:
                self.archived += 1
                yield from self._readable(place, archived.findings(row, left))
            else:
                yield from self._readable(place, self._of_a_run.findings(row, namespace))
        yield from self._chain("runs", count, link)

    def _all_archived(self, link: bytes) -> Iterator[str]:
        count, link = yield from chain_findings(self._connection, link, self._of_a_run.writers)
        yield from self._chain("archived", count, link)

    def _archives(self, identity: schema.Identity) -> Iterator[str]:
        from agent_replay.store.archive.checking import Archives  # here: it builds on this module

        check = Archives(self._connection)
        yield from check.findings(identity)
        self.archives, self._archived_events = check.files, check.events
        self.missing = tuple(check.missing)
        self.complete = self.complete and not check.missing

    def _strays(self) -> Iterator[str]:
        for query in ("stray_steps", "stray_events", "stray_heads", "stray_archived"):
            for row in self._connection.execute(QUERIES[query]):
                yield f"{query.removeprefix('stray_')}: a row {row} belongs to no run"

    def _expected(self, expected: ExpectedHead) -> Iterator[str]:
        registration = rows.find_run(self._connection, expected.run)
        place = f"run {expected.run}, seq {expected.seq}"
        if registration is None:
            yield f"run {expected.run}: a head was expected, but there is no such run"
            return
        found = self._event_at(registration, expected.seq)
        if not found:
            yield f"{place}: it was expected, and the history does not reach it"
        elif Event._make(found[0]).hash.hex() != expected.hash.lower():
            yield f"{place}: another hash was expected"

    def _event_at(self, registration: Registration, seq: int) -> list[tuple[Any, ...]]:
        archived = rows.where_archived(self._connection, registration)
        if archived is not None:
            return list(archived.read(after=seq - 1, limit=1).events)
        return list(self._connection.execute(QUERIES["event_at"], (registration.run, seq)))


class RowsOfRuns(Protocol):
    """Where the rows of runs come from, for runs that are asked for in order."""

    def of(self, run: int) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a run."""


class RunCheck:
    """The check of one run after the other, wherever their rows are.

    `events` counts what was looked at. `writers` is to be filled in first.
    """

    def __init__(
        self, steps: RowsOfRuns, events: RowsOfRuns, head: Callable[[int], Head | None]
    ) -> None:
        self.writers: dict[int, bytes] = {}
        self.events = 0
        self._steps = steps
        self._stored = events
        self._head = head
        self._pinned: tuple[str, set[tuple[str, str]]] = ("", set())

    def findings(self, registration: Registration, namespace: str) -> Iterator[str]:
        """Yield what is wrong with the rows of a run."""
        place = f"run {registration.run} ({registration.id})"
        if self.writers.get(registration.epoch) != registration.writer:
            yield f"{place}: registered by a writer that epoch {registration.epoch} does not name"
        steps = rows.steps_of(registration.run, self._steps.of(registration.run))
        rows.check_steps(registration, steps)
        yield from rows.key_problems(registration, steps, namespace)
        yield from self._adapters(registration, steps)
        head = yield from self._events(registration, steps)
        if head is not None and head != self._head(registration.run):
            yield f"{place}: {rows.head_problem(head)}"

    def _adapters(self, registration: Registration, steps: list[StepRow]) -> Iterator[str]:
        """Yield each step that needs another adapter than the run has pinned."""
        if self._pinned[0] != registration.adapters:  # mostly as in the run before
            terms = terms_of(registration)
            pinned = {(identity, term.contract.value) for identity, term in terms.items()}
            self._pinned = registration.adapters, pinned
        for row in steps:
            if (row.adapter, row.contract) not in self._pinned[1]:
                yield (
                    f"run {registration.run} ({registration.id}), step {row.step}: "
                    f"the run pinned no adapter {row.adapter} that is {row.contract}"
                )

    def _events(
        self, registration: Registration, steps: list[StepRow]
    ) -> Generator[str, None, Head | None]:
        """Yield what is wrong with a run's events, up to the first bad one; return the head if
        none is."""
        place = f"run {registration.run} ({registration.id})"
        history = RunHistory(registration, steps)
        writer = self.writers.get(registration.epoch)
        follower = Follower(history, writer=writer, judges_payloads=True)
        events = self._stored.of(registration.run)
        last: Event | None = None
        try:
            while (row := follower.take(events)) is not None:
                last = event_of(row, registration)
                problem = self._event_problem(history, last)
                if problem:
                    self.events += 1
                    yield f"{place}, seq {last.seq}: {problem}"
                    return None
                history.head = next_head(history.head, last)
                follower.writer = last.writer
        finally:
            self.events += history.head.seq
        if history.head.seq == 0:
            yield f"{place}: it has no events, and a run is registered with its first"
        elif last is not None and last.seq == history.head.seq and last.event == RunEvent.ADOPT:
            yield f"{place}, seq {last.seq}: an adopt is never written alone"
        return history.head

    def _event_problem(self, history: RunHistory, event: Event) -> str | None:
        head, contract = history.head, history.open_step.contract
        if event_link(head.hash, event) != event.hash:
            return f"the row does not fit its hash (expected seq {head.seq + 1})"
        if self.writers.get(event.epoch) != event.writer:
            return f"written by a writer that epoch {event.epoch} does not name"
        for problem in complaints(head, contract, event):
            return problem
        payload = payload_of(event)
        if (
            event.state == StepState.SUCCEEDED
            and "result" not in payload
            and "unstorable" not in payload
        ):
            return "a step succeeded without a result"
        return None
