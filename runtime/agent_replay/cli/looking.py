"""What the commands see of a database without writing to it, also beside its writer."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

from agent_replay.clock import SystemClock
from agent_replay.events import Event, StepRow
from agent_replay.history import RunHistory
from agent_replay.report.commands import Caller
from agent_replay.report.diagnosis import (
    Diagnosis,
    Standing,
    Writing,
    archived_standing,
    diagnose,
    standing_of,
)
from agent_replay.report.runs import Listed
from agent_replay.store.reader import Reader, Summary

PROGRAM = "agent-replay"
EVENTS_READ_MAX = 50_000
"""Events that `list` goes through for one page, so that long runs do not hold it up."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class View:
    """A database with its runs, for somebody who only looks."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.caller = caller_of(reader.path)
        self.writing = _writing(reader)
        self._now = SystemClock().read()
        self._events_read = 0

    def history(self, run_id: str) -> RunHistory:
        """Return a run as its history tells it."""
        return self.reader.read(run_id, limit=0)[0]

    def diagnose(self, history: RunHistory) -> Diagnosis:
        """Return why an unfinished run has not ended, and what to do."""
        first = history.open.first
        boots = {} if first is None else {first.epoch: self.reader.boot_of(first.epoch)}
        return diagnose(
            history, caller=self.caller, writing=self.writing, now=self._now, boots=boots
        )

    def page(
        self, run_id: str, *, after: int, limit: int
    ) -> tuple[RunHistory, Event | None, list[Event], int | None]:
        """Return a run as its history tells it, and a page of its events: the one before the page,
        those of it, and the number after which the next page begins, if there is one."""
        # One event more on both sides: what a line says goes by the one before.
        history, events = self.reader.read(run_id, after=max(after - 1, 0), limit=limit + 2)
        before = events.pop(0) if after and events else None
        more = events[limit - 1].seq if len(events) > limit else None
        return history, before, events[:limit], more

    def listed(self, summary: Summary) -> Listed:
        """Return a run as `list` shows it; an unfinished one is read for its open step.

        Raises `DamagedHistory` where that can't be. When `EVENTS_READ_MAX` events have been gone
        through for a page, further runs are shown as their heads tell.
        """
        if summary.archive is not None:
            return unread(summary, archived_standing(summary.run_state))
        standing = standing_of(summary.run_state, summary.state, in_hand=self.writing.at_work)
        ended = standing in (Standing.COMPLETED, Standing.FAILED, Standing.CANCELLED)
        if ended or standing is Standing.DAMAGED:
            return unread(summary, standing)
        self._events_read += summary.seq or 0
        if self._events_read > EVENTS_READ_MAX:
            step = self.reader.step(summary.run, summary.step or 0)
            return unread(summary, standing, step)
        history = self.history(summary.id)
        if history.ended:
            return unread(summary, Standing(history.run_state.value))
        found = self.diagnose(history)
        return unread(summary, found.standing, history.open_step)._replace(
            number=found.number,
            seq=history.head.seq,
            state=found.state.value,
            attempt=found.attempt,
        )


def unread(summary: Summary, standing: Standing, step: StepRow | None = None) -> Listed:
    """Return a run as far as its head tells, with its open step if it has not ended."""
    return Listed(
        run=summary.run,
        id=summary.id,
        standing=standing,
        registered_ns=summary.registered_ns,
        number=summary.step,
        steps=summary.steps,
        seq=summary.seq,
        step=None if step is None else step.id,
        state=None if step is None else summary.state,
        attempt=None if step is None else summary.attempt,
        key=None if step is None else step.key,
        archive=summary.archive,
    )


@contextlib.contextmanager
def looking_at(path: str) -> Iterator[View]:
    """Yield a view of a database of this program's spec."""
    with Reader(path) as reader:
        reader.check_spec()
        yield View(reader)


def caller_of(path: str) -> Caller:
    """Return how the person at the terminal can call this program again, from any folder."""
    return Caller(_program(), os.path.abspath(path))


def _program() -> tuple[str, ...]:
    called = os.path.abspath(sys.argv[0]) if sys.argv else ""
    if called == os.path.join(_PACKAGE, "__main__.py"):
        return (sys.executable, "-m", "agent_replay")
    if os.path.basename(called) == PROGRAM and shutil.which(PROGRAM) != called:
        return (called,)
    return (PROGRAM,)


def _writing(reader: Reader) -> Writing:
    holder = reader.writer_at_work()
    return Writing(holder is not None, holder or "", reader.last_writer())
