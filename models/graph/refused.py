"""Everything that a state must refuse, offered by each way in.

In every state, by hand: each event of a step and of a run by each actor, unless the spec permits
it, with one of the couplings; each move that it permits, with a wrong coupling; and by a writer
that may not write it. By the shipped writer: each event by one of the actors, and what is permitted
by a writer that may not write it. Which coupling and which actor goes in turn, from state to state;
so do the actors by hand where the run is of an earlier epoch, which is refused for that alone.

Once for each head, which is all that the triggers can see of a state: every event by every actor,
by both ways; by hand with every coupling, as a move of the step and of the run (if the run is of
the latest epoch; else all is refused for that); each permitted row with one wrong column; and
statements that change, replace or remove what is there (`tampering`).

An offer that must be refused is made without a savepoint. If it is taken, that is a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent_replay.events import Event
from models.graph.expected import Expected, Lead
from models.graph.states import FORMER, HOLDER, SUCCESSOR, Label, State, in_words
from models.graph.tampering import STATEMENTS
from models.graph.ways import Draft, ShellWay, Way
from models.graph.worlds import Seen

Offer = tuple[str, str]
"""What was offered, in words, and why it was refused ("" if it was taken)."""


class Candidate(NamedTuple):
    """An event by an actor, with a row for each coupling."""

    event: str
    actor: str
    drafts: tuple[Draft, ...]


class RefusedByWriter:
    """Offers by the shipped writer: the machine or the database refuses them."""

    def __init__(self, way: Way, expected: Expected) -> None:
        self._way = way
        self._expected = expected
        self._candidates = candidates(expected, ("",))

    def offers(self, state: State, seen: Seen, turn: int, *, everything: bool) -> Iterator[Offer]:
        """Make each offer; see `Refused`."""
        allowed = permitted_by_holder(self._expected, state)
        for candidate in _in_turn(self._candidates, turn, everything=everything):
            if (candidate.event, candidate.actor) not in allowed:
                yield _made(self._way, seen, candidate.drafts[0], HOLDER)
        yield from others_offers(self._way, self._expected, state, seen)


class RefusedByHand:
    """Offers by hand: only the database can refuse them."""

    def __init__(self, way: ShellWay, expected: Expected) -> None:
        self._way = way
        self._expected = expected
        self._couplings = expected.couplings()
        self._candidates = candidates(expected, self._couplings)

    def offers(self, state: State, seen: Seen, turn: int, *, everything: bool) -> Iterator[Offer]:
        """Make each offer; see `Refused`."""
        allowed = permitted_by_holder(self._expected, state)
        owned = state.epoch == state.held  # else the epoch refuses it before its moves are judged
        offered = _in_turn(self._candidates, turn, everything=everything or owned)
        for number, candidate in enumerate(offered):
            if (candidate.event, candidate.actor) not in allowed:
                draft = candidate.drafts[(turn + number) % len(candidate.drafts)]
                yield _made(self._way, seen, _led_on(draft, state), HOLDER)
        yield from others_offers(self._way, self._expected, state, seen)
        leads = self._expected.leads(state)
        for number, lead in enumerate(leads):
            coupling = self._couplings[(turn + number) % len(self._couplings)]
            if coupling != " ".join(lead.move.run_moves):
                yield _made(self._way, seen, _draft_of(lead)._replace(coupled=coupling), HOLDER)
        if everything:
            if owned:
                yield from self._every_row(state, seen, leads)
            yield from self._wrong_columns(seen, leads)
            yield from self._tampering()

    def _every_row(self, state: State, seen: Seen, leads: list[Lead]) -> Iterator[Offer]:
        right = {_draft_of(lead) for lead in leads}
        for candidate in self._candidates:
            for plain in candidate.drafts:
                draft = _led_on(plain, state)
                for offered in (draft, _other_kind(draft, seen)):
                    if offered not in right:
                        yield _made(self._way, seen, offered, HOLDER)

    def _wrong_columns(self, seen: Seen, leads: list[Lead]) -> Iterator[Offer]:
        for lead in leads:
            row = self._way.row(seen, _draft_of(lead), 0)
            for column, wrong in _wrong_rows(row, self._expected):
                words = f"{lead.event} by {lead.actor} with a wrong {column}"
                yield words, self._way.insert(wrong)

    def _tampering(self) -> Iterator[Offer]:
        for statement in STATEMENTS:
            yield f"{statement!r}", self._way.tamper(statement)


def _in_turn(every: list[Candidate], turn: int, *, everything: bool) -> Iterable[Candidate]:
    """Return all candidates, or each event by one of the actors: by the next one in the next
    turn."""
    actors = len({candidate.actor for candidate in every})
    if everything:
        return every
    return [
        candidate
        for number, candidate in enumerate(every)
        if (turn + number // actors) % actors == number % actors
    ]


# --- what is offered ----------------------------------------------------------------------------


def candidates(expected: Expected, couplings: Iterable[str]) -> list[Candidate]:
    """Return every event of a step and of a run by every actor, with a row for each coupling."""
    words = expected.vocabulary
    kinds = [(event, True) for event in words.step_events]
    kinds += [(event, False) for event in words.run_events]
    return [
        Candidate(
            event,
            actor,
            tuple(_plain_draft(expected, event, actor, of_step, c) for c in couplings),
        )
        for event, of_step in kinds
        for actor in words.actors
    ]


def _plain_draft(expected: Expected, event: str, actor: str, of_step: bool, coupling: str) -> Draft:
    """Return a row as the event and its coupling would have it; "" stands for the run's state."""
    leads_to = expected.vocabulary.leads_to
    state = leads_to[event] if of_step else None
    run_state = "" if of_step else leads_to[event]
    if coupling:
        run_state = leads_to[coupling.split()[-1]]
    return Draft(event, actor, coupling, of_step, state, run_state)


