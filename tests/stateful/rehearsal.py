"""A process that carries out what the reference says, point by point, and can die at each.

`at` is called at each point with its kind and with what is under way; what it raises ends the
process there. What is in `runs` is durable, all else is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, StepEvent
from tests.stateful import reference
from tests.stateful.outside import Interrupted, Outside, Seen, Time
from tests.stateful.records import Rows, Run, Step, StorageFailed

News = tuple[str, object]


@dataclass
class Rehearsal:
    """A database, and the process that holds it."""

    outside: Outside
    at: Callable[[str, str], None]
    runs: dict[str, Run] = field(default_factory=dict)
    writers: int = 0
    """Those that have written; one that writes nothing leaves no trace."""
    epoch: int = 1
    driven: str = ""
    acting: str = ""
    held: dict[tuple[str, str, int], News] = field(default_factory=dict)
    """What the process knows of a request, by run, step and attempt, and has not written."""
    probed: Seen = field(default_factory=lambda: Time().read())
    kept: int = 0
    """How often an answer was written although the next request could not be."""
    stopped: bool = False
    """Whether a storage error has stopped the process until it opens the file anew."""

    def process(self) -> None:
        """End the process, and begin another."""
        self.epoch, self.held = self.writers + 1, {}
        self.rest()
        self.reopen()

    def reopen(self) -> None:
        self.stopped = False

    def rest(self) -> None:
        """Note that no act is under way, however the last one ended."""
        self.driven = self.acting = ""

    def start(self, run: Run) -> None:
        self._go_on_unless_stopped()
        run.epoch, rows = self.epoch, [(f"start/{run.open.contract}", run)]
        self.driven = run.name
        self.held[run.name, run.steps[0].name, 1] = ("ready", None)
        self._commit(self._draft(run, StepEvent.REQUEST, Actor.RUNTIME, rows), rows)
        self._drive(run.name, ("ready", None))

    def resume(self, name: str) -> None:
        self._go_on_unless_stopped()
        self._drive(name, self._known(self.runs[name]))

    def cancel(self, name: str) -> None:
        self._go_on_unless_stopped()
        run, rows = self.runs[name], Rows()
        if self.acting == name or reference.state_of(run) not in (
            RunState.RUNNING,
            RunState.PAUSED,
        ):
            return
        self.acting = "" if self.driven == name else name
        run = self._draft(run, RunEvent.ASK_CANCEL, Actor.OPERATOR, rows)
        if run.open.state is reference.REQUESTED and self.driven != name:
            news, value = self._known(run)
            owed = reference.owed(run, news, self.outside.time.read(), self.probed)
            assert isinstance(owed, tuple), "nothing is called for a cancel"
            run = self._draft(run, *owed, rows, value)
        self._commit(run, rows)
        self.acting = ""

    def settle(
        self, name: str, event: StepEvent, *, fits: bool, attempt: int, result: object
    ) -> bool:
        """Take evidence if it counts; it `fits` if it names run, step and key rightly."""
        self._go_on_unless_stopped()
        run, rows = self.runs[name], Rows()
        if not (fits and reference.accepts(run, event, attempt, self.outside.time.read())):
            return False
        self.acting = "" if self.driven == name else name
        self._commit(self._draft(run, event, Actor.OPERATOR, rows, result), rows)
        self.acting = ""
        if event is StepEvent.RESEND:
            self._drive(name, ("ready", None))
        return True

    def _known(self, run: Run) -> News:
        at = run.name, run.open.name, run.open.attempt
        return self.held.get(at, ("found", None))

    def _draft(
        self,
        run: Run,
        event: StepEvent | RunEvent,
        actor: Actor,
        rows: Rows,
        result: object = None,
    ) -> Run:
        now, contract = self.outside.time.read(), run.open.contract
        if run.epoch != self.epoch:
            run = reference.after(run, RunEvent.ADOPT, Actor.RECOVERY, now, None)
            run.epoch = self.epoch
            rows.append((f"adopt by recovery/{contract}", run))
        run = reference.after(run, event, actor, now, result)
        rows.append((f"{event} by {actor}/{contract}", run))
        return run

    def _commit(self, run: Run, rows: Rows, *, stops: bool = False) -> None:
        """Make rows durable in one transaction."""
        if not rows:
            return
        sends = {(run.name, run.open.name, run.open.attempt): ("ready", None)}
        sends = sends if rows[-1][0].startswith(("request", "resend")) else {}
        self.held.update(sends)
        self._go_on_unless_stopped()
        text = ", ".join(row for row, _ in rows)
        try:
            self.at("before", text)
        except StorageFailed:
            if sends and len(rows) > 1 and not rows[-2][0].startswith(("adopt", "start")):
                self.stopped = False
                self.kept += 1
                # An answer is not lost with the next request.
                self._commit(rows[-2][1], rows[:-1], stops=True)
            raise
        self.at("inside", text)
        self.runs[run.name], self.writers = run, self.epoch
        self.at("after", text)
        self._forget(run.name)
        self.held.update(sends)
        self.stopped = self.stopped or stops
        for row, _ in rows:
            if not row.startswith("start"):
                self.at("told", row)

    def _go_on_unless_stopped(self) -> None:
        if self.stopped:
            raise StorageFailed

    def _forget(self, name: str) -> None:
        self.held = {at: news for at, news in self.held.items() if at[0] != name}

    def _drive(self, name: str, known: News) -> None:
        self.driven = name
        try:
            self._drive_on(name, known)
        finally:
            self.driven = ""

    def _drive_on(self, name: str, known: News) -> None:
        (news, value), run, rows = known, self.runs[name], Rows()
        has_probed = False
        while True:
            if news == "ready":
                self._commit(run, rows)
                run, rows = self.runs[name], Rows()
            if _rests_on_time(run.open, has_probed=has_probed):
                self._go_on_unless_stopped()  # what was written when is read from the storage
            owed = reference.owed(run, news, self.outside.time.read(), self.probed)
            if isinstance(owed, tuple):
                run = self._draft(run, *owed, rows, value)
                news = "ready" if run.open.state is reference.REQUESTED else "nothing"
                value = None
                continue
            self._commit(run, rows)
            if not owed:
                return
            has_probed = has_probed or owed == "probe"
            news, value = self._call(name) if owed == "call" else self._probe(name)
            run, rows = self.runs[name], Rows()

    def _call(self, name: str) -> News:
        step = self.runs[name].open
        self._go_on_unless_stopped()
        self._forget(name)
        self.at("call", f"{name} {step.name} {step.attempt}/{step.contract}")
        news = self.outside.call((name, step.name), step.tool, step.script, step.attempt)
        self.at("called", f"{name} {step.name} {step.attempt}/{step.contract}")
        if news[0] == "interrupted":
            raise Interrupted
        self.held[name, step.name, step.attempt] = news
        return news

    def _probe(self, name: str) -> News:
        step = self.runs[name].open
        self._go_on_unless_stopped()
        self.probed = self.outside.time.read()
        self.at("probe", f"{name} {step.name} {step.attempt}")
        news = self.outside.look_up((name, step.name), step.looks)
        self.at("probed", f"{name} {step.name} {step.attempt}")
        found = self.runs[name].open
        settled = (found.name, found.attempt) != (step.name, step.attempt)
        return ("nothing", None) if settled else news


def _rests_on_time(step: Step, *, has_probed: bool) -> bool:
    if step.tool == "windowed":
        return step.first is not None
    return step.tool == "asked" and has_probed and step.suspended is not None
