"""The runtime: runs plans against adapters, and keeps the history that survives the process.

    with Runtime("runs.db", adapters=[quote, charge, notify]) as runtime:
        outcome = runtime.run("order-42", plan)

A request is durable before its tool is called, a result is durable before the next step. `run` with
an id that is known is a resume: what is on record is returned, and only what is owed is done. A run
that waits for evidence is an outcome, not an error.

One `Runtime` holds a database; its methods may be called from several threads. It decides nothing
about steps: `recovery` does, `driver` carries it out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from agent_replay.adapters import Adapter, Registry
from agent_replay.clock import NANOSECONDS, Clock, SystemClock
from agent_replay.contracts import Terms
from agent_replay.driver import Driver, Known, Memory
from agent_replay.errors import (
    AdapterMismatch,
    EvidenceRefused,
    InvalidInput,
    PlanMismatch,
    ReplayError,
)
from agent_replay.events import Event, Registration, StepRow
from agent_replay.history import RunHistory
from agent_replay.keys import idempotency_key
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, StepEvent, StepState
from agent_replay.live import LiveRun, OnEvent
from agent_replay.outcome import Finished, Outcome, outcome_of, sources_of, terms_of
from agent_replay.plan import Plan, Step, first_difference, plan_of
from agent_replay.reconcile import Evidence, confirming_payload, operators_payload
from agent_replay.recovery import News, Why
from agent_replay.store import rows
from agent_replay.store.database import LOG_BYTES, Database
from agent_replay.turns import Turns
from agent_replay.values import Json, canonical, check_id

ATTEMPTS_MAX = 3
"""Requests and resends of a step, over all processes, before a person is asked."""
ATTEMPTS_LIMIT = 1_000
WORKERS = 32
WORKERS_LIMIT = 1_000
_PAGE = 500


class Runtime:
    """Runs plans, resumes them, and takes evidence; one at a time may hold a database.

    Raises `DatabaseLocked` when another process or object holds it, unless `wait` is given.
    `namespace` names a new database (random if left out). `hint` says where the adapters came from;
    it is kept with each run for people to read. `on_event` is called with the run's id and the row
    after each commit; what it raises is logged and changes nothing. `log_bytes` is the size to
    which a new log is grown.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        adapters: Iterable[Adapter] = (),
        attempts_max: int = ATTEMPTS_MAX,
        wait: bool = False,
        namespace: str | None = None,
        hint: str = "",
        on_event: OnEvent | None = None,
        clock: Clock | None = None,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        if type(attempts_max) is not int or not 1 <= attempts_max <= ATTEMPTS_LIMIT:
            raise InvalidInput(
                f"attempts_max is a number from 1 to {ATTEMPTS_LIMIT}, not {attempts_max!r}"
            )
        if on_event is not None and not callable(on_event):
            raise InvalidInput(f"on_event is a function of run id and row, not {on_event!a}")
        if type(hint) is not str or hint.encode(errors="replace") != hint.encode("utf-8", "ignore"):
            raise InvalidInput(f"hint is text that UTF-8 can encode, not {hint!a}")
        if path == ":memory:":
            raise InvalidInput("':memory:' survives nothing; give the path of a file")
        if isinstance(adapters, Adapter):
            raise InvalidInput("adapters is a list; put the one adapter into brackets")
        self._registry = Registry(adapters)
        self._attempts_max = attempts_max
        self._hint = hint
        self._on_event = on_event
        self._clock = clock or SystemClock()
        self._memory: Memory = {}
        self._turns = Turns()
        self._database = Database(
            path, clock=self._clock, wait=wait, namespace=namespace, log_bytes=log_bytes
        )
        self._store = self._database.store

    @property
    def path(self) -> str:
        """Return the path of the database."""
        return self._database.path

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database. Raises `InvalidInput` while a run is being driven."""
        with self._turns.nobody("close"):
            self._database.close()

    def reopen(self) -> None:
        """Go on after a `StorageError`: read anew what is durable, in the same epoch.

        Raises `InvalidInput` while a run is being driven; each of them ends with a `StorageError`
        first.
        """
        with self._turns.nobody("reopen"):
            self._database.reopen()

    # --- running --------------------------------------------------------------------------------

    def run(self, run_id: str, plan: Plan | Json) -> Outcome:
        """Run a plan under an id, or resume it if the id is known with the same plan and adapters.

        Raises `PlanMismatch` or `AdapterMismatch`, naming the first difference, before anything is
        written.
        """
        check_id("run id", run_id)
        given = plan if isinstance(plan, Plan) else plan_of(plan)
        with self._turns.driving(run_id):
            registration = self._store.find(run_id)
            if registration is None:
                return self._start(run_id, given)
            return self._go_on(run_id, given)

    def run_many(
        self,
        runs: Iterable[tuple[str, Plan | Json]],
        *,
        workers: int = WORKERS,
        on_stop: Callable[[], None] | None = None,
    ) -> Generator[Finished, None, None]:
        """Run pairs of id and plan, `workers` at once in threads; yield each run when it ends.

        Nothing is begun before the first `next`. What `docs/many-runs.md` says of errors,
        interruptions and `close` holds; `on_stop` is called once nothing more is begun after one.
        """
        from agent_replay import many  # here: most programs run one plan at a time

        return many.run_many(self, runs, workers=workers, on_stop=on_stop)

    def resume(self, run_id: str) -> Outcome:
        """Do what a registered run is owed, and return what it came to; raises `NoSuchRun`."""
        with self._turns.driving(run_id):
            return self._go_on(run_id, None)

    def resume_all(
        self, *, workers: int = 1, on_stop: Callable[[], None] | None = None
    ) -> tuple[list[Outcome], list[tuple[str, ReplayError]]]:
        """Resume every unfinished run; return the outcomes, and what could not be resumed with why.

        A storage error stops it and is raised. With several workers it is as `run_many`.
        """
        from agent_replay import many  # here, as above

        done = list(many.resume_many(self, self._unfinished(), workers=workers, on_stop=on_stop))
        outcomes = [outcome for _, outcome, _ in done if outcome is not None]
        return outcomes, [(run_id, error) for run_id, _, error in done if error is not None]

    def outcome(self, run_id: str) -> Outcome:
        """Return what a run has come to so far, from its history alone; raises `NoSuchRun`."""
        return outcome_of(self._store.read(run_id))

    def _unfinished(self) -> Iterator[str]:
        after = 0
        while page := self._store.unfinished(after=after, limit=_PAGE):
            yield from (run_id for _, run_id in page)
            after = page[-1][0]

    def _start(self, run_id: str, plan: Plan) -> Outcome:
        """Register a run with its first request, in one transaction, and drive it."""
        adapters = self._pinned_by(plan)
        now = self._clock.read()
        unnumbered = Registration(
            run=0,
            id=run_id,
            plan=plan.digest,
            steps=len(plan.steps),
            attempts_max=self._attempts_max,
            adapters=canonical(adapters),
            hint=self._hint,
            epoch=0,
            writer=b"",
            wall_ns=now.wall_ns,
            boot_ns=now.boot_ns,
            hash=b"",
        )
        live: LiveRun

        def first(history: RunHistory) -> Sequence[Event]:
            nonlocal live
            live = self._live(history)
            sending = self._driver(live).sending(Why.NONE, now)
            live.draft(StepEvent.REQUEST, Actor.RUNTIME, sending, now=now)
            self._memory[run_id] = {(1, 1): Known(1, 1, News.READY, "")}
            return live.drafted()

        self._store.register(unnumbered, self._step_rows(run_id, plan), first)
        self._turns.show(live)
        live.committed(1)
        return self._drive(live)

    def _go_on(self, run_id: str, plan: Plan | None) -> Outcome:
        history = self._store.read(run_id)
        if plan is not None and plan.digest != history.registration.plan:
            difference = first_difference(self._stored_steps(history), plan.steps)
            raise PlanMismatch(
                f"run {run_id} has another plan: {difference}; use another run id, or the plan it "
                "began with"
            )
        if history.ended:
            self._check_adapters(history, missing_is_fine=True)
            return outcome_of(history)
        warnings = self._check_adapters(history, missing_is_fine=False)
        return self._drive(self._live(history), warnings=warnings)

    def _drive(
        self, live: LiveRun, *, first: News | None = None, warnings: tuple[str, ...] = ()
    ) -> Outcome:
        driver = self._driver(live)
        self._turns.show(live)
        driver.drive(first)
        return outcome_of(live.history, warnings + tuple(driver.notes))

    def _driver(self, live: LiveRun) -> Driver:
        return Driver(live, self._registry, self._memory)

    @staticmethod
    def _stored_steps(history: RunHistory) -> list[Step]:
        return rows.planned_steps(history.steps)

    def _step_rows(self, run_id: str, plan: Plan) -> list[StepRow]:
        namespace = self._store.identity.namespace
        return [
            StepRow(
                run=0,
                step=number,
                id=step.id,
                adapter=f"{step.adapter}@{step.version}",
                contract=step.contract.value,
                arguments=step.arguments_text,
                key=idempotency_key(namespace, run_id, step.id, step.adapter, step.arguments_text),
            )
            for number, step in enumerate(plan.steps, start=1)
        ]

    # --- adapters -------------------------------------------------------------------------------

    def _pinned_by(self, plan: Plan) -> dict[str, Json]:
        """Return what the run pins of each adapter; raises `AdapterMismatch` naming the first
        difference."""
        pinned: dict[str, Json] = {}
        for step in plan.steps:
            identity = f"{step.adapter}@{step.version}"
            adapter = self._registry.get(identity)
            if adapter.terms.contract is not step.contract:
                raise AdapterMismatch(
                    f"step {step.id!r} counts on {identity} being {step.contract}, "
                    f"but it is registered as {adapter.terms.contract}; correct the plan or the "
                    "adapter"
                )
            pinned[identity] = {**adapter.terms.pinned(), "source": adapter.source}
        return pinned

    def _check_adapters(self, history: RunHistory, *, missing_is_fine: bool) -> tuple[str, ...]:
        """Raise `AdapterMismatch` at the first adapter that is missing or has other terms; return
        warnings."""
        warnings = []
        pinned = terms_of(history.registration)
        sources = sources_of(history.registration)
        for identity, terms in pinned.items():
            if missing_is_fine and not self._registry.has(identity):
                continue
            adapter = self._registry.get(identity)
            if adapter.terms != terms:
                raise AdapterMismatch(
                    f"run {history.registration.id} has pinned {identity} as {_in_words(terms)}, "
                    f"but it is registered as {_in_words(adapter.terms)}; register it as it was, "
                    "under its version"
                )
            if sources.get(identity) != adapter.source:
                warnings.append(f"the source of adapter {identity} has changed since the run began")
        return tuple(warnings)

    # --- people ---------------------------------------------------------------------------------

    def confirm(self, evidence: Evidence, *, result: Json) -> Outcome:
        """Record that a step in doubt happened, with its result. Raises `EvidenceRefused` or
        `NoSuchRun`.

        Nothing is called: `resume` goes on with the run.
        """
        with self._acting_on(evidence.run) as live:
            live.draft(
                StepEvent.CONFIRM,
                Actor.OPERATOR,
                confirming_payload(evidence, result, live.history),
            )
            live.commit()
            return outcome_of(live.history)

    def refute(self, evidence: Evidence) -> Outcome:
        """Record that no attempt of a step in doubt happened or can still land; it may be requested
        again.

        Nothing is called: `resume` goes on with the run.
        """
        return self._settle_by_hand(StepEvent.REFUTE, evidence)

    def abandon(self, evidence: Evidence) -> Outcome:
        """Close a step in doubt without knowing; the run fails, and says for ever that it is
        unknown."""
        return self._settle_by_hand(StepEvent.ABANDON, evidence)

    def _settle_by_hand(self, event: StepEvent, evidence: Evidence) -> Outcome:
        with self._acting_on(evidence.run) as live:
            live.draft(event, Actor.OPERATOR, operators_payload(event, evidence, live.history))
            live.commit()
            return outcome_of(live.history)

    def resend(self, evidence: Evidence) -> Outcome:
        """Grant a step in doubt one more attempt with the same key, send it, and drive the run on.

        For idempotent adapters, inside the key window; this process makes the call itself.
        """
        with self._turns.driving(evidence.run):
            history = self._store.read(evidence.run)
            payload = operators_payload(StepEvent.RESEND, evidence, history)
            warnings = self._check_adapters(history, missing_is_fine=False)
            live = self._live(history)
            driver = self._driver(live)
            now = live.now()
            if not driver.window_is_open(terms_of(history.registration)[live.step.adapter], now):
                raise EvidenceRefused(
                    f"step {evidence.step!r}: its key window has lapsed, so the tool may not know "
                    "the key any more; "
                    "confirm, refute or abandon it"
                )
            if history.run_state is not RunState.PAUSED:
                raise EvidenceRefused(
                    f"run {evidence.run!r} is {history.run_state}: nothing more is sent"
                )
            live.draft(StepEvent.RESEND, Actor.OPERATOR, driver.joined(payload, now), now=now)
            live.commit()
            return self._drive(live, first=News.READY, warnings=warnings)

    def cancel(self, run_id: str, *, who: str, why: str) -> Outcome:
        """Ask a run to end: nothing more is sent, and what is open must settle.

        A run that has ended answers its outcome; a second ask changes nothing. If a tool is being
        called by another thread, its driver settles the step; otherwise the step is settled here.
        """
        for name, text in (("who", who), ("why", why)):
            if type(text) is not str or not text.strip():
                raise InvalidInput(f"cancel needs {name!r}")
        with self._acting_on(run_id) as live:
            if live.history.ended or live.run_state is RunState.CANCELLING:
                return outcome_of(live.history)
            live.draft(RunEvent.ASK_CANCEL, Actor.OPERATOR, canonical({"who": who, "why": why}))
            if live.state is StepState.REQUESTED and not self._turns.is_driven(run_id):
                self._driver(live).settle()
            live.commit()
            return outcome_of(live.history)

    def _live(self, history: RunHistory) -> LiveRun:
        return LiveRun(self._store, history, self._clock, self._on_event)

    def _acting_on(self, run_id: str) -> AbstractContextManager[LiveRun]:
        return self._turns.acting(run_id, lambda: self._live(self._store.read(run_id)))


def _in_words(terms: Terms) -> str:
    parts = [
        f"{name.removesuffix('_ns')}={value / NANOSECONDS:g}"
        for name, value in terms.pinned().items()
        if isinstance(value, int)
    ]
    return f"{terms.contract}({', '.join(parts)})"
