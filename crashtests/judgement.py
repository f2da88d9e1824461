"""What the evidence of a case says came out, and what in it cannot be.

Everything is computed from rows: the history of the runtime, replayed through the spec's tables,
and the ledger of the tool. What the runtime said of itself is compared with that and decides
nothing. Standard library and `crashtests.independent` only.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crashtests import cases
from crashtests.cases import Case
from crashtests.independent import history
from crashtests.independent.lifecycle import Lifecycle

Evidence = Mapping[str, Any]

KILLED = -9
BASELINE_KEY = "baseline"
KINDS = {"idempotent": "charge", "read_only": ""}
DEED = "notify"

CASE_FIELDS = {
    *("case", "subject", "effects", "outcome", "why", "key"),
    *("kills", "finishes", "database", "ledger", "digest"),
}
KILL_FIELDS = {"checkpoint", "handshake", "pid", "termination", "database", "ledger"}
FINISH_FIELDS = {"act", "pid", "termination", "outcome"}

WHY = {
    cases.RESUMED: "the request was durable and nothing had happened: it was sent again",
    cases.RECOVERED: "the tool knew the key and gave the receipt of the first attempt",
    cases.REPLAYED: "the result was durable: it was returned, and no tool was called",
    cases.UNRESOLVED: "it is not known whether the tool acted, and no promise allows another try",
    cases.RECONCILED: (
        "it was not known whether the tool acted, until the ledger was looked at, "
        "by automated inspection, without human review"
    ),
    cases.DUPLICATE: "nothing remembered the first attempt, so it was made again",
    cases.COMPLETED: "nothing was killed",
    cases.FOUND: "the probe found the key, with its result",
    cases.REQUESTED_AGAIN: "the probe did not know the key after the bound, so nothing could land",
    cases.ASKED_AGAIN: "asking has no effect, so it was asked again",
}


def digest_of(record: Evidence) -> str:
    """Return the SHA-256 of a record without its own digest, over JSON with sorted keys."""
    rest = {name: value for name, value in record.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def effects_in(ledger: Evidence, key: str) -> int:
    """Return how many effects a ledger holds for a key."""
    return sum(1 for effect in ledger["effects"] if effect["key"] == key)


def outcome_of(evidence: Evidence, lifecycle: Lifecycle) -> str:
    """Return in the words of the matrix what came out, from the rows alone."""
    database, ledger, key = evidence["database"], evidence["ledger"], evidence["key"]
    effects = effects_in(ledger, key)
    if database is None:
        return cases.DUPLICATE if effects > 1 else cases.COMPLETED
    end = history.replay(database, database["runs"][0], lifecycle)
    if end.run_state == "paused":
        return cases.UNRESOLVED
    if end.run_state != "completed":
        return f"ended as {end.run_state}"
    if not evidence["kills"]:
        return cases.COMPLETED
    return _recovered(evidence, database, key)


def _recovered(evidence: Evidence, database: Evidence, key: str) -> str:
    """Return how a run that was killed came to its end."""
    first = evidence["kills"][0]
    moves = {(event["event"], event["actor"]) for event in database["events"]}
    if first["database"]["events"] == database["events"]:
        return cases.REPLAYED
    if ("confirm", "operator") in moves:
        return cases.RECONCILED
    if ("confirm", "probe") in moves:
        return cases.FOUND
    if ("refute", "probe") in moves:
        return cases.REQUESTED_AGAIN
    if database["steps"][0]["contract"] == "read_only":
        return cases.ASKED_AGAIN
    return cases.RECOVERED if effects_in(first["ledger"], key) else cases.RESUMED


# --- what cannot be -----------------------------------------------------------------------------


def complaints(evidence: Evidence, case: Case, lifecycle: Lifecycle) -> Iterator[str]:
    """Yield what is wrong with the evidence of a case; nothing if it shows what it says."""
    yield from _fields(evidence)
    yield from _types(evidence)
    yield from _kills(evidence, case)
    yield from _stages(evidence, lifecycle)
    yield from _ledger(evidence, case)
    yield from _finishes(evidence, case, lifecycle)
    yield from _verdict(evidence, case, lifecycle)
    if digest_of(evidence) != evidence["digest"]:
        yield "digest: something in this case was changed"


def _fields(evidence: Evidence) -> Iterator[str]:
    for name, found, known in (
        ("the case", [evidence], CASE_FIELDS),
        ("kills", evidence["kills"], KILL_FIELDS),
        ("finishes", evidence["finishes"], FINISH_FIELDS),
    ):
        for record in found:
            for field in sorted(record.keys() ^ known):
                yield f"{name}: the field {field!r} is {'missing' if field in known else 'foreign'}"


def _types(value: Any, place: str = "the case") -> Iterator[str]:
    """Yield each leaf that is no text, no integer and not null: for Python 1, 1.0 and true are
    equal.
    """
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _types(item, f"{place}.{name}")
    elif type(value) not in (int, str, type(None)):
        yield f"{place}: {value!r} is of a type that no row has"


def _kills(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield what is wrong with the kills: each must have been reached, and by SIGKILL."""
    for field, expected in (("case", case.name), ("subject", case.subject)):
        if evidence[field] != expected:
            yield f"{field}: {evidence[field]!r} instead of {expected!r}"
    found = tuple(kill["checkpoint"] for kill in evidence["kills"])
    if found != case.kills:
        yield f"kills: at {found}, and {case.kills} was to be"
    if len(evidence["finishes"]) != 1 + case.reconciles:
        yield f"finishes: {len(evidence['finishes'])} workers finished"
    pids = [record["pid"] for record in (*evidence["kills"], *evidence["finishes"])]
    if len(set(pids)) != len(pids) or any(type(pid) is not int or pid < 1 for pid in pids):
        yield f"pid: the workers were not all different processes: {pids}"
    for number, kill in enumerate(evidence["kills"]):
        for problem in _kill(kill, evidence["key"], case):
            yield f"kills[{number}]{problem}"


