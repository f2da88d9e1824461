"""The two digests of a spec: of what is enforced, and of the files as they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from spec.model import Spec, State
from spec.product import product


def moves_digest(spec: Spec) -> str:
    """Return the SHA-256 of what is enforced; words, comments and the order of rows do not count.

    Each row counts as the single moves that it stands for, and the product counts too: it is what
    the database enforces, so a change in how it is derived is a change of the spec.
    """
    permitted, _ = product(spec)
    enforced = {
        "version": spec.version,
        "contracts": sorted(spec.contracts),
        "actors": sorted(spec.actors),
        "step": {"initial": spec.step_initial, "states": _states(spec.step_states)},
        "step_moves": sorted(
            [move.source, move.event, contract, actor, run, move.target]
            for move in spec.step_moves
            for contract in move.contracts
            for actor in move.actor
            for run in move.run
        ),
        "run": {"initial": spec.run_initial, "states": _states(spec.run_states)},
        "run_moves": sorted(
            [move.source, move.event, move.target, sorted(move.actor), sorted(move.rides)]
            for move in spec.run_moves
        ),
        "permitted": sorted([*key, *row] for key, row in permitted.items()),
    }
    text = json.dumps(enforced, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _states(states: dict[str, State]) -> dict[str, object]:
    return {
        name: {
            "terminal": state.terminal,
            "some": sorted(state.condition.some),
            "none": sorted(state.condition.none),
            "all": sorted(state.condition.all),
        }
        for name, state in states.items()
    }


def file_digest(folder: Path) -> str:
    """Return the SHA-256 of the bytes of step.toml, a NUL, and run.toml."""
    parts = [(folder / f"{name}.toml").read_bytes() for name in ("step", "run")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
