"""The exit codes, and which error ends in which of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from agent_replay import errors
from agent_replay.errors import ReplayError
from agent_replay.lifecycles.run import RunState


class Exit(IntEnum):
    """What the exit code of a command says."""

    OK = 0
    USAGE = 2
    PAUSED = 3
    FAILED = 4
    CANCELLED = 5
    LOCKED = 6
    DAMAGED = 7
    ADAPTER = 8
    STORAGE = 9
    NO_RUN = 10
    INTERRUPTED = 130


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.OK: "the run is completed, or what was asked is done",
    Exit.USAGE: "the input is not acceptable: a command, plan, evidence or file",
    Exit.PAUSED: "the run waits for evidence (paused, or cancelling with a step in doubt)",
    Exit.FAILED: "the run has failed: a step was refused, exhausted or abandoned",
    Exit.CANCELLED: "the run is cancelled",
    Exit.LOCKED: "another process holds the database, or has taken it over",
    Exit.DAMAGED: "the database holds what the runtime never writes",
    Exit.ADAPTER: "an adapter is missing, or promises something else than the run has pinned",
    Exit.STORAGE: "the storage failed, also that of standard output, or an archive is missing",
    Exit.NO_RUN: "the database holds no run of this id",
    Exit.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM; an open request stays open until a resume",
}

OF_STATES: Final[Mapping[RunState, Exit]] = {
    RunState.NEW: Exit.OK,
    RunState.RUNNING: Exit.OK,
    RunState.PAUSED: Exit.PAUSED,
    RunState.CANCELLING: Exit.PAUSED,
    RunState.COMPLETED: Exit.OK,
    RunState.FAILED: Exit.FAILED,
    RunState.CANCELLED: Exit.CANCELLED,
}
"""How a command ends that leaves a run in a state; one that is to be resumed is in order."""

OF_ERRORS: Final[Mapping[type[ReplayError], Exit]] = {
    errors.InvalidInput: Exit.USAGE,
    errors.PlanMismatch: Exit.USAGE,
    errors.EvidenceRefused: Exit.USAGE,
    errors.IllegalMove: Exit.USAGE,
    errors.UnusableDatabase: Exit.USAGE,
    errors.UnsafeSQLite: Exit.STORAGE,
    errors.AdapterMismatch: Exit.ADAPTER,
    errors.NoSuchRun: Exit.NO_RUN,
    errors.UnstorableResult: Exit.FAILED,
    errors.DatabaseLocked: Exit.LOCKED,
    errors.Fenced: Exit.LOCKED,
    errors.DamagedHistory: Exit.DAMAGED,
    errors.StorageError: Exit.STORAGE,
    errors.ArchiveError: Exit.STORAGE,
    errors.WrongProcess: Exit.STORAGE,
}
"""How a command ends in an error; one that is not here ends as its nearest base does."""

WORST_FIRST: Final = (
    Exit.DAMAGED,
    Exit.STORAGE,
    Exit.LOCKED,
    Exit.ADAPTER,
    Exit.NO_RUN,
    Exit.USAGE,
    Exit.FAILED,
    Exit.PAUSED,
    Exit.CANCELLED,
    Exit.OK,
)
"""Of several runs the one counts that comes first here: what is broken, then what needs somebody,
then what has merely ended."""


def of_error(error: ReplayError) -> Exit:
    """Return how a command ends in this error."""
    return next(
        (OF_ERRORS[kind] for kind in type(error).__mro__ if kind in OF_ERRORS), Exit.STORAGE
    )


def worst(codes: Iterable[Exit]) -> Exit:
    """Return the worst of several codes, and 0 of none."""
    return min(codes, key=WORST_FIRST.index, default=Exit.OK)


def table() -> str:
    """Return the table of exit codes, for the help."""
    return "\n".join(f"  {code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())
