"""Random damage to the bytes of a database: `verify` says so, or no row has changed."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agent_replay import ReplayError
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.stateful.lab import Lab, memory_folder
from tests.stateful.search import Record, quiet

Rows = list[tuple[object, ...]]
KINDS = ("flip", "set", "zeros", "cut", "cut out", "repeat", "swap")
LENGTH_MAX = 64


@pytest.fixture(scope="module")
def sound() -> Iterator[Path]:
    """Give a database of three runs in one file, whose log is empty."""
    lab = Lab()
    with quiet():
        lab.open()
        lab.start("r1", [("keyed", ["lost", "ok"], ["ok"]), ("asked", ["lost"], ["ok"])])
        lab.start("r2", [("dark", ["lost"], ["ok"]), ("look", ["ok"], ["ok"])])
        lab.start("r3", [("look", ["refuse"], ["ok"])])
        lab.close_process()
    yield lab.path
    shutil.rmtree(lab.folder)


def damaged(content: bytes, kind: str, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(content)), chance.randint(1, LENGTH_MAX)
    before, there, after = content[:at], content[at : at + length], content[at + length :]
    match kind:
        case "flip":
            return before + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]
        case "set":
            return before + chance.randbytes(len(there)) + after
        case "zeros":
            return before + bytes(len(there)) + after
        case "cut":
            return before
        case "cut out":
            return before + after
        case "repeat":
            return before + there + there + after
        case _:
            return before + there[::-1] + after


def rows(path: Path) -> Rows:
    with Reader(path) as reader:
        return [(table, *values) for table, values, _ in reader.export()]


def judged(content: bytes, original: Rows) -> str:
    """Write a file, verify it, and return in a word what came of it."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        path = Path(folder) / "runs.db"
        path.write_bytes(content)
        try:
            verdict = verify(path)
        except ReplayError:
            return "refused"
        if not verdict.sound:
            return "found"
        assert rows(path) == original, "verify calls a file sound whose rows differ"
        return "nothing changed"


def damage(path: Path, count: int, seed: int) -> Counter[str]:
    content, original = path.read_bytes(), rows(path)
    assert judged(content, original) == "nothing changed"
    chance, met = random.Random(seed), Counter[str]()
    for number in range(count):
        spoilt = damaged(content, KINDS[number % len(KINDS)], chance)
        try:
            met[judged(spoilt, original)] += 1
        except (AssertionError, apsw.Error, ArithmeticError, LookupError, ValueError) as error:
            error.add_note(f"seed {seed}, damage {number}: {KINDS[number % len(KINDS)]}")
            raise
    return met


def test_verify_finds_damaged_bytes(sound: Path) -> None:
    met = damage(sound, 70, seed=1)
    assert met["found"]
    assert met["refused"]


@pytest.mark.slow
def test_verify_finds_a_thousand_damages(sound: Path, record_property: Record) -> None:
    met = damage(sound, 1000, seed=2)
    record_property("shown", f"1000 damages to a database: {dict(sorted(met.items()))}")
    assert sum(met.values()) == 1000
    assert met["found"] > 100
