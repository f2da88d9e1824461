"""Tell a way through the model as a story: what happened, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from models.language.expressions import Label
from models.language.program import Command
from models.language.python import Compiled

SHOWN = {
    "run": "run {label}",
    "step": "step {number} {label}",
    "attempt": "attempt {label}",
    "effects": "effects of step {number}: {label}",
    "abroad": "requests of step {number} still under way: {label}",
    "epoch": "epoch {label}",
}
"""How a change of a variable is told, by the variable's name without its number."""


def told(program: Compiled, states: Sequence[int], commands: Sequence[Command]) -> Iterator[str]:
    """Yield one line an event; what a change to zero or a fresh start means is left out."""
    width = max((len(command.says) for command in commands), default=0)
    for number, command in enumerate(commands):
        changes = ", ".join(_changes(program, states[number], states[number + 1]))
        yield f"{number + 1:>3}. {command.says:<{width}}  {changes}".rstrip()


def _changes(program: Compiled, before: int, after: int) -> Iterator[str]:
    old, new = program.values(before), program.values(after)
    for variable in program.model.variables:
        kind, _, number = variable.name.partition("_")
        if kind in SHOWN and old[variable.name] != new[variable.name]:
            if kind == "epoch" and number:
                continue  # what a process will claim is told when it does
            label: Label = variable.labels[new[variable.name]]
            yield SHOWN[kind].format(number=number, label=label)
