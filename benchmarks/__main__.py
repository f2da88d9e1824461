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
from pathlib import Path
from typing import Any

from benchmarks import bars, machine, page, picture, table

PICTURED = 4.0
"""Ratios beyond this are figures of another kind, and not in the picture."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the record where one is asked for."""
    given = _parser().parse_args(arguments)
    size = bars.QUICK if given.quick else bars.FULL
    place = given.place
    place.mkdir(parents=True, exist_ok=True)
    measures = bars.measures(size, place, _say)
    if given.list:
        print(*measures, *bars.GROUPS, sep="\n")
        return 0
    wanted = [one for name in given.only for one in bars.GROUPS.get(name, (name,))]
    unknown = sorted(set(wanted) - set(measures))
    if unknown:
        names = ", ".join(map(repr, unknown))
        print(f"benchmarks: no measure {names}; --list names them", file=sys.stderr)
        return 2
    about = machine.described(place)
    measured = {}
    for name in wanted or measures:
        begun = time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        measured[name] = measures[name]()
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    record = {"about": about, "measures": measured, "bars": table.judged(measured)}
    _print(record, as_json=given.json)
    if given.output:
        _write(record, given.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--output", type=Path, help="where the record goes, as results/benchmarks.json"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one measure")
    parser.add_argument("--list", action="store_true", help="name the measures and end")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument(
        "--place", type=Path, default=Path("work"), help="folder on the disk to be measured"
    )
    return parser


def _say(words: str) -> None:
    print(f"  {words}", file=sys.stderr, flush=True)


def _print(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(record, indent=1))
        return
    for one in record["bars"]:
        bar = (
            f"at least {one['least']:g}" if one["least"] is not None else f"at most {one['most']:g}"
        )
        missed = "" if one["reached"] else "   not reached"
        print(f"{table.said(one['value']):>12}  {one['says']} ({bar}){missed}")


def _write(record: dict[str, Any], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    found = [
        (one["says"], one["value"], one["least"] or one["most"])
        for one in record["bars"]
        if one["value"] <= PICTURED
    ]
    ratios = picture.ratios(found, "Against the least that could do it; the line is the bar")
    output.with_suffix(".svg").write_text(ratios, encoding="utf-8")
    if "length" in record["measures"]:
        lengths = picture.lengths(
            record["measures"]["length"], "Cost of a step against the length of its run"
        )
        output.with_name(f"{output.stem}-length.svg").write_text(lengths, encoding="utf-8")
    page.renew(record)


if __name__ == "__main__":
    sys.exit(main())