def _kill(kill: Evidence, key: str, case: Case) -> Iterator[str]:
    """Yield what is wrong with one kill."""
    if kill["termination"] != KILLED:
        yield f".termination: {kill['termination']} is not the end by SIGKILL"
    announced = {"checkpoint": kill["checkpoint"], "pid": kill["pid"]}
    try:
        expected = {**announced, **_announcement(kill, key, case)}
    except history.Impossible as problem:
        yield f": {problem}"
        return
    if kill["handshake"] != expected:
        yield f".handshake: it says {dict(kill['handshake'])}, the rows {expected}"
    effects = effects_in(kill["ledger"], key)
    if kill["checkpoint"] == cases.AFTER_REQUEST and effects:
        yield ": the tool had been called already"
    if kill["checkpoint"] == cases.AFTER_EFFECT and not effects and case.subject != "read_only":
        yield ": the tool had not been called yet"


def _announcement(kill: Evidence, key: str, case: Case) -> dict[str, Any]:
    """Return what the worker must have announced, going by the rows that it left.

    Raises `Impossible` if the rows show that its checkpoint had not been reached.
    """
    if kill["database"] is None:
        if case.subject != "baseline":
            raise history.Impossible("there is no history")
        return {"attempt": 1, "key": BASELINE_KEY}
    events, checkpoint = kill["database"]["events"], kill["checkpoint"]
    if checkpoint in (cases.AFTER_REQUEST, cases.AFTER_EFFECT):
        if events[-1]["state"] != "requested":
            raise history.Impossible("the history does not end with an open request")
        return {"attempt": events[-1]["attempt"], "key": key}
    if checkpoint == cases.IN_RECOVERY and kill["handshake"].get("event") == "outcome":
        return {"event": "outcome"}
    named = [row for row in events if row["seq"] == kill["handshake"].get("seq")]
    acknowledges = checkpoint == cases.AFTER_ACKNOWLEDGEMENT
    if not named or (acknowledges and named[0]["event"] != "acknowledge"):
        raise history.Impossible("the handshake names no row that was to be reached")
    return {name: named[0][name] for name in ("attempt", "seq", "event")}


def _stages(evidence: Evidence, lifecycle: Lifecycle) -> Iterator[str]:
    """Yield what is wrong with the rows of each stage, and between one stage and the next."""
    stages = [(f"kills[{n}]", kill) for n, kill in enumerate(evidence["kills"])]
    stages.append(("the end", evidence))
    for place, stage in stages:
        if (stage["database"] is None) != (evidence["subject"] == "baseline"):
            yield f"{place}: a history is {'missing' if stage['database'] is None else 'foreign'}"
            return
        if stage["database"] is not None:
            for problem in _stage(stage["database"], evidence["key"], lifecycle):
                yield f"{place}, history: {problem}"
    for (earlier, before), (later, after) in itertools.pairwise(stages):
        if before["database"] is not None and not _extends(before["database"], after["database"]):
            yield f"{earlier} to {later}: the history was not only added to"
        kept = after["ledger"]["effects"][: len(before["ledger"]["effects"])]
        if kept != before["ledger"]["effects"]:
            yield f"{earlier} to {later}, ledger: the effects were not only added to"


def _stage(database: Evidence, key: str, lifecycle: Lifecycle) -> Iterator[str]:
    """Yield what is wrong with the rows of one stage."""
    if [chain["name"] for chain in database["chains"]] != ["archived", "runs", "writers"]:
        yield "the chains are not those of runs, writers and archived runs"
    yield from history.complaints(database, lifecycle)
    if len(database["runs"]) != 1 or len(database["steps"]) != 1:
        yield "it is of another plan"
    elif database["steps"][0]["key"] != key:
        yield "it is about another key"


