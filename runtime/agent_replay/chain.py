"""The hash chains: which bytes are hashed, and in which order.

A link is SHA-256 over the 32 bytes of the link before it, then the record's fields. Each field is
written with its type and length, so that no text can move from one field to the next unseen:

    text     t<bytes in UTF-8>:<the bytes>        blob     b<bytes>:<the bytes>
    integer  i<decimal>;                          null     n;

The fields are the columns in the order of the table without `hash`, after a first text field that
names the record (`identity`, `writer`, `run`, `event` or `archived`). The chains hang on the
database's identity, whose own link comes after 32 zero bytes: the writers, the runs and the
archived runs, one after the other, and the events of each run, whose first link comes after the
run's registration. The stored bytes are hashed, never a value that was read and written again.

A chain shows accidents. Whoever may write the file can forge all of it: nothing here is keyed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from agent_replay.events import Event, Registration, Writer

Field = str | int | bytes | None

ZERO = bytes(32)


def link(previous: bytes, name: str, fields: Sequence[Field]) -> bytes:
    """Return the link that comes after `previous`."""
    return sha256(previous + _hashed(name, *fields)).digest()


def _hashed(*fields: Field) -> bytes:
    parts = []
    for field in fields:
        if isinstance(field, str):
            encoded = field.encode("utf-8")
            parts.append(b"t%d:%s" % (len(encoded), encoded))
        elif isinstance(field, int):
            parts.append(b"i%d;" % field)
        elif field is None:
            parts.append(b"n;")
        else:
            parts.append(b"b%d:%s" % (len(field), field))
    return b"".join(parts)


def identity_link(namespace: str, created_ns: int, spec: str) -> bytes:
    """Return the link of the database's identity, on which all chains hang."""
    return link(ZERO, "identity", (namespace, created_ns, spec))


def writer_link(previous: bytes, writer: Writer) -> bytes:
    """Return the link of a writer; `hash` of the row is ignored."""
    return link(previous, "writer", writer[:-1])


def registration_link(previous: bytes, registration: Registration) -> bytes:
    """Return the link of a run's registration; `hash` of the row is ignored."""
    return link(previous, "run", registration[:-1])


def event_link(previous: bytes, event: Event) -> bytes:
    """Return the link of an event; `hash` of the row is ignored.

    It is `link` over the columns, written out, since every row that is written or verified comes
    here; the parts that return in many rows are made once.
    """
    (
        run, seq, name, coupled, actor, step, attempt, state, run_state,
        epoch, writer, wall_ns, boot_ns, payload, _,
    ) = event  # fmt: skip
    before, after = event_words(name, coupled, actor, state, run_state)
    text = payload.encode()
    if step is not None and attempt is not None:
        return sha256(
            b"%bt5:eventi%d;i%d;%bi%d;i%d;%b%bi%d;i%d;t%d:%b"
            % (
                previous, run, seq, before, step, attempt, after, writer_words(epoch, writer),
                wall_ns, boot_ns, len(text), text,
            )
        ).digest()  # fmt: skip
    return link(previous, "event", event[:-1])


@lru_cache(maxsize=256)
def event_words(
    name: str, coupled: str, actor: str, state: str | None, run_state: str
) -> tuple[bytes, bytes]:
    """Return how the texts of an event are hashed: those before its numbers, and those after."""
    return _hashed(name, coupled, actor), _hashed(state, run_state)


@lru_cache(maxsize=64)
def writer_words(epoch: int, writer: bytes) -> bytes:
    """Return how the writer of an event is hashed."""
    return _hashed(epoch, writer)
