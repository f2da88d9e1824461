"""A process that uses an effect store, for tests of processes at once and of deaths.

    child.py apply PATH KEY         waits for a line, then opens the store and applies
    child.py stop  PATH KEY NUMBER  stops right before that statement of `apply`, and says which

What it says is a line of JSON. It ends by itself before any test would wait for ever.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_replay.effects import EffectStore
from agent_replay.values import Json

LIFE_SECONDS_MAX = 60
CONTENT: dict[str, Json] = {"amount_cents": 8400, "currency": "EUR"}


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of a child."""
    return [sys.executable, __file__, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return an environment in which a child finds the package where the test found it."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start a child."""
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


# --- in the child -------------------------------------------------------------------------------


def say(message: object) -> None:
    print(json.dumps(message), flush=True)


def apply(path: str, key: str) -> None:
    say("ready")
    sys.stdin.readline()
    with EffectStore(path) as store:
        say(store.apply(key, "charge", CONTENT))


def stop(path: str, key: str, number: str) -> None:
    statements: list[str] = []

    def trace(statement: str) -> None:
        statements.append(statement)
        if len(statements) == int(number):
            say(" ".join(statement.split()[:3]))
            sys.stdin.read()  # until it is killed

    with EffectStore(path) as store:
        store._connection.set_trace_callback(trace)
        receipt = store.apply(key, "charge", CONTENT)
        store._connection.set_trace_callback(None)
        say(receipt)
        sys.stdin.read()


def main(arguments: Sequence[str]) -> None:
    signal.alarm(LIFE_SECONDS_MAX)
    if arguments[0] == "apply":
        apply(*arguments[1:])
    else:
        stop(*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
