"""Finished runs out of the database and into archives, for `Runtime.archive`.

Here is which runs leave, in how many files, and in which order things are done: an archive is
durable and verified before a row in the database says so and the rows of its runs are deleted, in
one transaction. Whoever dies before that leaves a file that nobody refers to, and no run is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from agent_replay.clock import NANOSECONDS
from agent_replay.errors import DamagedHistory, InvalidInput
from agent_replay.events import RUN_STATES
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.runtime import Runtime
from agent_replay.store.archive import leaving, place
from agent_replay.store.archive.making import Made, make
from agent_replay.store.connection import connect_reader
from agent_replay.values import check_id

RUNS_MAX = 500
EVENTS_MAX = 20_000
"""Runs and events of one archive, and so of one transaction; a longer run has one for itself."""


_ALWAYS = 2**63 - 1


class Archived(NamedTuple):
    """An archive: its path, its SHA-256 in hex, the ids of its runs, and their events."""

    file: str
    sha256: str
    runs: tuple[str, ...]
    events: int


class _Leaver(NamedTuple):
    number: int
    run: str
    events: int


def archive(
    runtime: Runtime,
    run_ids: Iterable[str] | None = None,
    *,
    older_than_seconds: float | None = None,
    folder: str | None = None,
) -> Iterator[Archived]:
    """Return an iterator that makes one archive after the other and yields it when its runs have
    left; what `Runtime.archive` says holds.
    """
    if isinstance(run_ids, (str, bytes)):
        raise InvalidInput("run_ids is an iterable of ids; put the one id into brackets")
    if run_ids is not None and older_than_seconds is not None:
        raise InvalidInput("name the runs, or say how old they are to be, but not both")
    seconds = 0 if older_than_seconds is None else older_than_seconds
    if type(seconds) not in (int, float) or not 0 <= seconds < 2**33:
        raise InvalidInput(f"older_than_seconds is a number from 0 on, not {older_than_seconds!a}")
    if run_ids is None:
        before_ns = _ALWAYS
        if older_than_seconds is not None:  # else a clock that went back would not matter
            before_ns = runtime._clock.read().wall_ns - round(seconds * NANOSECONDS)
        return _archived(runtime, _ended(runtime, before_ns), folder, named=False)
    named = _named(runtime, [check_id("run id", run_id) for run_id in run_ids])
    return _archived(runtime, named, folder, named=True)


def _ended(runtime: Runtime, before_ns: int) -> Iterator[_Leaver]:
    """Yield the runs that ended by then."""
    after = 0
    while page := leaving.ended(runtime._store, before_ns=before_ns, after=after, limit=RUNS_MAX):
        yield from map(_Leaver._make, page)
        after = page[-1][0]


def _named(runtime: Runtime, run_ids: Iterable[str]) -> list[_Leaver]:
    """Return those of the runs that are not archived yet; raises `InvalidInput` for one that has
    not ended."""
    leavers = []
    for run_id in dict.fromkeys(run_ids):
        head, archived = leaving.standing(runtime._store, run_id)
        if archived is not None:
            continue
        if head is None:
            raise DamagedHistory(f"run {run_id} has no head; run verify on the database")
        if RUN_STATES.get(head.run_state) not in TERMINAL:
            raise InvalidInput(
                f"run {run_id} is {head.run_state}: only a run that is completed, failed or "
                "cancelled can be archived; nothing was archived"
            )
        leavers.append(_Leaver(head.run, run_id, head.seq))
    return sorted(leavers)


def _archived(
    runtime: Runtime, leavers: Iterable[_Leaver], folder: str | None, *, named: bool
) -> Iterator[Archived]:
    runtime._store.check_working()
    for batch in _batches(leavers):
        with runtime._turns.idle(leaver.run for leaver in batch) as idle:
            # Another thread may have archived some since they were listed.
            there = [one for one in batch if not leaving.has_left(runtime._store, one.number)]
            runs = [leaver for leaver in there if leaver.run in idle]
            if named and len(runs) < len(there):
                busy = next(leaver.run for leaver in there if leaver.run not in idle)
                raise InvalidInput(f"run {busy} is under way; archive it when that has returned")
            if not runs:
                continue
            made = _leave(runtime, runs, folder)
        runtime._store.checkpoint_if_due()
        yield Archived(
            made.path, made.digest.hex(), tuple(leaver.run for leaver in runs), made.events
        )


def _batches(leavers: Iterable[_Leaver]) -> Iterator[Sequence[_Leaver]]:
    batch: list[_Leaver] = []
    events = 0
    for leaver in leavers:
        if batch and (len(batch) == RUNS_MAX or events + leaver.events > EVENTS_MAX):
            yield batch
            batch, events = [], 0
        batch.append(leaver)
        events += leaver.events
    if batch:
        yield batch


def _leave(runtime: Runtime, runs: Sequence[_Leaver], folder: str | None) -> Made:
    target = place.folder_for(runtime.path, folder)
    with closing(connect_reader(runtime.path)) as connection:
        made = make(connection, target, [leaver.number for leaver in runs])
    now_ns = runtime._clock.read().wall_ns
    leaving.leave(runtime._store, made, database=runtime.path, now_ns=now_ns)
    return made
