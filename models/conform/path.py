"""Whether a run's history is a path of the spec's product.

The tables of the spec are read by the independent reader, and the rules that are no rows of a
table are those that `models.graph.expected` lists. `Path` also keeps what a decision rests on,
folded here anew: the shipped fold is among what is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from crashtests.independent import chains
from crashtests.independent.lifecycle import Lifecycle, Move
from models.conform.rows import Finding, Row, RunOf, Stamp, StepOf
from models.graph.expected import SENDS, read_vocabulary

_OTHERS = (frozenset[str](), frozenset({"succeeded"}))


class Facts(NamedTuple):
    """What the events say of the open step.

    `granted` counts an operator's refutes and resends, `unresolved` the requests and resends since
    the last refute; `first` is the first of these, `sent_in` the epoch of the latest; `refuted` is
    the latest attempt that was refuted.
    """

    state: str
    attempt: int = 0
    granted: int = 0
    unresolved: int = 0
    refuted: int = 0
    first: Stamp | None = None
    suspended: Stamp | None = None
    sent_in: int = 0


class Path:
    """Where a run stands while its rows are taken one after the other."""

    def __init__(self, run: RunOf, lifecycle: Lifecycle, writers: dict[int, bytes]) -> None:
        self.run = run
        self.run_state = lifecycle.first_run_state
        self.number = 1
        """The number of the open step."""
        self.facts = Facts(lifecycle.first_state)
        self._lifecycle = lifecycle
        self._writers = writers
        self._epoch = run.epoch
        self._seq = 0

    @property
    def step(self) -> StepOf:
        """Return the open step."""
        return self.run.steps[self.number - 1]

    def problem(self, row: Row) -> Finding | None:
        """Return why a row cannot follow, or None if it can."""
        for found, legal in self._disorder(row):
            return self.finding(row, found, legal)
        move = self._move(row)
        if move is None:
            found = (
                f"{row.event} by {row.actor} while the run is {self.run_state} and step "
                f"{self.number} ({self.step.contract}) is {self.facts.state}"
            )
            return self.finding(row, found, self._legal_moves())
        leads = (None if row.step is None else move.state, move.run_state, " ".join(move.run_moves))
        if (row.state, row.run_state, row.coupled) != leads:
            found = (
                f"{row.event} leading to step {row.state}, run {row.run_state} "
                f"with {row.coupled or 'no move of the run'}"
            )
            return self.finding(
                row, found, f"step {leads[0]}, run {leads[1]} with {leads[2] or 'no move'}"
            )
        if row.state == "succeeded" and not {"result", "unstorable"} & row.payload.keys():
            return self.finding(row, f"{row.event} without a result", "a result on record")
        return None

    def _disorder(self, row: Row) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the numbers of a row, and what they had to be."""
        if row.seq != self._seq + 1:
            yield f"seq {row.seq}", f"seq {self._seq + 1}"
        if self._writers.get(row.epoch) != row.writer:
            yield f"a writer that epoch {row.epoch} does not name", "the writer of the epoch"
        adopts = row.event == "adopt"
        if row.epoch < self._epoch or adopts != (row.epoch > self._epoch):
            yield (
                f"{row.event} in epoch {row.epoch} of a run in epoch {self._epoch}",
                f"any other event in epoch {self._epoch}, or adopt in a later one",
            )
        if row.step not in (None, self.number):
            yield f"{row.event} of step {row.step}", f"a move of step {self.number}, the open one"
        attempt = self.facts.attempt + (row.event in SENDS)
        if row.attempt != (None if row.step is None else attempt):
            yield f"{row.event} of attempt {row.attempt}", f"attempt {attempt}"

    def _move(self, row: Row) -> Move | None:
        return _looked_up(
            self._lifecycle, row.step is not None, row.event, row.actor, *self._place()
        )

    def _place(self) -> tuple[str, str, str, frozenset[str]]:
        others = _OTHERS[self.number > 1]
        if self.number < len(self.run.steps):
            others |= {self._lifecycle.first_state}
        return self.step.contract, self.facts.state, self.run_state, others

    def _legal_moves(self) -> str:
        words = read_vocabulary()
        legal = [
            f"{event} by {actor}"
            for of_step, events in ((True, words.step_events), (False, words.run_events))
            for event in events
            for actor in words.actors
            if _looked_up(self._lifecycle, of_step, event, actor, *self._place()) is not None
        ]
        return ", ".join(legal) or "nothing, since the run has ended"

    def take(self, row: Row) -> None:
        """Take a row in that can follow."""
        self._seq, self._epoch, self.run_state = row.seq, row.epoch, row.run_state
        if row.step is None:
            return
        if row.state == "succeeded" and self.number < len(self.run.steps):
            self.number += 1
            self.facts = Facts(self._lifecycle.first_state)
        else:
            self.facts = _after(self.facts, row)

    def finding(self, row: Row, found: str, legal: str) -> Finding:
        """Return a finding about a row."""
        return Finding(self.run.id, row.seq, found, legal)


@cache
def _looked_up(
    lifecycle: Lifecycle,
    of_step: bool,
    event: str,
    actor: str,
    contract: str,
    state: str,
    run_state: str,
    others: frozenset[str],
) -> Move | None:
    if of_step:
        return lifecycle.move(contract, state, event, actor, run_state, set(others))
    return lifecycle.own_move(state, event, actor, run_state, set(others))


def _after(facts: Facts, row: Row) -> Facts:
    """Return what is known of the open step after a row of its own."""
    facts = facts._replace(state=row.state or facts.state)
    granted = facts.granted + (row.actor == "operator" and row.event in ("refute", "resend"))
    if row.event in SENDS:
        return facts._replace(
            attempt=facts.attempt + 1,
            granted=granted,
            unresolved=facts.unresolved + 1,
            first=facts.first or row.stamp,
            sent_in=row.epoch,
        )
    if row.event == "suspend":
        return facts._replace(suspended=row.stamp)
    if row.event == "refute":
        return Facts(facts.state, facts.attempt, granted, refuted=facts.attempt)
    return facts


def registration_findings(
    run: RunOf, namespace: str, writers: dict[int, bytes]
) -> Iterator[Finding]:
    """Yield what is wrong with a registration: its writer, the number of steps, keys, contracts."""
    if writers.get(run.epoch) != run.writer:
        yield Finding(
            run.id,
            0,
            f"registered by a writer that epoch {run.epoch} does not name",
            "the writer of the epoch",
        )
    if len(run.steps) != run.steps_registered or not run.steps:
        yield Finding(
            run.id, 0, f"{len(run.steps)} steps", f"the {run.steps_registered} that were registered"
        )
    for number, step in enumerate(run.steps, start=1):
        if step.number != number:
            yield Finding(run.id, 0, f"step {step.number} in place {number}", f"step {number}")
        key = key_of(namespace, run.id, step)
        if step.key != key:
            yield Finding(run.id, 0, f"step {step.id} with the key {step.key}", f"the key {key}")
        if step.terms.get("contract") != step.contract:
            yield Finding(
                run.id,
                0,
                f"step {step.id}, {step.contract}, with an adapter pinned as "
                f"{step.terms.get('contract')}",
                "the same contract",
            )


def key_of(namespace: str, run_id: str, step: StepOf) -> str:
    """Return the key that a step has, whatever was stored."""
    named = {"id": step.id, "adapter": step.adapter, "arguments": step.arguments}
    return chains.key(namespace, run_id, named)
