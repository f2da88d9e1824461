"""A plugin of pytest, for the process that judges one mutant.

Tests are run by name, so parametrised ones are called by plain words: pytest does not find a test
again by a name that it has escaped. The package is the one with the mutants, whatever the process
that started this one has done to the path. No test finds a decision or verdict remembered that an
earlier one has asked for: it would neither be known to reach the function nor ask its mutant. The
tests made for the module come first, and of these and of the others the quickest; those that would
take longer than `SECONDS` all together are left out, and a mutant that runs for ever is ended.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

SECONDS = "AGENT_REPLAY_MUTANTS_SECONDS"
SURVIVED = "AGENT_REPLAY_MUTANTS_SURVIVED"
"""The file in which the name of each survivor is noted."""
MUTANT = "MUTANT_UNDER_TEST"
MEMORY_BYTES_MAX = 4 << 30
FILE_BYTES_MAX = 256 << 20
SLOWER_MAX = 3
_ALSO_MADE_FOR = {
    "connection": ("refusals", "holder"),
    "inserts": ("refusals", "commits"),
    "log": ("holder",),
    "verify": ("findings",),
    "rows": ("findings", "reader"),
    "writer": ("store", "refusals"),
}
SPARE_SECONDS = 20

HERE = Path(__file__).resolve().parents[2]
if (HERE / "src").is_dir():
    sys.path.insert(0, str(HERE / "src"))


def pytest_make_parametrize_id(val: object) -> str | None:
    from tests.outside import plain  # here: it imports the package

    return plain(val) if isinstance(val, (str, bytes)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if _is_mutant(os.environ.get(MUTANT)):
        _remove_what_the_dead_left(tempfile.gettempdir())
        config.option.basetemp = f"{tempfile.gettempdir()}/{os.getpid()}"


def _remove_what_the_dead_left(folder: str) -> None:
    """Remove the files of processes that were ended half-way: they lie in memory."""
    for name in os.listdir(folder):
        if name.isdecimal() and not os.path.exists(f"/proc/{name}"):
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)


def pytest_sessionstart() -> None:
    # mutmut asks this process which functions a test reaches. A child that it starts would be asked
    # too, and cannot answer.
    if os.environ.get(MUTANT) == "stats":
        del os.environ[MUTANT]


def pytest_runtest_setup() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("agent_replay."):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    machine = sys.modules.get("agent_replay.machine")
    if machine is not None:
        machine._verdicts.clear()


@cache
def durations() -> dict[str, float]:
    """Return how long each test took when none was mutated."""
    path = HERE / "mutmut-stats.json"
    if not path.is_file():
        return {}
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))["duration_by_test"]
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = durations()  # in the process from which all others are forked: read once
    mutant = os.environ.get(MUTANT)
    if not (mutant == "" or _is_mutant(mutant)):
        # Names with a backslash, which pytest does not find again either.
        _leave_out(config, items, [item for item in items if "\\" not in item.nodeid])
        return
    named = _names_of_its_tests(mutant or "")
    items.sort(
        key=lambda item: (
            not any(name in item.path.stem for name in named),
            known.get(item.nodeid, 0.0),
        )
    )
    total, chosen = 0.0, 0
    for item in items:
        total += known.get(item.nodeid, 0.0)
        if chosen and total > float(os.environ.get(SECONDS, "inf")):
            break
        chosen += 1
    _leave_out(config, items, items[:chosen])
    if mutant:  # "" is the run without a mutant before the first: the tests have passed just now
        gc.freeze()  # else what was collected before the fork is gone through, and copied
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
        signal.setitimer(signal.ITIMER_REAL, SLOWER_MAX * total + SPARE_SECONDS)


def _names_of_its_tests(mutant: str) -> list[str]:
    """Return what is in the names of the files with the tests that are made for its module."""
    module = mutant.rpartition(".")[0].rpartition(".")[2]
    return [module, *_ALSO_MADE_FOR.get(module, ())] if module else []


def _leave_out(config: pytest.Config, items: list[pytest.Item], chosen: list[pytest.Item]) -> None:
    kept = set(chosen)
    if left_out := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    yield
    mutant = os.environ.get(MUTANT)
    if not _is_mutant(mutant):
        return
    if session.exitstatus == 0 and SURVIVED in os.environ:
        with open(os.environ[SURVIVED], "a", encoding="utf-8") as file:
            file.write(f"{mutant}\n")
    shutil.rmtree(session.config.option.basetemp, ignore_errors=True)
    os._exit(int(session.exitstatus))  # nobody reads a summary


def _is_mutant(name: str | None) -> bool:
    return name is not None and "__mutmut_" in name
