"""How far the random search goes: the profiles.

quick     the same examples each time, for every change
ci        seeds that are given, many examples each, for what must be met at least
nightly   seeds of its own, as long as it is let (see `fuzz`)
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import ExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful import machine

STEPS_MAX = 30

Record = Callable[[str, object], None]
"""What pytest's `record_property` is."""

QUICK = settings(
    max_examples=60,
    stateful_step_count=STEPS_MAX,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=False,
    phases=[Phase.explicit, Phase.generate],  # shrinking may take minutes; the nightly search does
    suppress_health_check=list(HealthCheck),
)
CI = settings(QUICK, max_examples=300, derandomize=False)


def nightly(database: ExampleDatabase, examples: int) -> settings:
    """Return the settings of a round of the nightly search, which replays what failed before."""
    return settings(
        CI, max_examples=examples, database=database, phases=list(Phase), print_blob=True
    )


def search(profile: settings, seed: int | None = None) -> Counter[str]:
    """Run the search, raise what it finds, and return what was reached."""
    machine.REACHED.clear()

    class Seeded(machine.StatefulRuntime):
        """A class of its own for each search: its seed is an attribute."""

    if seed is not None:
        Seeded._hypothesis_internal_use_seed = seed
    with quiet():
        run_state_machine_as_test(Seeded, settings=profile)
    return Counter(machine.REACHED)


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing: the tools lose thousands of replies, and each is a warning."""
    logger = logging.getLogger("agent_replay")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
