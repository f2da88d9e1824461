"""The lifecycles as the spec's tables say them, read anew and combined anew."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SPEC_FOLDER = Path(__file__).resolve().parent.parent.parent / "spec"


class Move(NamedTuple):
    """Where a row of a history leads."""

    state: str
    run_moves: tuple[str, ...]
    run_state: str


def file_digest(folder: Path = SPEC_FOLDER) -> str:
    """Return the digest over the bytes of the two files of the spec, a NUL between them."""
    parts = [(folder / name).read_bytes() for name in ("step.toml", "run.toml")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


class Lifecycle:
    """Both machines and their coupling, from the two files of the spec."""

    def __init__(self, folder: Path = SPEC_FOLDER) -> None:
        step = tomllib.loads((folder / "step.toml").read_text(encoding="utf-8"))
        run = tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))
        self._step_moves: list[Mapping[str, Any]] = step["moves"]
        self._run_moves: list[Mapping[str, Any]] = run["moves"]
        self._run_states: Mapping[str, Mapping[str, Any]] = run["states"]
        self.first_state: str = step["initial"]
        self.version: int = step["version"]
        self.step_terminal = {name for name, state in step["states"].items() if state["terminal"]}
        self.run_terminal = {name for name, state in run["states"].items() if state["terminal"]}
        self._unregistered: str = run["initial"]
        self.first_run_state = next(
            move["target"] for move in self._run_moves if move["source"] == self._unregistered
        )

    def move(
        self, contract: str, source: str, event: str, actor: str, run_state: str, others: set[str]
    ) -> Move | None:
        """Return where an event of a step leads, or None if the spec has no such move.

        `others` are the states of the run's other steps.
        """
        if not self._holds(run_state, {source} | others):
            return None
        for row in self._step_moves:
            if (
                row["source"] == source
                and row["event"] == event
                and contract in row["contracts"]
                and actor in row["actor"]
                and run_state in row["run"]
            ):
                return self._with_rides(event, row["target"], run_state, others)
        return None

    def own_move(
        self, state: str, event: str, actor: str, run_state: str, others: set[str]
    ) -> Move | None:
        """Return where one of the run's own events leads while the open step is in `state`."""
        if run_state == self._unregistered or not self._holds(run_state, {state} | others):
            return None  # a start is the registration, and no row of the history
        for row in self._run_moves:
            if (
                row["source"] == run_state
                and row["event"] == event
                and not row["with"]
                and actor in row["actor"]
            ):
                return self._with_rides(event, state, row["target"], others)
        return None

    def _with_rides(self, event: str, state: str, run_state: str, others: set[str]) -> Move | None:
        """Follow the run's moves that ride with the event until the run is in a state that is
        true."""
        reached: list[tuple[str, tuple[str, ...]]] = [(run_state, ())]
        for here, path in reached:
            if self._holds(here, {state} | others):
                return Move(state, path, here)
            reached += [
                (row["target"], (*path, row["event"]))
                for row in self._run_moves
                if row["source"] == here and event in row["with"]
            ]
        return None

    def _holds(self, run_state: str, states: set[str]) -> bool:
        """Return whether steps in these states go together with the state of their run."""
        rule = self._run_states[run_state]
        return (
            ("all" not in rule or states <= set(rule["all"]))
            and ("some" not in rule or bool(states & set(rule["some"])))
            and ("none" not in rule or not states & set(rule["none"]))
        )
