"""What may be opened as a history, how one is made, and what is made durable."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from agent_replay.errors import DatabaseLocked, InvalidInput, StorageError, UnusableDatabase
from agent_replay.store import files
from agent_replay.store.connection import APPLICATION_ID, SCHEMA_VERSION, connect_writer
from agent_replay.store.lock import WriterLock
from tests.storage.actors import Child, Failed, children, fill

LOG_BYTES = 1 << 20


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    assert files.create(files.check_path(path), fill)
    return path


@pytest.fixture
def pair() -> Iterator[list[Child]]:
    with children(2) as started:
        yield started


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def mode_of(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def add(connection: apsw.Connection, count: int) -> None:
    for _ in range(count):
        connection.execute("insert into rows (text) values (?)", ("x" * 3000,))


def count_in(path: Path) -> int:
    """Return the rows, read by a stock SQLite that then closes last."""
    connection = sqlite3.connect(path)
    ((count,),) = connection.execute("select count(*) from rows")
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()
    return int(count)


# --- what may be opened -----------------------------------------------------------------------


def test_a_path_is_made_absolute_and_its_directories_free_of_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    assert files.check_path("linked/../linked/runs.db") == str(tmp_path / "real" / "runs.db")
    assert files.check_path(Path("runs.db")) == str(tmp_path / "runs.db")


def test_a_history_is_accepted_and_left_as_it_is(database: Path) -> None:
    before = database.read_bytes()
    assert files.check_path(database) == str(database)
    assert names_in(database.parent) == {"runs.db"}
    assert database.read_bytes() == before


def test_a_path_that_cannot_be_looked_at_is_told_with_the_reason(tmp_path: Path) -> None:
    told = (
        rf"cannot be looked at by user {os.geteuid()}: File name too long; "
        r"check the path and who may use it$"
    )
    with pytest.raises(UnusableDatabase, match=told):
        files.check_path(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", ["", "a\0b", "\udcff.db"])
def test_a_path_that_names_no_file_for_sqlite_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        files.check_path(os.path.join(tmp_path, name))


def test_windows_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match="on Windows, in WSL"):
        files.check_path(tmp_path / "runs.db", platform="win32")


@pytest.mark.fault("L05")
@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "runs.db-shm"])
def test_a_link_in_place_of_a_file_is_refused_and_not_followed(database: Path, name: str) -> None:
    target = database.with_name("elsewhere")
    target.write_text("precious")
    place = database.with_name(name)
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    with pytest.raises(UnusableDatabase, match=r"symbolic link, to .*elsewhere"):
        files.check_path(database)
    if name == "runs.db":
        assert not files.create(str(database), fill)
    assert target.read_text() == "precious"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.mkdir(), "not a plain file"),
        (lambda path: os.mkfifo(path), "not a plain file"),
        (lambda path: path.write_text(""), "is empty"),
        (lambda path: path.write_text("To do: buy milk\n" * 100), "not an SQLite database"),
        (lambda path: make_foreign(path, journal_mode="delete"), "belongs to another program"),
        (lambda path: make_foreign(path, journal_mode="wal"), "belongs to another program"),
        (
            lambda path: make_foreign(path, journal_mode="delete", owner=APPLICATION_ID),
            "out of WAL mode; put it back: sqlite3",
        ),
    ],
)
def test_what_is_no_history_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    path = tmp_path / "runs.db"
    make(path)
    before = (names_in(tmp_path), path.stat().st_mtime_ns)
    with pytest.raises(UnusableDatabase, match=problem):
        files.check_path(path)
    assert (names_in(tmp_path), path.stat().st_mtime_ns) == before


def make_foreign(path: Path, *, journal_mode: str, owner: int = 77) -> None:
    foreign = sqlite3.connect(path)
    foreign.execute(f"pragma journal_mode={journal_mode}")
    foreign.execute(f"pragma application_id={owner}")
    foreign.execute("create table theirs (a)")
    foreign.commit()
    foreign.close()


def test_a_foreign_rollback_journal_is_refused(database: Path) -> None:
    database.with_name("runs.db-journal").write_text("")
    with pytest.raises(UnusableDatabase, match="rollback journal"):
        files.check_path(database)


def test_a_user_who_may_not_look_is_told_so(public_folder: Path, pair: list[Child]) -> None:
    folder = public_folder / "closed"
    folder.mkdir(mode=0o700)
    path = folder / "runs.db"
    assert files.create(files.check_path(path), fill)
    folder.chmod(0)
    stranger = pair[0]
    stranger.ask("drop_privileges")
    with pytest.raises(Failed, match=r"UnusableDatabase: .*cannot be looked at .*denied"):
        stranger.ask("create", str(path))
    folder.chmod(0o700)


# --- creating ---------------------------------------------------------------------------------


def test_a_new_database_is_whole_and_alone(database: Path) -> None:
    assert names_in(database.parent) == {"runs.db"}
    header = database.read_bytes()[:100]
    assert header[18:20] == b"\2\2"  # WAL mode
    assert int.from_bytes(header[68:72]) == APPLICATION_ID
    assert int.from_bytes(header[60:64]) == SCHEMA_VERSION
    assert count_in(database) == 0


def test_a_database_is_made_under_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert files.create("runs.db", fill)
    assert names_in(tmp_path) == {"runs.db"}


def test_an_existing_database_is_left_to_the_caller(database: Path) -> None:
    def refuse(_connection: apsw.Connection) -> None:
        pytest.fail("nothing is to be filled")

    assert not files.create(str(database), refuse)


@pytest.mark.fault("L05")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_no_file_is_ever_readable_by_others(tmp_path: Path, pair: list[Child], mask: int) -> None:
    path = tmp_path / "runs.db"
    names = [str(path), f"{path}-wal", f"{path}-shm"]
    child, visitor = pair
    for process in pair:
        process.ask("set_umask", mask)
    child.ask("create", str(path))
    assert mode_of(path) == 0o600
    child.ask("acquire", str(path))
    child.ask("connect")
    child.ask("add", 1)
    assert [mode_of(name) for name in names] == [0o600] * 3
    child.ask("grow_log", LOG_BYTES)
    child.kill()
    assert [mode_of(name) for name in names] == [0o600] * 3
    visitor.ask("read_with_the_product", str(path))
    assert [mode_of(name) for name in names] == [0o600] * 3


@pytest.mark.fault("C05")
def test_of_two_creators_one_creates_and_both_find_the_same(
    tmp_path: Path, pair: list[Child]
) -> None:
    for attempt in range(20):
        path = tmp_path / f"runs{attempt}.db"
        for child in pair:
            child.tell("create", str(path))
        assert sorted(str(child.answer()) for child in pair) == ["False", "True"]
        assert count_in(path) == 0
    assert names_in(tmp_path) == {f"runs{attempt}.db" for attempt in range(20)}


@pytest.mark.slow
@pytest.mark.fault("E11")
def test_a_creation_killed_anywhere_leaves_nothing_or_all(
    tmp_path: Path, pair: list[Child]
) -> None:
    """Each call into C that the creation makes is a place to die at."""
    outcomes = pair[0].ask("die_while_creating", str(tmp_path / "runs.db"))
    assert isinstance(outcomes, list)
    none, whole, other = outcomes
    assert other == 0
    assert none > 50, "deaths before the name is given"
    assert whole >= 2, "deaths between the name and the sync of the directory"


def test_what_an_unfinished_creation_left_is_removed(tmp_path: Path) -> None:
    stale = [f".runs.db.new-4711{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]
    others = [".other.db.new-4711", ".runs.db.new-mine", ".runs.db.new-4711-notes", "runs.db.new-1"]
    for name in stale + others:
        (tmp_path / name).write_text("left")
    assert files.create(str(tmp_path / "runs.db"), fill)
    assert names_in(tmp_path) == {"runs.db", *others}


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(connection: apsw.Connection) -> None:
        fill(connection)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.create(str(tmp_path / "runs.db"), fail)
    assert names_in(tmp_path) == set()


@pytest.mark.fault("E01")
def test_a_creation_on_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    def overflow(connection: apsw.Connection) -> None:
        fill(connection)
        connection.pragma("max_page_count", 5)
        add(connection, 20)

    with pytest.raises(StorageError, match="database or disk is full"):
        files.create(str(tmp_path / "runs.db"), overflow)
    assert names_in(tmp_path) == set()


@pytest.mark.fault("E08")
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_log_without_its_database_is_not_thrown_away(database: Path, suffix: str) -> None:
    left = Path(f"{database}{suffix}")
    left.write_bytes(b"the last events")
    database.unlink()
    with pytest.raises(UnusableDatabase, match=f"the database is gone, and .*{suffix} of it"):
        files.create(str(database), fill)
    assert left.read_bytes() == b"the last events"
    assert names_in(database.parent) == {left.name}


def test_a_missing_directory_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match=r"does not exist; make it first: mkdir -p"):
        files.create(str(tmp_path / "new" / "runs.db"), fill)
    assert names_in(tmp_path) == set()


def test_a_directory_that_another_program_locks_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CREATOR_SECONDS", 0.05)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(DatabaseLocked, match="another process has locked it"):
        files.create(str(tmp_path / "runs.db"), fill)
    os.close(other)
    assert files.create(str(tmp_path / "runs.db"), fill)


def test_a_user_who_may_not_create_is_told_so(public_folder: Path, pair: list[Child]) -> None:
    folder = public_folder / "readable"
    folder.mkdir()
    folder.chmod(0o555)
    stranger = pair[0]
    stranger.ask("drop_privileges")
    with pytest.raises(Failed, match=r"StorageError: .*cannot be created by user .*denied"):
        stranger.ask("create", str(folder / "runs.db"))
    assert names_in(folder) == set()


def test_what_is_created_is_durable_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def note_sync(descriptor: int) -> None:
        sync(descriptor)
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    def note_rename(source: str, target: str) -> None:
        rename(source, target)
        done.append("rename")

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_rename)
    assert files.create(str(tmp_path / "runs.db"), fill)
    assert done == ["file", "rename", "directory"]


# --- the log ----------------------------------------------------------------------------------


def test_the_log_is_synced_before_sqlite_opens_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def note(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fdatasync", note)
    monkeypatch.setattr(os, "fsync", note)
    files.sync_log(str(database))
    assert synced == [database.parent.stat().st_ino]  # there is no log yet
    log = Path(f"{database}-wal")
    log.write_bytes(b"")
    synced.clear()
    files.sync_log(str(database))
    assert synced == [log.stat().st_ino, database.parent.stat().st_ino]


@pytest.mark.fault("L05")
def test_files_beside_a_closed_database_are_closed_too(database: Path) -> None:
    names = [f"{database}-wal", f"{database}-shm"]
    for name in names:
        Path(name).write_bytes(b"")
        os.chmod(name, 0o664)
    files.sync_log(str(database))
    assert [mode_of(name) for name in names] == [0o600] * 2


def test_a_sync_that_fails_is_a_storage_error(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    Path(f"{database}-wal").write_bytes(b"")
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError, match=r"runs\.db-wal: cannot be synced: Input/output error"):
        files.sync_log(str(database))
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="cannot be synced: Input/output error"):
        files.sync_log(str(database))


def test_a_log_is_grown_once_and_keeps_its_frames_and_its_size(database: Path) -> None:
    lock = WriterLock.acquire(database)
    log = Path(f"{database}-wal")
    writer = connect_writer(str(database))
    files.grow_log(str(database), LOG_BYTES)
    assert log.stat().st_size == LOG_BYTES
    assert log.stat().st_blocks * 512 >= LOG_BYTES, "real blocks, no hole"
    add(writer, 5)
    assert log.stat().st_size == LOG_BYTES
    frames = log.read_bytes()[: 6 * 4120]
    files.grow_log(str(database), 2 * LOG_BYTES)
    assert log.stat().st_size == 2 * LOG_BYTES
    assert log.read_bytes()[: 6 * 4120] == frames
    files.grow_log(str(database), LOG_BYTES)
    assert log.stat().st_size == 2 * LOG_BYTES
    add(writer, 5)
    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    add(writer, 5)
    writer.close()
    lock.release()
    assert log.stat().st_size == 2 * LOG_BYTES
    assert count_in(database) == 15


def test_a_truncation_is_durable_before_the_log_is_grown(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else zeros could be durable and the truncation not, and the log begin with old frames."""
    Path(f"{database}-wal").write_bytes(b"")
    sizes: list[int] = []
    monkeypatch.setattr(
        os, "fdatasync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size)
    )
    files.grow_log(str(database), LOG_BYTES)
    assert sizes == [0, LOG_BYTES]
    files.grow_log(str(database), LOG_BYTES)
    assert sizes == [0, LOG_BYTES]


