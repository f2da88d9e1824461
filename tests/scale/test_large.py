"""A database with many runs and long ones stays usable.

What SQLite does for a question is counted in the instructions of its machine, which are the same on
every computer; the tests with a million events are slow, and also look at time and memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from agent_replay.cli.looking import EVENTS_READ_MAX, View
from agent_replay.report.diagnosis import Standing
from agent_replay.store.database import Database
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import ManualClock
from tests.scale.many import Shape, make

INSTRUCTIONS = 20
"""The counter is called once for so many."""


def counted(connection: apsw.Connection, act: Callable[[], object]) -> int:
    """Return how many instructions SQLite carries out for an act."""
    calls = 0

    def call() -> bool:
        nonlocal calls
        calls += 1
        return False

    connection.set_progress_handler(call, INSTRUCTIONS)
    act()
    connection.set_progress_handler(None)
    return calls * INSTRUCTIONS


QUESTIONS: dict[str, Callable[[Reader], object]] = {
    "list": lambda reader: reader.summaries(after=20, limit=10),
    "doctor": lambda reader: reader.unfinished(after=0, limit=2),
    "show": lambda reader: reader.read("run-000010"),
    "writers": lambda reader: reader.writers_of(reader.read("run-000010")[0]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_page_costs_the_same_in_a_small_and_in_a_large_database(
    name: str, tmp_path: Path
) -> None:
    costs = []
    for runs in (40, 4_000):
        path = make(tmp_path / f"{runs}.db", Shape(runs=runs, steps=1, waits_each=10))
        with Reader(path) as reader:
            costs.append(counted(reader.connection, lambda: QUESTIONS[name](reader)))
    assert costs[0] > 0
    assert costs[1] <= costs[0] + 5 * INSTRUCTIONS, costs


def read_for_resume(path: Path, run: str) -> int:
    with Database(path, clock=ManualClock(), log_bytes=0) as database:
        store = database.store
        return counted(store.connection, lambda: store.read(run))


def test_a_resume_reads_its_own_run_only(tmp_path: Path) -> None:
    costs = [
        read_for_resume(make(tmp_path / f"{runs}.db", Shape(runs=runs, steps=20)), "run-000001")
        for runs in (2, 1_000)
    ]
    assert costs[1] <= costs[0] + 5 * INSTRUCTIONS, costs


def test_what_a_resume_reads_grows_with_the_run_and_not_with_its_square(tmp_path: Path) -> None:
    costs = [
        read_for_resume(make(tmp_path / f"{steps}.db", Shape(runs=1, steps=steps)), "run-000001")
        for steps in (300, 3_000)
    ]
    assert 8 * costs[0] < costs[1] < 11 * costs[0], costs


def test_pages_of_unfinished_runs_follow_one_another_and_a_missing_head_is_among_them(
    tmp_path: Path,
) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=50, steps=1, waits_each=7))
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.execute("delete from heads where run = 9")
        connection.execute("update heads set run_state = 'lost' where run = 10")
    found: list[int] = []
    with Reader(path) as reader:
        while page := reader.unfinished(after=found[-1] if found else 0, limit=2):
            assert len(page) <= 2
            found += [run for run, _ in page]
    assert found == [7, 9, 10, 14, 21, 28, 35, 42, 49]


def test_pages_of_a_history_follow_one_another(tmp_path: Path) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=1, steps=10))
    with Reader(path) as reader:
        view = View(reader)
        whole = reader.read("run-000001")[1]
        found, after, pages = [], 0, 0
        while True:
            _, before, events, more = view.page("run-000001", after=after, limit=7)
            assert (before.seq if before else 0) == after
            found += events
            pages += 1
            if more is None:
                break
            after = more
    assert found == whole
    assert (len(whole), pages) == (20, 3)


def test_the_list_shows_the_same_of_a_run_whether_it_reads_its_history_or_its_head(
    tmp_path: Path,
) -> None:
    path = make(tmp_path / "runs.db", Shape(runs=2, steps=3, waits_each=2))
    with Reader(path) as reader:
        view = View(reader)
        (summary,) = reader.summaries(after=1)
        read = view.listed(summary)
        view.listed(summary._replace(seq=EVENTS_READ_MAX))
        assert view.listed(summary) == read
        assert (read.standing, read.step, read.attempt) == (Standing.PAUSED, "s3", 1)


# --- a million events ---------------------------------------------------------------------------

MEMORY_BYTES_MAX = 120 * 1024 * 1024
EVENTS_PER_SECOND = 40_000
READING_SECONDS = 1.0
BUSY = 4
"""A busy machine may be so much slower before a time counts as wrong."""


class Ran(NamedTuple):
    """What a command came to."""

    seconds: float
    memory_bytes: int
    output: str


COMMAND = """
import sys
from agent_replay.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:  # the usage of a child counts its parent's memory, too
    print(*(line for line in status if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def run(*words: str) -> Ran:
    """Run the command in a process of its own."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    kilobytes = int(done.stderr.split("VmHWM:")[1].split()[0])
    return Ran(seconds, kilobytes * 1024, done.stdout)


@pytest.mark.slow
def test_a_million_events_in_many_runs_are_verified_and_looked_at(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = str(make(tmp_path / "runs.db", Shape(runs=100_000, steps=5, waits_each=100)))
    told = json.loads(run("list", "--db", path, "--json").output)
    assert (len(told["runs"]), told["next_after"]) == (100, 100)
    for words in (
        ("list",),
        ("list", "--after", "99000", "--limit", "1000"),
        ("show", "run-050000"),
        ("doctor",),
        ("doctor", "--json", "--after", "99000"),
    ):
        looked = run(*words, "--db", path)
        record_property("shown", f"scale: {' '.join(words)}: {looked.seconds:.2f} s")
        assert looked.seconds < BUSY * READING_SECONDS
        assert looked.memory_bytes < MEMORY_BYTES_MAX
    _verified(path, 1_000_000, record_property)


@pytest.mark.slow
def test_a_million_events_of_long_runs_are_verified(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = str(make(tmp_path / "runs.db", Shape(runs=10, steps=50_000)))
    _verified(path, 1_000_000, record_property)


def _verified(path: str, events: int, record_property: Callable[[str, object], None]) -> None:
    verified = run("verify", "--db", path, "--json")
    assert json.loads(verified.output)["events"] == events
    memory = verified.memory_bytes / 2**20
    record_property(
        "shown", f"scale: verify: {events / verified.seconds:.0f} events/s, {memory:.0f} MB"
    )
    assert verified.memory_bytes < MEMORY_BYTES_MAX
    assert verified.seconds < BUSY * events / EVENTS_PER_SECOND


def test_what_is_made_here_is_what_the_runtime_writes(tmp_path: Path) -> None:
    verdict = verify(make(tmp_path / "runs.db", Shape(runs=20, steps=3, waits_each=3)))
    assert (verdict.findings, verdict.runs, verdict.events) == ((), 20, 120)
