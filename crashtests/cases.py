"""The cases of the matrix, and what must come out of each.

Both sides use this table: whoever makes a report and whoever judges one. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

AFTER_REQUEST = "after request"
"""The request is durable, the tool has not been called."""
AFTER_EFFECT = "after effect"
"""The tool has committed its effect, which is not acknowledged."""
AFTER_ACKNOWLEDGEMENT = "after acknowledgement"
"""The result is durable, the caller has not seen it."""
CHECKPOINTS = (AFTER_REQUEST, AFTER_EFFECT, AFTER_ACKNOWLEDGEMENT)

IN_RECOVERY = "in recovery"
"""The first row that recovery writes is durable; or, if it writes none, its outcome is known."""

RESUMED = "resumed with the same key"
RECOVERED = "existing receipt recovered"
REPLAYED = "recorded result replayed"
UNRESOLVED = "paused, unresolved"
RECONCILED = "paused, then reconciled with the ledger"
DUPLICATE = "duplicate effect"
COMPLETED = "completed"
FOUND = "found by the probe"
REQUESTED_AGAIN = "refuted by the probe after its bound, then requested again"
ASKED_AGAIN = "asked again"


class Case(NamedTuple):
    """One row of the matrix.

    `subject` names the adapter (or "baseline"); `kills` the checkpoints at which a process is
    killed, one process each; `reconciles` that a person's part is played by an inspection of the
    ledger.
    """

    name: str
    subject: str
    kills: tuple[str, ...]
    effects: int
    outcome: str
    reconciles: bool = False


HEADLINE = (
    Case("idempotent, after request", "idempotent", (AFTER_REQUEST,), 1, RESUMED),
    Case("idempotent, after effect", "idempotent", (AFTER_EFFECT,), 1, RECOVERED),
    Case("idempotent, after acknowledgement", "idempotent", (AFTER_ACKNOWLEDGEMENT,), 1, REPLAYED),
    Case("non-idempotent (opaque), after request", "opaque", (AFTER_REQUEST,), 0, UNRESOLVED),
    Case("non-idempotent (opaque), after effect", "opaque", (AFTER_EFFECT,), 1, RECONCILED, True),
    Case(
        "non-idempotent (opaque), after acknowledgement",
        "opaque",
        (AFTER_ACKNOWLEDGEMENT,),
        1,
        REPLAYED,
    ),
    Case("baseline, blind retry after effect", "baseline", (AFTER_EFFECT,), 2, DUPLICATE),
    Case("uninterrupted control", "idempotent", (), 1, COMPLETED),
)
"""These eight are fixed, and come first."""

_FURTHER = (
    ("queryable within its bound", "queryable-slow", (0, UNRESOLVED), (1, FOUND), (1, REPLAYED)),
    ("queryable past its bound", "queryable", (1, REQUESTED_AGAIN), (1, FOUND), (1, REPLAYED)),
    ("read-only", "read_only", (0, ASKED_AGAIN), (0, ASKED_AGAIN), (0, REPLAYED)),
)

FURTHER = tuple(
    Case(f"{name}, {checkpoint}", subject, (checkpoint,), effects, outcome)
    for name, subject, *expected in _FURTHER
    for checkpoint, (effects, outcome) in zip(CHECKPOINTS, expected, strict=True)
)

KILLED_TWICE = tuple(
    case._replace(name=f"{case.name}, and in recovery", kills=(*case.kills, IN_RECOVERY))
    for case in (*HEADLINE, *FURTHER)
    if case.kills and case.subject != "baseline"
)

CASES = (*HEADLINE, *FURTHER, *KILLED_TWICE)
