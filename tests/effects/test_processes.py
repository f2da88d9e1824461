"""The effect store under several processes at once, and under SIGKILL."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from agent_replay.effects import EffectStore
from tests.effects import child

PROCESSES = 6
SYSTEM_CALLS = "pwrite64,ftruncate,fdatasync,fsync,?unlink,unlinkat"
"""The calls by which SQLite changes files and syncs them; not every platform has `unlink`."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects.db"


@pytest.mark.parametrize("keys", [["k1"], ["k1", "k2", "k3", "k4"]], ids=["one key", "four keys"])
def test_processes_at_once_agree_on_one_effect_a_key(path: Path, keys: list[str]) -> None:
    """Nobody has made the file before, so that they also meet in its creation."""
    given = [keys[number % len(keys)] for number in range(PROCESSES)]
    children = [child.start("apply", path, key) for key in given]
    try:
        for one in children:
            assert one.stdout is not None
            assert one.stdout.readline() == '"ready"\n'
        for one in children:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        said = [one.communicate(timeout=child.LIFE_SECONDS_MAX)[0] for one in children]
    finally:
        for one in children:
            one.kill()
            one.wait(timeout=child.LIFE_SECONDS_MAX)
    receipts = [json.loads(line) for line in said]
    assert [receipt[1] for receipt in receipts] == given
    assert len({json.dumps(receipt) for receipt in receipts}) == len(keys)
    with EffectStore(path) as store:
        assert store.count() == len(keys)
        assert {key: store.arrivals(key) for key in keys} == {key: given.count(key) for key in keys}


# --- deaths -------------------------------------------------------------------------------------

STATEMENTS = [
    ("begin immediate", 0),
    ("select effects.number, effects.key,", 0),
    ("insert into effects", 0),
    ("insert into receipts", 0),
    ("commit", 0),
]
"""What `apply` does, and the effects that are left when it dies right before."""


def assert_all_or_nothing(path: Path, effects: int | None = None) -> int:
    """Check that effect and receipt are both there or both not, and that a second try gives one."""
    with closing(sqlite3.connect(path)) as shell:
        assert shell.execute("pragma integrity_check").fetchone() == ("ok",)
    with EffectStore(path) as store:
        left = store.count("k1")
        assert effects is None or left == effects
        assert (store.look_up("k1") is not None) == (left == 1)
        assert store.arrivals("k1") == left
        receipt = store.apply("k1", "charge", child.CONTENT)
        assert receipt == store.look_up("k1")
        assert store.effects() == [receipt]
    return left


def killed_at(path: Path, number: int) -> str:
    """Kill a child where it stops, and return what it said there."""
    with child.start("stop", path, "k1", str(number)) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
        finally:
            process.kill()
        assert process.wait(timeout=child.LIFE_SECONDS_MAX) == -signal.SIGKILL
    return str(json.loads(said))


@pytest.mark.parametrize(("number", "statement", "effects"), [
    (number, statement, effects) for number, (statement, effects) in enumerate(STATEMENTS, start=1)
])  # fmt: skip
def test_a_kill_before_a_statement_leaves_nothing(
    path: Path, number: int, statement: str, effects: int
) -> None:
    EffectStore(path).close()
    assert killed_at(path, number) == statement
    assert_all_or_nothing(path, effects)


def test_a_kill_after_the_commit_leaves_everything(path: Path) -> None:
    EffectStore(path).close()
    said = killed_at(path, len(STATEMENTS) + 1)
    assert "charge" in said, "it is the receipt, so there is no other statement"
    assert_all_or_nothing(path, 1)


def traced(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a child that applies, under strace with these options."""
    strace = ["strace", "-qq", "-f", "-e", f"trace={SYSTEM_CALLS}"]
    return subprocess.run(
        [*strace, "-e", "signal=none", *options, *child.command("apply", path, "k1")],
        input="go\n",
        capture_output=True,
        text=True,
        timeout=child.LIFE_SECONDS_MAX,
        env=child.environment(),
    )


def system_calls(path: Path) -> list[str]:
    """Return the calls by which a child that applies changes this folder and what is in it."""
    lines = traced(path, "-y").stderr.splitlines()
    return [line for line in lines if str(path.parent) in line]


@pytest.mark.slow
@pytest.mark.needs("strace")
def test_a_kill_at_any_system_call_leaves_all_or_nothing(path: Path) -> None:
    """The kernel kills at each call in turn, before the call has any effect.

    What is written to the journal before its first sync is all alike, so only the first is tried.
    """
    whole = path.with_name("whole.db")
    for store in (path, whole):
        EffectStore(store).close()
    names = [line.partition("(")[0] for line in system_calls(whole)]
    first_sync = next(index for index, name in enumerate(names) if "sync" in name)
    left = []
    for index in (0, *range(first_sync, len(names))):
        name = names[index]
        copy = path.with_name(f"{index}.db")
        shutil.copy2(path, copy)
        when = f"inject={name}:signal=KILL:when={names[:index].count(name) + 1}"
        ended = traced(copy, "-e", when)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        left.append(assert_all_or_nothing(copy))
    # The deletion of the journal is the commit, and a sync of the folder all that comes after it.
    assert left == [0] * (len(left) - 1) + [1]
    assert len(left) >= 8


@pytest.mark.needs("strace")
def test_the_folder_is_synced_after_the_commit_and_before_the_answer(path: Path) -> None:
    EffectStore(path).close()
    calls = system_calls(path)
    assert calls[-2].startswith("unlink")
    assert calls[-1].startswith(("fsync(", "fdatasync("))
    assert f"<{path.parent}>" in calls[-1]
