"""The chains of a database, computed anew from its rows.

A record is hashed as the 32 bytes of the link before it, then its name and its columns, each with
type and length: `t<bytes>:` and UTF-8 for a text, `b<bytes>:` for a blob, `i<decimal>;` for an
integer, `n;` for null. Rows come as JSON objects, their blobs as hexadecimal text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

BLOBS = frozenset({"writer", "hash"})
COLUMNS = {
    "identity": ("namespace", "created_ns", "spec"),
    "writer": ("epoch", "writer", "spec", "boot_id", "opened_ns", "pid", "host"),
    "run": (
        *("run", "id", "plan", "steps", "attempts_max", "adapters", "hint"),
        *("epoch", "writer", "wall_ns", "boot_ns"),
    ),
    "event": (
        *("run", "seq", "event", "coupled", "actor", "step", "attempt", "state", "run_state"),
        *("epoch", "writer", "wall_ns", "boot_ns", "payload"),
    ),
}
TABLES = {"writers": "writer", "runs": "run", "events": "event"}
"""The tables whose rows are chained, each with the name of its record."""
CHAIN_COLUMNS = {"name", "count", "hash"}
STEP_COLUMNS = {"run", "step", "id", "adapter", "contract", "arguments", "key"}


def link(previous: bytes, record: str, row: Row) -> bytes:
    """Return the link of a row of that record after another link."""
    hashed = hashlib.sha256(previous + _field(record))
    for column in COLUMNS[record]:
        value = row[column]
        hashed.update(_field(bytes.fromhex(value) if column in BLOBS else value))
    return hashed.digest()


def _field(value: str | bytes | int | None) -> bytes:
    if value is None:
        return b"n;"
    if isinstance(value, int):
        return f"i{value};".encode()
    raw = value.encode() if isinstance(value, str) else value
    return f"{'t' if isinstance(value, str) else 'b'}{len(raw)}:".encode() + raw


def complaints(database: Mapping[str, Any]) -> Iterator[str]:
    """Yield each row that does not fit the row before it, or the end of its chain."""
    yield from _columns(database)
    start = link(bytes(32), "identity", database["identity"])
    ends = {"writers": _follow(start, "writer", database["writers"])}
    yield from ends["writers"][2]
    previous = start
    for row in database["runs"]:
        if link(previous, "run", row).hex() != row["hash"]:
            yield f"run {row['run']}: the registration does not fit its hash"
        previous = bytes.fromhex(row["hash"])
        events = [event for event in database["events"] if event["run"] == row["run"]]
        yield from _follow(previous, "event", events)[2]
    ends["runs"] = (len(database["runs"]), previous.hex(), [])
    yield from _ends(database, ends, start)


def _ends(
    database: Mapping[str, Any], ends: Mapping[str, tuple[int, str, list[str]]], start: bytes
) -> Iterator[str]:
    """Yield each chain that ends elsewhere; nothing of these databases is in an archive, and the
    chain of what is was added after the first reports."""
    found = {chain["name"]: (chain["count"], chain["hash"]) for chain in database["chains"]}
    for name, (count, last, _) in ends.items():
        if found.get(name) != (count, last):
            yield f"the chain of {name} ends elsewhere than its rows"
    if found.get("archived", (0, start.hex())) != (0, start.hex()):
        yield "the chain of archived runs does not end where it begins"


def _columns(database: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a table or a column is missing, or is one that no hash would cover."""
    if database.keys() != {"identity", "steps", "chains", *TABLES}:
        yield f"the tables are {', '.join(sorted(database))}"
    if database["identity"].keys() != set(COLUMNS["identity"]):
        yield "identity: it has other columns"
    if any(row.keys() != CHAIN_COLUMNS for row in database["chains"]):
        yield "chains: a row has other columns"
    for table, record in TABLES.items():
        for number, row in enumerate(database[table], start=1):
            if row.keys() != {*COLUMNS[record], "hash"}:
                yield f"{table}, row {number}: it has other columns"


def _follow(previous: bytes, record: str, rows: Sequence[Row]) -> tuple[int, str, list[str]]:
    """Return count and end of a chain, and the rows that do not fit."""
    wrong = []
    for row in rows:
        if link(previous, record, row).hex() != row["hash"]:
            place = f"{record} {row.get('seq', row.get('epoch'))}"
            wrong.append(f"{place} (run {row.get('run', '-')}): the row does not fit its hash")
        previous = bytes.fromhex(row["hash"])
    return len(rows), previous.hex(), wrong


def key(namespace: str, run: str, step: Row) -> str:
    """Return the idempotency key of a step."""
    named = [namespace, run, step["id"], step["adapter"].partition("@")[0], step["arguments"]]
    return hashlib.sha256(json.dumps(named, separators=(",", ":")).encode()).hexdigest()


def plan_digest(steps: Sequence[Row]) -> str:
    """Return the digest of a plan from its stored steps."""
    parts = [
        f'{{"adapter":"{step["adapter"]}","arguments":{step["arguments"]},'
        f'"contract":"{step["contract"]}","id":"{step["id"]}"}}'
        for step in steps
    ]
    return hashlib.sha256(('{"plan":1,"steps":[' + ",".join(parts) + "]}").encode()).hexdigest()
