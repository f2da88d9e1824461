"""Commits that threads share: who leads, who follows, and what each is told."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import pytest

from agent_replay.errors import IllegalMove, InvalidInput, StorageError
from agent_replay.store import commits
from agent_replay.store.commits import TOGETHER_MAX, Commits, Write

SECONDS_MAX = 20.0


class Disk:
    """A transaction function that keeps what was written, and can be held up or made to fail."""

    def __init__(self) -> None:
        self.transactions: list[list[str]] = []
        self.drafts: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.entered = threading.Event()
        self.fail: Callable[[Sequence[Write]], None] = lambda writes: None
        self.after: Callable[[], None] = lambda: None
        self.commits = Commits(threading.RLock(), self.transaction)

    def transaction(
        self, writes: Sequence[Write], done: Callable[[], None], *, once_more: bool = False
    ) -> None:
        self.entered.set()
        assert self.free.wait(SECONDS_MAX)
        self.drafts = []
        for write in writes:
            write()
        if not once_more:
            self.fail(writes)
        self.transactions.append(self.drafts)
        done()
        self.after()

    def add(self, text: str) -> None:
        if text.startswith("bad"):
            raise IllegalMove(text)
        self.drafts.append(text)

    def write(self, text: str, kept: str | None = None) -> Exception | None:
        return self.commits.commit(
            partial(self.add, text), kept=None if kept is None else partial(self.add, kept)
        )

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """Hold the first transaction up until the block ends."""
        self.free.clear()
        self.entered.clear()
        yield
        self.free.set()

    def wait_for(self, count: int, over: threading.Event | None = None) -> None:
        """Wait until so many threads follow, or until it is over."""
        deadline = time.monotonic() + SECONDS_MAX
        while len(self.commits._waiting) < count and not (over and over.is_set()):
            assert time.monotonic() < deadline, "they do not come"
            time.sleep(0.001)


class Threads:
    """Writers, each in a thread, with what each was told."""

    def __init__(self, disk: Disk) -> None:
        self.told: dict[str, object] = {}
        self._disk = disk
        self._threads: list[threading.Thread] = []

    def start(self, text: str, kept: str | None = None) -> None:
        thread = threading.Thread(target=self._write, args=(text, kept), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write(self, text: str, kept: str | None) -> None:
        try:
            self.told[text] = self._disk.write(text, kept)
        except BaseException as error:  # noqa: BLE001 - it is what is looked at
            self.told[text] = error

    def join(self) -> dict[str, object]:
        for thread in self._threads:
            thread.join(SECONDS_MAX)
            assert not thread.is_alive(), "a writer was never told"
        return self.told


def together(disk: Disk, *texts: str, kept: str | None = None) -> dict[str, object]:
    """Let a first writer lead while the others come, one after the other, to be committed next."""
    threads = Threads(disk)
    with disk.held_up():
        threads.start("first")
        assert disk.entered.wait(SECONDS_MAX)
        for number, text in enumerate(texts, start=1):
            threads.start(text, kept)
            disk.wait_for(number)
    return threads.join()


def test_who_comes_while_another_commits_shares_the_next_commit() -> None:
    disk = Disk()
    assert set(together(disk, "a", "b", "c").values()) == {None}
    assert disk.transactions == [["first"], ["a", "b", "c"]]


def test_a_single_writer_commits_in_its_own_thread_each_time() -> None:
    disk = Disk()
    for text in "abc":
        disk.write(text)
    assert disk.transactions == [["a"], ["b"], ["c"]]


def test_not_more_than_a_bounded_number_share_one() -> None:
    disk = Disk()
    texts = [f"w{number}" for number in range(TOGETHER_MAX + 3)]
    assert set(together(disk, *texts).values()) == {None}
    assert list(map(len, disk.transactions)) == [1, TOGETHER_MAX, 3]
    assert [text for one in disk.transactions for text in one] == ["first", *texts]


def test_a_refused_row_touches_its_own_writer_only() -> None:
    disk = Disk()
    told = together(disk, "a", "bad", "c")
    refusal = told.pop("bad")
    assert isinstance(refusal, IllegalMove)
    assert set(told.values()) == {None}
    assert disk.transactions == [["first"], ["a"], ["c"]]


def test_of_a_refused_writer_what_can_stand_alone_is_kept() -> None:
    disk = Disk()
    told = together(disk, "bad", "b", kept="an answer")
    assert isinstance(told["bad"], IllegalMove)
    assert disk.transactions == [["first"], ["an answer"], ["b"]]


def test_who_is_refused_but_for_a_part_gets_the_error_back_and_else_it_is_raised() -> None:
    disk = Disk()
    assert isinstance(disk.write("bad", kept="an answer"), IllegalMove)
    assert disk.transactions == [["an answer"]]
    with pytest.raises(IllegalMove):
        disk.write("bad", kept="bad as well")
    with pytest.raises(IllegalMove):
        disk.write("bad")
    assert disk.transactions == [["an answer"]]


def test_a_storage_that_has_failed_is_tried_once_more_with_what_can_stand_alone() -> None:
    disk = Disk()

    def fail(writes: Sequence[Write]) -> None:
        raise StorageError("the disk is gone")

    disk.fail = fail
    assert isinstance(disk.write("a", kept="an answer"), StorageError)
    assert disk.transactions == [["an answer"]]


@pytest.mark.parametrize("unknown", [True, False])
def test_a_failing_storage_is_told_to_each_that_was_in_the_transaction(unknown: bool) -> None:
    disk = Disk()

    def fail(writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            raise StorageError("the disk is gone", outcome_unknown=unknown)

    disk.fail = fail
    told = together(disk, "a", "b", kept="an answer")
    assert told.pop("first") is None
    for error in told.values():
        assert isinstance(error, StorageError)
        assert error.outcome_unknown is unknown
    kept = [] if unknown else [["an answer"], ["an answer"]]
    assert disk.transactions == [["first"], *kept]


def test_an_interrupt_of_the_leader_leaves_the_others_to_commit_themselves() -> None:
    disk = Disk()

    def fail(writes: Sequence[Write]) -> None:
        disk.fail = lambda writes: None
        if len(writes) > 1:
            raise KeyboardInterrupt

    threads = Threads(disk)
    with disk.held_up():
        threads.start("first")
        assert disk.entered.wait(SECONDS_MAX)
        for number, text in enumerate("abc", start=1):
            threads.start(text)
            disk.wait_for(number)
        disk.transactions.append([])
        disk.fail = lambda writes: setattr(disk, "fail", fail)
    told = threads.join()
    assert isinstance(told.pop("a"), KeyboardInterrupt)
    assert set(told.values()) == {None}
    assert disk.transactions == [[], ["first"], ["b", "c"]]


def test_an_interrupt_right_after_the_commit_tells_the_others_that_it_was_made() -> None:
    disk = Disk()

    def interrupt() -> None:
        if len(disk.transactions[-1]) > 1:
            raise KeyboardInterrupt

    disk.after = interrupt
    told = together(disk, "a", "b")
    assert isinstance(told.pop("a"), KeyboardInterrupt)
    assert set(told.values()) == {None}
    assert disk.transactions == [["first"], ["a", "b"]]


def test_after_an_error_of_the_first_the_others_go_on() -> None:
    disk = Disk()

    def fail(writes: Sequence[Write]) -> None:
        disk.fail = lambda writes: None
        raise MemoryError

    disk.fail = fail
    told = together(disk, "a")
    assert isinstance(told.pop("first"), MemoryError)
    assert told == {"a": None}


def test_a_thread_that_writes_in_the_middle_of_its_own_write_is_told_so() -> None:
    disk = Disk()

    def handle_a_signal(writes: Sequence[Write]) -> None:
        disk.write("from a signal handler")

    disk.fail = handle_a_signal
    with pytest.raises(InvalidInput, match="signal handler"):
        disk.write("a")
    disk.fail = lambda writes: None
    disk.write("b")
    assert disk.transactions == [["b"]]


def test_a_thread_that_leads_after_it_has_waited_is_told_so_too() -> None:
    disk = Disk()
    told: list[InvalidInput] = []

    def handle_a_signal(writes: Sequence[Write]) -> None:
        if disk.transactions:
            with pytest.raises(InvalidInput, match="signal handler") as caught:
                disk.write("from a signal handler")
            told.append(caught.value)

    disk.fail = handle_a_signal
    assert set(together(disk, "a").values()) == {None}
    assert len(told) == 1
    assert disk.transactions == [["first"], ["a"]]


def test_an_interrupt_of_one_who_waits_leaves_nothing_of_it_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk()
    threads = Threads(disk)

    class Interrupted:
        """A lock that is interrupted when it is waited for, as Ctrl-C does in the main thread."""

        def __init__(self) -> None:
            self.taken = False

        def acquire(self, timeout: float = -1) -> None:
            if self.taken:
                raise KeyboardInterrupt
            self.taken = True

    with disk.held_up():
        threads.start("first")
        assert disk.entered.wait(SECONDS_MAX)
        monkeypatch.setattr(commits, "Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            disk.write("interrupted")
    assert threads.join() == {"first": None}
    disk.write("b")
    assert disk.transactions == [["first"], ["b"]]


class Interrupted(BaseException):
    """What a signal raises, between any two lines."""


class Interrupter:
    """Raise `Interrupted` in this thread before its line of that number, in the module judged.

    A line with `with` is passed: a trace would also come between the end of its block and the
    release of its lock, where the interpreter lets no signal in.
    """

    def __init__(self, line: int) -> None:
        self._left = line
        self.happened = False

    def __call__(self, frame: FrameType, event: str, _arg: object) -> Any:
        if frame.f_code.co_filename != commits.__file__:
            return None
        if event == "line" and not self.happened and not _is_with(frame):
            self._left -= 1
            if self._left < 0:
                self.happened = True
                raise Interrupted
        return self

    def during(self, act: Callable[[], object]) -> bool:
        """Return whether it was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            act()
        except Interrupted:
            return True
        finally:
            sys.settrace(before)
        return False


