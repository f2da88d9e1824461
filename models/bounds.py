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

    @property
    def attempts_most(self) -> int:
        """Return the largest number that an attempt can have."""
        return self.attempts_max + self.grants_max
