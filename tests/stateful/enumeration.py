"""Every case of a finite family, once: each plan, each way it goes, each pair of deaths.

Plans have one to three steps of any contract. All steps answer, or exactly one of them is refused,
lost, late or without a storable result. The process dies at each point or not at all; the one that
recovers, a minute later, dies at each of its points or not at all; a third recovers undisturbed.

The store, the triggers and the runtime are the shipped ones; the database is in memory and serves
all cases of a plan, each as a run of its own, so that a case takes a millisecond. What a death
leaves is judged by the rows of its run and by the world outside: where both are equal, the recovery
is made once and counted for each. With `each` every death is died and every recovery made, to try
that promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple
from unittest import mock

from agent_replay import Runtime, runtime
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.store.connection import connect_memory
from agent_replay.store.schema import Identity, fill
from agent_replay.store.sql import QUERIES
from agent_replay.store.verify import verify_connection
from agent_replay.store.writer import Store
from tests.stateful import invariants, reference
from tests.stateful.lab import Brief, ending, plan_of, steps_of
from tests.stateful.outside import Died, Outside
from tests.stateful.points import Doing, Point, Schedule
from tests.stateful.process import NAMESPACE, Mortal, WorldClock, tools
from tests.stateful.records import Run
from tests.stateful.rehearsal import Rehearsal

TOOLS = ("look", "keyed", "asked", "dark")
WAYS = {
    "refused": ["refuse"],
    "lost": ["lost", "ok"],
    "late": ["late", "ok"],
    "bad": ["unstorable"],
}
STEPS_MAX = 3
PAUSE_SECONDS = 61
LIMIT = 2
RESUMES_MAX = 2 * STEPS_MAX


class Case(NamedTuple):
    """A plan and the way it goes."""

    steps: tuple[Brief, ...]

    @property
    def name(self) -> str:
        return ", ".join(f"{tool} {script[0]}" for tool, script, _ in self.steps)


def cases() -> Iterator[Case]:
    """Yield every plan in every way it may go."""
    for count in range(1, STEPS_MAX + 1):
        for chosen in product(TOOLS, repeat=count):
            yield Case(tuple((tool, ["ok"], ["ok"]) for tool in chosen))
            for number, way in product(range(count), WAYS.values()):
                yield Case(
                    tuple(
                        (tool, way if place == number else ["ok"], ["ok"])
                        for place, tool in enumerate(chosen)
                    )
                )


class Left(NamedTuple):
    """What a process left, and what it would have left by a death at each of its points.

    Both are texts that are equal where nothing differs.
    """

    state: str
    at_points: tuple[str, ...]


class Count(NamedTuple):
    """How many cases there were, and how many processes were run for them."""

    cases: int = 0
    processes: int = 0


class Database(NamedTuple):
    """What a runtime needs of a database."""

    store: Store
    path: str = "memory"


class Bench:
    """A database in memory, on which processes come and go."""

    def __init__(self) -> None:
        self.connection = connect_memory()
        fill(self.connection, Identity(NAMESPACE, 0, MOVES_DIGEST))
        self.outside = Outside()
        self.at: Callable[[str, str], None] = lambda *_: None
        self.keys: dict[tuple[str, str], set[str]] = {}
        self.processes = 0
        self._adapters = tools(self)

    def process(self) -> Runtime:
        """Return a runtime as a new process has it: a new writer on the same database."""
        self.processes += 1
        mortal = Mortal(self.connection, lambda *point: self.at(*point), None)
        clock = WorldClock(self)
        database = Database(Store(mortal, clock=clock))  # type: ignore[arg-type]
        with mock.patch.object(runtime, "Database", return_value=database):
            return Runtime(
                "memory",
                adapters=self._adapters,
                attempts_max=LIMIT,
                clock=clock,
                on_event=lambda _run, row: self.at("told", f"{row.event} by {row.actor}"),
            )

    def lose(self) -> None:
        """Lose what a process that died had not committed."""
        if self.connection.in_transaction:
            self.connection.execute(QUERIES["rollback"])

    def state(self, run: str) -> str:
        """Return what is durable of a run and what happened outside, as a text."""
        out = self.outside
        rows = list(self.connection.execute(_ROWS, (run,)))
        happened = [
            sorted((place[1], value) for place, value in one.items())
            for one in (out.effects, out.arrived, out.looks)
        ]
        landings = [(landing.place[1], landing.tool, landing.until) for landing in out.landings]
        return repr((rows, happened, landings))


_ROWS = """
select e.event, e.coupled, e.actor, e.step, e.attempt, e.state, e.run_state,
       e.wall_ns, e.boot_ns, e.payload, e.epoch - r.epoch
