"""An environment for each peer, made from pinned versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import Say
from crashtests.sources import ROOT

PINS = Path(__file__).parent / "pins"
PLACE = ROOT / ".venv-peers"
SECONDS_MAX = 600


class Peer(NamedTuple):
    """A contender, and the package that it is."""

    name: str
    package: str
    pins: str


PEERS = (
    Peer("agent-once", "agent-once", "agent-once"),
    Peer("agent-outbox", "agent-outbox", "agent-outbox"),
    Peer("langgraph", "langgraph", "langgraph"),
    Peer("langgraph async", "langgraph", "langgraph"),
    Peer("dbos", "dbos", "dbos"),
)


class Unavailable(Exception):
    """An environment could not be made; the text says why."""


def version(peer: Peer) -> str:
    """Return the version of a peer that is pinned."""
    for line in (PINS / f"{peer.pins}.txt").read_text(encoding="utf-8").splitlines():
        package, _, pinned = line.partition("==")
        if package == peer.package:
            return pinned
    raise ValueError(f"{peer.pins}.txt does not pin {peer.package}")


def python_of(peer: Peer, say: Say) -> str:
    """Return the Python of a peer's environment, made first if there is none with these pins."""
    pins, folder = PINS / f"{peer.pins}.txt", PLACE / peer.pins
    python, stamp = folder / "bin" / "python", folder / "made-with.txt"
    wanted = pins.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return str(python)
    say(f"making an environment for {peer.pins}")
    base = getattr(sys, "_base_executable", sys.executable)
    _do(peer, [base, "-m", "venv", "--clear", str(folder)])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", "-q"]
    _do(peer, [*pip, "--no-deps", "--requirement", str(pins)])
    stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def _do(peer: Peer, words: list[str]) -> None:
    try:
        subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS_MAX)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"]
        raise Unavailable(f"{peer.pins} could not be installed: {lines[-1]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{peer.pins} could not be installed: {error}") from error
