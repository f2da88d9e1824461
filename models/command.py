"""`python -m models check`: which bounds, which engines, and what is printed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import IntEnum

from models.bounds import SETS
from models.check import ENGINES, SPIN, Result, Verdict, checked
from models.engines import spin
from models.engines.search import Progress

PROGRESS_SECONDS = 5.0


class Exit(IntEnum):
    """How `check` ends; a search that hit a limit is no pass."""

    HOLDS = 0
    VIOLATED = 1
    USAGE = 2
    INCOMPLETE = 3
    DIFFERS = 4
    VACUOUS = 5
    MISSING = 6


_EXITS = {
    Verdict.VIOLATED: Exit.VIOLATED,
    Verdict.DIFFERS: Exit.DIFFERS,
    Verdict.VACUOUS: Exit.VACUOUS,
    Verdict.INCOMPLETE: Exit.INCOMPLETE,
}
"""The worst first."""


def main(arguments: Sequence[str]) -> int:
    """Run `check` and return its exit status."""
    asked = _parser().parse_args(arguments)
    engines = ENGINES if asked.engine == "all" else (asked.engine,)
    if asked.engine == SPIN and spin.missing():
        print(f"NOT RUN: spin needs {' and '.join(spin.missing())}", file=sys.stderr)
        return Exit.MISSING
    began = time.monotonic()
    results: list[Result] = []
    try:
        for result in checked(SETS[asked.bounds], engines, watch=_watched):
            results.append(result)
            if not asked.json:
                print("\n".join(_lines(result)), flush=True)
    except spin.SpinFailed as error:
        print(f"INCOMPLETE: {error}", file=sys.stderr)
        return Exit.INCOMPLETE
    if asked.json:
        rows = [asdict(result) for result in results]
        print(json.dumps({"bounds": asked.bounds, "results": rows}, indent=1, sort_keys=True))
    else:
        print(_summary(asked.bounds, results, time.monotonic() - began))
    return exit_of(results)


def exit_of(results: Iterable[Result]) -> Exit:
    """Return the status that stands for the worst of some results."""
    verdicts = {result.verdict for result in results}
    return next((code for verdict, code in _EXITS.items() if verdict in verdicts), Exit.HOLDS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m models check",
        description="Search every state of the model within named bounds.",
    )
    parser.add_argument("--bounds", choices=SETS, default="quick", help="default: quick")
    parser.add_argument("--engine", choices=("all", *ENGINES), default="all", help="default: all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _watched(engine: str, bounds: str) -> Progress:
    """Return a function that prints how far an engine is, now and then."""
    said = time.monotonic()

    def progress(states: int, edges: int) -> None:
        nonlocal said
        if time.monotonic() - said >= PROGRESS_SECONDS:
            said = time.monotonic()
            print(f"  {bounds}: {engine} at {states:,} states, {edges:,} edges", file=sys.stderr)

    return progress


def _lines(result: Result) -> list[str]:
    """Return what is printed of a result: one line, and below it what there is to say."""
    if result.verdict is Verdict.NOT_RUN:
        return [f"NOT RUN: {result.engine}: {line}" for line in result.lines]
    counted = f"{result.states:>11,} states {result.edges:>12,} edges {result.seconds:>6.1f} s"
    where = f"{result.kind:<7} {result.bounds:<28} {result.engine:<7}"
    agrees = result.verdict is Verdict.HOLDS and result.lines
    first = f"{where} {result.verdict.upper() if _bad(result) else result.verdict:<10} {counted}"
    if agrees:
        return [f"{first}  {result.lines[0]}"]
    return [first, *(f"    {line}" for line in result.lines)]


def _bad(result: Result) -> bool:
    return result.verdict is not Verdict.HOLDS


def _summary(bounds: str, results: Sequence[Result], seconds: float) -> str:
    held = sum(result.verdict is Verdict.HOLDS for result in results)
    missing = [result for result in results if result.verdict is Verdict.NOT_RUN]
    states = sum(result.states for result in results)
    says = f"bounds {bounds}: {held} of {len(results)} checks hold, {states:,} states visited"
    if missing:
        says += f"; NOT RUN: {', '.join(result.engine for result in missing)}"
    return f"{says}, {seconds:.0f} s"
