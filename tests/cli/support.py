"""What the tests of the command share: a place with a database, and ways to run a command there."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import pytest

from agent_replay.cli import main
from agent_replay.report import commands
from tests.cli import tools

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(__file__).with_name("tools.py")
SECONDS_MAX = 60.0
"""No command and no wait here may take longer."""

CONTRACTS = {
    "quote": "read_only",
    "charge": "idempotent",
    "voucher": "idempotent",
    "book": "queryable",
    "parcel": "queryable",
    "mail": "opaque",
}
FILLED_IN = {
    commands.KIND: "mail log",
    commands.CONTENT: "two lines, one of them ours",
    commands.RESULT: '{"receipt": "by hand"}',
    commands.WHO: "ann",
    commands.REASON: "I have looked",
    commands.ADAPTERS: str(TOOLS),
}


Brief: TypeAlias = tuple[str, str]
"""A step: id and tool."""
Given: TypeAlias = tuple[str, str, Mapping[str, object]]
"""A step: id, tool and arguments."""


class Said(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON that it printed."""
        return json.loads(self.out)


class Process(subprocess.Popen[str]):
    """A process that a failing test does not wait for: a tool of it may hang for ever."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


class Place:
    """A folder with a database, a plan and the world outside."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.database = folder / "runs.db"
        self.world = folder / "world.jsonl"
        self._capture = capture

    def plan(self, *steps: Brief | Given) -> Path:
        """Write a plan of steps (id, tool, arguments) and return its path."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps({"plan": 1, "steps": [_step(*step) for step in steps]}))
        return path

    def run(self, *words: object) -> Said:
        """Run a command in this process."""
        self._capture.readouterr()
        code = main([str(word) for word in words])
        return Said(code, *self._capture.readouterr())

    def on(self, name: str, *words: object) -> Said:
        """Run a command on the database, in this process."""
        return self.run(name, *words, "--db", self.database)

    def start(self, run: str, plan: Path, *words: object) -> Said:
        """Run a plan, in this process."""
        return self.on("run", plan, "--run-id", run, "--adapters", TOOLS, *words)

    def spawn(self, *words: object, **settings: Any) -> Process:
        """Start a command in a process of its own."""
        given: dict[str, Any] = {
            "cwd": self.folder,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **settings,
        }
        return Process(
            [sys.executable, "-m", "agent_replay", *map(str, words)],
            env=environment(),
            text=True,
            **given,
        )

    def process(self, *words: object, **settings: Any) -> Said:
        """Run a command in a process of its own, to its end."""
        with self.spawn(*words, **settings) as process:
            return ended(process)

    def killed(self, run: str, *steps: Given) -> None:
        """Leave a run behind whose process was killed inside of a tool."""
        plan = self.plan(*steps)
        words = ("run", plan, "--run-id", run, "--db", self.database, "--adapters", TOOLS)
        assert self.process(*words).code == -9

    def effects(self, tool: str) -> int:
        """Return how many effects a tool has had."""
        return sum(effect["tool"] == tool for effect in tools.effects())

    def follow(self, argv: list[str], *, more: tuple[str, ...] = ()) -> Said:
        """Run a command as it was printed, with what only a person knows filled in."""
        assert argv[0] == "agent-replay"
        return self.run(*(FILLED_IN.get(word, word) for word in argv[1:]), *more)


def _step(step: str, tool: str, arguments: Mapping[str, object] | None = None) -> dict[str, object]:
    return {
        "id": step,
        "adapter": f"{tool}@1",
        "contract": CONTRACTS[tool],
        "arguments": dict(arguments or {}),
    }


def environment() -> dict[str, str]:
    """Return the environment of a process that runs this checkout's command."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "runtime")}


def ended(process: subprocess.Popen[str]) -> Said:
    """Return what a process said, after its end."""
    try:
        out, err = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    return Said(process.returncode, out or "", err or "")


def on_a_terminal(place: Place, *words: object) -> str:
    """Run a command whose standard error is a terminal, and return what is seen there."""
    controller, terminal = pty.openpty()
    with place.spawn(*words, stderr=terminal) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                part = os.read(controller, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        ended(process)
    os.close(controller)
    return seen.decode()


def changed(database: Path, statement: str) -> None:
    """Change a database as no runtime does, without the triggers that would refuse it."""
    for each in (
        "pragma writable_schema = on; delete from sqlite_schema where type = 'trigger'",
        statement,
    ):
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.executescript(each)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition, for a bounded time."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def printed_commands(text: str) -> list[list[str]]:
    """Return the commands that a text tells to type, as words."""
    return [
        shlex.split(line) for line in text.splitlines() if line.strip().startswith("agent-replay ")
    ]
