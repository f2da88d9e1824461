"""What was done in a lab, as a program that does it again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Given = ParamSpec("Given")

_HEAD = '''"""Reproduce a failure of the stateful tests: python {name}"""

from contextlib import closing

from tests.stateful.lab import Lab

with closing(Lab()) as lab:
'''


class Script:
    """The lines of a program."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def text(self, name: str = "FILE") -> str:
        """Return the program."""
        return _HEAD.format(name=name) + "".join(f"    {line}\n" for line in self.lines)


class _HasScript(Protocol):
    script: Script

    def check(self) -> None: ...


Bench = TypeVar("Bench", bound=_HasScript)


def recorded(
    act: Callable[Concatenate[Bench, Given], None],
) -> Callable[Concatenate[Bench, Given], None]:
    """Make a method a line of its lab's script; the lab is judged after it.

    An error carries the whole script as a note, which pytest and Python print below it.
    """

    @functools.wraps(act)
    def wrapped(lab: Bench, /, *given: Given.args, **named: Given.kwargs) -> None:
        if lab.script.depth:
            act(lab, *given, **named)  # part of another line
            return
        words = [repr(one) for one in given] + [f"{name}={one!r}" for name, one in named.items()]
        lab.script.lines.append(f"lab.{act.__name__}({', '.join(words)})")
        lab.script.depth = 1
        try:
            act(lab, *given, **named)
            lab.check()
        except Exception as error:
            error.add_note("--- a script that reproduces this ---\n" + lab.script.text())
            raise
        finally:
            lab.script.depth = 0

    return wrapped
