"""Verify a whole database: every row against the chains, the lifecycle table and the shipped
schema.

Rows are streamed, in one read transaction, so memory does not grow with the history. A damaged run
is named with its first bad row, and the next run is looked at. What cannot be detected: rows, heads
and registrations that were all rewritten consistently, by somebody who computed the chains anew.
Against that, heads that were written down elsewhere can be given (`expected`).
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
    """What was checked, and what was found; `complete` says that every row was looked at."""

    runs: int
    events: int
    findings: tuple[str, ...]
    complete: bool

    @property
    def sound(self) -> bool:
        """Return whether everything was checked and nothing found."""
        return self.complete and not self.findings


def verify(path: str | os.PathLike[str], *, expected: Iterable[ExpectedHead] = ()) -> Verdict:
    """Verify a database and return what was found; raises only if the file cannot be opened at
    all."""
    connection = connect_reader(files.check_path(path))
    try:
        return verify_connection(connection, expected=expected)
    finally:
        connection.close()


def verify_connection(
    connection: apsw.Connection, *, expected: Iterable[ExpectedHead] = ()
) -> Verdict:
    """Verify the database behind an open connection."""
    check = _Check(connection)
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
        runs=check.runs, events=check.events, findings=tuple(findings), complete=complete
    )


class _Check:
    """One pass over a database.

    `runs` and `events` count what was looked at; `complete` says that nothing had to be left out.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.runs = 0
        self.events = 0
        self.complete = True
        self._writers: dict[int, bytes] = {}
        self._steps = Ahead(connection, ahead=QUERIES["steps_from"], alone=QUERIES["steps"], text=5)
        self._stored_events = Ahead(
            connection, ahead=QUERIES["events_from"], alone=QUERIES["events"], text=13
        )
        self._pinned: tuple[str, set[tuple[str, str]]] = ("", set())

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
            if name not in ("runs", "writers"):
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
            self._writers[row.epoch] = row.writer
            link = row.hash
        yield from self._chain("writers", count, link)

    def _all_runs(self, link: bytes, namespace: str) -> Iterator[str]:
        count = 0
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
            yield from self._readable(place, self._one_run(row, namespace))
        yield from self._chain("runs", count, link)

    def _one_run(self, registration: Registration, namespace: str) -> Iterator[str]:
        place = f"run {registration.run} ({registration.id})"
        if self._writers.get(registration.epoch) != registration.writer:
            yield f"{place}: registered by a writer that epoch {registration.epoch} does not name"
        steps = rows.steps_of(registration.run, self._steps.of(registration.run))
        rows.check_steps(registration, steps)
        yield from rows.key_problems(registration, steps, namespace)
        yield from self._adapters(registration, steps)
        head = yield from self._events(registration, steps)
        if head is not None and head != rows.read_head(self._connection, registration.run):
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
        writer = self._writers.get(registration.epoch)
        follower = Follower(history, writer=writer, judges_payloads=True)
        events = self._stored_events.of(registration.run)
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
        if self._writers.get(event.epoch) != event.writer:
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

    def _strays(self) -> Iterator[str]:
        for query in ("stray_steps", "stray_events", "stray_heads"):
            for row in self._connection.execute(QUERIES[query]):
                yield f"{query.removeprefix('stray_')}: a row {row} belongs to no run"

    def _expected(self, expected: ExpectedHead) -> Iterator[str]:
        registration = rows.find_run(self._connection, expected.run)
        place = f"run {expected.run}, seq {expected.seq}"
        if registration is None:
            yield f"run {expected.run}: a head was expected, but there is no such run"
            return
        found = list(
            self._connection.execute(QUERIES["event_at"], (registration.run, expected.seq))
        )
        if not found:
            yield f"{place}: it was expected, and the history does not reach it"
        elif Event._make(found[0]).hash.hex() != expected.hash.lower():
            yield f"{place}: another hash was expected"
