"""Adapters over a plain file, which is the world outside of these tests.

`do` in the arguments of a step says what its tool does at each attempt, the last word for all
further ones: {"do": ["lose", "answer"]} has its effect and loses the reply, then answers. The file
has a line for each effect. The environment names it, since the command loads the adapters.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from agent_replay import (
    Absent,
    Found,
    Json,
    Request,
    ToolRejected,
    adapter,
    idempotent,
    queryable,
    read_only,
)

WORLD = "TOOLS_WORLD"
SETTLES_SECONDS = 0.001


WAIT_SECONDS = 60


def gate() -> Path:
    """Return the file that lets go what waits."""
    return Path(f"{os.environ[WORLD]}.go")


def effects() -> list[dict[str, Any]]:
    """Return every effect that the tools have had."""
    world = Path(os.environ[WORLD])
    return [json.loads(line) for line in world.read_text().splitlines()] if world.exists() else []


def _effect(request: Request, tool: str) -> Json:
    receipt = {"tool": tool, "key": request.key, "attempt": request.attempt}
    with Path(os.environ[WORLD]).open("a") as world:
        world.write(json.dumps(receipt) + "\n")
    return {"receipt": f"{tool}-{request.key[:8]}"}


def _known(request: Request) -> Found | Absent:
    for effect in effects():
        if effect["key"] == request.key:
            return Found({"receipt": f"{effect['tool']}-{request.key[:8]}"})
    return Absent()


def _word(request: Request) -> str:
    assert isinstance(request.arguments, dict)
    words = request.arguments.get("do", ["answer"])
    assert isinstance(words, list)
    return str(words[min(request.attempt, len(words)) - 1])


def _act(request: Request, tool: str, *, once: bool = False) -> Json:
    """Do what the arguments say; with `once`, a key that is known has no second effect."""
    word = _word(request)
    if word == "refuse":
        raise ToolRejected("the account is closed")
    if word == "fail":
        raise ConnectionError("the line was cut before the request left")
    known = _known(request) if once else Absent()
    result = known.result if isinstance(known, Found) else _effect(request, tool)
    if word in INSTEAD:
        INSTEAD[word]()
    return RESULTS.get(word, result)


def _lose() -> NoReturn:
    raise ConnectionError("the reply was lost")


def _hang() -> NoReturn:
    while True:
        signal.pause()


def _wait() -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not gate().exists() and time.monotonic() < deadline:
        time.sleep(0.01)


INSTEAD: dict[str, Callable[[], object]] = {
    "lose": _lose,
    "hang": _hang,
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leave": lambda: sys.exit(3),
    "wait": _wait,
    "print": lambda: print("noise of the tool"),
}
"""What happens after the effect, before there is a reply."""

RESULTS: dict[str, Any] = {
    "odd": {1, 2},
    "long": "x" * 100_000,
    "steer": "\x1b[31mred\u202egnp.\u2028",
}


@adapter(contract=read_only())
def quote(request: Request) -> Json:
    return _act(request, "quote")


@adapter(contract=idempotent())
def charge(request: Request) -> Json:
    return _act(request, "charge", once=True)


@adapter(contract=idempotent(key_window=86_400, lands_within=3_600))
def voucher(request: Request) -> Json:
    return _act(request, "voucher", once=True)


@adapter(contract=queryable(settles_within=SETTLES_SECONDS), probe=_known)
def book(request: Request) -> Json:
    return _act(request, "book")


@adapter(contract=queryable(settles_within=86_400), probe=_known)
def parcel(request: Request) -> Json:
    return _act(request, "parcel")


@adapter
def mail(request: Request) -> Json:
    return _act(request, "mail")
