"""Measure what the runtime costs: `python -m benchmarks`.

--output FILE   write the record, with its pictures beside it, and renew docs/performance.md
--quick         small sizes, which show only that everything works
--only NAME     one measure, or several; --list names them
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import bars, machine, page, picture, table
from benchmarks.timing import say
from crashtests import output
from crashtests.about import about

PICTURED = 10.0
"""Ratios beyond this are figures of another kind, and not in the picture."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the record where one is asked for."""
    given = _parser().parse_args(arguments)
    size = _size(given)
    place = given.place
    place.mkdir(parents=True, exist_ok=True)
    measures = bars.measures(size, place, say)
    if given.list:
        print(*measures, *bars.GROUPS, sep="\n")
        return 0
    wanted = [one for name in given.only for one in bars.GROUPS.get(name, (name,))]
    problem = _problem(set(wanted) - set(measures))
    if problem:
        print(f"benchmarks: {problem}", file=sys.stderr)
        return 2
    record = _record(size, place, measures, wanted or list(measures))
    print(json.dumps(record, indent=1) if given.json else _in_words(record))
    if given.output and (wanted or size != bars.FULL):
        print("not written: a record has every measure at its full size", file=sys.stderr)
    elif given.output:
        _write(record, given.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--output", type=output.output, help="where the record goes, as results/benchmarks.json"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one measure")
    parser.add_argument("--list", action="store_true", help="name the measures and end")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--rounds", type=int, metavar="N", help="samples of each contender")
    parser.add_argument("--events", type=int, metavar="N", help="events that are verified")
    parser.add_argument("--others", type=int, metavar="N", help="runs beside one that is restarted")
    parser.add_argument(
        "--place", type=Path, default=Path("work"), help="folder on the disk to be measured"
    )
    return parser


def _size(given: argparse.Namespace) -> bars.Size:
    size = bars.QUICK if given.quick else bars.FULL
    named = {name: getattr(given, name) for name in ("rounds", "events", "others")}
    return size._replace(**{name: value for name, value in named.items() if value is not None})


def _problem(unknown: set[str]) -> str:
    """Return why nothing can be measured, or nothing."""
    if unknown:
        return f"no measure {', '.join(map(repr, sorted(unknown)))}; --list names them"
    return "; ".join(machine.disturbances())


def _record(
    size: bars.Size,
    place: Path,
    measures: Mapping[str, Callable[[], dict[str, Any]]],
    wanted: Sequence[str],
) -> dict[str, Any]:
    made, described = about(place), machine.described()
    measured, begun = {}, time.monotonic()
    for name in wanted:
        at = time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        measured[name] = measures[name]()
        print(f"{name}: {time.monotonic() - at:.0f} s", file=sys.stderr, flush=True)
    return {
        "about": made,
        "machine": described,
        "size": size._asdict(),
        "seconds": round(time.monotonic() - begun),
        "measures": measured,
        "bars": bars.judged(measured, size),
    }


def _in_words(record: dict[str, Any]) -> str:
    missed = {True: "", False: "   not reached", None: ""}
    lines = [
        f"{table.said(one['value']):>12}  {one['says']} ({table.bar(one)}){missed[one['reached']]}"
        for one in record["bars"]
    ]
    if any(one["reached"] is None for one in record["bars"]):
        lines.append("These are not the sizes that the bars are about, so none is judged.")
    return "\n".join(lines)


def _write(record: dict[str, Any], output: Path) -> None:
    output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    found = [
        picture.Figure(one["says"], one["value"], one["least"], one["most"])
        for one in record["bars"]
        if one["value"] <= PICTURED
    ]
    ratios = picture.ratios(
        found, "Against the least that could do it; the line is the bar, and red misses it"
    )
    output.with_suffix(".svg").write_text(ratios, encoding="utf-8")
    lengths = picture.lengths(
        record["measures"]["length"], "Cost of a step against the length of its run"
    )
    output.with_name(f"{output.stem}-length.svg").write_text(lengths, encoding="utf-8")
    page.renew("make bench", table.tables(record))


if __name__ == "__main__":
    sys.exit(main())
