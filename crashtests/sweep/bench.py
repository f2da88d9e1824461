"""One scenario's processes: each is recorded, killed or left alone, on copies of what others left.

A `State` is what the files hold after a process has ended, known by the digest of their contents.
Equal contents are one state: the world is the same for each process of a stage, so what a fresh
process makes of them is recorded once. That assumption is itself checked: a process that is killed
must announce the very operation that was recorded under that number.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crashtests.child import Child, Fooled, Line, Said, fork
from crashtests.evidence import rows_of
from crashtests.subjects import DATABASE, Subject, named
from crashtests.sweep import worker
from crashtests.sweep.passage import PASSAGE
from crashtests.sweep.scenarios import Scenario
from crashtests.sweep.worker import Order
from crashtests.vfs import Operation

_INDEX = "-shm"
"""Left out of a digest: the first process that opens a database makes the wal-index anew."""

Work = Callable[[Order, Line], None]


class Looked(NamedTuple):
    """What somebody who was not there reads: the history, and the effects of each step."""

    database: Said | None
    effects: tuple[int, ...]

    def tells(self, seq: int, link: str) -> bool:
        """Say whether the history has a row of that number and hash."""
        events = [] if self.database is None else self.database["events"]
        return len(events) >= seq and bool(events[seq - 1]["hash"] == link)


class State(NamedTuple):
    """What the files hold: `stage` counts the processes that have worked on them."""

    stage: int
    digest: str
    folder: Path


class Finished(NamedTuple):
    """What a process came to that was left alone, and the operations that it passed."""

    operations: tuple[Operation, ...]
    outcome: Any
    end: State


class Bench:
    """A scenario, a scratch folder for it, and what has been seen so far."""

    def __init__(
        self,
        scenario: Scenario,
        subject: Subject,
        scratch: Path,
        *,
        work: Work = worker.work,
        closes: Sequence[int] = (),
    ) -> None:
        """`closes` are the descriptors of this process that its children must not inherit."""
        self.scenario = scenario
        self._subject = subject
        self._scratch = scratch
        self._work = work
        self._closes = closes
        PASSAGE.share()
        self._numbers = 0
        self._states: dict[tuple[int, str], State] = {}
        self._looked: dict[State, Looked] = {}
        self._finished: dict[tuple[State, bool], Finished] = {}
        self.kills = 0

    def begin(self) -> State:
        """Return the state in which the scenario begins: nothing, or an empty database."""
        folder = self._new_folder()
        folder.mkdir()
        if self.scenario.creates:
            return self._state(folder, 0)
        if self.scenario.contract:
            self._finish(self._start(folder, 0, opens_only=True))
        return self._state(folder, 1)

    def operations(self, state: State) -> tuple[Operation, ...]:
        """Return what a process passes that is to be killed, when nobody disturbs it."""
        return self._undisturbed(state, opens_only=self.scenario.creates).operations

    def finish(self, state: State) -> Finished:
        """Return what a run, or a recovery, makes of a state when nobody disturbs it."""
        return self._undisturbed(state, opens_only=False)

    def _undisturbed(self, state: State, *, opens_only: bool) -> Finished:
        known = self._finished.get((state, opens_only))
        if known is None:
            folder = self._copy(state)
            said = self._finish(self._start(folder, state.stage, opens_only=opens_only))
            end = self._state(folder, state.stage + 1)
            operations = tuple(Operation(*passed) for passed in said["passed"])
            self._check_told(said, end)
            self._check_effects(state, operations, end)
            known = Finished(operations, said["finished"], end)
            self._finished[state, opens_only] = known
        return known

    def kill(self, state: State, number: int) -> State:
        """Kill a process before the operation of that number; return what it has left.

        Raises `Fooled` unless it announced the operation that was recorded, and was alive until
        SIGKILL ended it, and all that it had been told of is there.
        """
        recorded = self.operations(state)
        folder = self._copy(state)
        opens_only = self.scenario.creates
        with self._start(folder, state.stage, stop=number, opens_only=opens_only) as child:
            said = child.hear()
            if said is None:
                raise Fooled(f"operation {number}: the process ended with {child.reap()} before it")
            if "reached" not in said:
                raise Fooled(f"operation {number}: the process did not reach it, and finished")
            announced = said["reached"], Operation(*said["operation"])
            if announced != (number, recorded[number]):
                raise Fooled(f"{announced} was announced, and {recorded[number]} was recorded")
            child.kill()
            if (passed := PASSAGE.passed()) != number + 1:
                raise Fooled(f"operation {number}: the process went on, to operation {passed - 1}")
        left = self._state(folder, state.stage + 1)
        self._check_told(said, left)
        self._check_effects(state, recorded[:number], left)
        self.kills += 1
        return left

    def look(self, state: State) -> Looked:
        """Return what is in the files, read by a process that had no part in it."""
        known = self._looked.get(state)
        if known is None:
            folder = self._copy(state)
            database = self._rows(folder)
            keys = {step: worker.blind_key(step) for step in self.scenario.steps}
            if self.scenario.contract:
                steps = [] if database is None else database["steps"]
                keys = {step["id"]: step["key"] for step in steps}
            count = named(self._subject.counts)
            effects = (count(str(folder), keys.get(step, "")) for step in self.scenario.steps)
            known = self._looked[state] = Looked(database, tuple(effects))
            shutil.rmtree(folder)
        return known

    def _rows(self, folder: Path) -> Said | None:
        """Return the history in a folder; None where there is none, or it is the baseline's."""
        if not self.scenario.contract or not (folder / DATABASE).exists():
            return None
        return rows_of(folder / DATABASE)

    def keep(self, states: Iterable[State]) -> None:
        """Remove the files of all states but these, which processes are yet to work on."""
        kept = set(states)
        for state in self._states.values():
            if state not in kept:
                shutil.rmtree(state.folder, ignore_errors=True)

    # --- what was seen is what it should show ---------------------------------------------------

    def _finish(self, child: Child) -> Said:
        with child:
            said = child.hear()
            if said is None or "finished" not in said:
                raise Fooled(f"a process was to finish, and said {said}, ended: {child.is_dead()}")
            if (termination := child.reap()) != 0:
                raise Fooled(f"a process finished, and ended with {termination}")
        return said

    def _check_told(self, said: Said, left: State) -> None:
        """Raise unless each row that the runtime told of is in what was left (S8)."""
        for seq, link in said["told"]:
            if not self.look(left).tells(seq, link):
                raise Fooled(f"row {seq} was told of as durable, and is not in the history")

    def _check_effects(self, start: State, passed: tuple[Operation, ...], left: State) -> None:
        """Raise unless the ledger shows what the tool has done up to the kill, and did before."""
        earlier, now = self.look(start).effects, self.look(left).effects
        if any(later < before for before, later in zip(earlier, now, strict=True)):
            raise Fooled(f"the ledger had the effects {earlier}, and now {now}")
        has_effect = self.scenario.contract != "read_only"
        if has_effect and Operation("reply", "tool") in passed and not any(now):
            raise Fooled("the tool had an effect, and the ledger has none")

    # --- files ----------------------------------------------------------------------------------

    def _start(
        self, folder: Path, stage: int, *, stop: int | None = None, opens_only: bool = False
    ) -> Child:
        order = Order(self.scenario, self._subject, str(folder), stage, stop, opens_only)
        return fork(lambda line: self._work(order, line), self._closes)

    def _new_folder(self) -> Path:
        self._numbers += 1
        return self._scratch / str(self._numbers)

    def _copy(self, state: State) -> Path:
        folder = self._new_folder()
        folder.mkdir()
        for name in sorted(os.listdir(state.folder)):  # so that each copy lists them in one order
            shutil.copyfile(state.folder / name, folder / name)
            os.chmod(folder / name, 0o600)
        return folder

    def _state(self, folder: Path, stage: int) -> State:
        """Return the state that a folder holds; the folder is its own from now on."""
        digest = digest_of(folder)
        known = self._states.setdefault((stage, digest), State(stage, digest, folder))
        if known.folder != folder:
            if known.folder.exists():
                shutil.rmtree(folder)
            else:
                folder.rename(known.folder)
        return known


def digest_of(folder: Path) -> str:
    """Return a digest over the names and contents of the files that a next process would read."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(_INDEX):
            content = path.read_bytes()
            found.update(f"{path.name} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()
