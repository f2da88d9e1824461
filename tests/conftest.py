"""What holds for every test, and for the run of the tests as a whole.

A run of tests can mislead: a worker dies and takes its tests along, a program is missing and its
tests are skipped, a child process outlives its test, or the code under test is that of another
checkout. Each of these fails the run here. What one test needs lies in the folder of that test.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"
ENDING_SECONDS_MAX = 5.0

DEBIAN_PACKAGES = {"gcc": "gcc", "spin": "spin", "sqlite3": "sqlite3", "strace": "strace"}
"""Each program that a test may need, and the Debian package that brings it."""

# A busy machine may pause any example for longer than the usual limit of 0.2 s for one.
settings.register_profile("project", settings(), deadline=None)
settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    found = importlib.util.find_spec("agent_replay")
    places = [] if found is None else list(found.submodule_search_locations or [])
    here = (ROOT / "runtime" / "agent_replay").resolve()
    if [Path(place).resolve() for place in places] != [here]:
        raise pytest.UsageError(
            f"agent_replay is found at {places}, and these tests judge {here}; run `make test`"
        )
    # A shell starts what it sends to the background with SIGINT ignored, and children inherit that:
    # they would not end with the Ctrl-C that some tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Tally(config), "agent-replay-tally")


# --- programs and skips -------------------------------------------------------------------------


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        for program in _needed(item):
            if program not in DEBIAN_PACKAGES:
                raise pytest.UsageError(
                    f"{item.nodeid} needs the program {program!r}, "
                    "of which tests/conftest.py knows no Debian package"
                )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for program in _needed(item):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here; on Debian: apt-get install {DEBIAN_PACKAGES[program]}")


def _needed(item: pytest.Item) -> list[str]:
    return [str(program) for marker in item.iter_markers("needs") for program in marker.args]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    allowed = hasattr(report, "wasxfail") or item.get_closest_marker("may_skip") is not None
    if REQUIRE_ALL and report.skipped and not allowed:
        _fail_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRE_ALL and report.skipped:
        _fail_skipped(report)
    return report


def _fail_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"REQUIRE_ALL=1 allows no skip, and this was skipped: {reason}"


# --- the run as a whole -------------------------------------------------------------------------


class Tally:
    """What was collected, what ran, and what was left behind, over all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.collected: set[str] = set()
        self.ran: set[str] = set()
        self.left_behind: list[str] = []
        self.shown: list[str] = []
        """What tests say of themselves, by `record_property("shown", text)`."""
        self.counts = not config.option.collectonly
        # Inherited by whatever a test starts, so that it is known when its parent has died.
        token = secrets.token_hex(8)
        os.environ["AGENT_REPLAY_TESTS"] = token
        self.mark = f"AGENT_REPLAY_TESTS={token}"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.collected.update(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown" and not (report.when == "setup" and report.passed):
            self.ran.add(report.nodeid)
            self.shown += [str(text) for name, text in report.user_properties if name == "shown"]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.left_behind += getattr(node, "workeroutput", {}).get("left_behind", [])

    @pytest.hookimpl(trylast=True)  # the workers have ended by then
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.left_behind += end_what_is_left(self.mark)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left_behind"] = self.left_behind
        elif self.left_behind or (self.counts and self.ran != self.collected):
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for process in self.left_behind:
            terminalreporter.write_line(f"FAILED: left behind and ended now: {process}", red=True)
        for text in self.shown:
            terminalreporter.write_line(text)
        if self.counts:
            for nodeid in sorted(self.collected - self.ran):
                terminalreporter.write_line(f"FAILED: collected and not run: {nodeid}", red=True)
            terminalreporter.write_line(
                f"tests: {len(self.collected)} collected, {len(self.ran)} ran"
            )
            for line in recorded_earlier():
                terminalreporter.write_line(line)


RENEWED_BY = {
    "benchmarks": "make bench",
    "benchmarks-peers": "make bench-peers",
    "mutants": "make mutants",
}
"""What renews a recorded result, where `make evidence-record` does not."""


def recorded_earlier() -> Iterator[str]:
    """Yield for each recorded result whose sources went on how many of them did."""
    recorded = sorted((ROOT / "results").glob("*.json"))
    if not recorded:
        return
    from crashtests import sources  # here, since this file is also tried away from the checkout

    for path in recorded:
        about = json.loads(path.read_text(encoding="utf-8")).get("about")
        changed = [] if about is None else sources.drift(about["sources"])
        if changed:
            name = path.relative_to(ROOT).as_posix()
            went_on = f"{len(changed)} of its sources changed"
            renew = RENEWED_BY.get(path.stem, "make evidence-record")
            yield f"{name}: recorded before {went_on}; {renew}"


class Process(NamedTuple):
    """A living process, as /proc shows it."""

    pid: int
    parent: int
    command: str
    environment: str


def processes() -> Iterator[Process]:
    """Yield every living process; nothing where there is no /proc."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:  # it has ended, or is another user's
            continue
        if state not in "ZX":
            yield Process(int(folder.name), int(parent), command.replace("\0", " "), environment)


def end_what_is_left(mark: str) -> list[str]:
    """Return what the tests of this process started and left running, and kill it.

    It is killed because it may hold the pipe that the caller of pytest reads to its end. What is
    only slow to end gets some seconds for it.
    """
    deadline = time.monotonic() + ENDING_SECONDS_MAX
    while left := [one for one in processes() if _is_ours(one, mark)]:
        if time.monotonic() > deadline:
            for one in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
            break
        time.sleep(0.05)
    return [f"{one.pid} {one.command}" for one in left]


def _is_ours(process: Process, mark: str) -> bool:
    helper = "multiprocessing.resource_tracker" in process.command  # ends with its parent
    started = process.parent == os.getpid() or mark in process.environment.split("\0")
    return started and not helper and process.pid != os.getpid()
