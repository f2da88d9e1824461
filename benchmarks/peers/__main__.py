"""Measure what others cost for the same work: `python -m benchmarks.peers`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import machine, page, picture
from benchmarks.peers import environments, measures, table
from benchmarks.timing import say
from crashtests import output
from crashtests.about import about


def main(arguments: list[str] | None = None) -> int:
    """Make the environments, measure, print, and write the record where one is asked for."""
    given = _parser().parse_args(arguments)
    size = measures.QUICK if given.quick else measures.FULL
    given.place.mkdir(parents=True, exist_ok=True)
    unknown = set(given.only) - {peer.name for peer in environments.PEERS}
    if unknown:
        print(f"benchmarks: no peer {', '.join(map(repr, sorted(unknown)))}", file=sys.stderr)
        return 2
    record = _record(size, given.place, given.only)
    print(json.dumps(record, indent=1) if given.json else table.tables(record))
    if given.output and (given.only or size != measures.FULL):
        print("not written: a record has every peer at its full size", file=sys.stderr)
    elif given.output:
        _write(record, given.output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--output", type=output.output, help="where the record goes; renews the page, too"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one peer")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument(
        "--place", type=Path, default=Path("work"), help="folder on the disk to be measured"
    )
    return parser


def _record(size: measures.Size, place: Path, only: list[str]) -> dict[str, Any]:
    pythons, versions, unavailable = dict(measures.OURS), {}, {}
    for peer in environments.PEERS:
        if only and peer.name not in only:
            continue
        try:
            pythons[peer.name] = environments.python_of(peer, say)
            versions[peer.name] = environments.version(peer)
        except environments.Unavailable as error:
            unavailable[peer.name] = str(error)
    made, described, begun = about(place), machine.described(), time.monotonic()
    measured = measures.all_of(size, pythons, place, say)
    return {
        "about": made,
        "machine": described,
        "size": size._asdict(),
        "seconds": round(time.monotonic() - begun),
        "versions": versions,
        "unavailable": unavailable,
        "measures": measured,
        "bars": table.judged(measured, size),
    }


def _write(record: dict[str, Any], place: Path) -> None:
    place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    drawn = picture.ratios(table.factors(record), "How many times as fast as each peer")
    place.with_suffix(".svg").write_text(drawn, encoding="utf-8")
    page.renew("make bench-peers", table.tables(record))


if __name__ == "__main__":
    sys.exit(main())
