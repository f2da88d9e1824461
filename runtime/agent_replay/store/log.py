"""What is in the log of a database, read without SQLite.

SQLite documents the layout in "WAL-mode File Format". Nothing here writes.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from agent_replay.errors import StorageError, UnusableDatabase
from agent_replay.store import holder

_HEADER = struct.Struct(">III4x8s8x")  # magic, version, page size, salt; 32 bytes
_FRAME = struct.Struct(">I4x8s8x")  # page, salt; 24 bytes, and the page follows
_MAGIC = (0x377F0682, 0x377F0683)
_VERSION = 3007000


def unconfirmed(path: str) -> bool:
    """Return whether a reader may see events that no living writer vouches for.

    That is so when no writer holds the database and its log holds pages that are not in the
    database file. The writer may have died before it synced them, so a power loss may still take
    them away; a writer that opens the database makes them durable. Where there is no database
    nothing is unconfirmed. It is safe beside open connections, since it closes no descriptor of the
    database file.
    """
    place = holder.located(path)
    try:
        database = holder.borrow(place, os.O_RDONLY)
        try:
            return not _has_writer(database) and _is_ahead(place, database)
        finally:
            holder.give_back(database)
    except FileNotFoundError:
        return False
    except OSError as error:
        kind = UnusableDatabase if isinstance(error, PermissionError) else StorageError
        raise kind(
            f"{place}: user {os.geteuid()} cannot compare its -wal with it: {error.strerror}; "
            "check who may read both"
        ) from error


def writer_at_work(path: str) -> str | None:
    """Return who holds the database as its writer just now, or None if nobody does.

    The text is empty where the process cannot be seen from here (another user or container).
    """
    database = holder.borrow(holder.located(path), os.O_RDONLY)
    try:
        if not _has_writer(database):
            return None
        return holder.writers_of(holder.identity_of_descriptor(database))
    finally:
        holder.give_back(database)


def _has_writer(database: int) -> bool:
    if holder.is_claimed(holder.identity_of_descriptor(database)):
        return True
    commands = holder.lock_commands(sys.platform)
    blocker = holder.find_blocker(commands, database, fcntl.F_WRLCK, holder.WRITER_BYTE, 1)
    return blocker is not None


def _is_ahead(place: str, database: int) -> bool:
    """Return whether a page in the log differs from that in the database file.

    A checkpoint syncs the log before it copies a page, so a page that was copied is durable. The
    wal-index would tell how far the copying went, but SQLite forgets that whenever it rebuilds it.
    """
    try:
        log = holder.open_shielded(f"{place}-wal", os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        header = os.pread(log, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return False
        magic, version, page_bytes, salt = _HEADER.unpack(header)
        if magic not in _MAGIC or version != _VERSION:
            return False
        latest = _latest_pages(log, page_bytes, salt)
        return any(
            os.pread(log, page_bytes, offset)
            != os.pread(database, page_bytes, (page - 1) * page_bytes)
            for page, offset in reversed(
                latest.items()
            )  # the last commit is the likeliest to differ
        )
    finally:
        holder.close_shielded(log)


def _latest_pages(log: int, page_bytes: int, salt: bytes) -> dict[int, int]:
    """Return where the last version of each page lies in the log, the oldest of them first.

    Frames of an earlier use of the log have another salt. Frames of a commit that was not finished
    count, so that the answer errs on the side of doubt.
    """
    latest: dict[int, int] = {}
    offset = _HEADER.size
    while len(frame := os.pread(log, _FRAME.size, offset)) == _FRAME.size:
        page, frame_salt = _FRAME.unpack(frame)
        if page == 0 or frame_salt != salt:
            break
        latest.pop(page, None)
        latest[page] = offset + _FRAME.size
        offset += _FRAME.size + page_bytes
    return latest
