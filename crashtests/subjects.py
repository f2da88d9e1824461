"""What is put through the harness: adapters by import path, and functions that count their effects.

The effect store is the first customer, not a special one: a subject is any adapter that `adapter`
names as `module:name`, and any function `counts`, named the same way, that returns the number of
effects for a key, given the folder that the adapter works in. The harness wraps the adapter from
outside.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from agent_replay import (
    Absent,
    Adapter,
    Found,
    Json,
    Request,
    adapter,
    idempotent,
    opaque,
    queryable,
    read_only,
)
from agent_replay.effects import EffectStore

FOLDER_VARIABLE = "CRASHTESTS_FOLDER"
LEDGER = "effects.db"
SHORT_SECONDS = 0.05
LONG_SECONDS = 3600


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
