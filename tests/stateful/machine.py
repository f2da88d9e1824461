"""The rules of the random search: what may happen to several runs, in any order."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.stateful import reference
from tests.stateful.lab import Brief, Doings, Lab
from tests.stateful.outside import CONTRACT_OF, DEEDS, LOOKS
from tests.stateful.points import FITS
from tests.stateful.records import Run

RUNS_MAX = 8
REACHED: Counter[str] = Counter()
"""What all examples of this process reached; it is written to, and no example draws on it."""

_scripts = st.lists(st.sampled_from([*DEEDS, "lost", "late", "ok"]), min_size=1, max_size=4)
_looks = st.lists(st.sampled_from(LOOKS), min_size=1, max_size=2)
_briefs: st.SearchStrategy[Brief] = st.tuples(
    st.sampled_from(sorted(CONTRACT_OF)), _scripts, _looks
)
_plans = st.lists(_briefs, min_size=1, max_size=3)
_whats = st.sampled_from([*sorted(FITS), *["die"] * 5, "tear"])
_points = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8])
_whats = st.sampled_from([*sorted(FITS), *["die"] * 5, *["fail"] * 2, "tear"])
_doing = st.tuples(_points, _whats, st.sampled_from([-950, 950]))
_doings: st.SearchStrategy[Doings] = st.one_of(
    st.tuples(_doing).map(list), st.tuples(_doing, _doing).map(list), st.just([])
)
_calm: st.SearchStrategy[Doings] = st.one_of(st.just([]), _doings)
_passing = st.sampled_from([1, 59, 61, 899, 901, 1001])
_jumps = st.sampled_from([-365 * 86_400, -86_400, -950, -61, 61, 950, 365 * 86_400])
_any_run = st.integers(0, 2)
_any_number = st.integers(0, 500)
_wrongs = st.sampled_from([*[""] * 6, "key", "run", "step", "stale", "future", "uncovered"])
_evidence = st.sampled_from(["confirm", "refute", "abandon", "resend"])


def is_over(run: Run) -> bool:
    """Return whether a run has come to its end."""
    return reference.state_of(run) not in reference.UNFINISHED


def in_doubt(run: Run) -> bool:
    """Return whether a run waits for evidence."""
    return run.open.state is reference.IN_DOUBT


class StatefulRuntime(RuleBasedStateMachine):
    """Several runs of several plans, their process, and everything that may befall them."""

    def __init__(self) -> None:
        super().__init__()
        self.lab = Lab()

    @invariant()
    def count_runs(self) -> None:
        unfinished = [run for run in self.lab.rehearsal.runs.values() if not is_over(run)]
        self.lab.reached["several runs at once"] += len(unfinished) > 1

    def teardown(self) -> None:
        REACHED.update(self.lab.reached)
        self.lab.close()

    # --- what the rules need ----------------------------------------------------------------------

    @property
    def _names(self) -> list[str]:
        return list(self.lab.rehearsal.runs)

    def _name(self, number: int) -> str:
        """Return a run; those in doubt come first, and those that are over last."""
        runs = self.lab.rehearsal.runs
        names = sorted(runs, key=lambda name: (not in_doubt(runs[name]), is_over(runs[name])))
        return names[number % len(names)]

    def _has_runs(self) -> bool:
        return bool(self._names)

    def _lives(self) -> bool:
        return self.lab.process is not None

    def _is_dead(self) -> bool:
        return self.lab.process is None

    def _has_stopped(self) -> bool:
        return self.lab.rehearsal.stopped and self.lab.process is not None

    def _needs_process(self) -> None:
        if self.lab.process is None:
            self.lab.open()
        if self._has_stopped():
            self.lab.reopen()

    @initialize(limit=st.integers(1, 3), steps=_plans)
    def begin(self, limit: int, steps: list[Brief]) -> None:
        self.lab.open(limit)
        self.lab.start("r1", steps)

    # --- the caller -------------------------------------------------------------------------------

    @precondition(lambda self: len(self._names) < RUNS_MAX)
    @rule(steps=_plans, doings=_doings)
    def start(self, steps: list[Brief], doings: Doings) -> None:
        self._needs_process()
        self.lab.start(f"r{len(self._names) + 1}", steps, doings)

    @precondition(_has_runs)
    @rule(number=_any_run, doings=_doings, with_plan=st.booleans())
    def resume(self, number: int, doings: Doings, with_plan: bool) -> None:
        self._needs_process()
        self.lab.resume(self._name(number), doings, with_plan=with_plan)

    @precondition(_has_runs)
    @rule(number=_any_run, doings=_doings)
    def recover(self, number: int, doings: Doings) -> None:
        """Resume in a new process, which may die too."""
        if self.lab.process is not None:
            self.lab.kill()
        self.resume(number, doings, with_plan=False)

    @precondition(_has_runs)
    @rule(number=_any_run, doings=_calm)
    def cancel(self, number: int, doings: Doings) -> None:
        self._needs_process()
        self.lab.cancel(self._name(number), doings)

    @precondition(lambda self: len(self._names) < RUNS_MAX)
    @rule(steps=_plans, doings=_doings, then=_calm)
    def start_and_cancel(self, steps: list[Brief], doings: Doings, then: Doings) -> None:
        """Ask a run to be cancelled wherever its first process has left it, as amid a call."""
        self.start(steps, doings)
        name = self._names[-1]
        self._needs_process()
        self.lab.cancel(name, then)

    @precondition(_has_runs)
    @rule(number=_any_run, event=_evidence, wrong=_wrongs, honest=st.booleans(), doings=_calm)
    def settle(
        self,
        number: int,
        event: str,
        wrong: str,
        honest: bool,
        doings: Doings,
    ) -> None:
        """A person gives evidence: true or not, about what is in doubt or about something else."""
        self._needs_process()
        name = self._name(number)
        step = self.lab.rehearsal.runs[name].open
        if honest and self.lab.is_untrue(name, step.name, event):
            event = "abandon" if event == "refute" else "resend"
        before = len(self.lab.untrue)
        refused = self.lab.reached["an act ended: refused"]
        attempt = step.attempt + {"stale": -1, "future": 1}.get(wrong, 0)
        key_of = {
            "key": (name, "s9"),
            "run": (self._name(number + 1), step.name),
        }.get(wrong, (name, step.name))
        self.lab.settle(
            name,
            event,
            step="s9" if wrong == "step" else step.name,
            attempt=attempt,
            key_of=key_of,
            none_can_land=wrong != "uncovered",
            doings=doings,
        )
        if wrong and self.lab.reached["an act ended: refused"] > refused:
            self.lab.reached[f"evidence was refused: {wrong}"] += 1
        if len(self.lab.untrue) > before:
            self.lab.reached["false evidence counted"] += 1

    # --- processes --------------------------------------------------------------------------------

    @precondition(_is_dead)
    @rule(limit=st.integers(1, 3), off_seconds=st.none() | _passing)
    def open(self, limit: int, off_seconds: int | None) -> None:
        """Begin a process, perhaps after the machine was off."""
        if off_seconds is not None:
            self.lab.reboot(off_seconds)
        self.lab.open(limit)

    @precondition(_lives)
    @rule(properly=st.booleans())
    def end(self, properly: bool) -> None:
        if properly:
            self.lab.close_process()
        else:
            self.lab.kill()

    @precondition(lambda self: self._has_stopped() and self._has_runs())
    @rule(number=_any_run, waits=st.booleans())
    def go_on(self, number: int, waits: bool) -> None:
        """Resume after a storage error: in vain as long as the file was not opened anew."""
        if not waits:
            self.lab.resume(self._name(number))
        self.resume(number, [], with_plan=False)

    @precondition(_lives)
    @rule(other=st.sampled_from(["opens", "takes over", "writes", "damages"]), number=_any_number)
    def others(self, other: str, number: int) -> None:
        """Somebody else goes to the file."""
        if other == "opens" or not self._has_runs():
            self.lab.second_writer()
        elif other == "takes over":
            self.lab.replace_writer(f"r{len(self._names) + 1}", [("dark", ["ok"], ["ok"])])
        elif other == "writes":
            self.lab.every_move(self._name(number))
        else:
            self.lab.damage(number)

    # --- the world --------------------------------------------------------------------------------

    @rule(seconds=_passing, jump=st.none() | _jumps)
    def pass_time(self, seconds: int, jump: int | None) -> None:
        """Time passes, and the wall clock may be set meanwhile."""
        if jump is not None:
            self.lab.set_clock(jump)
        self.lab.pass_time(seconds)

    @precondition(lambda self: bool(self.lab.outside.landings))
    @rule(number=_any_number)
    def land(self, number: int) -> None:
        self.lab.land(number % len(self.lab.outside.landings))
