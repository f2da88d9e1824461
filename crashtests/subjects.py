"""What is put through the harness: adapters by import path, and functions that count their effects.

The effect store is the first customer, not a special one: a subject is any adapter that `adapter`
names as `module:name`, and any function `counts`, named the same way, that returns the number of
effects for a key, given the folder that the adapter works in. The harness wraps the adapter from
outside.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_replay import (
    Absent,
    Adapter,
    Found,
    Json,
    Outcome,
    Request,
    adapter,
    idempotent,
    opaque,
    queryable,
    read_only,
)
from agent_replay.effects import EffectStore
from agent_replay.lifecycles.step import Contract
from agent_replay.machine import run_lifecycle, step_lifecycle

FOLDER_VARIABLE = "CRASHTESTS_FOLDER"
FORGETS_VARIABLE = "CRASHTESTS_FORGETS"
"""Not empty: the key window has lapsed, and the provider knows no key of before."""
LEDGER = "effects.db"
DATABASE = "runs.db"
RUN = "case"
SHORT_SECONDS = 0.05
LONG_SECONDS = 3600
WINDOW_SECONDS = 600
LANDS_SECONDS = 60


class Subject(NamedTuple):
    """An adapter and its witness, both by import path."""

    adapter: str
    counts: str
    arguments: Json


def _store() -> EffectStore:
    return EffectStore(Path(os.environ[FOLDER_VARIABLE]) / LEDGER)


@adapter(name="charge", contract=idempotent())
def charge(request: Request) -> Json:
    """Charge once for a key."""
    with _store() as store:
        return {"receipt": store.apply(request.key, "charge", request.arguments).number}


@adapter(
    name="charge-for-a-while",
    contract=idempotent(key_window=WINDOW_SECONDS, lands_within=LANDS_SECONDS),
)
def charge_for_a_while(request: Request) -> Json:
    """Charge once for a key inside its window, and again when it has been forgotten."""
    return notify(request) if os.environ.get(FORGETS_VARIABLE) else charge(request)


@adapter(name="notify", contract=opaque())
def notify(request: Request) -> Json:
    """Notify each time that it is asked."""
    with _store() as store:
        return {"receipt": store.apply_blindly(request.key, "notify", request.arguments).number}


def look_up(request: Request) -> Found | Absent:
    """Return the first effect of a key."""
    with _store() as store:
        receipt = store.look_up(request.key)
    return Absent() if receipt is None else Found({"receipt": receipt.number})


@adapter(name="order", contract=queryable(settles_within=SHORT_SECONDS), probe=look_up)
def order(request: Request) -> Json:
    """Order each time that it is asked, from a shop that can be asked and settles quickly."""
    return notify(request)


@adapter(name="order-slowly", contract=queryable(settles_within=LONG_SECONDS), probe=look_up)
def order_slowly(request: Request) -> Json:
    """Order each time that it is asked, from a shop that can be asked and settles slowly."""
    return notify(request)


@adapter(name="quote", contract=read_only())
def quote(request: Request) -> Json:
    """Return a price, without any effect."""
    return {"cents": 1200}


def count_in_ledger(folder: str, key: str) -> int:
    """Return how many effects the ledger holds for a key."""
    path = Path(folder) / LEDGER
    if not path.exists():
        return 0
    with EffectStore(path) as store:
        return store.count(key)


_COUNTS = "crashtests.subjects:count_in_ledger"
_ARGUMENTS: Json = {"cents": 1200}

SUBJECTS = {
    "idempotent": Subject("crashtests.subjects:charge", _COUNTS, _ARGUMENTS),
    "idempotent-windowed": Subject("crashtests.subjects:charge_for_a_while", _COUNTS, _ARGUMENTS),
    "opaque": Subject("crashtests.subjects:notify", _COUNTS, _ARGUMENTS),
    "queryable": Subject("crashtests.subjects:order", _COUNTS, _ARGUMENTS),
    "queryable-slow": Subject("crashtests.subjects:order_slowly", _COUNTS, _ARGUMENTS),
    "read_only": Subject("crashtests.subjects:quote", _COUNTS, _ARGUMENTS),
}


def named(path: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def adapter_of(subject: Subject) -> Adapter:
    """Return the adapter of a subject."""
    found = named(subject.adapter)
    if not isinstance(found, Adapter):
        raise TypeError(f"{subject.adapter} is not an adapter")
    return found


# --- how a subject is put through the harness ---------------------------------------------------


def plan(subject: Subject, steps: Sequence[str]) -> dict[str, Json]:
    """Return a plan whose steps all call the subject's adapter."""
    adapter = adapter_of(subject)
    return {
        "plan": 1,
        "steps": [
            {
                "id": step,
                "adapter": adapter.identity,
                "contract": adapter.terms.contract.value,
                "arguments": subject.arguments,
            }
            for step in steps
        ],
    }


def watched(inner: Adapter, reach: Callable[[str, Request], None]) -> Adapter:
    """Return the adapter, of the same identity, with somebody who is told around each call.

    The places are "call" and "reply", and around its probe "probe" and "answer".
    """

    def call(request: Request) -> Json:
        reach("call", request)
        result = inner.call(request)
        reach("reply", request)
        return result

    def probe(request: Request) -> Found | Absent:
        assert inner.probe is not None, "else there is no probe"
        reach("probe", request)
        answer = inner.probe(request)
        reach("answer", request)
        return answer

    outer = Adapter(
        call,
        name=inner.name,
        version=inner.version,
        terms=inner.terms,
        probe=None if inner.probe is None else probe,
    )
    outer.source = inner.source
    return outer


def described(outcome: Outcome) -> dict[str, Json]:
    """Return what the runtime says that the run came to."""
    return {
        "state": outcome.state.value,
        "results": {step: outcome.results[step] for step in outcome.results},
        "in_doubt": [
            {"step": doubt.step, "attempt": doubt.attempt, "key": doubt.key, "why": doubt.why}
            for doubt in outcome.in_doubt
        ],
    }


def warm_up() -> None:
    """Make what the runtime makes when it is first needed, so that forks need not make it anew."""
    run_lifecycle()
    for contract in Contract:
        step_lifecycle(contract)
