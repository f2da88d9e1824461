"""The pages: docs/lifecycles.md and docs/invariants.md, to be read without Python at hand.

Everything on them comes from the spec; the only words of this module's own are headings, legends
and how to read the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spec.invariants import CHECKERS, Citations, Promises
from spec.model import Condition, RunMove, Spec, State
from spec.product import Key, Permitted

_NONE = "\N{EN DASH}"


class _Arrow(NamedTuple):
    """One arrow of a diagram."""

    source: str
    event: str
    target: str
    actors: frozenset[str]


def lifecycles_page(
    spec: Spec, permitted: dict[Key, Permitted], moves_digest: str, file_digest: str
) -> str:
    """Return the text of docs/lifecycles.md."""
    lines = [
        "# The lifecycles",
        "",
        "GENERATED from spec/step.toml and spec/run.toml by spec/generate.py; do not edit.",
        "",
        "Two machines: [the step](#the-step), the life of one tool call, and [the run](#the-run), "
        "the life of one execution of a plan. [Their product](#what-rides-with-what) says what one "
        "row of the history may hold. What is not on this page does not exist: not in the runtime, "
        "not in the database, not in the models.",
        "",
        f"Version {spec.version}. Digest of the moves `{moves_digest}`, of the two files "
        f"`{file_digest}`. The first changes only with what is enforced, the second with every "
        "word; both are SHA-256.",
        "",
        *_step_section(spec),
        *_run_section(spec, permitted),
        *_product_section(spec, permitted),
    ]
    return "\n".join(lines)


def _step_section(spec: Spec) -> Iterator[str]:
    yield from ("## The step", "", "The life of one tool call.", "")
    arrows = _merged(
        _Arrow(m.source, m.event, m.target, frozenset(m.actor)) for m in spec.step_moves
    )
    yield from _diagram(spec.step_initial, spec.step_states, arrows, spec.passed, spec.actors)
    yield from ("### States of a step", "")
    yield from _table(
        ["state", "what is durable in it", "terminal"],
        ([f"`{s.name}`", s.says, "yes" if s.terminal else ""] for s in spec.step_states.values()),
    )
    yield from ("### Which event leads where", "")
    yield "One square for each contract. A dot is a move that does not exist."
    yield ""
    for contract in spec.contracts:
        targets = {
            (m.source, m.event): m.target for m in spec.step_moves if contract in m.contracts
        }
        yield from (f"#### A step with the contract `{contract}`", "")
        yield from _square(spec.step_states, spec.step_events, targets)
    yield from ("### Moves of a step", "")
    yield from _table(
        ["move", "event", "contracts", "made by", "while the run is", "why"],
        (
            [
                f"`{m.source}` → `{m.target}`",
                f"`{m.event}`",
                "all" if set(m.contracts) == set(spec.contracts) else _words(m.contracts),
                _words(m.actor),
                _words(m.run),
                m.why,
            ]
            for m in spec.step_moves
        ),
    )
    yield from _crashes("step", spec.step_states)


def _run_section(spec: Spec, permitted: dict[Key, Permitted]) -> Iterator[str]:
    yield from ("## The run", "", "The life of one execution of a plan.", "")
    actors = _riding_actors(spec, permitted)
    arrows = _merged(
        _Arrow(m.source, m.event, m.target, frozenset(m.actor) | actors.get(m.row, frozenset()))
        for m in spec.run_moves
    )
    goal = next(name for name, state in spec.run_states.items() if state.condition.all)
    yield from _diagram(spec.run_initial, spec.run_states, arrows, goal, spec.actors)
    yield from ("### States of a run", "")
    yield "While a run is in a state, its steps are as the third column says."
    yield ""
    yield from _table(
        ["state", "what is true in it", "its steps", "terminal"],
        (
            [f"`{s.name}`", s.says, _condition(s.condition), "yes" if s.terminal else ""]
            for s in spec.run_states.values()
        ),
    )
    yield from ("### Which event leads where in a run", "", "A dot is a move that does not exist.")
    yield ""
    targets = {(m.source, m.event): m.target for m in spec.run_moves}
    yield from _square(spec.run_states, spec.run_events, targets)
    yield from ("### Moves of a run", "")
    yield (
        "A move that rides is written in the row of another event, by the actor of that event. One "
        "that rides with nothing is a row of its own, but for the first: the run's registration."
    )
    yield ""
    yield from _table(
        ["move", "event", "made by", "rides with", "why"],
        (
            [
                f"`{m.source}` → `{m.target}`",
                f"`{m.event}`",
                _words(m.actor) or "who makes that event",
                _words(m.rides) or _alone(spec, m),
                m.why,
            ]
            for m in spec.run_moves
        ),
    )
    yield from _crashes("run", spec.run_states)


def _alone(spec: Spec, move: RunMove) -> str:
    return "nothing; it registers the run" if move.source == spec.run_initial else "nothing"


def _product_section(spec: Spec, permitted: dict[Key, Permitted]) -> Iterator[str]:
    yield from ("## What rides with what", "")
    yield (
        "One row of the history is one event and the run moves that ride with it, written together "
        "or not at all. The step is the open one: the first that is not "
        f"`{spec.passed}`. Contracts and actors of each event are as above; with them these are "
        f"{len(permitted)} rows, which the database holds and its triggers enforce."
    )
    yield ""
    rows: dict[tuple[str, ...], set[bool]] = {}
    for key, row in permitted.items():
        step = f"`{key.source}`"
        if key.contract:
            step += f" → `{row.target}`"
        shown = (f"`{key.event}`", step, f"`{key.run_state}`", _words(row.coupled), row.run_target)
        rows.setdefault(shown, set()).add(key.last)
    yield from _table(
        ["event", "step", "run is", "last step?", "run moves in the same row", "run becomes"],
        (
            [
                *shown[:3],
                "either" if len(places) == 2 else "yes" if True in places else "no",
                shown[3] or _NONE,
                f"`{shown[4]}`",
            ]
            for shown, places in rows.items()
        ),
    )


def _merged(arrows: Iterable[_Arrow]) -> list[_Arrow]:
    actors: dict[tuple[str, str, str], frozenset[str]] = {}
    for arrow in arrows:
        actors[arrow[:3]] = actors.get(arrow[:3], frozenset()) | arrow.actors
    return [_Arrow(*names, who) for names, who in actors.items()]


def _riding_actors(spec: Spec, permitted: dict[Key, Permitted]) -> dict[int, frozenset[str]]:
    """Return who makes each run move that rides, by the row of the move."""
    moves = {(m.source, m.event): m for m in spec.run_moves}
    found: dict[int, frozenset[str]] = {}
    for key, row in permitted.items():
        lead = moves.get((key.run_state, key.event))
        state = lead.target if lead else key.run_state
        for event in row.coupled:
            move = moves[state, event]
            found[move.row] = found.get(move.row, frozenset()) | {key.actor}
            state = move.target
    return found


def _diagram(
    initial: str, states: dict[str, State], arrows: list[_Arrow], goal: str, actors: tuple[str, ...]
) -> Iterator[str]:
    """Yield a flowchart: `actors[0]` is the one that makes the normal moves."""
    normal, own = _way(initial, goal, arrows), actors[0]
    doubt = [
        name
        for name, state in states.items()
        if not state.terminal and not any(a.source == name and own in a.actors for a in arrows)
    ]
    yield from ("```mermaid", "flowchart LR")
    yield "    classDef terminal fill:#e8f5e9,stroke:#2e7d32,color:#1b5e20"
    yield "    classDef doubt fill:#fff3e0,stroke:#ef6c00,color:#e65100"
    yield f"    begin(( )) --> {initial}"
    for arrow in arrows:
        line = "==>" if arrow in normal else "-->" if own in arrow.actors else "-.->"
        yield f"    {arrow.source} {line}|{arrow.event}| {arrow.target}"
    yield f"    class {','.join(name for name, s in states.items() if s.terminal)} terminal"
    if doubt:
        yield f"    class {','.join(doubt)} doubt"
    yield from ("```", "")
    yield (
        f"Thick: the normal path. Solid: another move that the {own} may make. Dotted: made only "
        f"by {_words(actors[1:], 'or', mark='')}. Green: terminal. Orange: the {own} can't leave "
        "it by itself; evidence or a person is needed."
    )
    yield ""


def _way(initial: str, goal: str, arrows: list[_Arrow]) -> list[_Arrow]:
    """Return the shortest way from the initial state to the goal."""
    ways: list[list[_Arrow]] = [[]]
    for _ in arrows:
        for way in ways:
            if way and way[-1].target == goal:
                return way
        ways = [
            [*way, arrow]
            for way in ways
            for arrow in arrows
            if arrow.source == (way[-1].target if way else initial)
        ]
    return []


def _square(
    states: dict[str, State], events: tuple[str, ...], targets: dict[tuple[str, str], str]
) -> Iterator[str]:
    yield from _table(
        ["", *events],
        ([f"**{state}**", *(targets.get((state, e), "·") for e in events)] for state in states),
    )


def _crashes(kind: str, states: dict[str, State]) -> Iterator[str]:
    yield from (f"### If the process dies while a {kind} is …", "")
    yield from (f"- … `{state.name}`: {state.crash}" for state in states.values())
    yield ""


def _condition(condition: Condition) -> str:
    parts = []
    if condition.all:
        parts.append(f"each is {_words(condition.all, 'or')}")
    if condition.some:
        parts.append(f"at least one is {_words(condition.some, 'or')}")
    if condition.none:
        parts.append(f"none is {_words(condition.none, 'or')}")
    return "; ".join(parts) or _NONE


def _words(names: Iterable[str], joint: str = "", *, mark: str = "`") -> str:
    marked = [f"{mark}{name}{mark}" for name in names]
    if not joint or len(marked) < 2:
        return ", ".join(marked)
    return f"{', '.join(marked[:-1])} {joint} {marked[-1]}"


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def invariants_page(promises: Promises, cited: Citations) -> str:
    """Return the text of docs/invariants.md."""
    lines = [
        "# The invariants",
        "",
        "GENERATED from spec/invariants.toml by spec/generate.py; do not edit.",
        "",
        "What the runtime promises (S: never otherwise; L: some day), what each promise rests on, "
        "and the files that cite it, by checker. An empty cell is a check that is owed and not "
        "there yet; a dash is a check that nobody asked for.",
        "",
        *_table(
            ["id", "promise", "assumes", *CHECKERS],
            (
                [
                    f"**{one.id}**",
                    one.says,
                    ", ".join(one.assumes) or _NONE,
                    *(
                        _files(cited.get((one.id, checker), ()), asked=checker in one.checked_by)
                        for checker in CHECKERS
                    ),
                ]
                for one in promises.invariants
            ),
        ),
        "## The assumptions",
        "",
        "Where one of them does not hold, the promises in the last column are void.",
        "",
        *_table(
            ["id", "assumption", "what rests on it"],
            (
                [
                    f"**{name}**",
                    says,
                    ", ".join(one.id for one in promises.invariants if name in one.assumes),
                ]
                for name, says in promises.assumptions.items()
            ),
        ),
    ]
    return "\n".join(lines)


def _files(files: tuple[str, ...], *, asked: bool) -> str:
    if not files:
        return "" if asked else _NONE
    return "<br>".join(f"[{name.partition('/')[2]}](../{name})" for name in files)
