"""Contracts: what a tool promises about repeating a call, with the terms of the promise.

A contract is a promise of the tool that nothing here can verify. The default, `opaque`, promises
nothing. Terms are durations; they are given in seconds or as a timedelta, and kept in nanoseconds.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from agent_replay.clock import NANOSECONDS
from agent_replay.errors import InvalidInput
from agent_replay.lifecycles.step import Contract
from agent_replay.values import Json

if TYPE_CHECKING:
    from datetime import timedelta

FOREVER = None
"""A key window without end."""
DURATION_SECONDS_MAX = 10 * 365 * 86_400


class Terms(NamedTuple):
    """A contract with its terms; durations in nanoseconds, None where a term does not apply."""

    contract: Contract
    key_window_ns: int | None = None
    lands_within_ns: int | None = None
    settles_within_ns: int | None = None

    def pinned(self) -> dict[str, Json]:
        """Return the terms as the JSON object that a run pins."""
        terms: dict[str, Json] = {"contract": self.contract.value}
        for name in ("key_window_ns", "lands_within_ns", "settles_within_ns"):
            value = getattr(self, name)
            if value is not None:
                terms[name] = value
        return terms

    @classmethod
    def of(cls, pinned: Json) -> "Terms":
        """Return the terms that a run has pinned; raises KeyError, TypeError or ValueError."""
        if not isinstance(pinned, dict):
            raise TypeError(f"terms are an object, not {pinned!r}")
        contract = Contract(str(pinned["contract"]))
        durations: dict[str, int] = {}
        for name in ("key_window_ns", "lands_within_ns", "settles_within_ns"):
            value = pinned.get(name, 0)
            if type(value) is not int or value < 0:
                raise TypeError(f"{name} is a number of nanoseconds, not {value!r}")
            if name in pinned:
                durations[name] = value
        return cls(contract, **durations)


def read_only() -> Terms:
    """Return the contract of a tool without effects: it may be asked again at any time."""
    return Terms(Contract.READ_ONLY)


def idempotent(
    *,
    key_window: "float | timedelta | None" = FOREVER,
    lands_within: "float | timedelta | None" = None,
) -> Terms:
    """Return the contract of a tool that treats every arrival of a key as one request.

    It does so within `key_window` of the key's first arrival, and a request lands within
    `lands_within` of leaving, or never. Both in seconds, or as a timedelta.
    """
    if key_window is None:
        if lands_within is not None:
            raise InvalidInput(
                "idempotent: lands_within has no meaning without a key_window; drop it"
            )
        return Terms(Contract.IDEMPOTENT)
    if lands_within is None:
        raise InvalidInput(
            "idempotent: a key_window needs lands_within, the time a request may be under way"
        )
    window_ns = _nanoseconds("key_window", key_window)
    lands_ns = _nanoseconds("lands_within", lands_within)
    if window_ns <= lands_ns:
        raise InvalidInput(
            "idempotent: key_window must be longer than lands_within, or nothing can be sent"
        )
    return Terms(Contract.IDEMPOTENT, key_window_ns=window_ns, lands_within_ns=lands_ns)


def queryable(*, settles_within: "float | timedelta") -> Terms:
    """Return the contract of a tool whose probe looks a key up.

    Once a call has returned, raised or lost its process, whatever it sent lands within
    `settles_within` (seconds, or a timedelta), or never.
    """
    return Terms(
        Contract.QUERYABLE, settles_within_ns=_nanoseconds("settles_within", settles_within)
    )


def opaque() -> Terms:
    """Return the contract of a tool that promises nothing."""
    return Terms(Contract.OPAQUE)


def _nanoseconds(name: str, duration: "float | timedelta") -> int:
    total = duration if isinstance(duration, (int, float)) else duration.total_seconds()
    if (
        isinstance(duration, bool)
        or not math.isfinite(total)
        or not 0 < total <= DURATION_SECONDS_MAX
    ):
        raise InvalidInput(
            f"{name}: {duration!r} is not a duration; give seconds above 0, at most ten years"
        )
    return round(total * NANOSECONDS)
