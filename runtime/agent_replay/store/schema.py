"""The shipped schema: how a new database is filled, and what an existing one is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from agent_replay.chain import identity_link
from agent_replay.errors import DamagedHistory, SpecMismatch
from agent_replay.lifecycles.coupling import MOVES_DIGEST, PERMITTED, SPEC_VERSION
from agent_replay.store.sql import QUERIES, text_of


class Identity(NamedTuple):
    """Which database this is."""

    namespace: str
    created_ns: int
    spec: str


CHAINS = ("runs", "writers", "archived")
"""The chains that end in a row of `chains`; all hang on the identity."""
MOVES_NAMED_MAX = 10

PermittedRow = tuple[str, str, str, str, str, str, int, str, str, str]
_PERMITTED = (str, str, str, str, str, str, int, str, str, str)
SchemaRow = tuple[str, str, str, str | None]


def permitted_rows() -> list[PermittedRow]:
    """Return the rows of `permitted` for the shipped spec, in the order of their key."""
    return sorted(
        (
            MOVES_DIGEST,
            "" if contract is None else contract.value,
            source.value,
            event.value,
            actor.value,
            run_state.value,
            int(last),
            to.target.value,
            " ".join(to.coupled),
            to.run_target.value,
        )
        for (contract, source, event, actor, run_state, last), to in PERMITTED.items()
    )


def fill(connection: apsw.Connection, identity: Identity) -> None:
    """Write the schema, the permitted moves and the identity, all or nothing."""
    with connection:
        connection.execute(text_of("tables.sql"))
        connection.execute(QUERIES["add_identity"], identity)
        connection.executemany(QUERIES["add_permitted"], permitted_rows())
        link = identity_link(*identity)
        connection.executemany(QUERIES["add_chain"], [(name, link) for name in CHAINS])
        connection.execute(text_of("triggers.sql"))


def read_identity(connection: apsw.Connection) -> Identity:
    """Return the identity of an open database, or raise `DamagedHistory`."""
    rows = list(connection.execute(QUERIES["identity"]))
    if len(rows) == 1 and tuple(map(type, rows[0])) != (str, int, str, int):
        raise DamagedHistory("identity: a value is of another type; keep a copy")
    if len(rows) == 1 and rows[0][-1] != 1:
        raise DamagedHistory(f"identity: its number is {rows[0][-1]} instead of 1; keep a copy")
    if len(rows) != 1:
        raise DamagedHistory(
            f"the database has {len(rows)} identities instead of one; keep a copy and do not write "
            "to it"
        )
    return Identity(*rows[0][:-1])


def check_spec(identity: Identity) -> None:
    """Raise `SpecMismatch` unless the database was written under the shipped spec."""
    if identity.spec != MOVES_DIGEST:
        raise SpecMismatch(
            f"the database holds histories of the spec {identity.spec[:12]}, this program has "
            f"version {SPEC_VERSION}, "
            f"{MOVES_DIGEST[:12]}: use the release that wrote it, or upgrade the database"
        )


def read_schema(connection: apsw.Connection) -> list[SchemaRow]:
    """Return tables, indexes and triggers as the database has them."""
    return list(connection.execute(QUERIES["schema"]))


def shipped_schema() -> list[SchemaRow]:
    """Return tables, indexes and triggers as a new database has them."""
    connection = apsw.Connection(":memory:")
    try:
        fill(connection, Identity("", 0, MOVES_DIGEST))
        return read_schema(connection)
    finally:
        connection.close()


def differences(connection: apsw.Connection) -> Iterator[str]:
    """Yield how the database's schema and permitted moves differ from the shipped ones."""
    shipped = {(kind, name): sql for kind, name, _, sql in shipped_schema()}
    found = {(kind, name): sql for kind, name, _, sql in read_schema(connection)}
    for kind, name in sorted(shipped.keys() | found.keys()):
        if (kind, name) not in found:
            yield f"the {kind} {name} is missing"
        elif (kind, name) not in shipped:
            yield f"there is a foreign {kind} {name}"
        elif found[kind, name] != shipped[kind, name]:
            yield f"the {kind} {name} differs from the shipped one"
    if ("table", "permitted") in found:
        yield from _other_moves(list(connection.execute(QUERIES["permitted"])))


def _other_moves(found: list[PermittedRow]) -> Iterator[str]:
    """Yield how the permitted moves of a database differ from the shipped ones."""
    if any(tuple(map(type, row)) != _PERMITTED for row in found):
        yield "permitted: a value is of another type"
        return
    for spec in sorted({row[0] for row in found} - {MOVES_DIGEST}):
        yield f"permitted: there are moves of the unknown spec {spec[:12]}"
    ours = {row for row in found if row[0] == MOVES_DIGEST}
    others = sorted(ours.symmetric_difference(permitted_rows()))
    for row in others[:MOVES_NAMED_MAX]:
        move = " ".join(str(part) for part in row[1:6])
        yield f"permitted: the move {move} is {'foreign' if row in ours else 'missing'}"
    if len(others) > MOVES_NAMED_MAX:
        yield f"permitted: {len(others) - MOVES_NAMED_MAX} more moves are foreign or missing"