from events e join runs r on r.run = e.run where r.id = ? order by e.seq
"""


class Telling:
    """One run of a case: its processes, one after the other, and the reference beside them."""

    def __init__(self, bench: Bench, case: Case, name: str) -> None:
        self._bench, self._case, self._name = bench, case, name
        self._plan = plan_of(case.steps)
        bench.outside = Outside()
        self.rehearsal = Rehearsal(bench.outside, lambda *_: None)

    def process(self, dies_at: int | None) -> Left:
        """Let a process run the plan, or go on with it, up to its death."""
        bench, rehearsal, name = self._bench, self.rehearsal, self._name
        doings = [] if dies_at is None else [Doing(dies_at, "die")]
        process = bench.process()
        world = bench.outside.copy()
        really = Schedule(doings, _die)
        at_points = [bench.state(name)]

        def at(kind: str, about: str) -> None:
            # What is in a transaction is not there for anybody else.
            at_points.append(at_points[-1] if kind == "inside" else bench.state(name))
            really.at(kind, about)

        bench.at = at
        came = ending(lambda: process.run(name, self._plan))
        bench.lose()
        rehearsal.outside = world
        expected = Schedule(doings, _die)
        rehearsal.at = expected.at
        rehearsal.process()
        told = ending(self._rehearse)
        both = (came, really.trace()), (told, expected.trace())
        assert both[0] == both[1], "the runtime {}, the reference {}".format(*both)
        assert came == ("done" if dies_at is None else "died")
        assert bench.outside == world
        bench.outside.time.pass_by(PAUSE_SECONDS)
        return Left(bench.state(name), tuple(at_points[1:]))

    def _rehearse(self) -> None:
        if self._name in self.rehearsal.runs:
            self.rehearsal.resume(self._name)
        else:
            run = Run(self._name, steps_of(self._case.steps), LIMIT)
            self.rehearsal.start(run)

    def end(self) -> None:
        """Resume until nothing changes, let arrive what still may, and judge the run."""
        for _ in range(RESUMES_MAX):
            self.process(None)
            run = self.rehearsal.runs[self._name]
            if (run.open.tool, run.open.state) != ("asked", reference.IN_DOUBT):
                break
        else:
            raise AssertionError("its probe answers, and it is still in doubt (L2)")
        assert not invariants.unsettled(run), "it was resumed, and neither ended nor waits"
        outside = self._bench.outside
        for landing in list(outside.landings):
            outside.land(landing)
        head = next(iter(self._bench.connection.execute(_HEAD, (self._name,))))
        number = run.steps.index(run.open) + 1
        assert head == (reference.state_of(run), number, run.open.state, run.open.attempt)
        found = list(invariants.broken_promises(self.rehearsal.runs, outside, set()))
        assert not found, found


_HEAD = """
select heads.run_state, heads.step, heads.state, heads.attempt
from heads join runs on runs.run = heads.run where runs.id = ?
"""


def _die(_doing: Doing, _point: Point) -> None:
    raise Died


class Exploration:
    """All deaths of one case."""

    def __init__(self, case: Case, *, each: bool = False) -> None:
        self._case = case
        self._each = each
        self._bench = Bench()
        self._told = 0

    def count(self) -> Count:
        """Tell the case with no death, with each, and with each pair; return how many there are."""
        telling = self._telling()
        first = telling.process(None)
        telling.end()
        cases, seen = 1, dict[str, int]()
        recovered = set[str]()
        for at, state in enumerate(first.at_points):
            telling = self._telling()
            left = telling.process(at)
            assert left.state == state, "a death leaves what was durable, and nothing else"
            if self._each or state not in seen:
                seen[state] = self._recoveries(telling, at, recovered)
            cases += seen[state]
        verdict = verify_connection(self._bench.connection)
        assert verdict.sound, verdict.findings
        return Count(cases, self._bench.processes)

    def _recoveries(self, telling: Telling, at: int, recovered: set[str]) -> int:
        """Let the recovery after a death die at each of its points; return how many cases."""
        second = telling.process(None)
        telling.end()
        for again, state in enumerate(second.at_points):
            if self._each or state not in recovered:
                recovered.add(state)
                telling = self._telling()
                telling.process(at)
                left = telling.process(again)
                assert left.state == state, "a death leaves what was durable, and nothing else"
                telling.process(None)
                telling.end()
        return 1 + len(second.at_points)

    def _telling(self) -> Telling:
        self._told += 1
        return Telling(self._bench, self._case, f"r{self._told}")