def test_a_log_is_grown_to_its_size_though_a_write_takes_less(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may take less than it is given, down to all but the last byte."""
    Path(f"{database}-wal").write_bytes(b"")
    write, left = os.write, [1, 7]

    def short(descriptor: int, content: bytes) -> int:
        less = left.pop() if left else 0
        return write(descriptor, content[: len(content) - less])

    monkeypatch.setattr(os, "write", short)
    files.grow_log(str(database), 100)
    assert Path(f"{database}-wal").stat().st_size == 100


@pytest.mark.fault("E01")
def test_a_log_that_cannot_grow_leaves_a_usable_database(database: Path, pair: list[Child]) -> None:
    owner, other = pair
    owner.ask("acquire", str(database))
    owner.ask("connect")
    owner.ask("add", 3)
    owner.ask("allow_file_size", LOG_BYTES)
    with pytest.raises(
        Failed, match=r"StorageError: .*-wal: cannot be grown: File too large; free"
    ):
        owner.ask("grow_log", 2 * LOG_BYTES)
    assert Path(f"{database}-wal").stat().st_size < LOG_BYTES, "the space is given back"
    owner.ask("add", 3)
    owner.ask("close")
    owner.ask("release")
    other.ask("acquire", str(database))
    other.ask("connect")
    assert other.ask("count") == 6
    other.ask("grow_log", 2 * LOG_BYTES)
    other.ask("add", 1)
    assert count_in(database) == 7


@pytest.mark.parametrize(("by_others", "left"), [(b"", 0), (b"frame", 1005)])
def test_space_is_given_back_only_as_long_as_it_holds_zeros(
    database: Path, monkeypatch: pytest.MonkeyPatch, by_others: bytes, left: int
) -> None:
    log = Path(f"{database}-wal")
    log.write_bytes(b"")
    write = os.write

    def fail(descriptor: int, content: bytes) -> int:
        write(descriptor, content[:1000] + by_others)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(StorageError, match="No space left on device; free space"):
        files.grow_log(str(database), LOG_BYTES)
    assert log.stat().st_size == left


# --- what no writer has confirmed -------------------------------------------------------------


def test_rows_of_a_dead_writer_are_unconfirmed_until_the_next_one(
    database: Path, pair: list[Child]
) -> None:
    first, second = pair
    assert not files.unconfirmed(str(database))
    first.ask("acquire", str(database))
    first.ask("connect")
    first.ask("add", 2)
    assert not files.unconfirmed(str(database))  # a living writer vouches for them
    assert not first.ask("unconfirmed", str(database))
    first.kill()
    assert files.unconfirmed(str(database))
    second.ask("read_with_the_product", str(database))  # a reader confirms nothing
    assert files.unconfirmed(str(database))
    second.ask("acquire", str(database))
    assert not files.unconfirmed(str(database))


def test_rows_that_were_checkpointed_are_confirmed_for_every_reader(
    database: Path, pair: list[Child]
) -> None:
    """SQLite forgets how far a checkpoint went when a first reader rebuilds the wal-index."""
    lock = WriterLock.acquire(database)
    writer = connect_writer(str(database))
    add(writer, 3)
    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    writer.close()
    lock.release()
    for _ in range(3):
        assert not files.unconfirmed(str(database))
        assert pair[0].ask("read_with_the_product", str(database)) == 3


def test_one_row_after_a_checkpoint_is_seen(database: Path, pair: list[Child]) -> None:
    owner, _ = pair
    lock = WriterLock.acquire(database)
    writer = connect_writer(str(database))
    add(writer, 30)
    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    add(writer, 1)  # at the beginning of the log, with the old frames behind it
    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    writer.close()
    lock.release()
    assert not files.unconfirmed(str(database))
    owner.ask("acquire", str(database))
    owner.ask("connect")
    owner.ask("add", 1)
    owner.kill()
    assert files.unconfirmed(str(database))
    os.unlink(f"{database}-shm")
    assert files.unconfirmed(str(database))


FRAME_WITHOUT_SALT = (1).to_bytes(4) + bytes(20) + b"x" * 4096


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        bytes(LOG_BYTES),
        b"\x37\x7f\x06\x82" + bytes(99),
        b"\x37\x7f\x06\x82" + bytes(28) + FRAME_WITHOUT_SALT,
        b"MAGI" + (3007000).to_bytes(4) + (4096).to_bytes(4) + bytes(20) + FRAME_WITHOUT_SALT,
    ],
)
def test_a_log_without_frames_holds_nothing(database: Path, content: bytes) -> None:
    Path(f"{database}-wal").write_bytes(content)
    assert not files.unconfirmed(str(database))


def test_nothing_is_unconfirmed_where_nothing_is(tmp_path: Path) -> None:
    assert not files.unconfirmed(str(tmp_path / "runs.db"))


def test_looking_drops_no_lock_of_this_process(database: Path, pair: list[Child]) -> None:
    """A reader asks between two polls, with its connection open."""
    owner, other = pair
    owner.ask("connect_without_a_lock", str(database))
    owner.ask("add", 3)
    for _ in range(3):
        assert owner.ask("unconfirmed", str(database))
    other.ask("visit", str(database))
    assert Path(f"{database}-wal").exists()
    owner.ask("add", 3)
    assert other.ask("visit", str(database)) == 6
