"""The two machines as values, and how they are read from their TOML tables.

A table that breaks the form (a missing column, a wrong type) is refused here, row by row; whether a
well-formed spec makes sense is asked in lint.py, and how the two machines ride together in
product.py. Nothing here knows a particular state or event.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Table = dict[str, object]

_NAME = re.compile(r"[a-z]+(_[a-z]+)*")
_TOP = {
    "step": ("lifecycle", "version", "initial", "contracts", "actors", "moves", "states"),
    "run": ("lifecycle", "version", "initial", "moves", "states"),
}
_NAME_COLUMNS = ("source", "event", "target")
_SET_COLUMNS = {"step": ("contracts", "actor", "run"), "run": ("actor", "with")}
_STATE_KEYS = ("says", "crash", "terminal")
_CONDITION_KEYS = {"step": (), "run": ("some", "none", "all")}


class SpecError(Exception):
    """A spec contradicts itself or cannot be read; the message names the file and the row."""

    def __init__(self, *complaints: str) -> None:
        """Say each complaint on a line of its own."""
        super().__init__("\n".join(complaints))
        self.complaints = complaints


class UnreadableSpec(SpecError):
    """A file of the spec is missing or is not TOML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold of the states of a run's steps; an empty set asks for nothing."""

    some: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    all: tuple[str, ...] = ()

    def holds(self, present: frozenset[str]) -> bool:
        """Tell whether the condition is true when exactly these states occur among the steps."""
        if self.some and present.isdisjoint(self.some):
            return False
        if not present.isdisjoint(self.none):
            return False
        return not self.all or present.issubset(self.all)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One state: what is durable in it, and what a crash in it means."""

    name: str
    says: str
    crash: str
    terminal: bool
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMove:
    """One row of step.toml; it stands for each combination of its sets."""

    row: int
    source: str
    event: str
    target: str
    contracts: tuple[str, ...]
    actor: tuple[str, ...]
    run: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMove:
    """One row of run.toml; with an empty `rides` it is a row of the history by itself."""

    row: int
    source: str
    event: str
    target: str
    actor: tuple[str, ...]
    rides: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Both machines. `states` and `moves` keep the order of the files."""

    version: int
    contracts: tuple[str, ...]
    actors: tuple[str, ...]
    step_initial: str
    step_states: dict[str, State]
    step_moves: tuple[StepMove, ...]
    run_initial: str
    run_states: dict[str, State]
    run_moves: tuple[RunMove, ...]

    @property
    def step_events(self) -> tuple[str, ...]:
        """Return the events of the step machine in the order of their first row."""
        return tuple(dict.fromkeys(move.event for move in self.step_moves))

    @property
    def run_events(self) -> tuple[str, ...]:
        """Return the events of the run machine in the order of their first row."""
        return tuple(dict.fromkeys(move.event for move in self.run_moves))

    @property
    def passed(self) -> str:
        """Return the step state that lets the next step begin: the one that `all` asks for."""
        (name,) = {name for state in self.run_states.values() for name in state.condition.all}
        return name

    @property
    def lead_moves(self) -> tuple[RunMove, ...]:
        """Return the run's moves that are rows of their own in the history.

        The move out of the initial state is none of them: registering the run is that move.
        """
        return tuple(m for m in self.run_moves if not m.rides and m.source != self.run_initial)


