"""The three tools of an order, one for each promise that a tool can make.

    agent-replay run plan.json --run-id order-42 --db runs.db --adapters tools.py

They keep their files in the folder that ORDER_FOLDER names, or else in the current one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from agent_replay import Json, Request, ToolRejected, adapter, idempotent, opaque, read_only
from agent_replay.effects import EffectStore


def folder() -> Path:
    """Return where the tools keep their files."""
    return Path(os.environ.get("ORDER_FOLDER", "."))


@adapter(contract=read_only())
def quote(request: Request) -> Json:
    """Say what the order costs. It only computes: asking again changes nothing."""
    match request.arguments:
        case {"count": int(count), "price_cents": int(price_cents)}:
            return {"total_cents": count * price_cents}
        case _:
            raise ToolRejected("a quote needs count and price_cents")


@adapter(contract=idempotent())
def charge(request: Request) -> Json:
    """Charge the customer. The provider knows a key again and answers with its first receipt."""
    with EffectStore(folder() / "effects.db") as provider:
        receipt = provider.apply(request.key, "charge", request.arguments)
    return {"receipt": receipt.number}


@adapter(contract=opaque())
def notify(request: Request) -> Json:
    """Tell the customer, once for each call. Nobody can ask later whether it was done."""
    with open(folder() / "notifications.txt", "a", encoding="utf-8") as sent:
        sent.write(f"{request.run} {request.key} {json.dumps(request.arguments)}\n")
        sent.flush()
        os.fsync(sent.fileno())
    return {"notified": True}
