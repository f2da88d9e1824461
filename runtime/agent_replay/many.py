"""Many runs at once: threads that each drive one run at a time, for `Runtime.run_many`
and `resume_all`.

Here is what concerns several runs together: how many are held, when nothing more is begun, and who
is told. Each run is driven by `Runtime.run` as any other. Whoever iterates reads the input, a few
entries ahead, and gets the results; so both stay in the caller's own thread, and a caller that is
slow holds the workers back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from queue import SimpleQueue

from agent_replay.clock import Reading
from agent_replay.errors import (
    DamagedHistory,
    DatabaseLocked,
    Fenced,
    InvalidInput,
    ReplayError,
    StorageError,
    UnusableDatabase,
    WrongProcess,
)
from agent_replay.events import Event
from agent_replay.history import SENDS, RunHistory
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, StepEvent
from agent_replay.live import LiveRun
from agent_replay.outcome import Finished, Outcome
from agent_replay.plan import Plan
from agent_replay.runtime import WORKERS_LIMIT, Runtime
from agent_replay.turns import Turns
from agent_replay.values import Json

_Entry = tuple[str, "Plan | Json"]
_OnStop = Callable[[], None] | None
_Drive = Callable[[str, "Plan | Json"], Outcome]
_ENDS_ALL = (StorageError, DatabaseLocked, Fenced, UnusableDatabase, WrongProcess)
"""Errors that are about the database and not about one run: each further run would meet them."""


def run_many(
    runtime: Runtime, runs: Iterable[_Entry], *, workers: int, on_stop: _OnStop
) -> Generator[Finished, None, None]:
    """Return the iterator that `Runtime.run_many` describes; its arguments are judged at once."""
    _check_workers(workers)
    if isinstance(runs, (Mapping, str, bytes)) or not isinstance(runs, Iterable):
        raise InvalidInput(
            f"runs is an iterable of pairs of run id and plan, not {type(runs).__name__}; "
            "of a dict give its items()"
        )
    _refuse_inside_of_a_tool(runtime._turns)
    shared = _CrewsRuntime(runtime)
    return _finished(_Crew(shared, shared.run, workers), map(_checked, runs), on_stop)


def resume_many(
    runtime: Runtime, run_ids: Iterable[str], *, workers: int, on_stop: _OnStop
) -> Generator[Finished, None, None]:
    """Return the iterator over what comes of resuming runs; with one worker, in this thread."""
    _check_workers(workers)
    if workers == 1:
        return _one_by_one(runtime, run_ids)
    _refuse_inside_of_a_tool(runtime._turns)
    shared = _CrewsRuntime(runtime)
    ids = ((run_id, None) for run_id in run_ids)
    crew = _Crew(shared, lambda run_id, _: shared.resume(run_id), workers)
    return _finished(crew, ids, on_stop)


def _one_by_one(runtime: Runtime, run_ids: Iterable[str]) -> Generator[Finished, None, None]:
    for run_id in run_ids:
        try:
            yield Finished(run_id, runtime.resume(run_id), None)
        except ReplayError as error:
            if runtime._store.failed:
                raise
            yield Finished(run_id, None, error)


def _finished(
    crew: _Crew, runs: Iterator[_Entry], on_stop: _OnStop
) -> Generator[Finished, None, None]:
    _refuse_inside_of_a_tool(crew.runtime._turns)  # once more: it may be iterated elsewhere
    try:
        yield from crew.finished(runs)
    except BaseException:
        crew.stop()
        # Whoever interrupts once more, from here on, does not want to wait for the tools.
        try:
            if on_stop is not None:
                on_stop()
        except Exception:
            crew.leave()
            raise
        crew.leave()
        raise
    crew.leave()
    crew.raise_what_ended_it()


def _check_workers(workers: int) -> None:
    if type(workers) is not int or not 1 <= workers <= WORKERS_LIMIT:
        raise InvalidInput(f"workers is a number from 1 to {WORKERS_LIMIT}, not {workers!r}")


def _checked(entry: object) -> _Entry:
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        return entry[0], entry[1]
    raise InvalidInput(f"runs yields pairs of run id and plan, and gave {type(entry).__name__}")


def _refuse_inside_of_a_tool(turns: Turns) -> None:
    """Raise if this thread drives a run: a worker could come to wait for it, and it for the
    worker."""
    driven = turns.driven_here()
    if driven is not None:
        raise InvalidInput(
            f"run {driven} is being driven by this thread: a tool or a hook cannot wait for "
            "run_many; call run for one run of another id, or run_many when the run has ended"
        )


class _Stop:
    """Whether runs that are under way are to send nothing more."""

    asked = False


class _Stopped(ReplayError):
    """A run was told to stop, and has not sent its next request."""


class _StoppableRun(LiveRun):
    """A run that sends nothing more once it has been told so; what it has learnt it still
    writes."""

    stop: _Stop

    def draft(
        self, event: StepEvent | RunEvent, actor: Actor, payload: str, *, now: Reading | None = None
    ) -> Event:
        """Draft the next row as any run does, or raise `_Stopped` in place of a request.

        The first request stands with the registration, in a transaction of others' too: it is sent.
        """
        if self.stop.asked and event in SENDS and self.head.seq:
            raise _Stopped(f"run {self.id} was told to stop")
        return super().draft(event, actor, payload, now=now)


class _CrewsRuntime(Runtime):
    """The caller's runtime, with all that it holds, but for runs that can be told to stop.

    What a tool does with the caller's own runtime is not stopped.
    """

    def __init__(self, runtime: Runtime) -> None:
        vars(self).update(vars(runtime))
        self.stop = _Stop()

    def _live(self, history: RunHistory) -> LiveRun:
        live = _StoppableRun(self._store, history, self._clock, self._on_event)
        live.stop = self.stop
        return live


class _Crew:
    """The workers of one call, what they were given, and what came of it."""

    def __init__(self, runtime: _CrewsRuntime, drive: _Drive, workers: int) -> None:
        self.runtime = runtime
        self._drive = drive
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._given: SimpleQueue[_Entry | None] = SimpleQueue()
        self._ended: SimpleQueue[Finished | None] = SimpleQueue()
        self._errors: list[tuple[str, BaseException]] = []
        self._begins = True

    # --- in the caller's thread -----------------------------------------------------------------

    def finished(self, runs: Iterator[_Entry]) -> Iterator[Finished]:
        """Yield what came of each run, and keep twice as many given as there are workers.

        More would be held for nothing, and less would let a worker wait for the caller.
        """
        held, more = 0, True
        while True:
            while more and self._begins and held < 2 * self._workers:
                entry = next(runs, None)
                more = entry is not None
                if entry is not None:
                    self._give(entry)
                    held += 1
            if not held:
                return
            ended = self._ended.get()
            held -= 1
            if ended is not None:
                yield ended

    def _give(self, entry: _Entry) -> None:
        if len(self._threads) < self._workers:
            # A daemon, so that whoever interrupts the wait for a tool can end the process.
            name = f"agent-replay-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._given.put(entry)

    def stop(self) -> None:
        """Begin nothing more: no run, and no call of those that are under way."""
        self._begins = False
        self.runtime.stop.asked = True
        for _ in self._threads:
            self._given.put(None)

    def leave(self) -> None:
        """Begin nothing more, let each run under way finish its call, and wait for the workers."""
        self.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def raise_what_ended_it(self) -> None:
        """Raise the error that ended it, if one did, with the runs that met it or one like it."""
        if not self._errors:
            return
        _, error = min(self._errors, key=_rank)
        runs = ", ".join(sorted({str(run) for run, _ in self._errors}))
        error.add_note(f"met by these of many runs: {runs}; those that were not begun stay so")
        raise error

    # --- in the threads of the workers ----------------------------------------------------------

    def _work(self) -> None:
        while (entry := self._given.get()) is not None:
            self._ended.put(self._come_to(*entry))

    def _come_to(self, run_id: str, plan: Plan | Json) -> Finished | None:
        """Return what came of a run; None if it was not begun, was stopped, or ends everything."""
        if not self._begins:
            return None
        try:
            return Finished(run_id, self._drive(run_id, plan), None)
        except _Stopped:
            return None
        except ReplayError as error:
            if self._ends_all(error):
                self._end(run_id, error)
            return Finished(run_id, None, error)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self.runtime.stop.asked = True
            self._end(run_id, error)
            return None

    def _ends_all(self, error: ReplayError) -> bool:
        broken = isinstance(error, DamagedHistory) and self.runtime._store.failed
        return broken or isinstance(error, _ENDS_ALL)

    def _end(self, run_id: str, error: BaseException) -> None:
        self._errors.append((run_id, error))
        self._begins = False


def _rank(met: tuple[str, BaseException]) -> int:
    """Sort an interruption first, then the storage's own words, then that it has stopped."""
    _, error = met
    if not isinstance(error, ReplayError):
        return 0
    return 1 if error.__cause__ is not None else 2
