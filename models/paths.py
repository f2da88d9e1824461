"""What is asked of edges and paths of a whole graph, by the search alone.

S9: the model's history moves exactly as the shipped fold does. S14: whatever a recovery comes to
that is killed on its way, one that is left alone can come to. L4: from every state of an unfinished
run some way leads on to its end, without more harm and without a cancel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent_replay.events import Event, Head
from agent_replay.history import UNTOUCHED, OpenStep, advance, expected_attempt, permitted
from agent_replay.lifecycles.run import RunEvent
from agent_replay.lifecycles.step import Actor, StepState
from agent_replay.recovery import News
from models.engines.search import Found, path
from models.language.program import Command, Row
from models.language.python import Compiled
from models.world.state import FINISHED, Setting, World


class Problem(NamedTuple):
    """What is wrong, the events that lead there, and the states on the way."""

    id: str
    says: str
    states: tuple[int, ...]
    commands: tuple[Command, ...]


class Graph:
    """Every edge of a complete search."""

    def __init__(self, setting: Setting, program: Compiled, found: Found) -> None:
        assert found.complete, "a graph that is not complete says nothing"
        self.setting = setting
        self.world = World(setting)
        self.program = program
        self.found = found
        self.edges = {state: program.edges(state, []) for state in found.parents}

    def problem(self, name: str, says: str, state: int) -> Problem:
        """Return a problem with the shortest way to its state."""
        return Problem(name, says, *path(self.program, self.found.parents, state))

    def with_harm(self, state: int) -> Iterator[int]:
        """Yield where a state can lead."""
        return (target for _, target in self.edges[state])

    def without_harm(self, state: int) -> Iterator[int]:
        """Yield where a state can lead with no more harm done."""
        commands = self.program.model.commands
        for place, target in self.edges[state]:
            if not commands[place].harm:
                yield target


# --- S9: the state is the fold of the rows ------------------------------------------------------

Folded = tuple[Head, OpenStep]
PLACES = ("run_state", "step", "state", "attempt", "epoch")


def fold_problems(graph: Graph) -> Iterator[Problem]:
    """Yield each edge on which the model's history is not what the shipped fold makes of its rows.

    An edge without rows must leave the history as it is. With the first state right, the state is
    the fold of the rows on every path.
    """
    commands = graph.program.model.commands
    for state, edges in graph.edges.items():
        before = projected(graph, state)
        for place, target in edges:
            command = commands[place]
            if command.says.startswith("the database is copied back"):
                continue
            says = _difference(graph, before, command, target)
            if says:
                found = graph.problem("S9", says, state)
                way = (*found.states, target), (*found.commands, command)
                yield Problem("S9", says, *way)


def _difference(graph: Graph, before: Folded, command: Command, target: int) -> str:
    after = projected(graph, target)
    head, known = before
    for row in with_adopt(command, head, after[0].epoch):
        contract = graph.setting.contract(head.step)
        event = event_of(row, head, after[0].epoch)
        if event is None:
            return f"the history takes no {row.event} by {row.actor} from {row.source}"
        head, known = advance(head, known, contract, event)
    folded = (*(getattr(head, name) for name in PLACES), known.grants, min(known.unresolved, 2))
    shown = (*(getattr(after[0], name) for name in PLACES), after[1].grants, after[1].unresolved)
    return "" if folded == shown else f"the fold says {folded}, the model {shown}"


def with_adopt(command: Command, head: Head, epoch: int) -> Iterator[Row]:
    """Yield the rows of a command, the adopt first that another writer's row brings along."""
    if command.rows and epoch != head.epoch:
        last = head.step == head.steps
        yield Row("", head.state, RunEvent.ADOPT, Actor.RECOVERY, head.run_state, last)
    yield from command.rows


