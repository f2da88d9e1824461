"""One driver for a run: who works on which run in this process, and who waits.

A driver holds its run from before the history is read until the outcome is known. A second driver
of the same run waits. Somebody who acts on a run beside its driver (a cancel, an operator) is given
the driver's own `LiveRun`, under its lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, get_ident

from agent_replay.errors import InvalidInput
from agent_replay.live import LiveRun


class Turns:
    """The runs that are being worked on, by id, each with its thread and, once it is read, its
    run."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._holders: dict[str, tuple[int, LiveRun | None]] = {}

    @contextmanager
    def driving(self, run_id: str) -> Iterator[None]:
        """Hold a run as its driver; another thread's driver is waited for."""
        with self._changed:
            while run_id in self._holders:
                self._refuse_own(run_id)
                self._changed.wait()
            self._holders[run_id] = (get_ident(), None)
        try:
            yield
        finally:
            with self._changed:
                del self._holders[run_id]
                self._changed.notify_all()

    def show(self, live: LiveRun) -> None:
        """Let others act on the run that this thread drives."""
        with self._changed:
            self._holders[live.id] = (get_ident(), live)
            self._changed.notify_all()

    def is_driven(self, run_id: str) -> bool:
        """Return whether a driver is at work on the run, other than one that acts on it just
        now."""
        with self._changed:
            return self._shown(run_id) is not None

    def driven_here(self) -> str | None:
        """Return a run that this thread drives, or None if it drives none."""
        own = get_ident()
        with self._changed:
            return next((run for run, (thread, _) in self._holders.items() if thread == own), None)

    @contextmanager
    def acting(self, run_id: str, read: Callable[[], LiveRun]) -> Iterator[LiveRun]:
        """Yield a run, locked, to somebody who acts on it beside its driver, if it has one."""
        with self._changed:
            while run_id in self._holders and self._shown(run_id) is None:
                self._refuse_own(run_id)
                self._changed.wait()
            live = self._shown(run_id)
        if live is not None:
            with live.lock:
                yield live
            return
        with self.driving(run_id):
            yield read()

    @contextmanager
    def idle(self, run_ids: Iterable[str]) -> Iterator[list[str]]:
        """Hold those of the runs that nobody works on, and yield them; whoever wants one waits."""
        with self._changed:
            free = [run_id for run_id in run_ids if run_id not in self._holders]
            self._holders.update((run_id, (get_ident(), None)) for run_id in free)
        try:
            yield free
        finally:
            with self._changed:
                for run_id in free:
                    del self._holders[run_id]
                self._changed.notify_all()

    @contextmanager
    def nobody(self, act: str) -> Iterator[None]:
        """Keep everybody out for a while, or raise `InvalidInput` naming the runs that are under
        way."""
        with self._changed:
            if self._holders:
                runs = ", ".join(sorted(self._holders))
                raise InvalidInput(
                    f"cannot {act} now: {runs} under way; wait until it has returned"
                )
            yield

    def _shown(self, run_id: str) -> LiveRun | None:
        return self._holders[run_id][1] if run_id in self._holders else None

    def _refuse_own(self, run_id: str) -> None:
        if self._holders[run_id][0] == get_ident():
            raise InvalidInput(
                f"run {run_id} is being driven by this thread: a tool cannot drive its own run"
            )
