"""The variables of the model, and what is said with them again and again."""

from __future__ import annotations

from dataclasses import dataclass

from agent_replay.lifecycles.run import TERMINAL as RUN_TERMINAL
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import News
from models.bounds import Bounds
from models.language.expressions import (
    TRUE,
    Binary,
    Constant,
    Expression,
    Operator,
    Read,
    Variable,
    both,
    either,
    equal,
    less,
    negated,
    numbered,
)
from models.tables import SHIPPED, Tables

A1, A2, A3, A4, A5 = "A1", "A2", "A3", "A4", "A5"
ASSUMPTIONS = frozenset({A1, A2, A3, A4, A5})

UNSTARTED, FINISHED = "unstarted", "finished"
CALLS, WAITS, ANSWERED, PROBES = "calls", "waits", "answered", "probes"
DECIDING = tuple(news.value for news in News)
OUTSIDE = (CALLS, WAITS, ANSWERED, PROBES)
POSITIONS = (UNSTARTED, FINISHED, *DECIDING, *OUTSIDE)
"""Where a driver is: not at work, about to decide on some news, or outside with a tool."""

KEPT = (News.READY, News.REPLY, News.REFUSAL, News.REFUSAL_OF_KEY, News.FAILURE)
"""The news of an open request that a process holds until it is durable."""

DEAD, ALIVE, STOPPED = "dead", "alive", "stopped"
OPEN, LAPSED, CLOSED = "open", "lapsed", "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that a model is made from; `variants` names what is broken on purpose."""

    bounds: Bounds
    tables: Tables = SHIPPED
    assumptions: frozenset[str] = ASSUMPTIONS
    variants: frozenset[str] = frozenset()

    @property
    def steps(self) -> range:
        """Return the numbers of the steps."""
        return range(1, len(self.bounds.steps) + 1)

    @property
    def workers(self) -> range:
        """Return the numbers of the workers."""
        return range(1, self.bounds.workers + 1)

    def contract(self, step: int) -> Contract:
        """Return the contract of a step."""
        return self.bounds.steps[step - 1]

    def assumes(self, name: str) -> bool:
        """Return whether an assumption holds."""
        return name in self.assumptions


