"""What to type next: commands with every part filled in that the history knows, quoted for a shell.

What only a person knows stands between `<` and `>`. The commands refuse to record such a text, so
that a line that was pasted as it is does no harm.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

KIND: Final = "<what you looked at>"
CONTENT: Final = "<what you found there>"
RESULT: Final = "<what the tool returned, as JSON>"
WHO: Final = "<who you are>"
REASON: Final = "<why this settles it>"
ADAPTERS: Final = "<where the adapters are: tools.py or package.module>"


class Caller(NamedTuple):
    """How the person at the terminal calls this program, and on which database."""

    program: tuple[str, ...]
    database: str

    def argv(self, name: str, *words: str) -> tuple[str, ...]:
        """Return the words of a command on the database."""
        return (*self.program, name, *words, "--db", self.database)


class Act(NamedTuple):
    """Something that a person can do next: what it is for, and the command that does it."""

    do: str
    argv: tuple[str, ...]

    @property
    def command(self) -> str:
        """Return the command, quoted for a shell."""
        return shlex.join(self.argv)


class Subject(NamedTuple):
    """The attempt of a step that a command is about."""

    run: str
    step: str
    attempt: int
    key: str


def is_placeholder(text: str) -> bool:
    """Return whether a text is still to be filled in."""
    return text.startswith("<") and text.endswith(">")


def hint_of(sources: Sequence[str]) -> str:
    """Return the hint that a run keeps of where its adapters came from."""
    return json.dumps(list(sources), ensure_ascii=False)


def sources_of(hint: str) -> tuple[str, ...]:
    """Return where the adapters of a run came from, as its hint tells; nothing is loaded for it."""
    try:
        told = json.loads(hint)
    except (ValueError, RecursionError):
        return (hint,) if hint.strip() else ()
    if not isinstance(told, list):
        return (hint,)
    return tuple(source for source in told if isinstance(source, str))


def resume(caller: Caller, run: str, hint: str, do: str, *, wait: bool = False) -> Act:
    """Return the command that goes on with a run."""
    more = ("--wait",) if wait else ()
    return Act(do, (*caller.argv("resume", run), *_adapters(hint), *more))


def confirm(caller: Caller, subject: Subject) -> Act:
    """Return the command that records that a step in doubt happened."""
    argv = _about(caller, "reconcile", subject, "--confirm", "--result", RESULT)
    return Act("it happened: say what it returned", argv)


def refute(caller: Caller, subject: Subject) -> Act:
    """Return the command that records that no attempt of a step in doubt happened."""
    argv = _about(caller, "reconcile", subject, "--refute", "--no-request-can-land")
    return Act(
        "no attempt happened, and none can land any more: it is planned again, and sent anew "
        "unless the run is being cancelled",
        argv,
    )


def resend(caller: Caller, subject: Subject, hint: str, do: str) -> Act:
    """Return the command that grants a step in doubt one more attempt with the same key."""
    argv = _about(caller, "reconcile", subject, "--resend")
    return Act(do, (*argv, *_adapters(hint)))


def abandon(caller: Caller, subject: Subject) -> Act:
    """Return the command that closes a step in doubt without knowing."""
    argv = _about(caller, "abandon", subject)
    return Act("it can't be found out: close the step, unknown for ever; the run ends", argv)


def verify(caller: Caller) -> Act:
    """Return the command that checks the whole database."""
    return Act("see what is damaged, and work on a copy", caller.argv("verify"))


def _about(caller: Caller, name: str, subject: Subject, *how: str) -> tuple[str, ...]:
    given = ("--attempt", str(subject.attempt), "--key", subject.key)
    asked = ("--kind", KIND, "--content", CONTENT, "--who", WHO, "--why", REASON)
    return (*caller.argv(name, subject.run, subject.step), *how, *given, *asked)


def _adapters(hint: str) -> tuple[str, ...]:
    words: list[str] = []
    for source in sources_of(hint) or (ADAPTERS,):
        # With "=", a source that begins with a hyphen is not taken for an option.
        words += [f"--adapters={source}"] if source.startswith("-") else ["--adapters", source]
    return tuple(words)
