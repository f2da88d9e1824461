"""Walk the graph of a world and compare it, state by state, with the graph that is expected.

The walk goes down every edge first, and tries each edge of a state when it first comes there. So
when it has found no difference, it has come to every state, from each of them every permitted offer
was taken and led where the spec says; with `refused`, every other offer was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from agent_replay.errors import DamagedHistory, ReplayError
from agent_replay.events import Event
from models.graph.expected import Expected
from models.graph.states import TAKE_OVER, Edges, Label, State, describe, in_words
from models.graph.ways import Draft, Way
from models.graph.worlds import Seen, World

DIFFERENCES_MAX = 10
"""Differences after which a walk is given up: one fault makes many."""

MISSING = "missing edge"
EXTRA = "extra edge"
CONTRADICTION = "contradiction"


class Difference(NamedTuple):
    """Where a world and the spec differ, and a way there."""

    kind: str
    contracts: tuple[str, ...]
    way: str
    story: tuple[str, ...]
    state: str
    says: str

    def text(self) -> str:
        """Return the difference as a story."""
        plan = " then ".join(self.contracts)
        lines = [f"{self.kind}: {self.says}", f"  plan: {plan}; way in: {self.way}"]
        lines += [f"  {number}. {move}" for number, move in enumerate(self.story, start=1)]
        return "\n".join([*lines, f"  in: {self.state}"])


class Story(NamedTuple):
    """How the walk came to where it is; `mark` tells two histories of moves apart."""

    before: Story | None = None
    label: Label | None = None
    mark: int = 0

    def then(self, label: Label) -> Story:
        """Return the story with one more move."""
        return Story(self, label, hash((self.mark, label)))

    def told(self) -> tuple[str, ...]:
        """Return the moves in words."""
        moves = []
        here: Story | None = self
        while here is not None and here.label is not None:
            moves.append(in_words(here.label))
            here = here.before
        return tuple(reversed(moves))


class HeadSeen(NamedTuple):
    """What the triggers can see of a state: the row in `heads` and the latest epoch."""

    run_state: str
    step: int
    state: str
    attempt: int
    epoch: int
    held: int


def head_of(state: State) -> HeadSeen:
    """Return what the triggers can see of a state."""
    here = state.open
    return HeadSeen(
        state.run_state, len(state.passed), here.state, here.attempt, state.epoch, state.held
    )


class Enough(Exception):
    """So many differences were found that no more are looked for."""


class Refused(Protocol):
    """What offers the rest: everything that a state must refuse."""

    def offers(
        self, state: State, seen: Seen, turn: int, *, everything: bool
    ) -> Iterable[tuple[str, str]]:
        """Make each offer; yield what was offered, in words, and the refusal or "".

        `everything` asks for what is offered once for each head; `turn` counts the states, so that
        what is offered in turn differs from one to the next.
        """


class Walk:
    """One walk through one world by one way in."""

    def __init__(
        self,
        world: World,
        way: Way,
        expected: Expected,
        graph: dict[State, Edges],
        *,
        backwards: bool = False,
        refused: Refused | None = None,
        enough: int = DIFFERENCES_MAX,
    ) -> None:
        """Prepare a walk, which is given up after `enough` differences."""
        self._world = world
        self._way = way
        self._expected = expected
        self._graph = graph
        self._backwards = backwards
        self._refused = refused
        self._enough = enough
        self.marks: dict[State, int] = {}
        """The states that were come to, each with the mark of its first history."""
        self._heads: set[HeadSeen] = set()
        self.edges = 0
        self.refusals: Counter[str] = Counter()
        self.differences: list[Difference] = []

    @property
    def way(self) -> str:
        """Return the name of the way in."""
        return self._way.name

    def run(self) -> None:
        """Walk until every state was come to, or enough differences were found."""
        try:
            seen = self._world.start()
            self._come_to(self._expected.initial, seen, Story())
        except Enough:
            return
        for state in self._graph.keys() - self.marks.keys():
            if not self.differences:  # else it is a consequence
                self._report("missing state", Story(), state, "no way leads to it")

    def _come_to(self, expected: State, seen: Seen, story: Story) -> None:
        found = self._world.project(seen)
        if found != expected:
            self._report(EXTRA, story, expected, f"the walk starts elsewhere: {describe(found)}")
            return
        self._visit(found, seen, story)

    def _visit(self, state: State, seen: Seen, story: Story) -> None:
        turn = len(self.marks)
        self.marks[state] = story.mark
        new_head = head_of(state) not in self._heads
        self._heads.add(head_of(state))
        if new_head and self._way.name == "writer":  # a reader refuses hashes written by hand
            self._reread(state, story)
        if self._refused is not None:
            self._offer_the_rest(self._refused, state, seen, story, turn, everything=new_head)
        edges = self._graph[state].items()
        for label, target in reversed(edges) if self._backwards else edges:
            writers = self._way.writers()
            self._world.execute("savepoint here")
            self._follow(state, label, target, seen, story)
            self._world.execute("rollback to here")
            self._world.execute("release here")
            self._way.forget(writers)

    def _offer_the_rest(
        self,
        refused: Refused,
        state: State,
        seen: Seen,
        story: Story,
        turn: int,
        *,
        everything: bool,
    ) -> None:
        writers = self._way.writers()
        self._world.execute("savepoint here")
        for offer, refusal in refused.offers(state, seen, turn, everything=everything):
            self.refusals[refusal] += 1
            if not refusal:
                self._report(EXTRA, story, state, f"{offer} is taken")
                self._world.execute("rollback to here")
                self._way.forget(writers)
        self._world.execute("release here")

    def _follow(self, state: State, label: Label, target: State, seen: Seen, story: Story) -> None:
        refusal = self._way.offer(seen, draft_of(state, label, target), label.writer, label.reading)
        if refusal:
            self._report(MISSING, story, state, f"{in_words(label)} is refused: {refusal}")
            return
        try:
            now = self._world.look(seen)
        except DamagedHistory as damage:
            self._report(CONTRADICTION, story.then(label), state, f"the fold refuses it: {damage}")
            return
        found = self._world.project(now)
        if found != target or not _is_stored(label, now.event):
            self._report_other(story, state, label, target, found, now.event)
        elif now.wrong:
            self._report(CONTRADICTION, story.then(label), target, now.wrong)
        else:
            self.edges += 1
            if target not in self.marks:
                self._visit(target, now, story.then(label))

    def _report_other(
        self,
        story: Story,
        state: State,
        label: Label,
        target: State,
        found: State,
        event: Event | None,
    ) -> None:
        self._report(
            MISSING, story, state, f"{in_words(label)} does not lead to {describe(target)}"
        )
        if event is not None:
            label = label._replace(
                event=event.event,
                actor=event.actor,
                coupled=event.coupled,
                of_step=event.step is not None,
            )
        self._report(EXTRA, story, state, f"{in_words(label)} leads to {describe(found)}")

    def _reread(self, state: State, story: Story) -> None:
        """Compare with what the shipped reader makes of the whole history."""
        try:
            found = self._world.read_anew()
        except ReplayError as error:
            self._report(CONTRADICTION, story, state, f"the reader refuses the history: {error}")
            return
        if found != state:
            self._report(CONTRADICTION, story, state, f"the reader tells {describe(found)}")

    def _report(self, kind: str, story: Story, state: State, says: str) -> None:
        self.differences.append(
            Difference(
                kind, self._world.contracts, self._way.name, story.told(), describe(state), says
            )
        )
        if len(self.differences) >= self._enough:
            raise Enough


def draft_of(state: State, label: Label, target: State) -> Draft:
    """Return the row that goes along an edge."""
    opened = len(target.passed) > len(state.passed)
    reached = "succeeded" if opened else target.open.state
    return Draft(
        label.event,
        label.actor,
        label.coupled,
        label.of_step,
        reached if label.of_step else None,
        target.run_state,
    )


def _is_stored(label: Label, event: Event | None) -> bool:
    """Return whether a row is the one that was offered; taking over adds none to the run."""
    if event is None:
        return label.event == TAKE_OVER
    stored = (event.event, event.actor, event.coupled, event.step is not None)
    return stored == label[: len(stored)]