class Worker:
    """The variables of one process that may hold the database."""

    def __init__(self, number: int, setting: Setting, epochs_max: int) -> None:
        self.number = number
        self.life = Variable(f"life_{number}", (DEAD, ALIVE, STOPPED))
        self.driver = Variable(f"driver_{number}", POSITIONS)
        self.about = numbered(f"about_{number}", len(setting.steps))
        """The step that the driver's request or news is about; 0 for none."""
        self.epoch = numbered(f"epoch_{number}", epochs_max)
        self.broken = numbered(f"broken_{number}", 1)
        """Whether its store has failed and must be reopened."""
        self.known = Variable(f"known_{number}", ("", *(news.value for news in KEPT)))
        """What it knows of the open request and the history does not say."""
        self.probed = numbered(f"probed_{number}", 1)
        """Whether the settle bound had passed when its latest probe began."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return all of them."""
        return (
            self.life, self.driver, self.about, self.epoch, self.broken, self.known, self.probed,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Return how stories call it."""
        return f"worker {self.number}"

    def at_work(self) -> Expression:
        """Return the condition that a driver of this process is on the run."""
        return both(self.driver.is_not(UNSTARTED), self.driver.is_not(FINISHED))

    def left_at(self, position: str) -> dict[Variable, Expression]:
        """Return the assignments that take the driver to a position without news of a step."""
        return {
            self.driver: self.driver.to(position),
            self.about: Constant(0),
            self.probed: Constant(0),
        }

    def rests(self) -> Expression:
        """Return the condition that no driver of this process is on the run."""
        return self.driver.is_(UNSTARTED, FINISHED)


class World:
    """The variables of a model."""

    def __init__(self, setting: Setting) -> None:
        bounds = setting.bounds
        self.setting = setting
        attempts = bounds.attempts_most
        epochs_max = 1 + bounds.workers + bounds.kills_max
        self.run = Variable("run", tuple(one.value for one in RunState if one != RunState.NEW))
        self.step = {s: Variable(f"step_{s}", tuple(StepState)) for s in setting.steps}
        self.attempt = numbered("attempt", attempts)
        self.grants = numbered("grants", bounds.grants_max)
        self.unresolved = numbered("unresolved", 2)
        """Requests and resends since the last refute: none, one, or more."""
        self.epoch = numbered("epoch", epochs_max)
        self.holder = numbered("holder", bounds.workers)
        """The worker whose epoch it is; 0 where the history was copied back."""
        self.window = Variable("window", (OPEN, LAPSED, CLOSED))
        self.bound = numbered("bound", 1)
        self.unsynced = numbered("unsynced", 1)
        """Whether the log's last row may not have reached the disk."""
        self.effects = {s: numbered(f"effects_{s}", 2) for s in setting.steps}
        self.remembered = {s: numbered(f"remembered_{s}", 1) for s in setting.steps}
        self.abroad = {s: numbered(f"abroad_{s}", attempts) for s in setting.steps}
        """Requests that nobody waits for any more, and that may still land."""
        self.kills = numbered("kills", bounds.kills_max)
        self.faults = numbered("faults", bounds.faults_max)
        self.restored = numbered("restored", 1)
        self.workers = {w: Worker(w, setting, epochs_max) for w in setting.workers}

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return all of them, the history's first."""
        return (
            *(self.run, *self.step.values(), self.attempt, self.grants, self.unresolved),
            *(self.epoch, self.holder, self.window, self.bound, self.unsynced),
            *(*self.effects.values(), *self.remembered.values(), *self.abroad.values()),
            *(self.kills, self.faults, self.restored),
            *(one for worker in self.workers.values() for one in worker.variables),
        )

    def initial(self) -> dict[str, int]:
        """Return the first state: worker 1 has registered the run, and is about to drive it."""
        first = self.workers[1]
        state = {variable.name: 0 for variable in self.variables}
        state[first.life.name] = first.life.value(ALIVE)
        state[first.driver.name] = first.driver.value(News.NOTHING)
        state[first.epoch.name] = state[self.epoch.name] = state[self.holder.name] = 1
        return state

    # --- conditions -----------------------------------------------------------------------------

    def ended(self) -> Expression:
        """Return the condition that the run has ended."""
        return self.run.is_(*sorted(RUN_TERMINAL))

    def unfinished(self) -> Expression:
        """Return the condition that the run has not ended."""
        return negated(self.ended())

    def earlier_succeeded(self, step: int) -> Expression:
        """Return the condition that every step before this one succeeded."""
        return both(*(self.step[s].is_(StepState.SUCCEEDED) for s in range(1, step)))

    def is_open(self, step: int) -> Expression:
        """Return the condition that this is the open step."""
        if "a step does not wait for the one before" in self.setting.variants:
            return TRUE
        before = self.earlier_succeeded(step)
        if step == len(self.step):
            return before
        return both(before, self.step[step].is_not(StepState.SUCCEEDED))

    def attempts_left(self) -> Expression:
        """Return the condition that the limit and the grants leave an attempt."""
        limit = Binary(Operator.PLUS, Constant(self.setting.bounds.attempts_max), Read(self.grants))
        return less(Read(self.attempt), limit)

    def reads_window_open(self) -> Expression:
        """Return the condition that the runtime takes the key window for open.

        Without A4 a process that began after a crash may be told so by a wall clock that stood
        still. A variant lets a resend begin the window anew.
        """
        readings = [self.window.is_(OPEN)]
        if not self.setting.assumes(A4):
            readings.append(negated(self.kills.is_(0)))
        if "a resend begins the key window anew" in self.setting.variants:
            readings.append(self.unresolved.is_(2))
        return either(*readings)

    def nobody_waits(self, step: int) -> Expression:
        """Return the condition that no process waits for an answer to this step's request."""
        return both(
            *(
                negated(both(worker.driver.is_(WAITS), worker.about.is_(step)))
                for worker in self.workers.values()
            )
        )

    def nothing_happened(self, step: int) -> Expression:
        """Return the condition that no request of a step had an effect or can still have one."""
        return both(self.effects[step].is_(0), self.abroad[step].is_(0), self.nobody_waits(step))

    def may_write(self, worker: Worker) -> Expression:
        """Return the condition that a worker's row would be accepted: nobody replaced it."""
        return either(self.holder.is_(worker.number), less(Read(self.epoch), Read(worker.epoch)))

    def others_dead(self, worker: Worker) -> Expression:
        """Return the condition that no other process lives: the kernel's lock is free."""
        others = (one for one in self.workers.values() if one is not worker)
        return both(*(other.life.is_(DEAD) for other in others))

    def goes_back(self, worker: Worker) -> Expression:
        """Return the condition that this worker's epoch is below the one on record."""
        return less(Read(worker.epoch), Read(self.epoch))

    def same_epoch(self, worker: Worker) -> Expression:
        """Return the condition that this worker's epoch is the one on record."""
        return equal(Read(worker.epoch), Read(self.epoch))
