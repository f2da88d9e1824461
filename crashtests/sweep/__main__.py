"""Kill real processes at every input and output of the history, and around each effect.

    python -m crashtests.sweep --output work/crash-sweep.json
    python -m crashtests.sweep --quick
    python -m crashtests.sweep --only opaque:recovery@17:op=41

Writes the report, a table in Markdown and a picture beside it, and judges them before it says that
it is done. The kill points are those that a process passes when nobody disturbs it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crashtests import about, command
from crashtests.output import output, publish
from crashtests.subjects import SUBJECTS
from crashtests.sweep import lanes, only, picture, table, tally, worker
from crashtests.sweep.bench import Bench
from crashtests.sweep.scenarios import EACH, FULL, QUICK, SCENARIOS
from crashtests.sweep.verify import FORMAT
from crashtests.verify import findings

_MEMORY = Path("/dev/shm")
_CLEAR = "\r\033[K"
_TELLS_SECONDS = 15.0
_REPRODUCERS_MAX = 10
_ROOM_BYTES = 1 << 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep, and return 0 if nothing is wrong, 1 if something is, 2 for a wrong command."""
    options = _options(arguments)
    if not sys.platform.startswith("linux"):
        print("the sweep needs Linux: its processes are watched through /proc", file=sys.stderr)
        return 2
    return command.ended(lambda: _prepared(options))


def _prepared(options: argparse.Namespace) -> int:
    worker.prepare()
    gc.collect()
    gc.freeze()  # else each fork copies what the collector touches
    with tempfile.TemporaryDirectory(prefix="crash-sweep-", dir=_place(options)) as scratch:
        if options.only:
            return _again(options.only, Path(scratch))
        return _sweep(options, Path(scratch))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m crashtests.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=output, help="where the report goes (JSON)")
    parser.add_argument("--quick", action="store_true", help="kill in the first runs only")
    parser.add_argument(
        "--each", action="store_true", help="also recoveries that begin with equal files"
    )
    parser.add_argument("--only", type=_pattern, metavar="POINT", help="kill there, and tell")
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1, help="side by side")
    parser.add_argument("--scratch", type=Path, help="a folder to work in (default: in memory)")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no progress")
    options = parser.parse_args(arguments)
    if options.quick and options.each:
        parser.error("--quick and --each are two forms; give one of them")
    if options.only and (options.output or options.quick or options.each or options.json):
        parser.error("--only prints a line for each point; it has no form and no report")
    if options.scratch is not None and not os.access(options.scratch / ".", os.W_OK | os.X_OK):
        parser.error(f"--scratch: {options.scratch} is no folder that can be written to")
    if options.lanes < 1:
        parser.error("--lanes is 1 or more")
    return options


def _pattern(text: str) -> only.Pattern:
    try:
        return only.pattern_of(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _place(options: argparse.Namespace) -> Path | None:
    """Return where to work: SIGKILL takes nothing that the kernel holds, so memory will do."""
    if options.scratch is not None:
        return Path(options.scratch)
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    return _MEMORY if has_room and os.access(_MEMORY, os.W_OK) else None


def _again(pattern: only.Pattern, scratch: Path) -> int:
    """Kill at the points of a pattern, and print a line for each."""
    subject = SUBJECTS[pattern.scenario.subject]
    found = wrong = 0
    for point, came, told in only.again(Bench(pattern.scenario, subject, scratch), pattern):
        found += 1
        wrong += bool(pattern.scenario.contract) and came.is_wrong
        print(f"{point.name(pattern.scenario.name)} {told}")
    if not found:
        print("no process comes to that operation", file=sys.stderr)
    return 1 if wrong or not found else 0


def _sweep(options: argparse.Namespace, scratch: Path) -> int:
    form = QUICK if options.quick else EACH if options.each else FULL
    began = time.monotonic()
    report = sweep(form, scratch, options.lanes, quiet=options.quiet)
    if options.json:
        print(json.dumps(report["totals"], indent=1))
    elif not options.quiet:
        print(table.totals(report))
    found = findings(report)
    for finding in found:
        print(finding, file=sys.stderr)
    if options.output:
        text = json.dumps(report, sort_keys=True, separators=(",", ":")) + "\n"
        page, drawn = table.render(report), picture.render(report)
        paths = publish(options.output, text, page=page, picture=drawn, holds=not found)
        print(", ".join(map(str, paths)), file=sys.stderr)
    for line in itertools.islice(tally.failures(report["scenarios"]), _REPRODUCERS_MAX):
        print(f"reproduce with: python -m crashtests.sweep --only {line}", file=sys.stderr)
    kills = sum(row["kills"] for row in report["totals"])
    seconds = time.monotonic() - began
    print(f"{kills} kills in {seconds:.0f} s, {len(found)} findings", file=sys.stderr)
    return 1 if found else 0


def sweep(form: str, scratch: Path, side_by_side: int, *, quiet: bool) -> dict[str, Any]:
    """Return a report; raises `Fooled` if a scenario shows nothing."""
    jobs = [lanes.Job(scenario, SUBJECTS[scenario.subject]) for scenario in SCENARIOS]
    made = about.about(scratch)
    scenarios = lanes.explore(jobs, form, scratch, side_by_side, Progress(quiet=quiet))
    return {
        "format": FORMAT,
        "form": form,
        "about": made,
        "scenarios": scenarios,
        "totals": tally.totals(scenarios),
    }


class Progress:
    """Prints the kills so far: in one line on a terminal, else a line now and then."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._in_place = sys.stderr.isatty()
        self._kills: dict[str, int] = {}
        self._next = time.monotonic() + _TELLS_SECONDS

    def __call__(self, name: str, kills_so_far: int, *, ended: bool = False) -> None:
        """Take in what a scenario has come to, and print it."""
        self._kills[name] = kills_so_far
        line = f"{sum(self._kills.values()):7} kills"
        if self._quiet:
            return
        if self._in_place:
            print(f"{_CLEAR}{line}, {name}", end="", file=sys.stderr, flush=True)
        elif not ended and time.monotonic() > self._next:
            self._next = time.monotonic() + _TELLS_SECONDS
            print(line, file=sys.stderr, flush=True)
        if ended:
            print(f"{_CLEAR * self._in_place}{name}: {kills_so_far} kills", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
