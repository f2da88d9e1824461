"""Reading rows as the values of `events`, for writers and readers alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw

from agent_replay import plan
from agent_replay.chain import identity_link
from agent_replay.errors import DamagedHistory, NoSuchRun
from agent_replay.events import CONTRACTS, Head, Registration, StepRow, Writer
from agent_replay.follow import EventRow, fold
from agent_replay.history import RunHistory
from agent_replay.keys import keys_of
from agent_replay.store.schema import read_identity
from agent_replay.store.sql import QUERIES

if TYPE_CHECKING:
    from agent_replay.store.archive.reading import Archived

_WRITER = (int, bytes, str, str, int, int, str, bytes)
_REGISTRATION = (int, str, str, int, int, str, str, int, bytes, int, int, bytes)
_STEP = (int, int, str, str, str, str, str)
_HEAD = (int, int, bytes, str, int, str, int, int, int)
_AS_STEP_ROW = partial(tuple.__new__, StepRow)

Row = tuple[object, ...]


def typed(
    place: str, rows: Iterable[Row], kinds: tuple[type, ...], column: int = 0
) -> Iterator[Row]:
    """Yield rows whose values have the types of their columns, or raise `DamagedHistory`.

    The message has the place and the row's value of `column`. A STRICT table keeps other values
    out, but the type of a value is one byte in the file.
    """
    for row in rows:
        if tuple(map(type, row)) != kinds:
            raise DamagedHistory(f"{place} {row[column]!a}: a value in the row is of another type")
        yield row


def find_run(connection: apsw.Connection, run_id: str) -> Registration | None:
    """Return the registration of a run, or None if the id is free."""
    for row in typed("runs: run", connection.execute(QUERIES["run"], (run_id,)), _REGISTRATION):
        return Registration._make(row)
    return None


def numbered_run(connection: apsw.Connection, run: int) -> Registration | None:
    """Return the registration of a run by its number."""
    found = connection.execute(QUERIES["run_numbered"], (run,))
    for row in typed("runs: run", found, _REGISTRATION):
        return Registration._make(row)
    return None


def where_archived(connection: apsw.Connection, registration: Registration) -> Archived | None:
    """Return what is to be known of a run whose rows are in an archive, or None."""
    for _ in connection.execute(QUERIES["is_archived"], (registration.run,)):
        from agent_replay.store.archive.reading import archived_run  # here: it is rare

        return archived_run(connection, registration)
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
    return steps_of(run, connection.execute(QUERIES["steps"], (run,)))


def steps_of(run: int, stored: Iterable[Row]) -> list[StepRow]:
    """Return the steps of a run from its rows, or raise `DamagedHistory` if their values are of
    other types."""
    rows = list(stored)
    if [{*map(type, column)} for column in _columns(rows)] != [{kind} for kind in _STEP]:
        rows = list(typed(f"run {run}, step", rows, _STEP, column=1))
    return list(map(_AS_STEP_ROW, rows))


def read_step(connection: apsw.Connection, run: int, step: int) -> StepRow | None:
    """Return one step of a run, or None if there is no such step."""
    found = connection.execute(QUERIES["step"], (run, step))
    for row in typed(f"run {run}, step", found, _STEP, column=1):
        return StepRow._make(row)
    return None


def read_events(connection: apsw.Connection, registration: Registration) -> Iterator[EventRow]:
    """Yield the events of a run, in order, as they are stored: whoever takes them checks them."""
    return iter(connection.execute(QUERIES["events"], (registration.run,)))


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


def read_writers(
    connection: apsw.Connection, epochs: Iterable[int] | None = None
) -> Iterator[Writer]:
    """Yield all that have written, or those of these epochs, in order."""
    found: Iterable[Row] = connection.execute(QUERIES["writers"]) if epochs is None else ()
    if epochs is not None:
        query = QUERIES["writer"]
        found = (row for epoch in epochs for row in connection.execute(query, (epoch,)))
    return map(Writer._make, typed("writers: epoch", found, _WRITER))


def _columns(rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Return the columns of rows of `steps`."""
    return list(zip(*rows, strict=True)) or [()] * len(StepRow._fields)


def check_steps(registration: Registration, rows: Sequence[StepRow]) -> None:
    """Raise `DamagedHistory` if the steps of a run are not those that it registered."""
    place = f"run {registration.run} ({registration.id})"
    if len(rows) != registration.steps:
        raise DamagedHistory(
            f"{place}: {len(rows)} steps are stored, {registration.steps} were registered"
        )
    _, numbers, ids, adapters, contracts, arguments, _ = _columns(rows)
    if numbers != tuple(range(1, len(rows) + 1)) or not CONTRACTS.keys() >= {*contracts}:
        for number, row in enumerate(rows, start=1):
            if row.step != number:
                raise DamagedHistory(
                    f"{place}: step {row.step} stands where step {number} was to be"
                )
            if row.contract not in CONTRACTS:
                raise DamagedHistory(f"{place}, step {number}: unknown contract {row.contract!r}")
    if plan.digest_of_columns(ids, adapters, contracts, arguments) != registration.plan:
        raise DamagedHistory(f"{place}: the stored steps are not the plan that was registered")


def planned_steps(rows: Iterable[StepRow]) -> list[plan.Step]:
    """Return the steps of a run's plan, from rows that have been checked."""
    steps = []
    for row in rows:
        name, _, version = row.adapter.partition("@")
        steps.append(plan.Step(row.id, name, version, CONTRACTS[row.contract], row.arguments))
    return steps


def key_problems(
    registration: Registration, rows: Sequence[StepRow], namespace: str
) -> Iterator[str]:
    """Yield each step whose stored key is not the one that its plan gives it."""
    _, _, ids, adapters, _, arguments, _ = _columns(rows)
    names = {adapter: adapter.partition("@")[0] for adapter in {*adapters}}
    keys = keys_of(namespace, registration.id, ids, map(names.__getitem__, adapters), arguments)
    for row, key in zip(rows, keys, strict=True):
        if row[-1] != key:
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


def read_history(connection: apsw.Connection, registration: Registration) -> RunHistory:
    """Return a run with its whole history, each row checked against the one before it.

    Raises `DamagedHistory` naming the first row that cannot be.
    """
    run = registration.run
    rows = read_steps(connection, run)
    check_steps(registration, rows)
    namespace = read_identity(connection).namespace
    for problem in key_problems(registration, rows, namespace):
        raise DamagedHistory(problem)
    before = link_before(connection, run)
    told = fold(registration, rows, read_events(connection, registration), previous=before)
    head = read_head(connection, run)
    if head != told.head:
        raise DamagedHistory(
            f"run {run} ({registration.id}): {head_problem(told.head)}; "
            "keep a copy of the file and run verify on it"
        )
    return told


def find_history(connection: apsw.Connection, registration: Registration) -> RunHistory | Archived:
    """Return a run with its whole history, or what is to be known to read it from its archive."""
    archived = where_archived(connection, registration)
    return read_history(connection, registration) if archived is None else archived
