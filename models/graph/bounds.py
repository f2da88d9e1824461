"""How far the graphs are followed, and why no further.

What is unbounded in a history: attempts, grants and refutes (each needs an attempt), takeovers, and
time. Everything else is finite by itself. A move that would leave the bounds is offered on neither
side.
"""

from __future__ import annotations

from typing import NamedTuple

READINGS = (0, 1)
"""Two clock readings, each of which any row may carry: so time passes, stands still or jumps back.

One comparison of two readings is all that any rule makes (key window, settle bound), so a third
would add no new answer.
"""


class Bounds(NamedTuple):
    """The largest attempt of each step, the largest epoch, and the plans: pairs of contracts.

    Without `plans`, every contract is followed by every contract.
    """

    attempts: tuple[int, int]
    epochs: int
    plans: tuple[tuple[str, str], ...] = ()


BOUNDS = {
    # For `make test`: each contract once, in a few seconds. A second step begins as the first one
    # did, so one attempt shows that it begins at all.
    "quick": Bounds(
        attempts=(2, 1),
        epochs=2,
        plans=(("idempotent", "read_only"), ("opaque", "queryable")),
    ),
    # The first step: a request, then two more attempts, in every order of resend and refute. The
    # second: one attempt more, so that two refutes can each be followed by a request and a resend.
    # Two epochs give each relation that a trigger can see between two epochs (equal, earlier,
    # later), with the run's own epoch equal to the database's or behind it.
    "full": Bounds(attempts=(3, 4), epochs=2),
}