def _extends(before: Evidence, after: Evidence) -> bool:
    """Return whether every row of one history stands in the other, in the same place."""
    tables = ("writers", "runs", "steps", "events")
    kept = [after[table][: len(before[table])] == before[table] for table in tables]
    return all([before["identity"] == after["identity"], *kept])


def _ledger(evidence: Evidence, case: Case) -> Iterator[str]:
    """Yield what is wrong with the ledger: its rows must be those of the calls that were made."""
    kind = KINDS.get(case.subject, DEED)
    ledger, key = evidence["ledger"], evidence["key"]
    stages = [kill["ledger"] for kill in evidence["kills"]] + [ledger]
    for number, stage in enumerate(stages):
        content = _arguments(evidence)
        for at, effect in enumerate(stage["effects"], start=1):
            if effect != {"number": at, "key": key, "kind": kind, "content": content}:
                yield f"ledger {number}, effect {at}: it is not of this case's call"
        expected = _receipts(evidence, case, number, stage)
        if stage["receipts"] != expected:
            yield f"ledger {number}, receipts: {stage['receipts']}, and {expected} was to be"
        if stage.keys() != {"effects", "receipts"}:
            yield f"ledger {number}: other tables than effects and receipts"


def _arguments(evidence: Evidence) -> str:
    if evidence["database"] is None:
        return '{"cents":1200}'
    return str(evidence["database"]["steps"][0]["arguments"])


def _receipts(evidence: Evidence, case: Case, number: int, stage: Evidence) -> list[dict[str, Any]]:
    """Return the receipts that a stage must have: one for the key, with each arrival counted."""
    if not stage["effects"]:
        return []
    arrivals = len(stage["effects"])
    if case.subject == "idempotent":
        stages = [*evidence["kills"], evidence]
        sends = [e for e in stages[number]["database"]["events"] if e["event"] in history.SENDS]
        unsent = sum(1 for kill in evidence["kills"][: number + 1] if _was_not_sent(kill))
        arrivals = len(sends) - unsent
    return [{"key": evidence["key"], "effect": 1, "arrivals": arrivals}]


def _was_not_sent(kill: Evidence) -> bool:
    """Return whether the request that was open at a kill had not reached the tool."""
    if kill["checkpoint"] == cases.AFTER_REQUEST:
        return True
    events: Sequence[Evidence] = kill["database"]["events"]
    is_open = bool(events[-1]["state"] == "requested")
    return kill["checkpoint"] == cases.IN_RECOVERY and is_open


def _finishes(evidence: Evidence, case: Case, lifecycle: Lifecycle) -> Iterator[str]:
    """Yield where what the runtime said differs from the rows."""
    acts = ["resume" if case.kills and case.subject != "baseline" else "run"]
    acts += ["reconcile"] * case.reconciles
    for number, (finish, act) in enumerate(zip(evidence["finishes"], acts, strict=False)):
        if finish["act"] != act or finish["termination"] != 0:
            yield f"finishes[{number}]: {finish['act']} ended with {finish['termination']}"
    said = evidence["finishes"][-1]["outcome"]
    if evidence["database"] is None:
        if said != {"state": "completed"}:
            yield f"finishes: the baseline said {said}"
        return
    run = evidence["database"]["runs"][0]
    for number, finish in enumerate(evidence["finishes"]):
        database = evidence["database"]
        if (
            number < len(evidence["finishes"]) - 1
        ):  # what the reconciliation added was not there yet
            events = [e for e in database["events"] if e["actor"] != "operator"]
            last = len(events) - (events[-1]["event"] == "adopt")
            database = {**database, "events": events[:last]}
        end = history.replay(database, run, lifecycle)
        words = history.words_of(end, history.steps_of(database, run))
        if finish["outcome"] != words:
            yield f"finishes[{number}].outcome: the rows say {words}"


def _verdict(evidence: Evidence, case: Case, lifecycle: Lifecycle) -> Iterator[str]:
    """Yield where what came out is not what the report says, or not what must come out."""
    try:
        outcome = outcome_of(evidence, lifecycle)
    except history.Impossible as problem:
        yield f"outcome: the history cannot be replayed: {problem}"
        return
    effects = effects_in(evidence["ledger"], evidence["key"])
    if (effects, outcome) != (case.effects, case.outcome):
        yield f"outcome: {effects} effects, {outcome}; to be {case.effects}, {case.outcome}"
    if (evidence["effects"], evidence["outcome"]) != (effects, outcome):
        yield f"outcome: stated are {evidence['effects']} effects, {evidence['outcome']}"
    if evidence["why"] != WHY.get(outcome):
        yield f"why: {evidence['why']!r} is not the reason of this outcome"
