"""The graph that the spec gives: its tables, and the few rules that are no rows of a table.

Nothing here comes from the package. The tables are read and combined by the independent reader that
also judges crash reports. The rules are these:

- a request or resend is the step's next attempt, every other move is of the current one;
- an operator's refute or resend grants an attempt;
- the key window starts with the first request since the last refute, which a refute clears; the
  settle bound starts with the latest suspend;
- only the writer of the latest epoch writes; in a run of an earlier epoch it must adopt first, and
  adopts once; a successor's row comes with its first row of a history;
- a step opens when the one before it has succeeded, and begins with nothing;
- any row may carry any reading of the clocks.
"""

from __future__ import annotations

import itertools
import tomllib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crashtests.independent.lifecycle import SPEC_FOLDER, Lifecycle, Move
from models.graph.bounds import BOUNDS, READINGS, Bounds
from models.graph.states import (
    HOLDER,
    SUCCESSOR,
    TAKE_OVER,
    Edges,
    Label,
    OpenStep,
    Passed,
    State,
)

SENDS = ("request", "resend")


class Vocabulary(NamedTuple):
    """The words of the spec that a history is written in.

    `leads_to` maps each event of a step to the state that it leads to, and each event of a run to
    the state of the run, or to "" where it leaves the run as it is.
    """

    contracts: tuple[str, ...]
    step_events: tuple[str, ...]
    run_events: tuple[str, ...]
    actors: tuple[str, ...]
    step_states: tuple[str, ...]
    run_states: tuple[str, ...]
    leads_to: dict[str, str]


def read_vocabulary(folder: Path = SPEC_FOLDER) -> Vocabulary:
    """Return the words of the spec, in the order of its files."""
    step = tomllib.loads((folder / "step.toml").read_text(encoding="utf-8"))
    run = tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))
    leads_to = {move["event"]: move["target"] for move in (*step["moves"], *run["moves"])}
    staying = {move["event"] for move in run["moves"] if move["source"] == move["target"]}
    return Vocabulary(
        contracts=tuple(step["contracts"]),
        step_events=tuple(dict.fromkeys(move["event"] for move in step["moves"])),
        run_events=tuple(dict.fromkeys(move["event"] for move in run["moves"])),
        actors=tuple(step["actors"]),
        step_states=tuple(step["states"]),
        run_states=tuple(run["states"]),
        leads_to={**leads_to, **dict.fromkeys(staying, "")},
    )


class Lead(NamedTuple):
    """An event that the tables permit at a place, and where it leads."""

    event: str
    actor: str
    of_step: bool
    move: Move


