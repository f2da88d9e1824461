"""One writer per database, whatever processes, descriptors, names and stray files there are."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_replay.errors import DatabaseLocked, UnusableDatabase
from agent_replay.store import files, holder
from agent_replay.store.lock import WriterLock
from tests.storage import actors
from tests.storage.actors import (
    MARKER,
    MARKER_OFFSET,
    Child,
    Failed,
    children,
    fill,
    until,
    waits_for_the_writer,
)

needs_linux = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="locks of open file descriptions exist on Linux only"
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    assert files.create(files.check_path(path), fill)
    return path


@pytest.fixture
def pair() -> Iterator[list[Child]]:
    with children(2) as started:
        yield started


@pytest.fixture
def trio() -> Iterator[list[Child]]:
    with children(3) as started:
        yield started


def assert_refused(child: Child, path: Path, *arguments: object) -> Failed:
    with pytest.raises(Failed) as caught:
        child.ask("acquire", str(path), *arguments)
    assert caught.value.kind == "DatabaseLocked"
    return caught.value


def is_refused(child: Child) -> bool:
    """Return whether another has the lock that the child was told to take."""
    try:
        child.answer()
    except Failed as error:
        if error.kind != "DatabaseLocked":
            raise
        return True
    return False


# --- two writers ------------------------------------------------------------------------------


def test_a_second_process_is_refused_and_told_who_holds_it(
    database: Path, pair: list[Child]
) -> None:
    first, second = pair
    first.ask("acquire", str(database))
    message = assert_refused(second, database).message
    assert f"{database}: another writer holds it: process {first.pid} (" in message
    assert actors.__file__[: holder._WORD_LENGTH_MAX] in message  # a long path is cut short
    assert ", running since 20" in message
    assert message.endswith("; wait with --wait, or stop that process")
    first.ask("release")
    second.ask("acquire", str(database))


def test_a_second_writer_in_the_same_process_is_refused(database: Path, pair: list[Child]) -> None:
    lock = WriterLock.acquire(database)
    for wait in (False, True):
        with pytest.raises(DatabaseLocked, match="this process is its writer already"):
            WriterLock.acquire(database, wait=wait)
    assert_refused(pair[0], database)
    lock.release()
    lock.release()
    pair[0].ask("acquire", str(database))


@pytest.mark.fault("F08")
def test_another_spelling_is_the_same_database(
    database: Path, pair: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = database.parent / "linked"
    linked.symlink_to(database.parent, target_is_directory=True)
    monkeypatch.chdir(database.parent)
    spellings = [
        "runs.db",
        "./runs.db",
        str(database),
        str(linked / "runs.db"),
        f"linked/../{database.parent.name}/linked/runs.db",
    ]
    lock = WriterLock.acquire("runs.db")
    assert lock.path == str(database.resolve())
    for spelling in spellings:
        with pytest.raises(DatabaseLocked, match="this process"):
            WriterLock.acquire(spelling)
    with children(1) as (child,):  # it has this test's directory
        for spelling in spellings:
            assert_refused(child, Path(spelling))
    lock.release()


@pytest.mark.fault("F08")
def test_links_to_the_database_are_refused(database: Path) -> None:
    symbolic = database.with_name("symbolic.db")
    symbolic.symlink_to(database)
    with pytest.raises(UnusableDatabase, match="symbolic link"):
        WriterLock.acquire(symbolic)
    with pytest.raises(UnusableDatabase, match="symbolic link"):
        files.check_path(symbolic)
    hard = database.with_name("hard.db")
    os.link(database, hard)
    for name in (database, hard):
        with pytest.raises(UnusableDatabase, match="2 names"):
            WriterLock.acquire(name)
        with pytest.raises(UnusableDatabase, match="2 names"):
            files.check_path(name)
    hard.unlink()
    WriterLock.acquire(database).release()


@pytest.mark.fault("B02")
def test_of_many_processes_one_becomes_the_writer(database: Path) -> None:
    with children(6) as started:
        for _ in range(5):
            for child in started:
                child.tell("acquire", str(database))
            winners = [child for child in started if not is_refused(child)]
            assert len(winners) == 1
            winners[0].ask("release")


def test_of_many_threads_one_becomes_the_writer(database: Path) -> None:
    barrier = threading.Barrier(8)
    locks: list[WriterLock] = []
    refused: list[str] = []

    def contend() -> None:
        barrier.wait()
        try:
            locks.append(WriterLock.acquire(database))
        except DatabaseLocked as error:
            refused.append(str(error))

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(locks), len(refused)) == (1, 7)
    locks[0].release()


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    told = r"none\.db: .*No such file.*; check the path and who owns the file$"
    with pytest.raises(UnusableDatabase, match=told):
        WriterLock.acquire(tmp_path / "none.db")


# --- waiting ----------------------------------------------------------------------------------


@needs_linux
@pytest.mark.parametrize("ending", ["release", "kill"])
def test_who_waits_becomes_the_writer_next(database: Path, pair: list[Child], ending: str) -> None:
    first, second = pair
    first.ask("acquire", str(database))
    second.tell("acquire", str(database), True)
    until(lambda: waits_for_the_writer(database), "the second waits")
    if ending == "kill":
        first.kill()
    else:
        first.ask("release")
    second.answer()
    with pytest.raises(DatabaseLocked, match=f"process {second.pid} "):
        WriterLock.acquire(database)


@needs_linux
def test_waiting_ends_with_ctrl_c(database: Path, pair: list[Child]) -> None:
    first, second = pair
    first.ask("acquire", str(database))
    second.tell("acquire", str(database), True)
    until(lambda: waits_for_the_writer(database), "the second waits")
    second.interrupt()
    with pytest.raises(Failed, match="KeyboardInterrupt"):
        second.answer()
    assert not waits_for_the_writer(database)
    first.ask("release")
    second.ask("acquire", str(database))  # nothing was left of the first attempt


@needs_linux
@pytest.mark.fault("F03")
def test_who_waited_for_a_file_that_was_replaced_gets_the_one_that_is_there(
    database: Path, trio: list[Child]
) -> None:
    """The order A, B, C: A lets go, B waited for the old file, C finds the new one."""
    first, second, third = trio
    first.ask("acquire", str(database))
    second.tell("acquire", str(database), True)
    until(lambda: waits_for_the_writer(database), "the second waits")
    other = database.with_name("other.db")
    assert files.create(files.check_path(other), fill)
    old = database.rename(database.with_name("old.db"))
    other.rename(database)
    with pytest.raises(Failed, match=r"UnusableDatabase: .* another was put in its place"):
        first.ask("confirm")
    first.ask("release")
    second.answer()
    assert_refused(third, database)
    second.ask("confirm")
    third.ask("acquire", str(old))  # the second has let go of it


# --- deaths and children ----------------------------------------------------------------------


@pytest.mark.fault("F01")
def test_a_forked_child_cannot_release_the_lock(database: Path, pair: list[Child]) -> None:
    first, second = pair
    first.ask("acquire", str(database))
    first.ask("connect")
    first.ask("add", 3)
    said = first.ask("fork_and_misuse")
    assert f"opened by process {first.pid}, and this is process" in str(said)
    assert_refused(second, database)
    second.ask("visit", str(database))
    assert Path(f"{database}-wal").exists()
    first.ask("confirm")
    first.ask("add", 3)
    assert second.ask("visit", str(database)) == 6


@needs_linux
@pytest.mark.fault("F01")
def test_a_forked_child_has_none_of_the_descriptors(database: Path, pair: list[Child]) -> None:
    first, _ = pair
    first.ask("acquire", str(database))
    assert first.ask("fork_and_list_descriptors", str(database)) == []


@pytest.mark.fault("F01")
def test_what_runs_in_a_forked_child_leaves_it_nothing_of_its_parent(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called here as in a child, on what belongs to this test alone."""
    for name in ("_opened", "_claimed"):
        monkeypatch.setattr(holder, name, set())
    monkeypatch.setattr(holder, "_aside", {})
    monkeypatch.setattr(holder, "_forks", 4)
    monkeypatch.setattr(holder, "_mutex", holder._mutex)
    kept = [holder.open_shielded(str(database), os.O_RDONLY) for _ in range(3)]
    for descriptor in kept[:2]:
        holder.give_back(descriptor)
    holder._opened.add(1_000_000)  # closed by somebody else meanwhile
    assert holder.claim(holder.identity_of(str(database)))
    holder._in_forked_child()
    for descriptor in kept:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    assert holder.process_mark() == (os.getpid(), 5)
    assert not holder.is_claimed(holder.identity_of(str(database)))
    again = holder.borrow(str(database), os.O_RDONLY)
    assert os.pread(again, 6, 0) == b"SQLite"
    holder.close_shielded(again)


