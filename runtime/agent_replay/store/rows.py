"""Reading rows as the values of `events`, for writers and readers alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import apsw

from agent_replay import history, plan
from agent_replay.chain import identity_link
from agent_replay.errors import DamagedHistory, NoSuchRun
from agent_replay.events import Event, Head, Registration, StepRow, Writer
from agent_replay.keys import idempotency_key
from agent_replay.lifecycles.step import Contract
from agent_replay.store.schema import read_identity
from agent_replay.store.sql import QUERIES

_WRITER = (int, bytes, str, str, int, int, str, bytes)
_REGISTRATION = (int, str, str, int, int, str, str, int, bytes, int, int, bytes)
_STEP = (int, int, str, str, str, str, str)
_STEP_EVENT = (int, int, str, str, str, int, int, str, str, int, bytes, int, int, str, bytes)
_NONE = type(None)
_RUN_EVENT = (*_STEP_EVENT[:5], _NONE, _NONE, _NONE, *_STEP_EVENT[8:])
_HEAD = (int, int, bytes, str, int, str, int, int, int)

Row = tuple[object, ...]


def typed(
    place: str, rows: Iterable[Row], *kinds: tuple[type, ...], column: int = 0
) -> Iterator[Row]:
    """Yield rows whose values have the types of their columns, or raise `DamagedHistory`.

    The message has the place and the row's value of `column`. A STRICT table keeps other values
    out, but the type of a value is one byte in the file.
    """
    for row in rows:
        if tuple(map(type, row)) not in kinds:
            raise DamagedHistory(f"{place} {row[column]!a}: a value in the row is of another type")
        yield row


def find_run(connection: apsw.Connection, run_id: str) -> Registration | None:
    """Return the registration of a run, or None if the id is free."""
    for row in typed("runs: run", connection.execute(QUERIES["run"], (run_id,)), _REGISTRATION):
        return Registration._make(row)
    return None


def read_registrations(connection: apsw.Connection) -> Iterator[Registration]:
    """Yield the registrations of all runs, in order."""
    rows = typed("runs: run", connection.execute(QUERIES["runs"]), _REGISTRATION)
    return map(Registration._make, rows)


def known_run(connection: apsw.Connection, run_id: str) -> Registration:
    """Return the registration of a run, or raise `NoSuchRun`."""
    found = find_run(connection, run_id)
    if found is None:
        raise NoSuchRun(
            f"there is no run {run_id!r} in this database; `agent-replay list` shows those there "
            "are"
        )
    return found


def link_before(connection: apsw.Connection, run: int) -> bytes:
    """Return the link of the chain of runs on which the registration of this run hangs."""
    if run == 1:
        return identity_link(*read_identity(connection))
    for (link,) in connection.execute(QUERIES["run_hash"], (run - 1,)):
        return bytes(link)
    raise DamagedHistory(
        f"run {run - 1} is missing before run {run}; keep a copy of the file and do not write to it"
    )


def read_steps(connection: apsw.Connection, run: int) -> list[StepRow]:
    """Return the steps of a run, in order."""
    rows = typed(f"run {run}, step", connection.execute(QUERIES["steps"], (run,)), _STEP, column=1)
    return list(map(StepRow._make, rows))


def read_events(connection: apsw.Connection, registration: Registration) -> Iterator[Event]:
    """Yield the events of a run, in order."""
    found = connection.execute(QUERIES["events"], (registration.run,))
    place = f"run {registration.run} ({registration.id}), seq"
    return map(Event._make, typed(place, found, _STEP_EVENT, _RUN_EVENT, column=1))


def read_head(connection: apsw.Connection, run: int) -> Head | None:
    """Return where the database says that a run stands."""
    for row in typed("heads: run", connection.execute(QUERIES["head"], (run,)), _HEAD):
        return Head._make(row)
    return None


def last_writer(connection: apsw.Connection) -> Writer | None:
    """Return the writer that wrote last, or None if nobody did."""
    for row in typed("writers: epoch", connection.execute(QUERIES["last_writer"]), _WRITER):
        return Writer._make(row)
    return None


def read_writers(connection: apsw.Connection) -> Iterator[Writer]:
    """Yield all that have written, in order."""
    return map(
        Writer._make, typed("writers: epoch", connection.execute(QUERIES["writers"]), _WRITER)
    )


def planned_steps(registration: Registration, rows: Sequence[StepRow]) -> list[plan.Step]:
    """Return the steps of a run's plan, or raise `DamagedHistory` if they are not those it
    registered."""
    place = f"run {registration.run} ({registration.id})"
    if len(rows) != registration.steps:
        raise DamagedHistory(
            f"{place}: {len(rows)} steps are stored, {registration.steps} were registered"
        )
    steps = []
    for number, row in enumerate(rows, start=1):
        if row.step != number:
            raise DamagedHistory(f"{place}: step {row.step} stands where step {number} was to be")
        name, _, version = row.adapter.partition("@")
        try:
            contract = Contract(row.contract)
        except ValueError:
            raise DamagedHistory(
                f"{place}, step {row.step}: unknown contract {row.contract!r}"
            ) from None
        steps.append(
            plan.Step(
                id=row.id,
                adapter=name,
                version=version,
                contract=contract,
                arguments_text=row.arguments,
            )
        )
    if plan.plan_digest(steps) != registration.plan:
        raise DamagedHistory(f"{place}: the stored steps are not the plan that was registered")
    return steps


def key_problems(
    registration: Registration, rows: Sequence[StepRow], namespace: str
) -> Iterator[str]:
    """Yield each step whose stored key is not the one that its plan gives it."""
    for row in rows:
        name = row.adapter.partition("@")[0]
        key = idempotency_key(namespace, registration.id, row.id, name, row.arguments)
        if key != row.key:
            yield (
                f"run {registration.run} ({registration.id}), step {row.step}: "
                "the key does not belong to the step"
            )


def head_problem(told: Head) -> str:
    """Return in words that a head is not where its history ends."""
    return (
        f"the history ends at seq {told.seq}, {told.run_state}; its head says otherwise "
        "(rows are cut off, or the head was changed)"
    )


def read_history(
    connection: apsw.Connection, registration: Registration, events: Iterable[Event] | None = None
) -> history.RunHistory:
    """Return a run with its whole history, each row checked against the one before it.

    `events` are its rows, if they have been read already. Raises `DamagedHistory` naming the first
    row that cannot be.
    """
    run = registration.run
    events = read_events(connection, registration) if events is None else events
    rows = read_steps(connection, run)
    planned_steps(registration, rows)
    namespace = read_identity(connection).namespace
    for problem in key_problems(registration, rows, namespace):
        raise DamagedHistory(problem)
    told = history.fold(registration, rows, events, previous=link_before(connection, run))
    head = read_head(connection, run)
    if head != told.head:
        raise DamagedHistory(
            f"run {run} ({registration.id}): {head_problem(told.head)}; "
            "keep a copy of the file and run verify on it"
        )
    return told