def _is_with(frame: FrameType) -> bool:
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith("with ")


class Insisting(Disk):
    """A disk that, as the store does, tells what is durable although an interrupt comes then."""

    def transaction(
        self, writes: Sequence[Write], done: Callable[[], None], *, once_more: bool = False
    ) -> None:
        def told() -> None:
            try:
                done()
            except Interrupted:
                done()
                raise

        super().transaction(writes, told, once_more=once_more)


@pytest.mark.parametrize("follows", [False, True])
def test_whoever_leads_may_be_interrupted_between_any_two_lines(
    monkeypatch: pytest.MonkeyPatch, follows: bool
) -> None:
    """Nobody waits for ever, and nobody's rows are written twice or not at all."""
    monkeypatch.setattr(commits, "LOST_SECONDS", 0.02)
    line = 0
    while interrupted_at(line, follows=follows):
        line += 1
    assert line > 15


def interrupted_at(line: int, *, follows: bool) -> bool:
    """Interrupt a thread that leads at once, or after it has followed, with others behind it;
    return whether there was such a line."""
    disk = Insisting()
    threads, over = Threads(disk), threading.Event()

    def let_others_come() -> None:
        for number, text in enumerate(("one", "two"), start=1 + follows):
            threads.start(text)
            disk.wait_for(number, over)
        disk.free.set()

    def come_behind() -> None:
        disk.wait_for(1, over)
        let_others_come()

    def own() -> None:
        disk.add("main")
        if not follows and not threads.told:
            let_others_come()

    behind = threading.Thread(target=come_behind, daemon=True)
    if follows:
        disk.free.clear()
        threads.start("first")
        assert disk.entered.wait(SECONDS_MAX)
        behind.start()
    interrupter = Interrupter(line)
    stopped = interrupter.during(lambda: disk.commits.commit(own))
    over.set()
    if follows:
        behind.join(SECONDS_MAX)
    told = threads.join()
    assert all(error is None for error in told.values()), (line, told)
    written = [text for transaction in disk.transactions for text in transaction]
    assert sorted(text for text in written if text != "main") == sorted(told), line
    assert written.count("main") in ((0, 1) if stopped else (1,)), line
    assert disk.write("later") is None
    return interrupter.happened