@needs_linux
@pytest.mark.fault("F01")
def test_a_forked_child_that_wants_the_lock_is_refused_like_any_process(
    database: Path, pair: list[Child]
) -> None:
    first, _ = pair
    first.ask("acquire", str(database))
    assert f"process {first.pid} (" in str(first.ask("fork_and_acquire", str(database)))
    first.ask("confirm")


@pytest.mark.fault("F01")
def test_a_forked_childs_own_lock_survives_the_release_of_its_parents(
    database: Path, pair: list[Child]
) -> None:
    other = database.with_name("other.db")
    assert files.create(str(other), fill)
    pair[0].ask("acquire", str(database))
    assert pair[0].ask("fork_and_release", str(other)) == "held"


@pytest.mark.fault("F02")
@pytest.mark.parametrize("way", ["leave_a_fork", "leave_a_program", "leave_a_worker"])
def test_a_child_that_outlives_the_writer_does_not_keep_the_lock(
    database: Path, pair: list[Child], way: str
) -> None:
    first, second = pair
    first.ask("acquire", str(database))
    first.ask("connect")
    first.ask("add", 2)
    left = first.number(way)
    try:
        assert_refused(second, database)
        first.kill()
        os.kill(left, 0)  # it lives
        second.ask("acquire", str(database))
        second.ask("connect")
        assert second.ask("count") == 2
    finally:
        os.kill(left, signal.SIGKILL)


