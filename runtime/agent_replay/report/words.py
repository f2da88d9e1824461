"""How times, durations, texts and reasons look to a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from agent_replay.clock import NANOSECONDS
from agent_replay.contracts import Terms
from agent_replay.lifecycles.step import Contract
from agent_replay.recovery import Why
from agent_replay.values import Json

SHOWN_LENGTH_MAX: Final = 160
"""Characters of a result, an error or an evidence that a line shows; `export` has all of it."""

WHY: Final[Mapping[str, str]] = {
    Why.ANSWERED: "the tool answered",
    Why.DIED: "no answer was recorded: its process ended or the call was interrupted, "
    "so it is not known whether it happened",
    Why.RAISED: "the call ended in an error, which does not say whether it happened",
    Why.REFUSED: "the tool refused it and says that it had no effect",
    Why.REFUSED_AFTER_UNRESOLVED: "the tool refused the last attempt, "
    "but an earlier one was not answered and may have happened",
    Why.WINDOW_LAPSED: "the tool may have forgotten the key by now, "
    "so that sending it again could do it twice",
    Why.ATTEMPTS_USED_UP: "every attempt that it may have is used up, and none was answered",
    Why.CANCEL_ASKED: "a cancel was asked while its request was open",
    Why.NOT_SENT: "a cancel was asked before the call was begun, so it was not made",
    Why.PROBE_PRESENT: "the tool was asked and knows the key",
    Why.PROBE_ABSENT: "the tool was asked in time and does not know the key",
    Why.NONE: "",
    "evidence": "a person gave evidence",
}
"""A sentence for each reason that the history may hold."""

RECOVERY: Final[Mapping[Contract, str]] = {
    Contract.READ_ONLY: "resume asks again, since the call has no effects",
    Contract.IDEMPOTENT: "resume sends it again with the same key, "
    "if its attempts and its key window allow",
    Contract.QUERYABLE: "resume asks the tool for the key, "
    "and sends again only what did not happen",
    Contract.OPAQUE: "resume does not send it again, but pauses: then say what happened",
}
"""What a resume does with a request whose process has ended."""


def safe(text: str) -> str:
    """Return the text with everything escaped that does not print as itself.

    Control characters, marks that change the direction of writing, invisible ones and lone
    surrogates become `\\u` and four hex digits, or the short forms of JSON.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in text)


def bounded(text: str, length_max: int = SHOWN_LENGTH_MAX) -> str:
    """Return the beginning of a text, escaped, with its whole length if that is more."""
    if len(text) <= length_max:
        return safe(text)
    return f"{safe(text[:length_max])}... ({len(text)} characters)"


def shown_json(value: Json, length_max: int = SHOWN_LENGTH_MAX) -> str:
    """Return a JSON value on one line, bounded and escaped."""
    return bounded(json.dumps(value, ensure_ascii=False), length_max)


def detail_in_words(detail: Json) -> str:
    """Return what was recorded beside a reason: an error as it reads in Python, or any JSON."""
    if isinstance(detail, dict) and set(detail) == {"type", "message"}:
        return bounded(f"{detail['type']}: {detail['message']}")
    return shown_json(detail)


def why_in_words(why: str) -> str:
    """Return the sentence for a recorded reason; one that is not known is shown as it is."""
    return WHY.get(why, bounded(why))


def utc(wall_ns: int) -> str:
    """Return a moment as UTC, to the microsecond."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)
    except OverflowError:
        return f"{wall_ns} ns"
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc_of_seconds(seconds: float) -> str:
    """Return a moment in seconds since the epoch as UTC, to the microsecond."""
    return utc(round(seconds * NANOSECONDS))


def elapsed(since_ns: int, now_ns: int) -> str:
    """Return the time between two readings of a clock; it is never negative."""
    if now_ns < since_ns:
        return "clock went back"
    return f"+{(now_ns - since_ns) / NANOSECONDS:.3f}s"


def duration(length_ns: int) -> str:
    """Return a length of time in the largest unit that it fills without a rest."""
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if length_ns and length_ns % (seconds * NANOSECONDS) == 0:
            return f"{length_ns // (seconds * NANOSECONDS)} {unit}"
    return f"{length_ns / NANOSECONDS:g} s"


def terms_in_words(terms: Terms) -> str:
    """Return a contract with its terms: `idempotent, key window 1 d, lands within 30 s`."""
    words = [terms.contract.value]
    for name, length_ns in (
        ("key window", terms.key_window_ns),
        ("lands within", terms.lands_within_ns),
        ("settles within", terms.settles_within_ns),
    ):
        if length_ns is not None:
            words.append(f"{name} {duration(length_ns)}")
    if terms.contract is Contract.IDEMPOTENT and terms.key_window_ns is None:
        words.append("key window without end")
    return ", ".join(words)


def aligned(rows: Sequence[tuple[str, ...]], *, indent: str = "") -> list[str]:
    """Return rows as lines with their columns under one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines
