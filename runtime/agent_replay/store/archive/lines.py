"""What is in an archive: lines of JSON as `export` writes them, compressed by gzip.

    {"table": "archive", "format": 1}
    {"table": "identity", ...}           of the database, on which all chains hang
    {"table": "writer", ...}             each that wrote a row below, with the link before its own
    {"table": "run", ...}                for each run: its registration, with the link before it,
    {"table": "step", ...}               its steps,
    {"table": "event", ...}              its events,
    {"table": "head", ...}               and where it ended
    {"table": "digest", "runs": ..., "events": ..., "sha256": ...}

Blobs are hex digits. The digest in the last line is over every byte before that line. Here is how
it is spelled and read, in bounded memory; whether the rows are a history is judged elsewhere.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from agent_replay.errors import ArchiveError, DamagedHistory
from agent_replay.events import Event, Head, Registration, StepRow, Writer
from agent_replay.store.schema import Identity

FORMAT: Final = 1
LINE_BYTES_MAX: Final = 64 << 20
"""More than any row takes that the runtime writes."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "archive": ("format",),
    "identity": Identity._fields,
    "writer": (*Writer._fields, "previous"),
    "run": (*Registration._fields, "previous"),
    "step": StepRow._fields,
    "event": Event._fields,
    "head": Head._fields,
    "digest": ("runs", "events", "sha256"),
}
_BLOBS: Final = frozenset({"hash", "previous", "sha256"})
_WITH_A_WRITER: Final = frozenset({"run", "event", "writer"})
"""Tables in which `writer` is a blob, as it is in all that have it."""

_CHUNK_BYTES: Final = 1 << 16
_GZIP: Final = 31  # zlib's word for a window of 32 KB with the header of gzip
_TEXT_AT_ONCE: Final = 1 << 18

Row = tuple[Any, ...]


def encode(table: str, row: Row) -> bytes:
    """Return a row as a line."""
    values = (value.hex() if isinstance(value, bytes) else value for value in row)
    named = dict(zip(COLUMNS[table], values, strict=True))
    return b"%s\n" % json.dumps({"table": table, **named}).encode()


def decode(line: bytes) -> tuple[str, Row]:
    """Return table and row of a line, or raise `DamagedHistory`."""
    try:
        value = json.loads(line)
        table = value.pop("table")
        if tuple(value) != COLUMNS[table]:
            raise DamagedHistory(f"a line of {table} has other columns")
        return table, tuple(_decoded(table, name, each) for name, each in value.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedHistory(f"a line is not what the runtime writes: {line[:60]!a}") from error


def _decoded(table: str, name: str, value: object) -> object:
    if name in _BLOBS or (name == "writer" and table in _WITH_A_WRITER):
        if not isinstance(value, str):
            raise DamagedHistory(f"{name} in a line of {table} is no text")
        return bytes.fromhex(value)
    return value


def of_run(run: int) -> tuple[bytes, ...]:
    """Return how the lines begin that are about a run."""
    return tuple(
        b'{"table": "%s", "run": %d, ' % (table.encode(), run)
        for table in ("run", "step", "event", "head")
    )


class Output:
    """A file that an archive is written to, compressed; nothing is durable until it is synced."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._packing = zlib.compressobj(wbits=_GZIP)
        self._content = sha256()
        self._waiting = bytearray()
        self._runs = self._events = 0
        self.put("archive", (FORMAT,))

    def put(self, table: str, row: Row) -> None:
        """Write a row."""
        self._runs += table == "run"
        self._events += table == "event"
        self._waiting += encode(table, row)
        if len(self._waiting) >= _TEXT_AT_ONCE:
            self._pack()

    def end(self) -> None:
        """Write the last line, and what has been waiting."""
        self._pack()
        self._waiting += encode("digest", (self._runs, self._events, self._content.digest()))
        self._pack()
        self._write(self._packing.flush())

    def _pack(self) -> None:
        self._content.update(self._waiting)
        self._write(self._packing.compress(self._waiting))
        self._waiting = bytearray()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]


class Input:
    """An archive that is read once, from its beginning to its end.

    `digest` is that of the file once all lines were taken. Raises `DamagedHistory` where the file
    is cut off or has been changed, at the latest after its last line.
    """

    def __init__(self, descriptor: int, place: str) -> None:
        self._descriptor = descriptor
        self._place = place
        self._file = sha256()

    @property
    def digest(self) -> bytes:
        """Return the SHA-256 of what was read of the file."""
        return self._file.digest()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines but the last one, which is checked here."""
        content, held = sha256(), b""
        for line in self._all_lines():
            if held:
                content.update(b"%s\n" % held)
                yield held
            held = line
        table, row = decode(held)
        if table != "digest":
            raise DamagedHistory("its last line is missing: it is cut off")
        if row[2] != content.digest():
            raise DamagedHistory("its content does not fit the digest in its last line")

    def _all_lines(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        for text in self._text():
            first, *others = text.split(b"\n")
            parts.append(first)
            size += len(first)
            if size > LINE_BYTES_MAX:
                raise DamagedHistory("a line is longer than any that the runtime writes")
            for other in others:
                yield b"".join(parts)
                parts, size = [other], len(other)
        if size:
            raise DamagedHistory("its last line has no end: it is cut off")

    def _text(self) -> Iterator[bytes]:
        """Yield what is in the file, unpacked, in pieces of bounded size."""
        unpacking = zlib.decompressobj(wbits=_GZIP)
        try:
            while data := self._read():
                while data and not unpacking.eof:
                    yield unpacking.decompress(data, _TEXT_AT_ONCE)
                    data = unpacking.unconsumed_tail
                if unpacking.unused_data or data:
                    raise DamagedHistory("there is something behind its end")
        except zlib.error as error:
            raise DamagedHistory(f"it cannot be unpacked: {error}") from error
        if not unpacking.eof:
            raise DamagedHistory("it ends too early: it is cut off")

    def _read(self) -> bytes:
        try:
            data = os.read(self._descriptor, _CHUNK_BYTES)
        except OSError as error:
            raise ArchiveError(
                f"{self._place}: the archive cannot be read: {error.strerror}; look into the log "
                "of the system for the disk"
            ) from error
        self._file.update(data)
        return data
