"""Let mutmut work, and say how far it is.

Each mutant gets the quickest of the tests that reach it; those that survive get more. What a second
look has found is kept too, so that it is not given again to the same function.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.mutation import plugin, scope, tree, verdicts

LOG = tree.TREE / "mutmut.log"
_SURVIVED = tree.TREE / "survived.txt"
_LINE_SECONDS = 30.0


def run(only: list[str], workers: int, *, again: bool) -> int:
    """Look at all mutants, or at those of some modules; return 0 when each has been looked at."""
    tree.prepare(scope.settings())
    names = [scope.pattern(module) for module in only]
    code = 0 if again else _mutmut(names, workers, scope.QUICK_SECONDS, _progress)
    return code or _look_closer(only, workers, again=again)


def _look_closer(only: list[str], workers: int, *, again: bool) -> int:
    """Give more tests to what has survived, unless it had them already."""
    kept = verdicts.closely()
    planned = {
        mutant.name: mutant.version
        for mutant in verdicts.read()
        if (mutant.module in only or not only)
        and mutant.verdict in ("survived", "failed")
        and (again or kept.get(mutant.name) != mutant.version)
    }
    if not planned:
        return 0
    print(f"a closer look at {len(planned)} that survived", flush=True)
    _SURVIVED.write_text("", encoding="utf-8")
    try:
        return _mutmut(list(planned), workers, scope.THOROUGH_SECONDS, lambda: _closer(planned))
    finally:
        survived = set(_SURVIVED.read_text(encoding="utf-8").split())
        survived |= {mutant.name for mutant in verdicts.read() if not mutant.reached}
        kept |= {name: planned[name] for name in survived & planned.keys()}
        verdicts.LOOKED_AT.write_text(json.dumps(kept, indent=0), encoding="utf-8")


def _mutmut(
    names: list[str], workers: int, seconds: float, progress: Callable[[], tuple[int, int, str]]
) -> int:
    """Run it on files in memory where there are such: most of the time goes into syncs."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=memory) as scratch:
        os.chmod(scratch, 0o755)  # tests act as another user, who may look
        return _mutmut_in(scratch, names, workers, seconds, progress)


def _mutmut_in(
    scratch: str,
    names: list[str],
    workers: int,
    seconds: float,
    progress: Callable[[], tuple[int, int, str]],
) -> int:
    """Run it in a session of its own, so that Ctrl-C does not end the tests of a mutant alone."""
    words = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", str(workers)]
    environment = {
        **os.environ,
        "TMPDIR": scratch,
        "PYTHONPATH": f"{tree.TREE}/mutants/src",
        plugin.SECONDS: str(seconds),
        plugin.SURVIVED: str(_SURVIVED),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # all mutants of the store are 50,000 lines
    with LOG.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*words, *names],
            cwd=tree.TREE,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _watch(process, progress)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a process that runs the tests unmutated
            print("\nstopped; the next `make mutants` goes on from here")
            return 130
    if process.returncode:
        print(f"mutmut ended with {process.returncode}; what it said is in {LOG}")
    return process.returncode


def _watch(process: subprocess.Popen[bytes], progress: Callable[[], tuple[int, int, str]]) -> None:
    """Say every now and then how many are done, and how long the others will take."""
    begun, first = time.monotonic(), progress()[0]
    while process.poll() is None:
        time.sleep(2 if sys.stdout.isatty() else _LINE_SECONDS)
        done, total, told = progress()
        left = "time left unknown"
        if done == first:  # the tests are run without a mutant
            begun = time.monotonic()
        else:
            seconds = (time.monotonic() - begun) * (total - done) / (done - first)
            left = f"{seconds / 60:.0f} min left"
        end = "\r" if sys.stdout.isatty() else "\n"
        print(f"{done} of {total} mutants: {told}; {left}   ", end=end, flush=True)
    print()


def _progress() -> tuple[int, int, str]:
    found = Counter(mutant.verdict for mutant in verdicts.read())
    killed = found["killed"] + found["timeout"]
    survived = found["survived"] + found["failed"]
    return killed + survived, found.total(), f"{killed} killed, {survived} survived"


def _closer(planned: dict[str, str]) -> tuple[int, int, str]:
    survived = set(_SURVIVED.read_text(encoding="utf-8").split()) & planned.keys()
    found = Counter(one.verdict for one in verdicts.read() if one.name in planned.keys() - survived)
    killed = found["killed"] + found["timeout"]
    return killed + len(survived), len(planned), f"{killed} killed, {len(survived)} survived"