class Expected:
    """The spec's graph of a run with one step for each of the contracts."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        vocabulary: Vocabulary,
        contracts: tuple[str, ...],
        bounds: Bounds,
    ) -> None:
        self.contracts = contracts
        self._lifecycle = lifecycle
        self.vocabulary = vocabulary
        self._bounds = bounds
        self._leads: dict[tuple[int, str, str], list[Lead]] = {}

    @property
    def initial(self) -> State:
        """Return the state of a run that has only been registered, by the first writer."""
        first = OpenStep(self._lifecycle.first_state)
        return State(self._lifecycle.first_run_state, (), first, 1, 1)

    def graph(self) -> dict[State, Edges]:
        """Return every state within the bounds, with its edges."""
        found: dict[State, Edges] = {}
        todo = deque([self.initial])
        while todo:
            state = todo.popleft()
            if state not in found:
                found[state] = edges = self.edges(state)
                todo.extend(edges.values())
        return found

    def edges(self, state: State) -> Edges:
        """Return where each permitted offer leads that stays within the bounds."""
        return {label: target for label, target in self._ways_on(state) if self._is_within(target)}

    def leaves_bounds(self, state: State) -> set[tuple[str, str]]:
        """Return event and actor of each permitted offer that leads outside of the bounds."""
        return {
            (label.event, label.actor)
            for label, target in self._ways_on(state)
            if not self._is_within(target)
        }

    def _is_within(self, state: State) -> bool:
        most = self._bounds.attempts[len(state.passed)]
        return state.open.attempt <= most and state.held <= self._bounds.epochs

    def _ways_on(self, state: State) -> Iterator[tuple[Label, State]]:
        later = state._replace(held=state.held + 1)
        yield Label(TAKE_OVER, "", "", False, SUCCESSOR, 0), later
        for lead in self.leads(state):
            for reading in READINGS:
                label = Label(
                    lead.event,
                    lead.actor,
                    " ".join(lead.move.run_moves),
                    lead.of_step,
                    HOLDER,
                    reading,
                )
                if lead.event == "adopt":
                    if state.epoch < state.held:
                        yield label, state._replace(epoch=state.held)
                    yield label._replace(writer=SUCCESSOR), later._replace(epoch=later.held)
                elif state.epoch == state.held:
                    yield label, self._after(state, lead, reading)

    def couplings(self) -> tuple[str, ...]:
        """Return every combination of run moves that rides in some row of the spec's product."""
        rides = {lead.move.run_moves for _, lead in self.every_lead()}
        return tuple(sorted(" ".join(moves) for moves in rides))

    def every_lead(self) -> Iterator[tuple[tuple[str, int, str, str], Lead]]:
        """Yield every row of the spec's product: contract, place in the plan, state of the step
        and of the run; and the lead."""
        words = self.vocabulary
        places = itertools.product(
            words.contracts, range(len(self.contracts)), words.step_states, words.run_states
        )
        for place in places:
            _, index, state, _ = place
            if state == "succeeded" and index + 1 < len(self.contracts):
                continue  # the open step would be the next one
            for lead in self._leads_at(*place):
                yield place, lead

    def leads(self, state: State) -> list[Lead]:
        """Return what the tables permit at the place of a state, whoever writes."""
        index = len(state.passed)
        key = (index, state.open.state, state.run_state)
        if key not in self._leads:
            self._leads[key] = list(self._leads_at(self.contracts[index], *key))
        return self._leads[key]

    def _leads_at(self, contract: str, index: int, state: str, run_state: str) -> Iterator[Lead]:
        others = {"succeeded"} if index else set()
        if index + 1 < len(self.contracts):
            others.add(self._lifecycle.first_state)
        for actor in self.vocabulary.actors:
            for event in self.vocabulary.step_events:
                move = self._lifecycle.move(contract, state, event, actor, run_state, others)
                if move is not None:
                    yield Lead(event, actor, True, move)
            for event in self.vocabulary.run_events:
                move = self._lifecycle.own_move(state, event, actor, run_state, others)
                if move is not None:
                    yield Lead(event, actor, False, move)

    def _after(self, state: State, lead: Lead, reading: int) -> State:
        if not lead.of_step:
            return state._replace(run_state=lead.move.run_state)
        here = _moved(state.open, lead, reading)
        passed = state.passed
        if here.state == "succeeded" and len(passed) + 1 < len(self.contracts):
            passed = (*passed, Passed(here.attempt, here.basis))
            here = OpenStep(self._lifecycle.first_state)
        return state._replace(run_state=lead.move.run_state, passed=passed, open=here)


def _moved(here: OpenStep, lead: Lead, reading: int) -> OpenStep:
    """Return the open step after a move of its own."""
    grants = here.grants + (lead.actor == "operator" and lead.event in ("refute", "resend"))
    moved = here._replace(
        state=lead.move.state, grants=grants, basis=f"{lead.event} by {lead.actor}"
    )
    if lead.event in SENDS:
        first = reading if here.attempt == here.refuted else here.first
        return moved._replace(attempt=here.attempt + 1, first=first)
    if lead.event == "suspend":
        return moved._replace(suspended=reading)
    if lead.event == "refute":
        fresh = OpenStep(lead.move.state)
        return moved._replace(refuted=here.attempt, first=fresh.first, suspended=fresh.suspended)
    return moved


def product_size() -> int:
    """Return how many rows the spec's product has."""
    words = read_vocabulary()
    contracts = words.contracts[:1] * 2  # every contract stands at either place, whatever the plan
    expected = Expected(Lifecycle(), words, contracts, BOUNDS["quick"])
    last = len(contracts) - 1
    return len(
        {
            (contract if lead.of_step else "", index == last, *place, lead.event, lead.actor)
            for (contract, index, *place), lead in expected.every_lead()
        }
    )
