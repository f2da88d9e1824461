"""An archive made of runs that have ended: written, synced, read back and verified.

The rows are read by a connection of its own, beside the writer's, so that other runs go on; what
has ended does not change any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import apsw

from agent_replay.chain import identity_link
from agent_replay.errors import ArchiveError, DamagedHistory
from agent_replay.events import Head, Registration
from agent_replay.store import files, holder, rows
from agent_replay.store.archive import place
from agent_replay.store.archive.checking import ArchiveCheck
from agent_replay.store.archive.lines import Output
from agent_replay.store.holder import Identity
from agent_replay.store.schema import read_identity
from agent_replay.store.sql import QUERIES


class Leaver(NamedTuple):
    """A run that is to leave the database: its registration, and where it ended."""

    registration: Registration
    head: Head


class Made(NamedTuple):
    """An archive that is durable and verified, with the runs that are in it."""

    path: str
    digest: bytes
    runs: Sequence[Leaver]
    events: int
    file: Identity
    """Which file was verified, whatever the path leads to by now."""


def make(connection: apsw.Connection, folder: str, numbers: Sequence[int]) -> Made:
    """Make an archive of these runs; durable and verified when it returns.

    If there is one already, since a process died before the runs had left, that one is taken.
    """
    leavers = [_leaver(connection, number) for number in numbers]
    for path in place.names(folder, _name(connection, leavers)):
        try:
            descriptor = place.create(path)
        except FileExistsError:
            made = _there(path, connection, leavers)
            if made is not None:
                return made
        except OSError as error:
            raise _unwritable(path, error) from error
        else:
            return _written(path, descriptor, connection, leavers)
    raise ArchiveError(
        f"{folder}: {place.NAMES_MAX} files that are not whole are in the way; verify names them, "
        "and they may be removed"
    )


def _leaver(connection: apsw.Connection, number: int) -> Leaver:
    registration, head = rows.numbered_run(connection, number), rows.read_head(connection, number)
    if registration is None or head is None:
        raise DamagedHistory(f"run {number} has no registration or no head; run verify")
    return Leaver(registration, head)


def _name(connection: apsw.Connection, leavers: Sequence[Leaver]) -> str:
    """Return a name that goes with what is in the archive: the heads stand for all rows."""
    digest = sha256(identity_link(*read_identity(connection)))
    for leaver in leavers:
        digest.update(leaver.head.hash)
    first, last = leavers[0].head.run, leavers[-1].head.run
    return f"{first}-{last}-{digest.hexdigest()[:16]}"


def _written(
    path: str, descriptor: int, connection: apsw.Connection, leavers: Sequence[Leaver]
) -> Made:
    """Write a new archive; it is removed again if that fails."""
    try:
        try:
            _write(descriptor, connection, leavers)
            files.sync(descriptor)
        finally:
            os.close(descriptor)
        made = _verified(path, connection, leavers)
        place.sync_folder(os.path.dirname(path))
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        if isinstance(error, DamagedHistory):
            found = str(error).removeprefix(f"archive {path}: ")
            raise DamagedHistory(
                f"{found}: so it is in the database, and none of these runs was archived; run "
                "verify on it. Other runs can be archived by their names"
            ) from error
        raise
    return made


def _unwritable(path: str, error: OSError) -> ArchiveError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    act = "free space on its volume" if full else "check who may write there, and the disk"
    return ArchiveError(
        f"{path}: the archive cannot be written by user {os.geteuid()}: {error.strerror}; {act}. "
        "Its runs stay in the database"
    )


def _write(descriptor: int, connection: apsw.Connection, leavers: Sequence[Leaver]) -> None:
    output = Output(descriptor)
    identity = read_identity(connection)
    output.put("identity", identity)
    before = identity_link(*identity)
    epochs = _epochs(connection, leavers)
    for writer in rows.read_writers(connection):
        if writer.epoch in epochs:
            output.put("writer", (*writer, before))
        before = writer.hash
    for registration, head in leavers:
        output.put("run", (*registration, rows.link_before(connection, head.run)))
        for step in connection.execute(QUERIES["steps"], (head.run,)):
            output.put("step", step)
        for event in connection.execute(QUERIES["events"], (head.run,)):
            output.put("event", event)
        output.put("head", head)
    output.end()


def _epochs(connection: apsw.Connection, leavers: Sequence[Leaver]) -> set[int]:
    epochs = {leaver.registration.epoch for leaver in leavers}
    for leaver in leavers:
        found = connection.execute(QUERIES["epochs"], (leaver.head.run,))
        epochs.update(epoch for (epoch,) in found)
    return epochs


def _there(path: str, connection: apsw.Connection, leavers: Sequence[Leaver]) -> Made | None:
    """Return an archive that is there already, durable, or None if it is not what was wanted."""
    try:
        made = _verified(path, connection, leavers)
    except DamagedHistory:
        return None
    try:
        # Whoever wrote it may have died before it was synced.
        descriptor = holder.open_shielded(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            files.sync(descriptor)
        finally:
            holder.close_shielded(descriptor)
        place.sync_folder(os.path.dirname(path))
    except OSError as error:
        raise _unwritable(path, error) from error
    return made


def _verified(path: str, connection: apsw.Connection, leavers: Sequence[Leaver]) -> Made:
    """Return what an archive is, read back; raise `DamagedHistory` unless it is as it should be."""
    check = ArchiveCheck(path, database=str(connection.filename))
    file = holder.identity_of(path)
    for finding in check.findings():
        raise DamagedHistory(finding)
    wanted = {leaver.head.run: tuple(leaver) for leaver in leavers}
    if check.identity != read_identity(connection) or check.runs != wanted:
        raise DamagedHistory(f"archive {path}: it holds something else than it should")
    return Made(path, check.digest, leavers, check.events, file)