def _led_on(draft: Draft, state: State) -> Draft:
    return draft if draft.run_state else draft._replace(run_state=state.run_state)


def _other_kind(draft: Draft, seen: Seen) -> Draft:
    """Return the row as a move of the run where it is one of the step, and the other way round."""
    state = None if draft.of_step else seen.head.state
    return draft._replace(of_step=not draft.of_step, state=state)


def _draft_of(lead: Lead) -> Draft:
    return Draft(
        lead.event,
        lead.actor,
        " ".join(lead.move.run_moves),
        lead.of_step,
        lead.move.state if lead.of_step else None,
        lead.move.run_state,
    )


def permitted_by_holder(expected: Expected, state: State) -> set[tuple[str, str]]:
    """Return event and actor of what the writer that holds the database may write in a state,
    inside the bounds or not."""
    adopts = state.epoch < state.held
    return {
        (lead.event, lead.actor)
        for lead in expected.leads(state)
        if (lead.event == "adopt") == adopts
    }


def others_offers(way: Way, expected: Expected, state: State, seen: Seen) -> Iterator[Offer]:
    """Offer what the tables permit at the place, by the writers that may not write it."""
    for lead in expected.leads(state):
        if state.held > 1:
            yield _made(way, seen, _draft_of(lead), FORMER)
        if lead.event != "adopt":
            yield _made(way, seen, _draft_of(lead), SUCCESSOR)


def _made(way: Way, seen: Seen, draft: Draft, writer: str) -> Offer:
    refusal = way.offer(seen, draft, writer, 0)
    if refusal:
        return "", refusal  # a refusal is only counted
    label = Label(draft.event, draft.actor, draft.coupled, draft.of_step, writer, 0)
    return f"{in_words(label)}, leading to {draft.state} and {draft.run_state},", ""


# --- rows with one wrong column -----------------------------------------------------------------


def _wrong_rows(row: Event, expected: Expected) -> Iterator[tuple[str, Event]]:
    """Yield a permitted row with each wrong value of each column that the database judges."""
    words = expected.vocabulary
    numbers = (0, row.epoch - 1, row.epoch + 1)
    yield from _with(row, "seq", (0, 1, row.seq - 1, row.seq + 1, row.seq + 2))
    yield from _with(row, "step", (None, 0, 1, 2, 3))
    attempts = (None, -1, *range(row.attempt + 2)) if row.attempt is not None else (0, 1)
    yield from _with(row, "attempt", attempts)
    yield from _with(row, "state", (None, "", *words.step_states))
    yield from _with(row, "run_state", ("", *words.run_states))
    yield from _with(row, "epoch", numbers)
    yield from _with(row, "writer", (b"", bytes(16)))
    yield from _with(row, "actor", ("", "nobody"))


def _with(row: Event, column: str, values: Iterable[object]) -> Iterator[tuple[str, Event]]:
    right = getattr(row, column)
    for value in values:
        if value != right:
            yield column, Event._make({**row._asdict(), column: value}.values())
