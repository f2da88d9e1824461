"""What came of a kill: the ledger of the tool against all that the runtime says.

Everything is computed from rows: the history, replayed through the spec's tables, and the effects
that the tool's own ledger counts. Standard library and `crashtests.independent` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from crashtests.independent import history
from crashtests.independent.lifecycle import Lifecycle
from crashtests.sweep.scenarios import Scenario

AT_REST = ("completed", "paused", "failed")
"""Where a run may be when its recovery has returned, if nobody asked for a cancel."""


class Came(NamedTuple):
    """Counts over the steps of a run, after the recovery that nobody disturbed.

    The first four must be 0 but for the baseline: more effects than one (S2), success without an
    effect (S3), steps that nobody takes up any more (S13, L1), and steps that are said not to have
    happened and had (S4). `avoidable` counts those of the unknown that the history, a resend or the
    probe would have settled (S10), and must be 0 too. After kills inside recovery they say the same
    of recovery (S14).
    """

    duplicates: int
    false_successes: int
    lost: int
    denied: int
    unknown: int
    avoidable: int

    @property
    def word(self) -> str:
        """Return what counts most of it, in a word."""
        wrong = ("duplicates", "false_successes", "lost", "denied", "avoidable", "unknown")
        return next((name for name in wrong if getattr(self, name)), "once")

    @property
    def is_wrong(self) -> bool:
        """Say whether something is not 0 that must be."""
        return any(getattr(self, name) for name in MUST_BE_ZERO)


WORDS = ("once", "unknown", "avoidable", "duplicates", "false_successes", "lost", "denied")
MUST_BE_ZERO = ("duplicates", "false_successes", "lost", "denied", "avoidable")


def came(scenario: Scenario, end: Mapping[str, Any], lifecycle: Lifecycle) -> Came:
    """Return what an end shows: `database` (rows or None), `effects` by step, and what was `said`.

    Raises `history.Impossible` if its history cannot be replayed.
    """
    effects: Sequence[int] = end["effects"]
    duplicates = sum(max(0, count - 1) for count in effects)
    if not scenario.contract:
        missing = sum(1 for count in effects if count == 0)
        return Came(duplicates, missing, 0, 0, 0, 0)
    database = end["database"]
    if database is None or not database["runs"]:
        return Came(duplicates, 0, len(scenario.steps), 0, 0, 0)
    ended = history.replay(database, database["runs"][0], lifecycle)
    false = lost = denied = unknown = avoidable = 0
    for number, (state, count) in enumerate(zip(ended.states, effects, strict=True), start=1):
        has_effect = scenario.contract != "read_only"
        false += state == "succeeded" and has_effect and count == 0
        denied += state in ("planned", "failed") and count > 0
        unknown += state == "in_doubt"
        avoidable += state == "in_doubt" and not scenario.may_be_unknown(count)
        lost += state == "requested" or (state == "planned" and _is_next(ended, number))
    lost += ended.run_state not in AT_REST
    return Came(duplicates, false, lost, denied, unknown, avoidable)


def _is_next(ended: history.End, number: int) -> bool:
    """Say whether nothing but this step keeps a run from going on: nobody has taken it up."""
    before = ended.states[: number - 1]
    return all(state == "succeeded" for state in before)


def complaints(scenario: Scenario, end: Mapping[str, Any], lifecycle: Lifecycle) -> Iterator[str]:
    """Yield what cannot be: rows that the runtime cannot have written, words that they belie."""
    if not scenario.contract:
        if end["said"]["state"] != "completed":
            yield f"said: {end['said']}"
        return
    yield from history.complaints(end["database"], lifecycle)
    if len(end["database"]["runs"]) != 1:
        yield "runs: there is not exactly one"
        return
    run = end["database"]["runs"][0]
    ended = history.replay(end["database"], run, lifecycle)
    words = history.words_of(ended, history.steps_of(end["database"], run))
    if end["said"] != words:
        yield f"said: {end['said']}, and the rows say {words}"
