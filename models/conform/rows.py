"""The rows of a database as `conform` judges them, and what it says of them.

They are read in place, by the shipped reader, which neither writes nor checkpoints, in one read
transaction. Nothing is judged here.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from typing import NamedTuple

from agent_replay.errors import DamagedHistory
from agent_replay.store.reader import Reader


class Stamp(NamedTuple):
    """When a row was written: wall clock, clock since boot, and which boot that was."""

    wall_ns: int
    boot_ns: int
    boot: str


class Row(NamedTuple):
    """One event of a run."""

    seq: int
    event: str
    coupled: str
    actor: str
    step: int | None
    attempt: int | None
    state: str | None
    run_state: str
    epoch: int
    writer: bytes
    stamp: Stamp
    payload: dict[str, object]


class StepOf(NamedTuple):
    """One step of a run's plan, with the terms that the run pinned of its adapter."""

    number: int
    id: str
    adapter: str
    contract: str
    arguments: str
    key: str
    terms: dict[str, object]


class RunOf(NamedTuple):
    """One run with its plan and its history."""

    number: int
    id: str
    steps: tuple[StepOf, ...]
    steps_registered: int
    attempts_max: int
    epoch: int
    writer: bytes
    rows: tuple[Row, ...]


class Histories(NamedTuple):
    """All runs of a database, and the writers by epoch."""

    namespace: str
    writers: dict[int, bytes]
    runs: tuple[RunOf, ...]
    strays: tuple[int, ...] = ()
    """The numbers under which there are steps or events, and no run."""
    archived: int = 0
    """Runs that have left for an archive, and are not among them."""


class Finding(NamedTuple):
    """What is no path: where, what was found, and what was legal there.

    `seq` is 0 where it is about the registration.
    """

    run: str
    seq: int
    found: str
    legal: str

    def text(self) -> str:
        """Return the finding as a line."""
        return f"run {self.run}, seq {self.seq}: {self.found}; legal was: {self.legal}"


def read(path: str | os.PathLike[str]) -> Histories:
    """Return the histories in a file; raises `ReplayError` if it cannot be read or is of another
    spec."""
    tables: dict[str, list[dict[str, object]]] = defaultdict(list)
    with Reader(path) as reader:
        reader.check_spec()
        for table, values, columns in reader.export():
            tables[table].append(dict(zip(columns, values, strict=True)))
    return histories(tables)


def histories(tables: dict[str, list[dict[str, object]]]) -> Histories:
    """Return the histories that the rows of an export are; those of archived runs are not there."""
    archived = {_number(row, "run") for row in tables.get("archived", ())}
    boots = {_number(row, "epoch"): str(row["boot_id"]) for row in tables["writer"]}
    rows: dict[int, list[Row]] = defaultdict(list)
    for event in tables["event"]:
        rows[_number(event, "run")].append(_row(event, boots))
    steps: dict[int, list[dict[str, object]]] = defaultdict(list)
    for step in tables["step"]:
        steps[_number(step, "run")].append(step)
    return Histories(
        namespace=str(tables["identity"][0]["namespace"]),
        writers={_number(row, "epoch"): _blob(row, "writer") for row in tables["writer"]},
        runs=tuple(
            _run(run, steps[_number(run, "run")], rows[_number(run, "run")])
            for run in tables["run"]
            if _number(run, "run") not in archived
        ),
        strays=tuple(sorted({*rows, *steps} - {_number(run, "run") for run in tables["run"]})),
        archived=len(archived),
    )


def _run(run: dict[str, object], steps: list[dict[str, object]], rows: list[Row]) -> RunOf:
    pinned = _object(run["adapters"])
    return RunOf(
        number=_number(run, "run"),
        id=str(run["id"]),
        steps=tuple(_step(step, pinned) for step in steps),
        steps_registered=_number(run, "steps"),
        attempts_max=_number(run, "attempts_max"),
        epoch=_number(run, "epoch"),
        writer=_blob(run, "writer"),
        rows=tuple(rows),
    )


def _step(step: dict[str, object], pinned: dict[str, object]) -> StepOf:
    terms = pinned.get(str(step["adapter"]))
    return StepOf(
        number=_number(step, "step"),
        id=str(step["id"]),
        adapter=str(step["adapter"]),
        contract=str(step["contract"]),
        arguments=str(step["arguments"]),
        key=str(step["key"]),
        terms=terms if isinstance(terms, dict) else {},
    )


def _row(event: dict[str, object], boots: dict[int, str]) -> Row:
    epoch = _number(event, "epoch")
    step, attempt, state = event["step"], event["attempt"], event["state"]
    return Row(
        seq=_number(event, "seq"),
        event=str(event["event"]),
        coupled=str(event["coupled"]),
        actor=str(event["actor"]),
        step=step if isinstance(step, int) else None,
        attempt=attempt if isinstance(attempt, int) else None,
        state=state if isinstance(state, str) else None,
        run_state=str(event["run_state"]),
        epoch=epoch,
        writer=_blob(event, "writer"),
        stamp=Stamp(_number(event, "wall_ns"), _number(event, "boot_ns"), boots.get(epoch, "")),
        payload=_object(event["payload"]),
    )


def _number(row: dict[str, object], column: str) -> int:
    value = row[column]
    if not isinstance(value, int):
        raise _damage(column, value)
    return value


def _blob(row: dict[str, object], column: str) -> bytes:
    value = row[column]
    if not isinstance(value, bytes):
        raise _damage(column, value)
    return value


def _damage(column: str, value: object) -> DamagedHistory:
    return DamagedHistory(
        f"{column} is {value!a:.80}, and a history never holds that; run verify on the file"
    )


def _object(text: object) -> dict[str, object]:
    """Return the JSON object that a text is; an empty one if it is none, which has no reason."""
    try:
        value = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
