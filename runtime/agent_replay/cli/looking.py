"""What the commands see of a database without writing to it, also beside its writer."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

from agent_replay.clock import SystemClock
from agent_replay.events import Event, Writer
from agent_replay.history import RunHistory
from agent_replay.report.commands import Caller
from agent_replay.report.diagnosis import Diagnosis, Standing, Writing, diagnose, standing_of
from agent_replay.report.runs import Listed
from agent_replay.store.reader import Reader, Summary

PROGRAM = "agent-replay"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class View:
    """A database with its runs, for somebody who only looks."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.caller = caller_of(reader.path)
        self.writing = _writing(reader)
        self.writers = reader.writers()
        self._now = SystemClock().read()

    def read(self, run_id: str) -> tuple[RunHistory, list[Event]]:
        """Return a run as its history tells it, and its rows, all as of one moment."""
        return self.reader.read(run_id)

    def diagnose(self, history: RunHistory) -> Diagnosis:
        """Return why an unfinished run has not ended, and what to do."""
        boots = {writer.epoch: writer.boot_id for writer in self.writers}
        return diagnose(
            history, caller=self.caller, writing=self.writing, now=self._now, boots=boots
        )

    def writers_of(self, history: RunHistory, events: list[Event]) -> list[Writer]:
        """Return the writers that have written events of a run."""
        epochs = {history.registration.epoch, *(event.epoch for event in events)}
        return [writer for writer in self.writers if writer.epoch in epochs]

    def listed(self, summary: Summary) -> Listed:
        """Return a run as `list` shows it; an unfinished one is read for its open step.

        Raises `DamagedHistory` where that can't be.
        """
        standing = standing_of(summary.run_state, summary.state, in_hand=self.writing.at_work)
        ended = standing in (Standing.COMPLETED, Standing.FAILED, Standing.CANCELLED)
        if ended or standing is Standing.DAMAGED:
            return unread(summary, standing)
        history, _ = self.read(summary.id)
        if history.ended:
            return unread(summary, Standing(history.run_state.value))
        found = self.diagnose(history)
        return unread(summary, found.standing)._replace(
            number=found.number,
            seq=history.head.seq,
            step=found.step,
            state=found.state.value,
            attempt=found.attempt,
            key=found.key,
        )


def unread(summary: Summary, standing: Standing) -> Listed:
    """Return a run as far as its head tells."""
    return Listed(
        run=summary.run,
        id=summary.id,
        standing=standing,
        registered_ns=summary.registered_ns,
        number=summary.step,
        steps=summary.steps,
        seq=summary.seq,
        step=None,
        state=None,
        attempt=None,
        key=None,
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
