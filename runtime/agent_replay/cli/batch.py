"""Several plans in one command: which they are, how their runs are called, and what is told of
them.

Every plan is read before the database is opened, so that a mistake in the last file leaves nothing
behind, and a file is opened only while no lock is held.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent_replay.cli import exits
from agent_replay.cli.exits import Exit
from agent_replay.cli.screen import Screen
from agent_replay.cli.watching import Watch, is_terminal, warn
from agent_replay.errors import InvalidInput
from agent_replay.outcome import Finished
from agent_replay.plan import Plan, load_plan
from agent_replay.report.objects import outcome_object, refused_object
from agent_replay.report.outcomes import outcome_lines
from agent_replay.values import check_id

SUFFIX = ".json"
WRONG_SHOWN_MAX = 20
"""Files that are complained of one by one; the others are counted."""
_WITH_AN_ERROR = "with an error"


class Named(NamedTuple):
    """A plan, and how its run is called."""

    run: str
    file: str
    plan: Plan


def are_several(words: Sequence[str]) -> bool:
    """Return whether a command was given more than one plan, or a directory of them."""
    return len(words) > 1 or os.path.isdir(words[0])


def read_plans(words: Sequence[str], prefix: str, screen: Screen) -> list[Named]:
    """Return the plans that files and directories hold, in order, or raise `InvalidInput`.

    All of them are judged; of several wrong ones each is complained of.
    """
    plans: list[Named] = []
    wrong: list[InvalidInput] = []
    files = list(_files(words))
    for file in files:
        try:
            plans.append(_named(file, prefix))
        except InvalidInput as error:
            wrong.append(error)
    wrong += _named_alike(plans)
    if len(wrong) == 1:
        raise wrong[0]
    for fault in wrong[:WRONG_SHOWN_MAX]:
        screen.complain(str(fault))
    if wrong:
        raise InvalidInput(f"{len(wrong)} faults in {len(files)} plans; no run was begun")
    return plans


def _files(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if os.path.isdir(word):
            yield from _files_in(word)
        else:
            yield word


def _files_in(folder: str) -> list[str]:
    """Return the plans of a directory by name: not what is hidden, and not what is further in."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise InvalidInput(f"{folder!a}: it cannot be listed: {error.strerror}") from error
    paths = [
        os.path.join(folder, name)
        for name in names
        if name.endswith(SUFFIX) and not name.startswith(".")
    ]
    files = [path for path in paths if os.path.isfile(path)]  # a pipe would be waited for
    if not files:
        raise InvalidInput(f"{folder!a}: there is no plan in it: no file of it ends in {SUFFIX}")
    return files


def _named(file: str, prefix: str) -> Named:
    plan = load_plan(file)
    name = os.path.basename(file).removesuffix(SUFFIX)
    try:
        return Named(check_id("run id", prefix + name), file, plan)
    except InvalidInput as error:
        raise InvalidInput(
            f"{file!a}: {error}; a run is called as its file without {SUFFIX}, behind "
            "--run-id-prefix: rename the file"
        ) from None


def _named_alike(plans: Iterable[Named]) -> Iterator[InvalidInput]:
    files: dict[str, str] = {}
    for run, file, _ in plans:
        if run in files:
            yield InvalidInput(
                f"{file!a}: its run would be called {run}, as that of {files[run]!a}; rename one"
            )
        files.setdefault(run, file)


# --- what is told -------------------------------------------------------------------------------


class Tally(Watch):
    """How many runs have ended, and how: shown while they run, and told at the end."""

    def __init__(self, screen: Screen, total: int, *, quiet: bool) -> None:
        super().__init__(screen, (), quiet=quiet)
        self._counted = not quiet and is_terminal()
        self._counts: Counter[str] = Counter()
        self._total = total
        self.code = Exit.OK
        """That of the worst run so far."""

    def show(self) -> None:
        """Show how far it is, on a terminal."""
        if self._counted:
            self._rewrite(f"{self._counts.total()}/{self._total} runs: {self._in_words()}")

    def take(self, finished: Finished) -> Exit:
        """Count a run that has ended, and return its exit code."""
        if finished.outcome is not None:
            word, code = finished.outcome.state.value, exits.OF_STATES[finished.outcome.state]
        else:
            assert finished.error is not None, "a run has an outcome or an error"
            word, code = _WITH_AN_ERROR, exits.of_error(finished.error)
        self._counts[word] += 1
        self.code = exits.worst((self.code, code))
        return code

    def summary(self) -> str:
        """Return how the runs have ended, in a line."""
        runs = "1 run" if self._total == 1 else f"{self._total} runs"
        return f"{runs}: {self._in_words()}"

    def left_open(self, cause: str) -> str:
        """Return in one sentence how far it came, and how it goes on."""
        told = self._in_words() if self._counts else "none"
        return (
            f"{cause}: of {self._total} runs these were told of so far: {told}; the same command "
            "goes on with those that have not ended"
        )

    def _in_words(self) -> str:
        counts = self._counts.most_common()
        return ", ".join(f"{count} {word}" for word, count in counts) or "none has ended yet"


def tell(finished: Finished, code: Exit, screen: Screen, *, as_json: bool) -> None:
    """Print what came of a run."""
    run, outcome, error = finished
    if outcome is not None:
        if as_json:
            screen.document(outcome_object(outcome, (), code))
        else:
            warn(outcome, screen)
            screen.lines(outcome_lines(outcome))
    elif error is not None:
        if as_json:
            screen.document(refused_object(run, error, code))
        else:
            screen.complain(f"run {run}: {error}")
            screen.lines([f"{run}: {type(error).__name__}"])
    screen.flush()  # whoever reads need not wait for the last run
