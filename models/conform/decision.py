"""Whether a row is one that the shipped decision function can have asked for.

The situation is computed from the rows alone. What the process had just learnt is not in the
history, so a row is accepted if the function asks for it upon some news that its writer can have
had: what came of a call is known only in the epoch that made it. The stored reasons (`why`) are
held to the function too, and an operator's row to what evidence must say.

A row carries the reading at which it was drafted, a moment after the one it was decided at. So at
the very end of a key window, with a process stopped between the two, a right resend can be called a
finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import Append, News, Situation, decide
from models.conform.clock import bound_has_passed, window_is_open
from models.conform.path import Path
from models.conform.rows import Finding, Row
from models.graph.expected import SENDS

OF_A_CALL = frozenset({News.READY, News.REPLY, News.REFUSAL, News.REFUSAL_OF_KEY, News.FAILURE})
"""News that only the process has which made the request."""

Asked = tuple[str, str, str]
"""Event, actor and the reason that is stored with it."""


def decision_problems(path: Path, row: Row) -> Iterator[Finding]:
    """Yield why nobody can have decided on a row; `path` stands before it, and it can follow."""
    if row.step is None:
        if row.event == "ask_cancel" and not {"who", "why"} <= row.payload.keys():
            yield path.finding(row, "ask_cancel without who and why", "a person's name and reason")
        return
    if row.event in SENDS:
        yield from _other_send_before(path, row)
    if row.actor == "operator":
        yield from _evidence_problems(path, row)
        return
    asked = _asked_for(situation_of(path, row), own=path.facts.sent_in == row.epoch)
    why = "" if row.event in ("request", "acknowledge") else str(row.payload.get("why", ""))
    if (row.event, row.actor, why) not in asked:
        yield path.finding(row, _in_words(path, row, why), _legal(asked))


def situation_of(path: Path, row: Row) -> Situation:
    """Return the situation before a row, at the reading that it carries, without its news."""
    facts, terms = path.facts, path.step.terms
    return Situation(
        contract=Contract(path.step.contract),
        state=StepState(facts.state),
        run_state=RunState(path.run_state),
        news=News.NOTHING,
        attempts_left=path.run.attempts_max + facts.granted - facts.attempt > 0,
        window_open=_window_open(path, row),
        bound_passed=facts.suspended is not None
        and bound_has_passed(facts.suspended, row.stamp, _term(terms, "settles_within_ns")),
        earlier_unresolved=facts.unresolved > 1,
    )


def _window_open(path: Path, row: Row) -> bool:
    terms, first = path.step.terms, path.facts.first
    if first is None or "key_window_ns" not in terms:
        return True
    return window_is_open(
        first, row.stamp, _term(terms, "key_window_ns"), _term(terms, "lands_within_ns")
    )


def _term(terms: dict[str, object], name: str) -> int:
    value = terms.get(name, 0)
    return value if isinstance(value, int) else 0


@cache
def _asked_for(situation: Situation, *, own: bool) -> frozenset[Asked]:
    """Return the rows that the function asks for upon any news that the writer can have had."""
    return frozenset(
        (act.event.value, act.actor.value, "" if act.event == "acknowledge" else act.why.value)
        for news in News
        if own or news not in OF_A_CALL
        for act in decide(situation._replace(news=news))
        if isinstance(act, Append)
    )


def _in_words(path: Path, row: Row, why: str) -> str:
    given = situation_of(path, row)
    facts = [
        f"step {path.number} ({given.contract}) {given.state}",
        f"attempt {path.facts.attempt}, {'some' if given.attempts_left else 'none'} left",
        f"the key window {'open' if given.window_open else 'lapsed'}",
        f"the settle bound {'passed' if given.bound_passed else 'not passed'}",
        f"an earlier request {'unresolved' if given.earlier_unresolved else 'not open'}",
        f"sent in epoch {path.facts.sent_in}",
    ]
    reason = f" ({why})" if why else ""
    return f"{row.event} by {row.actor}{reason} in epoch {row.epoch} with {', '.join(facts)}"


def _legal(asked: frozenset[Asked]) -> str:
    names = [f"{event} by {actor}{f' ({why})' if why else ''}" for event, actor, why in asked]
    return ", ".join(sorted(names)) or "nothing: the runtime waits"


def _other_send_before(path: Path, row: Row) -> Iterator[Finding]:
    """Yield that a request carries another end of its window than its first request gives."""
    terms = path.step.terms
    if "key_window_ns" not in terms:
        return
    first = path.facts.first or row.stamp
    ends = first.wall_ns + _term(terms, "key_window_ns") - _term(terms, "lands_within_ns")
    if row.payload.get("send_before_ns") != ends:
        found = f"{row.event} to be sent before {row.payload.get('send_before_ns')}"
        yield path.finding(row, found, f"{ends}, counted from the first request")


# --- what a person wrote ------------------------------------------------------------------------


def _evidence_problems(path: Path, row: Row) -> Iterator[Finding]:
    given = row.payload.get("evidence")
    if not isinstance(given, dict):
        yield path.finding(row, f"{row.event} by operator without evidence", "evidence on record")
        return
    subject = {"run": path.run.id, "step": path.step.id, "key": path.step.key}
    for name, right in subject.items():
        if given.get(name) != right:
            yield path.finding(row, f"evidence about {name} {given.get(name)!r}", f"{right!r}")
    latest = path.facts.attempt
    legal = range(1 if row.event == "confirm" else latest, latest + 1)
    if given.get("attempt") not in legal:
        found = f"{row.event} upon evidence about attempt {given.get('attempt')}"
        yield path.finding(row, found, f"attempt {legal[0]} to {latest}")
    if row.event == "refute" and given.get("no_request_can_land") is not True:
        yield path.finding(row, "refute without no_request_can_land", "that nothing can still land")
    if row.event == "resend" and not _window_open(path, row):
        yield path.finding(
            row, "resend by operator past the key window", "confirm, refute or abandon"
        )
