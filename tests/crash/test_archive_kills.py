"""A process that archives runs is killed before each of its inputs and outputs: nothing is lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_replay import Outcome, Runtime
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import Ledger, ManualClock, plan_of, tools

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS_MAX = 120
PLANS = {
    "one": plan_of(("a", "look"), ("b", "keyed")),
    "two": plan_of(("a", "dark", {"do": ["refuse"]})),
    "waits": plan_of(("a", "dark", {"do": ["lost"]})),
}
ENDED = ("one", "two")


def opened(path: Path, ledger: Ledger) -> Runtime:
    return Runtime(path, adapters=tools(ledger), clock=ManualClock(), log_bytes=0)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "runs.db"
    with opened(path, Ledger()) as runtime:
        for run, plan in PLANS.items():
            runtime.run(run, plan)
    return path


@pytest.fixture(scope="module")
def killed(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[str]]:
    """Give what `killed_everywhere` returns of the base; whoever opens a database copies it."""
    return killed_everywhere(base, tmp_path_factory.mktemp("killed"))


def killed_everywhere(database: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Return the databases that killed processes left, in order, and the operations of one that
    was not killed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.archiver", str(database), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *deaths, (status, operations) = map(json.loads, done.stdout.splitlines())
    assert status == 0, done.stderr
    assert deaths == [[-signal.SIGKILL, None]] * len(operations)
    return [folder / str(number) / database.name for number in range(len(operations))], operations


def test_a_file_is_durable_and_its_name_too_before_a_row_is_written(
    killed: tuple[list[Path], list[str]],
) -> None:
    operations = [operation for operation in killed[1] if not operation.startswith("lock ")]
    assert operations[:4] == [
        "create archives", "sync folder", "create archive", "permit archive"
    ]  # fmt: skip
    last_write = max(n for n, name in enumerate(operations) if name == "write archive")
    first_row = operations.index("write log")
    after = operations[last_write + 1 :]
    assert after[:2] == ["sync archive", "sync archives"]
    assert last_write + 2 < first_row
    assert operations[first_row:].count("sync log") >= 1
    assert not any("archive" in name for name in operations[first_row:])


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S8")
@pytest.mark.invariant("S14")
@pytest.mark.invariant("S16")
def test_wherever_it_is_killed_nothing_is_lost_and_no_run_is_run_again(
    base: Path, killed: tuple[list[Path], list[str]], tmp_path: Path
) -> None:
    before = outcomes(base)
    assert len(killed[0]) >= 20
    left, gone, orphans = 0, 0, 0
    for path in killed[0]:
        archived, there = standing_after_death(copied(path, tmp_path), before)
        left, gone, orphans = left + (not archived), gone + archived, orphans + there
    assert left > 5
    assert gone > 0
    assert orphans > 2


@pytest.mark.slow
@pytest.mark.invariant("S2")
@pytest.mark.invariant("S8")
@pytest.mark.invariant("S16")
def test_the_process_that_comes_next_may_be_killed_too(
    base: Path, killed: tuple[list[Path], list[str]], tmp_path: Path
) -> None:
    """Every fourteenth death is followed by one at each operation of the process after it."""
    before = outcomes(base)
    paths, operations = killed
    first_deaths = paths[::14]
    deaths, found = 0, 0
    for path in first_deaths:
        folder = tmp_path / path.parent.name
        folder.mkdir()
        again, operations_again = killed_everywhere(path, folder)
        found += len(operations_again) < len(operations)
        for second in again:
            standing_after_death(second, before)
            deaths += 1
    assert deaths > 20 * len(first_deaths)
    assert found > 0, "an archive that is there already is taken, with fewer operations"


def outcomes(database: Path) -> dict[str, Outcome]:
    with opened(database, Ledger()) as runtime:
        return {run: runtime.outcome(run) for run in PLANS}


def copied(database: Path, folder: Path) -> Path:
    copy = folder / database.parent.name
    shutil.copytree(database.parent, copy)
    return copy / database.name


def standing_after_death(path: Path, before: dict[str, Outcome]) -> tuple[bool, int]:
    """Hold that nothing is lost, that all can be archived, and that no tool is called; return
    whether the runs had left, and how many archives nobody refers to."""
    assert verify(path).sound, path
    with Reader(path) as reader:
        archived = {line.id for line in reader.summaries() if line.archive}
        orphans = len(reader.orphans())
    assert archived in (set(), set(ENDED))
    ledger = Ledger()
    with opened(path, ledger) as runtime:
        for run in ENDED:
            outcome = runtime.run(run, PLANS[run])
            assert dict(outcome.results) == dict(before[run].results), (path, run)
            assert outcome._replace(results=before[run].results) == before[run]
        made = runtime.archive()
        assert [archive.runs for archive in made] == ([] if archived else [ENDED])
        for run in ENDED:
            assert dict(runtime.run(run, PLANS[run]).results) == dict(before[run].results)
        assert runtime.outcome("waits").waits
    assert ledger.calls == []
    verdict = verify(path)
    assert verdict.sound, (path, verdict)
    assert (verdict.runs, verdict.archived) == (3, 2)
    return bool(archived), orphans
