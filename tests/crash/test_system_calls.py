"""The installed command, unmodified, is killed by the kernel at its system calls.

Nothing of it knows of this: `strace` records the calls by which it changes, syncs and locks files,
and then has it killed on entry to the one in question, before the call has any effect. It is judged
by the tool's own ledger, and by what SQLite alone finds in a copy of the history.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_replay.cli.exits import Exit
from agent_replay.effects import EffectStore
from crashtests.subjects import FOLDER_VARIABLE, LEDGER, SUBJECTS, adapter_of
from tests.crash.harness import Misled

pytestmark = pytest.mark.needs("strace")

ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("agent-replay")
WAIT_SECONDS_MAX = 120.0
RUN = "order"
DATABASE = "runs.db"
EVERY = int(os.environ.get("SYSTEM_CALLS_EVERY", "5"))
"""In the long form the command is killed at one of so many calls; 1 is all, for some minutes."""

SYSTEM_CALLS = (
    *("write", "pwrite64", "ftruncate", "fallocate", "fsync", "fdatasync", "fcntl", "flock"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "link", "linkat"),
    *("fchmod", "mkdir", "mkdirat"),
)
"""The calls by which files are changed, synced and locked."""

CONTRACTS = ("idempotent", "opaque")


class Call(NamedTuple):
    """A system call, and the name of the file that it is about."""

    name: str
    file: str


class Ended(NamedTuple):
    """How a command ended, what it and strace said, and the calls that it made."""

    status: int
    said: str
    calls: list[Call]
    last_line: str


class Place:
    """A folder with a plan of one step, the tool's ledger, and the database of the command."""

    def __init__(self, folder: Path, contract: str, compiled: Path) -> None:
        self.folder = folder
        self._subject = SUBJECTS[contract]
        self._compiled = compiled
        folder.mkdir()
        (folder / "plan.json").write_text(self._plan(), encoding="utf-8")
        EffectStore(folder / LEDGER).close()

    def _plan(self) -> str:
        adapter = adapter_of(self._subject)
        step = {
            "id": "act",
            "adapter": adapter.identity,
            "contract": adapter.terms.contract.value,
            "arguments": self._subject.arguments,
        }
        return json.dumps({"plan": 1, "steps": [step]})

    def words(self, name: str) -> list[str]:
        """Return the words of a command: `run`, or `resume`."""
        what = [str(self.folder / "plan.json"), "--run-id", RUN] if name == "run" else [RUN]
        database = ["--db", str(self.folder / DATABASE)]
        return [str(COMMAND), name, *what, *database, "--adapters", self._subject.adapter]

    def carry_out(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a program to its end, and leave nothing of it behind."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        # Compiled code lies elsewhere, and is there after the first run: the calls are then alike.
        place = {"PYTHONPYCACHEPREFIX": str(self._compiled), FOLDER_VARIABLE: str(self.folder)}
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env={**kept, **place},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        try:
            said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(WAIT_SECONDS_MAX)
        return process.returncode, said

    def traced(self, *options: str) -> Ended:
        """Run the command under strace; its status is then that of the command."""
        log = self.folder / "strace.log"
        trace = f"trace={','.join(f'?{name}' for name in SYSTEM_CALLS)}"  # not all are everywhere
        strace = ["strace", "-f", "-y", "-q", "-o", str(log), "-e", trace]
        status, said = self.carry_out([*strace, *options, *self.words("run")])
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        if not lines:
            raise Misled(f"strace has traced nothing: {status}, {said}")
        if len({line.split()[0] for line in lines}) != 1:
            raise Misled("there was more than one process or thread, so calls cannot be counted")
        calls = [
            call_of(line, self.folder) for line in lines if line.split()[1] not in ("---", "+++")
        ]
        return Ended(status, said, calls, lines[-1].split(maxsplit=1)[1])

    def table(self, file: str, table: str, columns: str) -> list[tuple[object, ...]]:
        """Return rows by SQLite alone, from a copy, so that whoever looks changes nothing."""
        if not (self.folder / file).exists():
            return []
        beside = self.folder / "copy"
        beside.mkdir()
        for path in self.folder.glob(f"{file}*"):
            if not path.name.endswith("-shm"):  # that is rebuilt
                shutil.copy(path, beside)
        with contextlib.closing(sqlite3.connect(beside / file)) as connection:
            rows = connection.execute(f"select {columns} from {table} order by 1").fetchall()  # noqa: S608
        shutil.rmtree(beside)
        return rows

    def effects(self) -> int:
        return len(self.table(LEDGER, "effects", "number, key"))

    def events(self) -> list[str]:
        return [str(event) for _seq, event in self.table(DATABASE, "events", "seq, event")]


def call_of(line: str, folder: Path) -> Call:
    """Return the call of a line, with what is alike in every process: a new database has the number
    of the process in its name, and each run a folder of its own.
    """
    found = re.fullmatch(r'\d+ +(\w+)\((?:\w+<([^>]*)>|[^"]*"([^"]*)").*', line)
    assert found, line
    name, of_descriptor, of_path = found.groups()
    path = Path(of_descriptor or of_path)
    return Call(name, "." if path == folder else re.sub(r"\d{2,}", "N", path.name))


class Lab:
    """Places that have their compiled code in common, and the calls that were recorded there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recorded: dict[str, list[Call]] = {}

    def place(self, folder: Path, contract: str) -> Place:
        return Place(folder, contract, self._folder / "compiled")

    def recorded(self, contract: str) -> list[Call]:
        """Return the calls of the command when nobody disturbs it."""
        if not self._recorded:
            first = self.place(self._folder / "first", contract)
            assert first.carry_out(first.words("run"))[0] == Exit.OK
        if contract not in self._recorded:
            place = self.place(self._folder / contract, contract)
            ended = place.traced()
            assert (ended.status, ended.last_line) == (Exit.OK, "+++ exited with 0 +++"), ended.said
            assert place.effects() == 1
            assert {DATABASE, f"{DATABASE}-wal", LEDGER} <= {call.file for call in ended.calls}
            self._recorded[contract] = ended.calls
        return self._recorded[contract]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Make a lab, or fail where strace is there and may not trace, as in some containers."""
    tried = subprocess.run(
        ["strace", "-o", os.devnull, "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if tried.returncode != 0:
        pytest.fail(f"strace cannot trace here; permit ptrace (SYS_PTRACE): {tried.stderr.strip()}")
    return Lab(tmp_path_factory.mktemp("recorded"))


class After(NamedTuple):
    """What was durable when the command was killed, and how many effects there were."""

    requested: bool
    acknowledged: bool
    effects: int


def killed(place: Place, calls: Sequence[Call], index: int) -> After:
    """Have the command killed at a call; raise `Misled` unless it was, at that very call."""
    name = calls[index].name
    nth = sum(call.name == name for call in calls[: index + 1])
    ended = place.traced("-e", f"inject={name}:signal=KILL:when={nth}")
    # strace ends as the command did, so its own log must say as well who was killed.
    if (ended.status, ended.last_line) != (-signal.SIGKILL, "+++ killed by SIGKILL +++"):
        raise Misled(f"call {index}, {calls[index]}: it was not killed: {ended}")
    if ended.calls != list(calls[: index + 1]):
        raise Misled(f"call {index}, {calls[index]}: it was killed elsewhere: {ended.calls[-1:]}")
    events = place.events()
    return After("request" in events, "acknowledge" in events, place.effects())


def judge(place: Place, contract: str, after: After) -> None:
    """Let somebody run or resume it plainly, and compare what comes out with the contract."""
    assert after.effects <= 1
    assert after.effects == 0 or after.requested, "a call without a durable request"
    assert after.effects == 1 or not after.acknowledged, "a result without an effect"
    status, said = place.carry_out(place.words("resume" if after.requested else "run"))
    unknown = contract == "opaque" and after.requested and not after.acknowledged
    assert status == (Exit.PAUSED if unknown else Exit.OK), said
    assert place.effects() == (after.effects if unknown else 1), said
    assert len(place.table(LEDGER, "receipts", "key")) <= 1, "another key"


def sweep(lab: Lab, contract: str, folder: Path, indexes: Sequence[int]) -> Counter[After]:
    """Kill a command at each of these calls and judge what comes of it; count what was found."""
    found: Counter[After] = Counter()
    for index in indexes:
        place = lab.place(folder / str(index), contract)
        after = killed(place, lab.recorded(contract), index)
        judge(place, contract, after)
        found[after] += 1
        shutil.rmtree(place.folder)
    assert found.total() == len(indexes) > 0
    return found


NOTHING = After(requested=False, acknowledged=False, effects=0)
SENT = After(requested=True, acknowledged=False, effects=0)
DONE = After(requested=True, acknowledged=False, effects=1)
ANSWERED = After(requested=True, acknowledged=True, effects=1)


@pytest.mark.fault("M04")
@pytest.mark.invariant("S2")
@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_command_killed_at_either_end_of_its_tool_does_what_the_contract_says(
    lab: Lab, tmp_path: Path, contract: str
) -> None:
    """At the first call of the tool, and at the first one after its last. All are tried below."""
    calls = lab.recorded(contract)
    tool = [index for index, call in enumerate(calls) if call.file.startswith(LEDGER)]
    found = sweep(lab, contract, tmp_path, [tool[0], tool[-1] + 1])
    assert found == {SENT: 1, DONE: 1}


@pytest.mark.fault("M04")
def test_a_command_that_is_not_killed_at_the_call_in_question_is_no_kill(
    lab: Lab, tmp_path: Path
) -> None:
    calls = lab.recorded("opaque")
    with pytest.raises(Misled, match="it was not killed"):
        killed(lab.place(tmp_path / "never", "opaque"), [*calls, calls[-1]], len(calls))
    first = next(index for index, call in enumerate(calls) if call.name == "fdatasync")
    others = [*calls[: first - 1], Call("fsync", "another"), calls[first]]
    with pytest.raises(Misled, match="it was killed elsewhere"):
        killed(lab.place(tmp_path / "else", "opaque"), others, first)


@pytest.mark.slow
@pytest.mark.invariant("S2")
@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_command_killed_at_its_system_calls_does_what_the_contract_says(
    lab: Lab, tmp_path: Path, contract: str
) -> None:
    indexes = range(0, len(lab.recorded(contract)), EVERY)
    found = sweep(lab, contract, tmp_path, indexes)
    assert set(found) == {NOTHING, SENT, DONE, ANSWERED}
    counts = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
    print(f"{contract}: each of {len(indexes)} calls reached; {counts}")
