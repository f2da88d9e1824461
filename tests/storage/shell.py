"""The `sqlite3` command as any distribution ships it, as a second and careless writer."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent_replay.events import Event, Head
from agent_replay.lifecycles.coupling import Permitted
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, StepEvent
from tests.storage.histories import TABLES, Value, content

_TIMEOUT_SECONDS = 60
_SAID = re.compile(r"^(.*?) near line (\d+): (.*?)(?: \(\d+\))?$")
_BY_THE_DATABASE = re.compile(
    rf"({'|'.join(TABLES)}): |datatype mismatch$|(NOT NULL|CHECK|UNIQUE) constraint failed: "
)

VERBS = (
    "insert into",
    "insert or replace into",
    "replace into",
    "insert or ignore into",
    "insert or fail into",
    "insert or abort into",
    "insert or rollback into",
)


class Said(NamedTuple):
    """What the shell printed, and its complaints by the line of the script."""

    output: list[str]
    complaints: dict[int, str]


def shell(path: Path, lines: Sequence[str]) -> Said:
    """Have the shell run a script to its end, whatever fails on the way; a line is a statement."""
    done = subprocess.run(
        ["sqlite3", "-batch", "-init", os.devnull, str(path)],
        input="\n".join([".bail off", *lines]) + "\n",
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    complaints = {}
    for line in done.stderr.splitlines():
        said = _SAID.match(line)
        if said is not None:  # else it is a line that shows the statement again
            assert not said[1].startswith("Parse"), line
            complaints[int(said[2]) - 1] = said[3]
    return Said(done.stdout.splitlines(), complaints)


def refusals(path: Path, statements: Iterable[str]) -> list[str]:
    """Return why the database refuses these statements: each of them, and without a trace."""
    script = list(statements)
    assert script, "nothing was tried"
    before = content(path)
    said = shell(path, script)
    assert content(path) == before
    accepted = [
        line for number, line in enumerate(script, start=1) if number not in said.complaints
    ]
    assert accepted == [], f"{len(accepted)} of {len(script)}"
    messages = [said.complaints[number] for number in range(1, len(script) + 1)]
    assert [message for message in messages if not _BY_THE_DATABASE.match(message)] == []
    return messages


def literal(value: Value) -> str:
    """Return a value as SQL writes it."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def values(row: Iterable[Value]) -> str:
    """Return a row as SQL writes it."""
    return f"({', '.join(map(literal, row))})"


def insert(table: str, row: Iterable[Value], verb: str = VERBS[0]) -> str:
    """Return the statement that inserts a whole row."""
    return f"{verb} {table} values {values(row)};"


def row_after(
    head: Head,
    event: StepEvent | RunEvent,
    actor: Actor,
    to: Permitted,
    writer: bytes,
    *,
    of_step: bool,
    epoch: int | None = None,
) -> Event:
    """Return the row that a move from this head has in the history, but for its hash."""
    sends = event in (StepEvent.REQUEST, StepEvent.RESEND)
    return Event(
        run=head.run,
        seq=head.seq + 1,
        event=event.value,
        coupled=" ".join(to.coupled),
        actor=actor.value,
        step=head.step if of_step else None,
        attempt=head.attempt + sends if of_step else None,
        state=to.target.value if of_step else None,
        run_state=to.run_target.value,
        epoch=head.epoch if epoch is None else epoch,
        writer=writer,
        wall_ns=1,
        boot_ns=1,
        payload='{"result":null}',
        hash=bytes(32),
    )
