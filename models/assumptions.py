"""What breaks where an assumption does not hold.

Each assumption is a switch of the model. With one of them off, exactly those invariants break that
name it in spec/invariants.toml, and the others still hold: a test compares both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from models.bounds import OPAQUE, QUERYABLE, TINY, Bounds
from models.build import build
from models.engines.search import Violation, search
from models.language.python import Compiled, compiled
from models.world.state import A5, ASSUMPTIONS, Setting

Broken = dict[str, tuple[Compiled, Violation]]
"""By invariant: the model in which it breaks with the fewest events, and how."""


def bounds_without(assumption: str, *, whole: bool = False) -> tuple[Bounds, ...]:
    """Return the bounds in which an assumption is switched off.

    Without A5 two processes drive the run; that has many states, so an idempotent step and a second
    attempt are looked at only where the `whole` is asked for.
    """
    if assumption != A5:
        return tuple(replace(bounds, faults_max=0) for bounds in TINY)
    twice = tuple(replace(bounds, workers=2, faults_max=0) for bounds in TINY)
    if whole:
        return twice
    return tuple(
        replace(one, attempts_max=1) for one in twice if one.steps[0] in (QUERYABLE, OPAQUE)
    )


@cache
def broken_without(assumption: str, *, whole: bool = False) -> Broken:
    """Return the invariants that break without an assumption, each with its shortest story."""
    broken: Broken = {}
    for bounds in bounds_without(assumption, whole=whole):
        setting = Setting(bounds=bounds, assumptions=ASSUMPTIONS - {assumption})
        program = compiled(build(setting))
        found = search(program, goes_on=True)
        assert found.complete, "without an assumption every state must be looked at as well"
        for name, violation in found.violations.items():
            before = broken.get(name)
            if before is None or len(violation.commands) < len(before[1].commands):
                broken[name] = program, violation
    return broken