def event_of(row: Row, head: Head, epoch: int) -> Event | None:
    """Return a row as the runtime stores it, or None where its history takes no such row."""
    contract = row.contract or None
    blank = Event(
        run=1,
        seq=head.seq + 1,
        event=row.event,
        coupled="",
        actor=row.actor,
        step=head.step if contract else None,
        attempt=None,
        state=None,
        run_state="",
        epoch=epoch,
        writer=b"",
        wall_ns=0,
        boot_ns=0,
        payload="{}",
        hash=b"",
    )
    found = permitted(contract, head, blank)
    if found is None:
        return None
    return blank._replace(
        coupled=" ".join(found.coupled),
        attempt=expected_attempt(head, blank.event, blank.step),
        state=found.target.value if contract else None,
        run_state=found.run_target.value,
    )


def projected(graph: Graph, state: int) -> Folded:
    """Return head and open step as the model has them."""
    world, values = graph.world, graph.program.values(state)
    steps = {number: str(step.labels[values[step.name]]) for number, step in world.step.items()}
    unsettled = [number for number, label in steps.items() if label != StepState.SUCCEEDED]
    number = unsettled[0] if unsettled else len(steps)
    head = Head(
        run=1,
        seq=0,
        hash=b"",
        run_state=str(world.run.labels[values["run"]]),
        step=number,
        state=steps[number],
        attempt=values["attempt"],
        epoch=values["epoch"],
        steps=len(steps),
    )
    return head, UNTOUCHED._replace(grants=values["grants"], unresolved=values["unresolved"])


# --- S14: a recovery that died ------------------------------------------------------------------


def recovery_problems(graph: Graph) -> Iterator[Problem]:
    """Yield each beginning of a recovery that can end otherwise if it dies on the way.

    Whatever a recovery comes to that is killed, and followed by another, one that is left alone can
    come to from the same beginning.
    """
    alone = _spread(graph, _ends(graph), graph.without_harm)
    killed = _spread(graph, _ends(graph), graph.with_harm)
    drivers = [worker.driver for worker in graph.world.workers.values()]
    for state in graph.edges:
        values = graph.program.values(state)
        begins = any(values[one.name] == one.value(News.FOUND_OPEN) for one in drivers)
        if begins and values["kills"] and killed[state] & ~alone[state]:
            yield graph.problem("S14", "killed on its way, this recovery can end otherwise", state)


def _ends(graph: Graph) -> dict[int, int]:
    """Return, as a set of bits, the ends that each state can come to without more harm.

    An end is what a driver leaves when it has finished: run, steps and effects, the attempts aside.
    """
    numbers: dict[tuple[int, ...], int] = {}
    names = [
        "run",
        *(one.name for one in (*graph.world.step.values(), *graph.world.effects.values())),
    ]
    drivers = [one.driver for one in graph.world.workers.values()]
    ends = {}
    for state in graph.edges:
        values = graph.program.values(state)
        finished = any(values[one.name] == one.value(FINISHED) for one in drivers)
        end = tuple(values[name] for name in names)
        ends[state] = 1 << numbers.setdefault(end, len(numbers)) if finished else 0
    return ends


def _spread(
    graph: Graph, reached: dict[int, int], leads: Callable[[int], Iterable[int]]
) -> dict[int, int]:
    """Return for each state the bits of all states that it can lead to."""
    before: dict[int, set[int]] = {state: set() for state in graph.edges}
    for state in graph.edges:
        for target in leads(state):
            before[target].add(state)
    waiting = deque(state for state, bits in reached.items() if bits)
    while waiting:
        state = waiting.popleft()
        for one in before[state]:
            bits = reached[one] | reached[state]
            if bits != reached[one]:
                reached[one] = bits
                waiting.append(one)
    return reached


# --- L4: some next act exists -------------------------------------------------------------------


def stuck(graph: Graph) -> Iterator[Problem]:
    """Yield each state of an unfinished run from which no way leads to its end."""
    ended = graph.program.condition(graph.world.ended())
    begun = {state: int(ended(state)) for state in graph.edges}
    for state, bits in _spread(graph, begun, graph.without_harm).items():
        if not bits:
            yield graph.problem("L4", "no act leads on to the end of the run", state)


CHECKS: dict[str, Callable[[Graph], Iterator[Problem]]] = {
    "S9": fold_problems,
    "S14": recovery_problems,
    "L4": stuck,
}
