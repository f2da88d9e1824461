"""What a state and an edge of the comparison are: values that both sides make.

A state is a projection of the database: it keeps what the lifecycle, the triggers and the decision
function look at, and leaves out what none of them may depend on (hashes, keys, payloads, ids, the
numbers of rows and of runs, other runs). docs/decisions/0010 gives the reasons.
"""

from __future__ import annotations

from typing import NamedTuple

HOLDER = "holder"
"""The writer of the latest epoch of the database."""
SUCCESSOR = "successor"
"""A writer that comes now: its row in `writers` is in the same transaction."""
FORMER = "former"
"""The writer of an earlier epoch."""

TAKE_OVER = "take_over"
"""The edge on which another writer takes the database over, and writes for another run."""

UNREAD = -1
"""In place of a clock reading: there is none."""


class OpenStep(NamedTuple):
    """What is kept of the open step.

    `grants` counts an operator's refutes and resends; attempts up to `refuted` were refuted.
    `first` is the reading of the first request since the last refute, `suspended` that of the
    latest suspend. `basis` says what its state rests on: the latest event of the step and who made
    it, so that a reply, a probe's word and an operator's evidence are told apart.
    """

    state: str
    attempt: int = 0
    grants: int = 0
    refuted: int = 0
    first: int = UNREAD
    suspended: int = UNREAD
    basis: str = ""


class Passed(NamedTuple):
    """What is kept of a step that succeeded before the open one."""

    attempt: int
    basis: str


class State(NamedTuple):
    """A state of a run: `epoch` is the run's, `held` that of the writer that holds the database."""

    run_state: str
    passed: tuple[Passed, ...]
    open: OpenStep
    epoch: int
    held: int


class Label(NamedTuple):
    """One way on from a state: an event as it would be stored, and who offers it at which reading.

    `of_step` tells a move of the open step from one of the run itself, which names no step.
    """

    event: str
    actor: str
    coupled: str
    of_step: bool
    writer: str
    reading: int


Edges = dict[Label, State]


def in_words(label: Label) -> str:
    """Return a label as a line of a story."""
    if label.event == TAKE_OVER:
        return "another writer takes the database over"
    rides = f" with {label.coupled}" if label.coupled else ""
    moves = "" if label.of_step else " (a move of the run)"
    return (
        f"{label.event} by {label.actor}{rides}{moves}, written by the {label.writer} "
        f"at reading {label.reading}"
    )


def describe(state: State) -> str:
    """Return a state in words."""
    parts = [f"run {state.run_state}"]
    parts += [
        f"step {number} succeeded at attempt {step.attempt} ({step.basis})"
        for number, step in enumerate(state.passed, start=1)
    ]
    here = state.open
    parts.append(
        f"step {len(state.passed) + 1} {here.state} at attempt {here.attempt} "
        f"({here.basis or 'untouched'}; {here.grants} granted, refuted up to {here.refuted}, "
        f"first sent at reading {_shown(here.first)}, suspended at {_shown(here.suspended)})"
    )
    parts.append(f"epoch {state.epoch} of {state.held}")
    return ", ".join(parts)


def _shown(reading: int) -> str:
    return "none" if reading == UNREAD else str(reading)
