"""What the reference remembers of a run: records without rules."""

from __future__ import annotations

from dataclasses import dataclass

from agent_replay.lifecycles.step import Contract, StepState
from tests.stateful.outside import Seen


@dataclass
class Step:
    """One step of a plan, and what is durable of it."""

    name: str
    tool: str
    contract: Contract
    script: list[str]
    looks: list[str]
    state: StepState = StepState.PLANNED
    attempt: int = 0
    granted: int = 0
    """Attempts that a person granted."""
    unresolved: int = 0
    """Requests and resends since the last refute."""
    first: Seen | None = None
    """When the first of these was written."""
    suspended: Seen | None = None
    result: object = None


@dataclass
class Run:
    """One run of a plan; `limit` is that of the attempts."""

    name: str
    steps: list[Step]
    limit: int
    epoch: int = 0
    cancel_asked: bool = False

    @property
    def open(self) -> Step:
        """The first step that has not succeeded, or the last one."""
        return next((s for s in self.steps if s.state != StepState.SUCCEEDED), self.steps[-1])


Rows = list[tuple[str, Run]]
"""Drafted rows, each with the run as it is after that row."""


class StorageFailed(Exception):
    """A transaction failed: nothing more is done before a reopen."""
