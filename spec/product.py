"""The product of the two machines: what the history may hold, and which run moves ride in a row.

A row is one lead move (a step event, or one of the run's own events) and the run moves that make
the run's state true again after it. The row is judged by the open step alone: the first step that
has not passed, or the last one when all have. Before it every step passed, after it every step is
still in its initial state; so the states among a run's steps are known from the open step's state
and from whether it is the first and whether it is the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spec.model import Spec


class Key(NamedTuple):
    """What a row of the history is looked up by; `contract` is '' for the run's own events."""

    contract: str
    source: str
    event: str
    actor: str
    run_state: str
    last: bool


class Permitted(NamedTuple):
    """Where a permitted row leads: the step, the run moves that ride along, the run."""

    target: str
    coupled: tuple[str, ...]
    run_target: str


class Lead(NamedTuple):
    """A lead move before the run is looked at: a key without `last`, and where it leads."""

    where: str
    contract: str
    source: str
    event: str
    actor: str
    run_state: str
    target: str
    run_state_after: str


class CouplingHole(Exception):
    """A lead move leaves the run in a state that is not true, or in two that are."""

    def __init__(self, lead: Lead, why: str) -> None:
        """Say in which situation the move is looked at."""
        contract = lead.contract or "any"
        super().__init__(f"contract {contract}, run {lead.run_state}, step {lead.source}: {why}")


def product(spec: Spec) -> tuple[dict[Key, Permitted], list[str]]:
    """Return the permitted rows in the order of the spec, and what is wrong with them."""
    permitted: dict[Key, Permitted] = {}
    holes: list[str] = []
    for lead in leads(spec):
        made = False
        for last in (False, True):
            try:
                outcome = _outcome(spec, lead, last=last)
            except CouplingHole as hole:
                made = True
                holes.append(f"{lead.where}: {hole}")
                continue
            if outcome is not None:
                made = True
                key = Key(*lead[1:6], last)
                permitted[key] = outcome
        if not made and lead.contract:
            holes.append(
                f"{lead.where}: never possible, as no run with a step in {lead.source!r} "
                f"is {lead.run_state!r}"
            )
    return permitted, list(dict.fromkeys(holes))


def leads(spec: Spec) -> Iterator[Lead]:
    """Yield each lead move for each contract, actor, run state and state of the open step."""
    for move in spec.step_moves:
        where = f"step.toml: row {move.row} ({move.event} from {move.source})"
        for contract in move.contracts:
            for actor in move.actor:
                for run in move.run:
                    yield Lead(
                        where, contract, move.source, move.event, actor, run, move.target, run
                    )
    for lead in spec.lead_moves:
        where = f"run.toml: row {lead.row} ({lead.event} from {lead.source})"
        for actor in lead.actor:
            for state in spec.step_states:
                yield Lead(where, "", state, lead.event, actor, lead.source, state, lead.target)


def _outcome(spec: Spec, lead: Lead, *, last: bool) -> Permitted | None:
    """Return where the lead move leads, or None if the run can't be so before it."""
    if lead.source == spec.passed and not last:
        return None  # the open step would be a later one
    outcomes: set[Permitted | None] = set()
    for first in (False, True):
        if not spec.run_states[lead.run_state].condition.holds(
            present(spec, lead.source, first=first, last=last)
        ):
            outcomes.add(None)
            continue
        after = present(spec, lead.target, first=first, last=last)
        coupled, run_target = _riding(spec, lead, after)
        outcomes.add(Permitted(lead.target, coupled, run_target))
    if len(outcomes) > 1:
        raise CouplingHole(lead, "the outcome depends on whether the step is the first")
    return outcomes.pop()


def present(spec: Spec, state: str, *, first: bool, last: bool) -> frozenset[str]:
    """Return the states that occur among the steps of a run whose open step is in `state`."""
    before = frozenset() if first else frozenset({spec.passed})
    after = frozenset() if last else frozenset({spec.step_initial})
    return before | {state} | after


def _riding(spec: Spec, lead: Lead, after: frozenset[str]) -> tuple[tuple[str, ...], str]:
    """Return the shortest way of run moves to a run state that is true after the lead move."""
    ways: list[tuple[tuple[str, ...], str]] = [((), lead.run_state_after)]
    for _ in range(len(spec.run_states) + 1):
        true = [way for way in ways if spec.run_states[way[1]].condition.holds(after)]
        if len(true) == 1:
            return true[0]
        if true:
            several = " or ".join(repr(" ".join(path)) for path, _ in true)
            raise CouplingHole(lead, f"more than one way on: {several}")
        ways = [
            ((*path, move.event), move.target)
            for path, state in ways
            for move in spec.run_moves
            if move.source == state and lead.event in move.rides
        ]
    states = ", ".join(sorted(after))
    raise CouplingHole(
        lead,
        f"leaves steps in {states}, and no run move that rides with {lead.event!r} leads from "
        f"{lead.run_state_after!r} to a run state for which that is true",
    )
