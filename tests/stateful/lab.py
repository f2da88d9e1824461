"""A runtime and its reference, side by side: each act is done by both, and both must agree.

They must pass the same points in the same order, end the act in the same way, leave the same world
outside, and stand where the other stands. Each act is a line of a script, so that what failed can
be printed as a program.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from agent_replay import Evidence, EvidenceRefused, Json, StorageError
from agent_replay.lifecycles.step import Contract, StepEvent
from agent_replay.store import holder
from crashtests.independent import chains
from tests.stateful import hands, invariants, trials
from tests.stateful.judge import DATABASE, complaints, rows_in
from tests.stateful.outside import CONTRACT_OF, Died, Interrupted, Outside
from tests.stateful.points import COMMITS, ENDS, Doing, Point, Schedule
from tests.stateful.process import NAMESPACE, Process
from tests.stateful.records import Run, Step, StorageFailed
from tests.stateful.rehearsal import Rehearsal
from tests.stateful.script import Script, recorded

Brief = tuple[str, Sequence[str], Sequence[str]]
"""A step: its tool, what the tool does at each attempt, what its probe answers."""
Doings = Iterable[tuple[int, str, int]]


class Lab:
    """A database, its process, the world outside, and the reference."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="stateful-", dir=memory_folder()))
        self.path = self.folder / DATABASE
        self.outside = Outside()
        self.rehearsal = Rehearsal(self.outside, lambda *_: None)
        self.process: Process | None = None
        self.plans: dict[str, dict[str, Json]] = {}
        self.script = Script()
        self.reached: Counter[str] = Counter()
        self.memory = invariants.Memory()
        self.untrue: set[tuple[str, str]] = set()
        """Steps of which a person said what is not so: nothing is promised of them."""
        self.acted_on = ""
        self.read: list[object] = []
        """What a reader saw in the course of the act."""
        self.done: list[tuple[Doing, Point]] = []
        """What happened in the course of all acts."""
        self.passed = 0
        """How many points the last act passed."""
        self._deaths: Counter[str] = Counter()
        self._is_touched = False
        """Whether anybody had the file open since it was judged."""

    def close(self) -> None:
        """Let go of everything, however the example ended."""
        if self.process is not None:
            self.process.die()
        if self.path.exists():  # else each example would leave a descriptor open for good
            holder.close_aside(holder.identity_of(str(self.path)))
        shutil.rmtree(self.folder)

    # --- acts -----------------------------------------------------------------------------------

    @recorded
    def open(self, limit: int = 3) -> None:
        """Begin a new process after the last one is gone, with a limit of attempts."""
        self._is_touched = True
        assert self.process is None
        self.process = Process(self.path, self.outside, lambda *_: None, limit=limit)
        self.rehearsal.process()
        assert self.process.runtime._store.epoch == self.rehearsal.epoch

    @recorded
    def close_process(self) -> None:
        """End the process as it should end."""
        self._is_touched = True
        assert self.process is not None
        self.process.close()
        self.process = None

    @recorded
    def kill(self) -> None:
        """End the process between two acts, as SIGKILL does."""
        self._is_touched = True
        assert self.process is not None
        self.process.die()
        self.process = None

    @recorded
    def start(self, name: str, steps: Sequence[Brief], doings: Doings = ()) -> None:
        """Run a plan under a new name."""
        assert self.process is not None
        plan = plan_of(steps)
        self.plans[name] = plan
        run = Run(name, steps_of(steps), self.process.limit)
        runtime = self.process.runtime
        self._act(
            name,
            doings,
            lambda: runtime.run(name, plan),
            lambda: self.rehearsal.start(run),
        )
        if name not in self.rehearsal.runs:
            del self.plans[name]

    @recorded
    def resume(self, name: str, doings: Doings = (), *, with_plan: bool = False) -> None:
        """Resume a run, by its name alone or by running its plan once more."""
        assert self.process is not None
        runtime, plan = self.process.runtime, self.plans[name]
        self._act(
            name,
            doings,
            lambda: runtime.run(name, plan) if with_plan else runtime.resume(name),
            lambda: self.rehearsal.resume(name),
        )

    @recorded
    def cancel(self, name: str, doings: Doings = ()) -> None:
        """Ask a run to end."""
        assert self.process is not None
        runtime = self.process.runtime
        self._act(
            name,
            doings,
            lambda: runtime.cancel(name, who="ann", why="no longer wanted"),
            lambda: self.rehearsal.cancel(name),
        )

    @recorded
    def settle(
        self,
        name: str,
        event: str,
        *,
        step: str,
        attempt: int,
        key_of: tuple[str, str],
        none_can_land: bool = True,
        doings: Doings = (),
    ) -> None:
        """Give evidence about a step; what it names may be wrong, and what it says untrue."""
        assert self.process is not None
        evidence = Evidence(
            run=name,
            step=step,
            attempt=attempt,
            key=self.key(*key_of),
            kind="ledger",
            content={"line": 7},
            who="ann",
            why="looked it up",
            no_request_can_land=none_can_land,
        )
        run = self.rehearsal.runs[name]
        fits = step == run.open.name and key_of == (name, step)
        fits = fits and (none_can_land or event != "refute")
        runtime = self.process.runtime
        before = self.reached["an act ended: refused"]
        was_untrue = self.is_untrue(name, step, event)
        self._act(
            name,
            doings,
            lambda: hands.give(runtime, event, evidence),
            lambda: self.rehearsal.settle(
                name, StepEvent(event), fits=fits, attempt=attempt, result=hands.RESULT
            ),
        )
        if was_untrue and self.reached["an act ended: refused"] == before:
            self.untrue.add((name, step))

    @recorded
    def pass_time(self, seconds: int) -> None:
        """Let time pass, as it does."""
        self.outside.time.pass_by(seconds)

    @recorded
    def set_clock(self, seconds: int) -> None:
        """Set the wall clock forth or back."""
        self.outside.time.jump(seconds)
        self.reached[f"the clock was set {'back' if seconds < 0 else 'forth'}"] += 1

    @recorded
    def reboot(self, off_seconds: int) -> None:
        """Start the machine anew, and with it the clock that counts since then."""
        assert self.process is None
        self.outside.time.reboot(off_seconds)
        self.reached["the machine was started anew"] += 1

    @recorded
    def land(self, number: int) -> None:
        """Let something arrive that was sent earlier, if it still can."""
        landing = self.outside.landings[number]
        in_time = landing.until is None or self.outside.time.true <= landing.until
        self.outside.land(landing)
        self.reached["something landed late" if in_time else "something could no longer land"] += 1

    @recorded
    def reopen(self) -> None:
        """Go on after a storage error."""
        self._is_touched = True
        assert self.process is not None
        self.process.reopen()
        self.rehearsal.reopen()
        self.reached["a process went on after a storage error"] += 1

    # --- what others try --------------------------------------------------------------------------

    @recorded
    def second_writer(self) -> None:
        """Let another writer try to open the file."""
        self._is_touched = True
        trials.second_writer(self)
        self.reached["a second writer was refused"] += 1

    @recorded
    def replace_writer(self, name: str, steps: Sequence[Brief]) -> None:
        """Let another process take over while this one is stopped, start a run, and this go on."""
        self._is_touched = True
        assert self.process is not None
        old, self.process = self.process, None
        old.runtime._database._lock.release()
        self.open(old.limit)
        self.start(name, steps)
        self.reached[f"a stopped writer met {trials.stopped_writer(self, old)}"] += 1

    @recorded
    def every_move(self, name: str) -> None:
        """Try every event by every actor on a run, past the runtime."""
        self._is_touched = True
        refused = trials.every_move(self, name, rows_in(self.folder))
        self.reached["a move was refused by the database"] += refused

    @recorded
    def damage(self, number: int) -> None:
        """Change one value in a copy of the file, and let it be verified."""
        self._is_touched = True
        self.reached[f"damage was found: {trials.damage(self, number)}"] += 1

    # --- both sides -----------------------------------------------------------------------------

    def _act(
        self,
        name: str,
        doings: Doings,
        really: Callable[[], object],
        rehearsed: Callable[[], object],
    ) -> None:
        assert self.process is not None
        self._is_touched = True
        given = [Doing(*one) for one in doings]
        self.acted_on, self.read = name, []
        world = self.outside.copy()
        schedule = Schedule(given, partial(hands.really, self))
        self.process.at = schedule.at
        came = ending(really)
        read, self.read = self.read, []
        self.rehearsal.outside = world
        expected = Schedule(given, partial(hands.rehearsed, self))
        self.rehearsal.at = expected.at
        told = ending(rehearsed)
        self.rehearsal.rest()
        self.process.at = lambda *_: None
        both = (came, schedule.trace()), (told, expected.trace())
        assert both[0] == both[1], "the runtime {}, the reference {}".format(*both)
        assert read == self.read, "a reader saw something else than what was durable"
        assert self.outside == world
        self.rehearsal.outside = self.outside
        self._count(expected, told)
        if came == "died":
            self._end_process()

    def _end_process(self) -> None:
        assert self.process is not None
        self.process.die()
        self.process = None

    def _count(self, schedule: Schedule, ending: str) -> None:
        self.done += schedule.done
        self.passed = len(schedule.passed)
        for doing, point in schedule.done:
            self.reached[f"{doing.what} at {point.kind}"] += 1
            if doing.what in ENDS:
                for row in point.about.split(", ") if point.kind in COMMITS else ():
                    self.reached[f"{point.kind} {row}"] += 1
                if point.kind in ("call", "called"):
                    self.reached[f"{point.kind} {point.about.rpartition('/')[2]}"] += 1
        self.reached[f"an act ended: {ending}"] += 1
        self.reached["an answer was written without the next request"] += self.rehearsal.kept
        self.rehearsal.kept = 0
        self._deaths[self.acted_on] = self._deaths[self.acted_on] + 1 if ending == "died" else 0
        self.reached[f"deaths in a row: {min(self._deaths[self.acted_on], 3)}"] += 1

    def note_untruth(self, name: str, step: str, event: str) -> None:
        if self.is_untrue(name, step, event):
            self.untrue.add((name, step))

    def is_untrue(self, name: str, step: str, event: str) -> bool:
        """Return whether evidence for an event says what is not so."""
        if event == "confirm":
            return not self.outside.effects[name, step]
        return event == "refute" and self.outside.may_have_happened((name, step))

    # --- judging --------------------------------------------------------------------------------

    def check(self) -> None:
        """Judge the file and the world outside."""
        if not self.path.exists():
            return
        runs = self.rehearsal.runs
        found = list(invariants.broken_promises(runs, self.outside, self.untrue))
        assert not found, found
        if not self._is_touched:
            return
        self._is_touched = False
        database = rows_in(self.folder)
        self.reached.update(invariants.reasons(database, self.memory))
        found = [
            *complaints(self.path, database),
            *invariants.differences(database, runs),
            *invariants.forgotten(database, self.memory),
        ]
        assert not found, found
        for place, keys in (self.process.keys if self.process else {}).items():
            assert keys == {self.key(*place)}

    def wall_times(self, name: str) -> list[tuple[int, int]]:
        """Return number and wall time of each row of a run."""
        database = rows_in(self.folder)
        (run,) = (row["run"] for row in database["runs"] if row["id"] == name)
        return [(row["seq"], row["wall_ns"]) for row in database["events"] if row["run"] == run]

    # --- keys -----------------------------------------------------------------------------------

    def key(self, run: str, step: str) -> str:
        """Return the key of a step, computed by other code than the runtime's."""
        return chains.key(NAMESPACE, run, invariants.stored_step(self.plans[run], step))


def memory_folder() -> str | None:
    """Return a folder in memory, or None where there is none: a sync there costs nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def ending(act: Callable[[], object]) -> str:
    """Return how an act ended, in the same word for both sides."""
    try:
        result = act()
    except Died:
        return "died"
    except (KeyboardInterrupt, Interrupted):
        return "interrupted"
    except (StorageError, StorageFailed):
        return "stopped"
    except EvidenceRefused:
        return "refused"
    return "refused" if result is False else "done"


def plan_of(steps: Sequence[Brief]) -> dict[str, Json]:
    """Return the plan of these steps, which are named by number."""
    return {
        "plan": 1,
        "steps": [
            {
                "id": f"s{number}",
                "adapter": f"{tool}@1",
                "contract": CONTRACT_OF[tool],
                "arguments": {"do": list(script), "look": list(looks), "tool": tool},
            }
            for number, (tool, script, looks) in enumerate(steps, start=1)
        ],
    }


def steps_of(steps: Sequence[Brief]) -> list[Step]:
    """Return the steps as the reference keeps them."""
    return [
        Step(f"s{number}", tool, Contract(CONTRACT_OF[tool]), list(script), list(looks))
        for number, (tool, script, looks) in enumerate(steps, start=1)
    ]
