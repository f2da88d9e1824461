"""What is wrong with a spec: each complaint names the file and the row.

The form comes first (model.py), then names, then each machine by itself, then their product; a
later question is asked only of a spec without complaints so far. `transitions` accepts most of
these mistakes in silence, so they are refused here, before anything is generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from spec.model import RunMove, Spec, SpecError, State, StepMove, Table, build, misshapen, parse
from spec.product import Key, Permitted, present, product


class _Edge(NamedTuple):
    """A move of either machine; it stands for each of the `cases`."""

    where: str
    source: str
    event: str
    target: str
    cases: tuple[str, ...]


class _Machine(NamedTuple):
    """What the questions about a single machine need of it."""

    file: str
    initial: str
    states: dict[str, State]
    edges: tuple[_Edge, ...]


def load(folder: Path) -> Spec:
    """Return the spec in `folder`, or raise `SpecError` with every complaint about it."""
    step, run = parse(folder / "step.toml"), parse(folder / "run.toml")
    found = tuple(complaints(step, run))
    if found:
        raise SpecError(*found)
    return build(step, run)


def complaints(step: Table, run: Table) -> Iterator[str]:
    """Yield what is wrong with the tables of the two files; a sound spec yields nothing."""
    found = [f"step.toml: {complaint}" for complaint in misshapen("step", step)]
    found += [f"run.toml: {complaint}" for complaint in misshapen("run", run)]
    if step.get("version") != run.get("version"):
        found.append(
            f"run.toml: version is {run.get('version')}, but that of step.toml is "
            f"{step.get('version')}; they are one spec and carry one version"
        )
    if not found:
        spec = build(step, run)
        for question in (_names, _machines, _product):
            found = list(dict.fromkeys(question(spec)))
            if found:
                break
    yield from found


def _where(move: StepMove | RunMove) -> str:
    file = "step.toml" if isinstance(move, StepMove) else "run.toml"
    return f"{file}: row {move.row} ({move.event} from {move.source})"


def _names(spec: Spec) -> Iterator[str]:
    """Ask whether each name that is used exists and means one thing."""
    yield from _unknown("step.toml: initial", "state", [spec.step_initial], spec.step_states)
    yield from _unknown("run.toml: initial", "state", [spec.run_initial], spec.run_states)
    for move in spec.step_moves:
        where = _where(move)
        yield from _unknown(where, "state", (move.source, move.target), spec.step_states)
        yield from _unknown(where, "contract", move.contracts, spec.contracts)
        yield from _unknown(where, "actor", move.actor, spec.actors)
        yield from _unknown(where, "run state", move.run, spec.run_states)
    leading = (*spec.step_events, *dict.fromkeys(move.event for move in spec.lead_moves))
    for own in spec.run_moves:
        where = _where(own)
        yield from _unknown(where, "state", (own.source, own.target), spec.run_states)
        yield from _unknown(where, "actor", own.actor, spec.actors)
        yield from _unknown(where, "event", own.rides, leading)
    for state in spec.run_states.values():
        asked = (*state.condition.some, *state.condition.none, *state.condition.all)
        yield from _unknown(
            f"run.toml: state {state.name!r}", "step state", asked, spec.step_states
        )
    yield from _meanings(spec)


def _unknown(where: str, kind: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    known = tuple(known)
    for name in names:
        if name not in known:
            yield f"{where} names the unknown {kind} {name!r}; known are {', '.join(known)}"


def _meanings(spec: Spec) -> Iterator[str]:
    for event in spec.run_events:
        if event in spec.step_events:
            yield f"run.toml: the event {event!r} is one of step.toml too; an event has one machine"
    busy = {actor for move in spec.step_moves for actor in move.actor}
    busy |= {actor for move in spec.run_moves for actor in move.actor}
    for actor in spec.actors:
        if actor not in busy:
            yield f"step.toml: the actor {actor!r} makes no move"
    passed = sorted({name for state in spec.run_states.values() for name in state.condition.all})
    if len(passed) != 1:
        yield (
            "run.toml: exactly one step state must be named under all, the one that lets the next "
            f"step begin; found {', '.join(passed) or 'none'}"
        )
    for name in passed:
        if name in spec.step_states and not spec.step_states[name].terminal:
            yield f"step.toml: state {name!r} lets the next step begin, but is not terminal"


def _machines(spec: Spec) -> Iterator[str]:
    """Ask each machine by itself: no contradiction, no dead end, nothing out of reach."""
    edges = tuple(_Edge(_where(m), m.source, m.event, m.target, ("",)) for m in spec.run_moves)
    run = _Machine("run.toml", spec.run_initial, spec.run_states, edges)
    step = _step_machine(spec, spec.contracts)
    for machine in (step, run):
        yield from _contradictions(machine)
        yield from _unreachable(machine)
    yield from _dead_ends(run, "")
    for contract in spec.contracts:
        yield from _dead_ends(_step_machine(spec, (contract,)), f" with the contract {contract!r}")


def _step_machine(spec: Spec, contracts: tuple[str, ...]) -> _Machine:
    edges = tuple(
        _Edge(
            _where(move),
            move.source,
            move.event,
            move.target,
            tuple(f" for {one} by {actor}" for one in move.contracts for actor in move.actor),
        )
        for move in spec.step_moves
        if not set(contracts).isdisjoint(move.contracts)
    )
    return _Machine("step.toml", spec.step_initial, spec.step_states, edges)


def _contradictions(machine: _Machine) -> Iterator[str]:
    targets: dict[tuple[str, str, str], str] = {}
    for edge in machine.edges:
        if machine.states[edge.source].terminal:
            yield f"{edge.where} leaves a terminal state"
        for case in edge.cases:
            earlier = targets.get((edge.source, edge.event, case))
            if earlier is None:
                targets[edge.source, edge.event, case] = edge.target
            elif earlier == edge.target:
                yield f"{edge.where} repeats an earlier row{case}"
            else:
                yield f"{edge.where} leads{case} to {edge.target!r}, an earlier row to {earlier!r}"


def _unreachable(machine: _Machine) -> Iterator[str]:
    reached = _reached(machine)
    for name in machine.states:
        if name not in reached:
            yield f"{machine.file}: state {name!r} cannot be reached from {machine.initial!r}"


def _dead_ends(machine: _Machine, case: str) -> Iterator[str]:
    left = {edge.source for edge in machine.edges}
    for name in sorted(_reached(machine) - left):
        if not machine.states[name].terminal:
            yield (
                f"{machine.file}: state {name!r} is not terminal, but no move{case} leaves it, "
                "though some lead to it"
            )


def _reached(machine: _Machine) -> set[str]:
    reached = {machine.initial}
    while True:
        further = {edge.target for edge in machine.edges if edge.source in reached} - reached
        if not further:
            return reached
        reached |= further


def _product(spec: Spec) -> Iterator[str]:
    """Ask whether each row leaves a run that is true, and each unfinished run can go on."""
    yield from _conditions(spec)
    yield from _registration(spec)
    permitted, holes = product(spec)
    yield from holes
    if not holes:
        yield from _idle_rides(spec, permitted)
        yield from _stuck(spec, permitted)


def _conditions(spec: Spec) -> Iterator[str]:
    for name, state in spec.run_states.items():
        asks = state.condition.some or state.condition.none or state.condition.all
        if name == spec.run_initial and asks:
            yield f"run.toml: state {name!r} is never stored, so it can't ask anything of the steps"
        if name != spec.run_initial and not asks:
            yield f"run.toml: state {name!r} asks nothing of the steps (some, none or all)"
    for move in spec.step_moves:
        for name in move.run:
            if name == spec.run_initial or spec.run_states[name].terminal:
                yield f"{_where(move)} happens in a run that is {name!r}, so not under way"


def _registration(spec: Spec) -> Iterator[str]:
    planned = present(spec, spec.step_initial, first=True, last=True)
    for move in spec.run_moves:
        sound = not move.rides and spec.run_states[move.target].condition.holds(planned)
        if move.target == spec.run_initial:
            yield f"{_where(move)} leads to the initial state, which is never stored"
        elif move.source == spec.run_initial and not sound:
            yield (
                f"{_where(move)} registers a run: it rides with nothing, and {move.target!r} must "
                f"be true of steps that are all {spec.step_initial!r}"
            )


def _idle_rides(spec: Spec, permitted: dict[Key, Permitted]) -> Iterator[str]:
    used: set[tuple[str, str, str]] = set()
    for key, row in permitted.items():
        state = key.run_state
        leading = [m for m in spec.lead_moves if (m.source, m.event) == (state, key.event)]
        for move in leading:
            state = move.target
        for event in row.coupled:
            used.add((state, event, key.event))
            state = next(m.target for m in spec.run_moves if (m.source, m.event) == (state, event))
    for move in spec.run_moves:
        for event in move.rides:
            if (move.source, move.event, event) not in used:
                yield f"{_where(move)} never rides with {event!r}; take it out of with"


def _stuck(spec: Spec, permitted: dict[Key, Permitted]) -> Iterator[str]:
    """Follow every row from the registered run; each row must occur, and no run may be stuck."""
    starts = [move.target for move in spec.run_moves if move.source == spec.run_initial]
    begin = [
        (contract, spec.step_initial, start, last)
        for contract in spec.contracts
        for start in starts
        for last in (False, True)
    ]
    seen = set(begin)
    occurred: set[Key] = set()
    while begin:
        contract, state, run, last = begin.pop()
        rows = [
            key
            for key in permitted
            if key.contract in (contract, "") and key[1] == state and key[4:] == (run, last)
        ]
        occurred.update(rows)
        if not any(key.contract for key in rows) and not spec.run_states[run].terminal:
            yield f"run.toml: a run is {run!r} and can't go on: its {contract} step is {state!r}"
        for key in rows:
            row = permitted[key]
            after = (contract, row.target, row.run_target, last)
            next_step = row.target == spec.passed and not last
            if not (next_step or after in seen):
                seen.add(after)
                begin.append(after)
    for key in permitted:
        if key not in occurred:
            yield (
                f"step.toml and run.toml: no run gets so far that {key.event!r} from "
                f"{key.source!r} happens in a run that is {key.run_state!r}"
            )
