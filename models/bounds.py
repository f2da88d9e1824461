"""How much of the world a search looks at: named bounds, each number with its reason.

The model itself has no limits. A search that finishes within its bounds says something about those
bounds and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_replay.lifecycles.step import Contract

READ_ONLY, IDEMPOTENT = Contract.READ_ONLY, Contract.IDEMPOTENT
QUERYABLE, OPAQUE = Contract.QUERYABLE, Contract.OPAQUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What may happen at most.

    `kills_max` counts SIGKILL and SIGSTOP; `faults_max` failing commits, interrupted calls and
    probes without an answer; `grants_max` an operator's refutes and resends of a step.
    """

    name: str
    why: str
    steps: tuple[Contract, ...]
    workers: int = 1
    attempts_max: int = 2
    kills_max: int = 1
    faults_max: int = 0
    grants_max: int = 1
    stops: bool = False
    cancels: bool = True
    operator: bool = True
    abandons: bool = True
    searched: bool = True
    """Whether the search can hold all of its states; if not, Spin alone visits them."""

    @property
    def attempts_most(self) -> int:
        """Return the largest number that an attempt can have."""
        return self.attempts_max + self.grants_max


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Bounds that are checked together: for safety, for liveness, and for what paths must be."""

    safety: tuple[Bounds, ...]
    liveness: tuple[Bounds, ...]
    paths: tuple[Bounds, ...]


TINY = tuple(
    Bounds(
        name=f"one {contract} step",
        why="one death, one failure and one grant show each mistake that we know of",
        steps=(contract,),
        faults_max=1,
    )
    for contract in Contract
)

PATHS = (
    *TINY,
    Bounds(
        name="two steps, for the fold",
        why="the head opens the next step when one that is not the last succeeds",
        steps=(QUERYABLE, IDEMPOTENT),
    ),
)
"""Each path check takes of these what it can speak of (models/check.py)."""

LIVENESS = (
    Bounds(
        name="nobody helps",
        why="what the runtime must come to by itself; two deaths reach a death inside recovery",
        steps=(QUERYABLE,),
        kills_max=2,
        faults_max=1,
        operator=False,
    ),
    Bounds(
        name="somebody has evidence",
        why="an opaque step leaves the doubt by evidence alone; an abandon would hide that",
        steps=(OPAQUE,),
        abandons=False,
    ),
)

QUICK = Set(
    safety=(
        Bounds(
            name="charge and look up",
            why="two steps: late requests of the first land while the second is under way",
            steps=(IDEMPOTENT, QUERYABLE),
            faults_max=1,
        ),
        Bounds(
            name="two writers",
            why="a stopped writer keeps the lock, a dead one does not; two deaths, one in recovery",
            steps=(OPAQUE,),
            workers=2,
            kills_max=2,
            faults_max=1,
            stops=True,
        ),
    ),
    liveness=LIVENESS,
    paths=PATHS,
)

CI = Set(
    safety=(
        *QUICK.safety,
        *TINY,
        Bounds(
            name="three attempts",
            why="the default limit, with a person's grant on top, and deaths inside recovery twice",
            steps=(IDEMPOTENT, READ_ONLY),
            attempts_max=3,
            kills_max=3,
            faults_max=1,
        ),
        Bounds(
            name="two charges, two writers",
            why="the default limit of attempts, and more deaths, failures and grants than that",
            steps=(IDEMPOTENT, IDEMPOTENT),
            workers=2,
            attempts_max=3,
            kills_max=5,
            faults_max=2,
            grants_max=2,
            stops=True,
            searched=False,
        ),
    ),
    liveness=(
        *LIVENESS,
        Bounds(
            name="a charge that nobody helps",
            why="the key window, and attempts that are used up, end in a doubt and not in a circle",
            steps=(IDEMPOTENT, READ_ONLY),
            kills_max=2,
            operator=False,
        ),
        Bounds(
            name="evidence about a charge",
            why="whoever has evidence may resend instead, and the doubt must end all the same",
            steps=(IDEMPOTENT,),
            abandons=False,
        ),
    ),
    paths=PATHS,
)

SETS = {"tiny": Set(safety=TINY, liveness=(), paths=()), "quick": QUICK, "ci": CI}
"""By the name that `python -m models check --bounds` takes."""