@pytest.mark.fault("F03")
@pytest.mark.fault("F05")
def test_there_is_no_lock_file_and_stray_ones_mean_nothing(
    database: Path, pair: list[Child]
) -> None:
    first, second = pair
    for pid in (1, os.getpid(), first.pid):
        for name in ("runs.db.lock", "runs.lock", "runs.db.pid"):
            database.with_name(name).write_text(str(pid))
        first.ask("acquire", str(database))
        for name in ("runs.db.lock", "runs.lock", "runs.db.pid"):
            database.with_name(name).unlink()
        assert_refused(second, database)
        first.ask("release")
    first.ask("acquire", str(database))
    first.ask("connect")
    assert {path.name for path in database.parent.iterdir()} == {
        "runs.db",
        "runs.db-wal",
        "runs.db-shm",
    }


# --- foreign programs -------------------------------------------------------------------------


@needs_linux
@pytest.mark.fault("E04")
@pytest.mark.parametrize("guarded", [True, False])
def test_a_plain_open_and_close_in_the_writer_loses_nothing(
    database: Path, pair: list[Child], guarded: bool
) -> None:
    """Without the lock the visitor takes itself for the last user, and unlinks the living log."""
    owner, other = pair
    if guarded:
        owner.ask("acquire", str(database))
        owner.ask("connect")
    else:
        owner.ask("connect_without_a_lock", str(database))
    owner.ask("add", 3)
    owner.ask("sniff", str(database))
    other.ask("visit", str(database))
    owner.ask("add", 3)
    assert Path(f"{database}-wal").exists() is guarded
    assert other.ask("visit", str(database)) == (6 if guarded else 3)


@needs_linux
@pytest.mark.fault("E06")
@pytest.mark.parametrize("way", ["visit", "visit_in_a_thread"])
def test_another_sqlite_in_the_writers_process_loses_nothing(
    database: Path, pair: list[Child], way: str
) -> None:
    owner, other = pair
    owner.ask("acquire", str(database))
    owner.ask("connect")
    owner.ask("add", 3)
    owner.ask("begin")
    owner.ask("add", 1)
    owner.ask(way, str(database))
    assert other.ask("visit", str(database)) == 3
    owner.ask("commit")
    assert other.ask("visit", str(database)) == 4
    owner.ask("add", 3)
    owner.kill()
    assert other.ask("visit", str(database)) == 7


@needs_linux
@pytest.mark.fault("E06")
@pytest.mark.parametrize("held", [True, False])
def test_the_living_wal_index_is_not_truncated(
    database: Path, pair: list[Child], held: bool
) -> None:
    """Another SQLite in our process drops our locks; the next process takes itself for the first.

    The marker lies in bytes that SQLite does not use, so that only a truncation removes it.
    """
    owner, other = pair
    owner.ask("acquire", str(database))
    owner.ask("connect", held)
    owner.ask("add", 3)
    owner.ask("visit", str(database))
    other.ask("mark_index", str(database))
    other.ask("visit", str(database))
    marker = Path(f"{database}-shm").read_bytes()[MARKER_OFFSET : MARKER_OFFSET + len(MARKER)]
    assert marker == (MARKER if held else bytes(len(MARKER)))
    owner.ask("add", 3)
    assert other.ask("visit", str(database)) == 6


@needs_linux
@pytest.mark.fault("E04")
def test_a_foreign_process_that_closes_last_leaves_the_log(
    database: Path, pair: list[Child]
) -> None:
    """Between two connections of its process, too, the writer's log stays."""
    owner, other = pair
    owner.ask("acquire", str(database))
    owner.ask("connect")
    owner.ask("add", 3)
    owner.ask("close")
    inode = Path(f"{database}-wal").stat().st_ino
    other.ask("visit", str(database))
    assert Path(f"{database}-wal").stat().st_ino == inode
    owner.ask("connect")
    assert owner.ask("count") == 3
    owner.ask("close")
    owner.ask("release")
    other.ask("visit", str(database))  # by now it is the last user, and puts the log away
    assert not Path(f"{database}-wal").exists()


