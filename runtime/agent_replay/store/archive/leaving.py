"""Which runs may leave the database, and the transaction in which they do, for an archive that is
durable and verified."""

from __future__ import annotations

from agent_replay.errors import ArchiveError, IllegalMove
from agent_replay.events import Head
from agent_replay.store import holder, rows
from agent_replay.store.archive import place
from agent_replay.store.archive.making import Leaver, Made
from agent_replay.store.archive.reading import Archived
from agent_replay.store.archive.record import ArchivedRow, archived_link
from agent_replay.store.sql import QUERIES
from agent_replay.store.writer import Store


def leave(store: Store, made: Made, *, database: str, now_ns: int) -> None:
    """Say in the database where these runs are, and delete their rows; durable when it returns."""
    file = place.recorded(database, made.path)

    def write() -> None:
        ((number, link),) = store.connection.execute(QUERIES["chain"], ("archived",))
        writer = rows.last_writer(store.connection)
        assert writer is not None, "a transaction begins with the row of its writer"
        for registration, head in made.runs:
            number += 1
            row = ArchivedRow(
                run=head.run,
                number=number,
                plan=registration.plan,
                run_state=head.run_state,
                seq=head.seq,
                head=head.hash,
                file=file,
                file_digest=made.digest,
                epoch=writer.epoch,
                writer=writer.writer,
                archived_ns=now_ns,
                hash=b"",
            )
            row = row._replace(hash=archived_link(link, row))
            link = row.hash
            _replace(store, row, Leaver(registration, head))
        _check_place(made)

    store.write(write)


def _check_place(made: Made) -> None:
    """Raise `ArchiveError` unless the file that was verified still has its name."""
    if not holder.is_still(made.path, made.file):
        raise ArchiveError(
            f"{made.path}: the archive was taken away before its runs had left; they stay in the "
            "database"
        )


def _replace(store: Store, row: ArchivedRow, leaver: Leaver) -> None:
    """Put the row in the place of all rows of its run, or raise `IllegalMove`."""
    connection, run = store.connection, row.run
    for query, values, count in (
        ("add_archived", row, 1),
        ("delete_events", (run,), row.seq),
        ("delete_steps", (run,), leaver.registration.steps),
        ("delete_head", (run,), 1),
    ):
        connection.execute(QUERIES[query], values)
        if connection.changes() != count:
            # A trigger that is none of ours can swallow a row without an error.
            raise IllegalMove(
                f"run {run}: {connection.changes()} rows instead of {count} changed when it was to "
                "leave the database; run verify on it"
            )


def ended(store: Store, *, before_ns: int, after: int, limit: int) -> list[tuple[int, str, int]]:
    """Return number, id and events of runs that ended by then, with a number above `after`."""
    with store._lock, store._reading():
        return list(store.connection.execute(QUERIES["ended"], (after, before_ns, limit)))


def has_left(store: Store, run: int) -> bool:
    """Return whether the run of that number is archived."""
    with store._lock, store._reading():
        return any(True for _ in store.connection.execute(QUERIES["is_archived"], (run,)))


def standing(store: Store, run_id: str) -> tuple[Head | None, Archived | None]:
    """Return where a run stands in the database, or where it is archived; raises `NoSuchRun`."""
    with store._lock, store._reading():
        registration = rows.known_run(store.connection, run_id)
        archived = rows.where_archived(store.connection, registration)
        return rows.read_head(store.connection, registration.run), archived
