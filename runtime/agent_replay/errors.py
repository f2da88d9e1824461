"""Every error that this library raises, sorted by whose fault it is and what to do next.

Each message names the thing, what was found, what was legal, and the next act. A paused run is an
outcome and never an error.
"""

from __future__ import annotations


class ReplayError(Exception):
    """Base of all errors raised by this library."""


# --- the caller's input -----------------------------------------------------------------------


class InvalidInput(ReplayError):
    """A plan, id, value or option is not acceptable. Nothing was written."""


class InvalidPlan(InvalidInput):
    """A plan is not acceptable; `place` says where in it. Nothing was written."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class PlanMismatch(ReplayError):
    """A run id is in use for another plan, or with other adapters. Nothing was written."""


class AdapterMismatch(ReplayError):
    """A plan or a run needs an adapter that is missing, or that promises something else."""


class NoSuchRun(ReplayError):
    """The database holds no run of this id."""


class EvidenceRefused(ReplayError):
    """Evidence is about something else, or the step is not in doubt. Nothing was written."""


class WrongProcess(ReplayError):
    """The object was made by another process; a forked child must open its own."""


# --- the lifecycle ----------------------------------------------------------------------------


class IllegalMove(ReplayError):
    """The lifecycle has no such move: nothing was changed."""


class Fenced(ReplayError):
    """Another writer has taken the database or the run over: this one may write no more."""


# --- the database -----------------------------------------------------------------------------


class UnusableDatabase(ReplayError):
    """The file may not be used as it is (link, mode, platform, foreign file). Nothing was
    changed."""


class DatabaseLocked(ReplayError):
    """Another writer holds the database."""


class SpecMismatch(UnusableDatabase):
    """The database was written under another spec."""


class UnsafeSQLite(UnusableDatabase):
    """The SQLite library at hand loses acknowledged commits in WAL mode."""


class DamagedHistory(ReplayError):
    """The file holds what the runtime never writes: stop, keep a copy, do not repair."""


class StorageError(ReplayError):
    """The storage failed; the store takes no more work until it is reopened.

    `outcome_unknown` is true when a commit was under way: it may or may not be durable.
    """

    def __init__(self, message: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.outcome_unknown = outcome_unknown


class ArchiveError(ReplayError):
    """An archive cannot be written or read, or is not where it should be; the database is as it
    was."""


# --- results ----------------------------------------------------------------------------------


class UnstorableResult(ReplayError):
    """A tool ran, and its result could not be stored; only a description of it is on record."""
