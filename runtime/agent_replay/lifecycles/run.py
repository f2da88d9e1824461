"""GENERATED from spec/run.toml by spec/generate.py; do not edit.

The run machine: the life of one execution of a plan.
"""

from enum import StrEnum
from typing import Final


class RunState(StrEnum):
    """What is true of a run."""

    NEW = "new"
    """Not registered; never stored."""

    RUNNING = "running"
    """Some step is still to be requested or answered, and none is in doubt, failed or abandoned."""

    PAUSED = "paused"
    """A step is in doubt and no cancel was asked."""

    CANCELLING = "cancelling"
    """A cancel was asked, and a step is still open."""

    COMPLETED = "completed"
    """Every step succeeded."""

    FAILED = "failed"
    """A step failed or was abandoned, and none is open."""

    CANCELLED = "cancelled"
    """A cancel was asked, and nothing is open."""


class RunEvent(StrEnum):
    """What is written to move a run."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    COMPLETE = "complete"
    FAIL = "fail"
    ASK_CANCEL = "ask_cancel"
    CANCEL = "cancel"
    ADOPT = "adopt"


INITIAL: Final = RunState.NEW
TERMINAL: Final = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})
MOVES: Final[dict[tuple[RunState, RunEvent], RunState]] = {
    (RunState.NEW, RunEvent.START): RunState.RUNNING,
    (RunState.RUNNING, RunEvent.PAUSE): RunState.PAUSED,
    (RunState.PAUSED, RunEvent.RESUME): RunState.RUNNING,
    (RunState.RUNNING, RunEvent.COMPLETE): RunState.COMPLETED,
    (RunState.RUNNING, RunEvent.FAIL): RunState.FAILED,
    (RunState.PAUSED, RunEvent.FAIL): RunState.FAILED,
    (RunState.RUNNING, RunEvent.ASK_CANCEL): RunState.CANCELLING,
    (RunState.PAUSED, RunEvent.ASK_CANCEL): RunState.CANCELLING,
    (RunState.CANCELLING, RunEvent.CANCEL): RunState.CANCELLED,
    (RunState.RUNNING, RunEvent.ADOPT): RunState.RUNNING,
    (RunState.PAUSED, RunEvent.ADOPT): RunState.PAUSED,
    (RunState.CANCELLING, RunEvent.ADOPT): RunState.CANCELLING,
}
