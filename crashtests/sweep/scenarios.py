"""Who is put through the sweep, and what each of them may leave unknown.

Both sides use this: whoever makes a report and whoever judges one. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

RUN = "run"
RECOVERY = "recovery"
RECOVERY_OF_RECOVERY = "recovery-of-recovery"
PATHS = (RUN, RECOVERY, RECOVERY_OF_RECOVERY)
"""What the killed process was doing: the first run, or the recovery after one kill, or after two.
"""

BLIND = ""
"""The contract of the baseline, which has none."""


class Scenario(NamedTuple):
    """An adapter under a supervisor.

    `subject` names the adapter, `contract` what it promises. With `late`, each process comes after
    the key window of the one before it has lapsed, and the provider has forgotten its keys. With
    `patient`, he comes again from the moment at which a probe's answer counts. With `creates`, the
    processes that are killed make the database, and open it for the first time, and do no more:
    that is the same for all contracts. In the other scenarios there is a database, and it is empty.
    """

    name: str
    subject: str
    contract: str
    late: bool = False
    patient: bool = False
    creates: bool = False
    steps: tuple[str, ...] = ("first",)
    paths: tuple[str, ...] = PATHS

    def may_be_unknown(self, effects: int) -> bool:
        """Say whether nobody can know the outcome of a request whose answer is not on record.

        `effects` is how many the step has had. False where the contract permits a resend, and where
        the probe has a conclusive answer: an effect that it finds, or none once the bound is
        passed.
        """
        if self.contract == "idempotent":
            return self.late
        if self.contract == "queryable":
            return not self.patient and effects == 0
        return self.contract == "opaque"


_TWO_STEPS = ("first", "second")
_TO_RECOVERY = (RUN, RECOVERY)

SCENARIOS = (
    Scenario("creation", "idempotent", "idempotent", creates=True, paths=_TO_RECOVERY),
    Scenario("read_only", "read_only", "read_only"),
    Scenario("idempotent", "idempotent", "idempotent"),
    Scenario(
        "idempotent-lapsed", "idempotent-windowed", "idempotent", late=True, paths=_TO_RECOVERY
    ),
    Scenario("queryable", "queryable-slow", "queryable", patient=True),
    Scenario("queryable-within", "queryable-slow", "queryable", paths=_TO_RECOVERY),
    Scenario("opaque", "opaque", "opaque"),
    *(
        Scenario(f"{name}-two-steps", name, name, steps=_TWO_STEPS, paths=_TO_RECOVERY)
        for name in ("idempotent", "opaque")
    ),
    Scenario("blind-retry", "opaque", BLIND, paths=_TO_RECOVERY),
)
"""The last one is the baseline: it keeps results, and makes what has none again."""

FULL = "full"
EACH = "each"
QUICK = "quick"
FORMS = (FULL, EACH, QUICK)
"""How much is swept.

The full form kills on all paths of a scenario. Of the kills that leave equal files one is recovered
from, since a process sees nothing else of what was before it. With `each` all of a first run's are:
that is what equal files promise, tried. The quick form kills in the first run only.
"""


def paths_of(scenario: Scenario, form: str) -> tuple[str, ...]:
    """Return on which paths processes are killed."""
    return scenario.paths[:1] if form == QUICK else scenario.paths
