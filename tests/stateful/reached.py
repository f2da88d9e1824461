"""What a run of the tests must have met, so that it is known to have tested something.

The names are those that `Lab` counts. A cell is a move of a contract and a point of its commit at
which a process died; a situation has a name of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from agent_replay.lifecycles import step
from agent_replay.lifecycles.step import Contract
from tests.stateful.points import COMMITS
from tests.stateful.trials import PLACES

NEVER = {
    "exhaust by recovery/queryable": "the refute by the probe and the exhaust are one transaction, "
    "and a person's refute grants an attempt, so no process finds a step that is used up",
}
"""Moves that the lifecycle has and that nothing asks for, with the reason."""

OF_RUNS = ("start", "adopt by recovery", "ask_cancel by operator")

SITUATIONS = (
    *(f"{what} at {kind}" for what in ("die", "read") for kind in (*COMMITS, "told", "call")),
    *(f"fail at {kind}" for kind in COMMITS),
    *(f"cancel at {kind}" for kind in ("told", "call", "called", "probe", "probed")),
    *(f"an act ended: {end}" for end in ("done", "died", "interrupted", "refused", "stopped")),
    *(f"deaths in a row: {number}" for number in (1, 2)),
    "tear at inside",
    "confirm at probe",
    "abandon at probed",
    "jump at told",
    "a row says unstorable",
    "a row says contradicts_refute",
    "acknowledge idempotent",
    "confirm queryable: probe_present",
    "refute queryable: probe_absent",
    "exhaust queryable: attempts_used_up",
    "reject read_only: attempts_used_up",
    "reject idempotent: refused",
    "reject idempotent: not_sent",
    "resend idempotent: died",
    "resend idempotent: evidence",
    "suspend idempotent: window_lapsed",
    "suspend idempotent: attempts_used_up",
    "suspend idempotent: refused_after_unresolved",
    "suspend opaque: cancel_asked",
    "suspend queryable: died",
    "suspend opaque: raised",
    "a process went on after a storage error",
    "something landed late",
    "something could no longer land",
    "an answer was written without the next request",
)
DAMAGES = tuple(f"damage was found: {table}.{column}" for table, column in PLACES)


def cells() -> Iterator[str]:
    """Yield every (point, move, contract) that a death must have met."""
    moves = {f"{event} by {actor}/{contract}" for contract, _, event, actor in step.MOVES}
    moves |= {f"{move}/{contract}" for move in OF_RUNS for contract in Contract}
    for move in sorted(moves - NEVER.keys()):
        yield from (f"{point} {move}" for point in COMMITS)
    yield from (f"{point} {contract}" for point in ("call", "called") for contract in Contract)


def missing(reached: Counter[str], wanted: Iterable[str]) -> list[str]:
    """Return what was wanted and not reached."""
    return [name for name in wanted if not reached[name]]
