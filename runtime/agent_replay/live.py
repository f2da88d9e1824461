"""A run in this process: its history, and the only way to add to it.

Rows are drafted on a projected head and committed together. The history is taken over only when the
commit has returned, so what this object shows is durable, or drafted and not yet shown to anybody.
Whoever reads or adds holds `lock`: a driver, and beside it an operator or a cancel from another
thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import RLock

from agent_replay.clock import Clock, Reading
from agent_replay.events import RUN_STATES, STEP_STATES, Event, Head, StepRow
from agent_replay.history import SENDS, OpenStep, RunHistory, next_head, next_open
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, StepEvent, StepState
from agent_replay.store.writer import Store

logger = logging.getLogger("agent_replay")

OnEvent = Callable[[str, Event], None]


class LiveRun:
    """One run with a history that grows."""

    def __init__(
        self, store: Store, history: RunHistory, clock: Clock, on_event: OnEvent | None
    ) -> None:
        self.lock = RLock()
        self.store = store
        self.history = history
        self._clock = clock
        self._on_event = on_event
        self.id = history.registration.id
        self.head = history.head
        """Where the run stands, drafts included."""
        self.open = history.open
        """What is known of the open step, drafts included."""
        self._drafts: list[tuple[Event, Head, OpenStep]] = []

    @property
    def step(self) -> StepRow:
        """Return the row of the open step, drafts included."""
        return self.history.steps[self.head.step - 1]

    @property
    def state(self) -> StepState:
        """Return the state of the open step, drafts included."""
        return STEP_STATES[self.head.state]

    @property
    def run_state(self) -> RunState:
        """Return the state of the run, drafts included."""
        return RUN_STATES[self.head.run_state]

    def now(self) -> Reading:
        """Return what the clocks show."""
        return self._clock.read()

    def draft(
        self, event: StepEvent | RunEvent, actor: Actor, payload: str, *, now: Reading | None = None
    ) -> Event:
        """Draft the next row, judged by the machine; raises `IllegalMove` and drafts nothing.

        A writer that takes the run over adopts it in the same transaction.
        """
        now = now or self.now()
        before = len(self._drafts)
        try:
            if self.head.epoch != self.store.epoch:
                self._add(RunEvent.ADOPT, None, Actor.RECOVERY, "{}", now)
            contract = self.step.contract if isinstance(event, StepEvent) else None
            return self._add(event, contract, actor, payload, now)
        except BaseException:
            self._forget_from(before)  # an adopt is never written alone
            raise

    def _add(
        self,
        event: StepEvent | RunEvent,
        contract: str | None,
        actor: Actor,
        payload: str,
        now: Reading,
    ) -> Event:
        head = self.head
        row = self.store.next_event(head, contract, event, actor, payload=payload, now=now)
        after, known = next_head(head, row), next_open(head, self.open, row)
        self._drafts.append((row, after, known))
        self.head, self.open = after, known
        return row

    def forget(self) -> None:
        """Drop the drafts."""
        self._forget_from(0)

    def _forget_from(self, count: int) -> None:
        del self._drafts[count:]
        history = self.history
        _, self.head, self.open = self._drafts[-1] if count else (None, history.head, history.open)

    def drafted(self) -> list[Event]:
        """Return the drafted rows."""
        return [row for row, _, _ in self._drafts]

    def commit(self) -> None:
        """Write the drafts; durable when it returns.

        If the last draft is a request and fails before the commit, what came before it is committed
        by itself and the error raised: an acknowledgement must not be lost because the next step
        cannot start.
        """
        if not self._drafts:
            return
        rows = self.drafted()
        keep = len(rows) - 1 if rows[-1].event in SENDS else 0
        if keep and rows[keep - 1].event == RunEvent.ADOPT:
            keep = 0  # an adopt is never written alone
        try:
            error = self.store.append(rows, keep=keep)
        except BaseException:
            self.forget()
            raise
        self.committed(len(rows) if error is None else keep)
        if error is not None:
            raise error

    def committed(self, count: int) -> None:
        """Take over the first `count` drafts, which are durable, drop the others, and tell the
        hook."""
        drafts = self._drafts[:count]
        for row, head, known in drafts:
            self.history.take_over(row, head, known)
        self.forget()
        if self._on_event is not None or logger.isEnabledFor(logging.INFO):
            for row, _, _ in drafts:
                self._tell(row)

    def _tell(self, row: Event) -> None:
        logger.info(
            "run %s seq %d: %s by %s, step %s attempt %s -> %s, run %s",
            self.id, row.seq, row.event, row.actor, row.step, row.attempt, row.state, row.run_state,
        )  # fmt: skip
        if self._on_event is None:
            return
        try:
            self._on_event(self.id, row)
        except Exception as error:  # noqa: BLE001 - a hook may not hurt the run; the row is durable already
            logger.warning(
                "run %s seq %d: the on_event hook raised %s", self.id, row.seq, type(error).__name__
            )