def parse(path: Path) -> Table:
    """Return the tables of one TOML file, or raise `UnreadableSpec`."""
    try:
        return cast("Table", tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        complaint = f"{path.name}: cannot be read: {error.strerror}"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        complaint = f"{path.name}: is not TOML: {error}"
    raise UnreadableSpec(complaint)


def misshapen(name: str, table: Table) -> Iterator[str]:
    """Yield what is wrong with the form of the tables of `name`.toml, without the file's name."""
    yield from wrong_keys("the file", table, _TOP[name])
    if table.get("lifecycle", name) != name:
        yield f"lifecycle is {table['lifecycle']!r}, but this file holds {name!r}"
    version = table.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        yield f"version is {version!r}; it must be a whole number from 1"
    yield from _name("initial", table.get("initial", "x"))
    for key in ("contracts", "actors"):
        if key in _TOP[name]:
            yield from _names(key, table.get(key, ["x"]))
    yield from _bad_rows(name, table.get("moves", [{}]))
    yield from _bad_states(name, table.get("states", {}))


def _bad_rows(name: str, rows: object) -> Iterator[str]:
    if not isinstance(rows, list) or not rows:
        yield "moves must be a list with at least one row"
        return
    columns = (*_NAME_COLUMNS, *_SET_COLUMNS[name], "why")
    for number, row in enumerate(rows, start=1):
        where = f"row {number}"
        if not isinstance(row, dict):
            yield f"{where} is not a table"
            continue
        where = f"row {number} ({row.get('event', '?')} from {row.get('source', '?')})"
        yield from wrong_keys(where, row, columns)
        for key in _NAME_COLUMNS:
            yield from _name(f"{where}: {key}", row.get(key, "x"))
        yield from _bad_sets(name, where, row)
        yield from wrong_sentence(f"{where}: why", row.get("why", "x"))


def _bad_sets(name: str, where: str, row: Table) -> Iterator[str]:
    columns = _SET_COLUMNS[name]
    for key in columns:
        yield from _names(f"{where}: {key}", row.get(key, ["x"]), empty=name == "run")
    if name == "run" and bool(row.get("actor", 1)) == bool(row.get("with", not row.get("actor"))):
        yield f"{where}: exactly one of actor and with must be empty"


def _bad_states(name: str, states: object) -> Iterator[str]:
    if not isinstance(states, dict) or not states:
        yield "states must be tables named [states.<state>]"
        return
    for state, table in states.items():
        where = f"state {state!r}"
        yield from _name(where, state)
        if not isinstance(table, dict):
            yield f"{where} is not a table"
            continue
        yield from wrong_keys(where, table, _STATE_KEYS, optional=_CONDITION_KEYS[name])
        for key in ("says", "crash"):
            yield from wrong_sentence(f"{where}: {key}", table.get(key, "x"))
        if not isinstance(table.get("terminal", False), bool):
            yield f"{where}: terminal must be true or false"
        for key in _CONDITION_KEYS[name]:
            yield from _names(f"{where}: {key}", table.get(key, ["x"]))


def wrong_keys(
    where: str, table: Table, known: tuple[str, ...], *, optional: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield which keys of a table are missing or unknown."""
    for key in known:
        if key not in table:
            yield f"{where} lacks {key!r}"
    for key in table:
        if key not in (*known, *optional):
            yield f"{where} has the unknown key {key!r}; known are {', '.join((*known, *optional))}"


def _name(where: str, value: object) -> Iterator[str]:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        yield f"{where} is {value!r}; a name is lower-case words joined by '_'"


def _names(where: str, value: object, *, empty: bool = False) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{where} is {value!r}; it must be a list of names"
        return
    if not value and not empty:
        yield f"{where} is an empty set"
    for item in value:
        yield from _name(where, item)
    if len({str(item) for item in value}) != len(value):
        yield f"{where} names something twice: {value}"


def wrong_sentence(where: str, value: object) -> Iterator[str]:
    """Yield a complaint unless the value is one line of text."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        yield f"{where} must be one line of text"


def build(step: Table, run: Table) -> Spec:
    """Return the spec that two well-formed tables hold."""
    return Spec(
        version=cast("int", step["version"]),
        contracts=_tuple(step["contracts"]),
        actors=_tuple(step["actors"]),
        step_initial=str(step["initial"]),
        step_states=_states(step),
        step_moves=tuple(_step_move(number, row) for number, row in _rows(step)),
        run_initial=str(run["initial"]),
        run_states=_states(run),
        run_moves=tuple(_run_move(number, row) for number, row in _rows(run)),
    )


def _rows(table: Table) -> Iterator[tuple[int, Table]]:
    return enumerate(cast("list[Table]", table["moves"]), start=1)


def _tuple(value: object) -> tuple[str, ...]:
    return tuple(cast("list[str]", value))


def _step_move(number: int, row: Table) -> StepMove:
    return StepMove(
        row=number,
        source=str(row["source"]),
        event=str(row["event"]),
        target=str(row["target"]),
        contracts=_tuple(row["contracts"]),
        actor=_tuple(row["actor"]),
        run=_tuple(row["run"]),
        why=str(row["why"]),
    )


def _run_move(number: int, row: Table) -> RunMove:
    return RunMove(
        row=number,
        source=str(row["source"]),
        event=str(row["event"]),
        target=str(row["target"]),
        actor=_tuple(row["actor"]),
        rides=_tuple(row["with"]),
        why=str(row["why"]),
    )


def _states(table: Table) -> dict[str, State]:
    states = cast("dict[str, Table]", table["states"])
    return {
        name: State(
            name=name,
            says=str(state["says"]),
            crash=str(state["crash"]),
            terminal=bool(state["terminal"]),
            condition=Condition(
                some=_tuple(state.get("some", [])),
                none=_tuple(state.get("none", [])),
                all=_tuple(state.get("all", [])),
            ),
        )
        for name, state in states.items()
    }
