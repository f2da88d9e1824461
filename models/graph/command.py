"""`python -m models graph`: compare the graph of the shipped store with the spec's.

Exit codes: 0 the graphs are equal; 1 they differ, and each difference is printed with a way there;
2 the arguments are wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from models.graph.bounds import BOUNDS
from models.graph.compare import Comparison, Task, Total, compare, tasks
from models.graph.expected import product_size

EQUAL = 0
DIFFERENT = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    total = Total()
    wanted = tasks(BOUNDS[options.bounds], refused=not options.permitted_only)
    for one in _compared(wanted, options.processes):
        total.add(one)
        _show_progress(f"{total.plans} of {len(wanted)} plans, {total.states:,} states")
    _show_progress("")
    seconds = time.monotonic() - began
    if options.json:
        print(json.dumps(_as_json(total, options.bounds, seconds), indent=2, sort_keys=True))
    else:
        print(as_text(total, options.bounds, seconds))
    return EQUAL if total.equal else DIFFERENT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m models graph", description=__doc__)
    parser.add_argument("--bounds", choices=sorted(BOUNDS), default="full")
    parser.add_argument(
        "--permitted-only",
        action="store_true",
        help="offer what the spec permits, and leave out what must be refused",
    )
    parser.add_argument("--processes", type=_at_least_one, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"1 or more, not {number}")
    return number


def _compared(wanted: list[Task], processes: int) -> Iterator[Comparison]:
    if processes == 1:
        yield from map(compare, wanted)
        return
    context = multiprocessing.get_context("spawn")
    ignores = (signal.SIGINT, signal.SIG_IGN)  # this process ends them
    with context.Pool(min(processes, len(wanted)), signal.signal, ignores) as pool:
        yield from pool.imap_unordered(compare, wanted)


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# --- what is printed ----------------------------------------------------------------------------


def as_text(total: Total, bounds: str, seconds: float) -> str:
    """Return the result for people."""
    lines = [
        f"bounds {bounds}: attempts {BOUNDS[bounds].attempts}, epochs {BOUNDS[bounds].epochs}, "
        f"{total.plans} plans of two steps",
        f"spec: {total.states:,} states, {total.edges:,} edges",
    ]
    for way, states in sorted(total.walked_states.items()):
        lines.append(
            f"store, by {way}: {states:,} states, {total.walked_edges[way]:,} edges, "
            f"{total.refused[way]:,} offers refused"
        )
    lines += [
        f"rows of the spec's product gone along: {len(total.rows)} of {product_size()}",
        f"states come to by two histories of moves: {total.two_histories:,} (to the others there "
        "is one way only; their two histories differ in all but the moves)",
        f"states that differ by more than the contract of an untouched step: {total.distinct:,}",
        f"states without the clock readings: {total.without_readings:,}",
    ]
    for number, difference in enumerate(total.differences, start=1):
        lines.append(f"\ndifference {number}\n{difference.text()}")
    verdict = "equal" if total.equal else "DIFFERENT"
    lines.append(f"the graphs are {verdict} ({seconds:.1f} s)")
    return "\n".join(lines)


def _as_json(total: Total, bounds: str, seconds: float) -> dict[str, object]:
    return {
        "bounds": {"name": bounds, **BOUNDS[bounds]._asdict()},
        "differences": [difference._asdict() for difference in total.differences],
        "equal": total.equal,
        "plans": total.plans,
        "product_rows": {"expected": product_size(), "gone_along": len(total.rows)},
        "refusals_by_hand": dict(total.reasons),
        "refused": dict(total.refused),
        "seconds": round(seconds, 1),
        "spec": {"states": total.states, "edges": total.edges},
        "states_by_two_histories": total.two_histories,
        "states_distinct": total.distinct,
        "states_without_readings": total.without_readings,
        "store": {
            way: {"states": states, "edges": total.walked_edges[way]}
            for way, states in sorted(total.walked_states.items())
        },
    }


if __name__ == "__main__":
    sys.exit(main())