@needs_linux
def test_a_program_that_has_the_whole_file_is_waited_for_and_named(
    database: Path, trio: list[Child]
) -> None:
    foreign, writer, other = trio
    foreign.ask("lock_all", str(database))
    with pytest.raises(Failed) as caught:
        writer.ask("acquire_quickly", str(database))
    assert caught.value.kind == "DatabaseLocked"
    assert "another program has had the whole file for itself" in caught.value.message
    assert f"process {foreign.pid} (" in caught.value.message
    foreign.kill()
    other.ask("acquire", str(database))  # what the refused attempt had locked by then is free
    other.ask("release")
    writer.ask("acquire", str(database))


@needs_linux
def test_a_program_that_has_the_whole_file_for_a_moment_is_waited_for(
    database: Path, pair: list[Child]
) -> None:
    foreign, writer = pair
    foreign.ask("lock_all", str(database))
    writer.tell("acquire", str(database))
    foreign.kill()
    writer.answer()


# --- descriptors ------------------------------------------------------------------------------


@needs_linux
def test_a_refused_attempt_closes_no_descriptor_of_the_file(
    database: Path, pair: list[Child]
) -> None:
    """A reader's connection in the same process would lose its locks by that."""
    owner, _ = pair
    owner.ask("acquire", str(database))
    before = _descriptors_of(database)
    for _ in range(3):
        with pytest.raises(DatabaseLocked):
            WriterLock.acquire(database)
    kept = _descriptors_of(database) - before
    assert len(kept) == 1  # one is put aside, and used again
    owner.ask("release")
    lock = WriterLock.acquire(database)
    assert _descriptors_of(database) - before == kept
    files.check_path(database)  # puts one aside too, for reading
    assert len(_descriptors_of(database) - before) == 2
    lock.release()
    assert _descriptors_of(database) == set()


def _descriptors_of(path: Path) -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/self/fd/{name}"), path.stat()):
                found.add(name)
    return found


# --- where there are only POSIX locks ---------------------------------------------------------


def test_the_weaker_lock_refuses_a_second_writer_too(database: Path, pair: list[Child]) -> None:
    first, second = pair
    first.ask("acquire", str(database), False, "darwin")
    message = assert_refused(second, database, False, "darwin").message
    assert "another writer holds it" in message
    with pytest.raises(Failed, match="this process is its writer already"):
        first.ask("acquire", str(database), False, "darwin")
    first.ask("connect")
    first.ask("add", 1)
    assert_refused(second, database, False, "darwin")
    first.kill()
    second.ask("acquire", str(database), False, "darwin")


def test_the_weaker_lock_is_taken_again_after_a_close_has_dropped_it(
    database: Path, pair: list[Child]
) -> None:
    """What the documentation of the lock says of it: this is the limit, not a promise."""
    first, second = pair
    first.ask("acquire", str(database), False, "darwin")
    first.ask("sniff", str(database))
    second.ask("acquire", str(database), False, "darwin")
    with pytest.raises(Failed, match="no longer holds it"):
        first.ask("confirm")
    second.ask("release")
    first.ask("confirm")
    assert_refused(second, database, False, "darwin")


# --- others' rights ---------------------------------------------------------------------------


def test_a_user_who_may_not_write_is_told_so(public_folder: Path, pair: list[Child]) -> None:
    path = public_folder / "runs.db"
    assert files.create(files.check_path(path), fill)
    path.chmod(0o444)
    stranger, _ = pair
    stranger.ask("drop_privileges")
    with pytest.raises(Failed) as caught:
        stranger.ask("acquire", str(path))
    assert caught.value.kind == "UnusableDatabase"
    assert "cannot open it for writing: Permission denied" in caught.value.message
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


@needs_linux
def test_a_holder_that_cannot_be_seen_is_not_invented(
    public_folder: Path, pair: list[Child]
) -> None:
    path = public_folder / "runs.db"
    assert files.create(files.check_path(path), fill)
    path.chmod(0o666)
    owner, stranger = pair
    owner.ask("acquire", str(path))
    stranger.ask("drop_privileges")
    message = assert_refused(stranger, path).message
    if os.geteuid() == 0:
        assert "a process that cannot be seen from here" in message
    assert holder.writers_of(holder.identity_of(str(path))).startswith(f"process {owner.pid} (")
