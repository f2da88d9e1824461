"""Judge a report, trusting nothing in it and nothing of the runtime.

    python -m crashtests.verify results/crash-matrix.json [--recorded]

Reads the report of the matrix and that of the sweep, by what is in it. Uses the standard library
and `spec/*.toml` only, so it runs on a bare clone. It computes every chain anew, replays every
history through the spec's tables, derives each outcome from the rows, and checks that each kill was
reached, that it was a SIGKILL, and that the cases are exactly the expected ones. It compares the
sources with the checkout; `--recorded` accepts a difference there, and there alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crashtests import judgement, provenance
from crashtests.cases import CASES
from crashtests.independent.lifecycle import Lifecycle
from crashtests.sweep import verify as sweep

FORMAT = 1
EMPTY = "the report holds no case"


def findings(report: Any, *, recorded: bool = False) -> list[str]:
    """Return what is wrong with a report, each with its place; nothing if it holds."""
    if isinstance(report, dict) and "scenarios" in report:
        return sweep.findings(report, recorded=recorded)
    if not isinstance(report, dict) or report.keys() != {"format", "about", "cases"}:
        return ["the report: it is not an object with format, about and cases"]
    if type(report["format"]) is not int or report["format"] != FORMAT:
        return [f"format: {report['format']!r}, and this verifier knows {FORMAT}"]
    found = provenance.findings(report["about"], recorded=recorded)
    found += list(_cases(report["cases"]))
    return found + list(provenance.guarded(_written_under, report))


def _written_under(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cases with a history that was written under another spec than the report names."""
    moves = report["about"]["spec"]["moves"]
    for row in report["cases"]:
        histories = [stage["database"] for stage in (*row["kills"], row) if stage["database"]]
        rows = [row for history in histories for row in (history["identity"], *history["writers"])]
        if any(one["spec"] != moves for one in rows):
            yield f"case {row['case']!r}: its history is of another spec than about.spec.moves"


def _cases(rows: Any) -> Iterator[str]:
    if not isinstance(rows, list) or not rows:
        yield f"cases: {EMPTY}"
        return
    names = [str(row.get("case")) if isinstance(row, dict) else "None" for row in rows]
    yield from _names(names)
    lifecycle = Lifecycle()
    by_name = {case.name: case for case in CASES}
    for name, row in zip(names, rows, strict=True):
        if name in by_name:
            for problem in provenance.guarded(judgement.complaints, row, by_name[name], lifecycle):
                yield f"case {name!r}, {problem}"


def _names(names: list[Any]) -> Iterator[str]:
    """Yield where the cases are not exactly the expected ones, in their order."""
    expected = [case.name for case in CASES]
    if names == expected:
        return
    yield "cases: they are not those of the matrix, in its order"
    for name in dict.fromkeys(map(str, names)):
        if name not in expected:
            yield f"cases: {name!r} is not one of the matrix"
        elif names.count(name) > 1:
            yield f"cases: {name!r} stands there {names.count(name)} times"
    for name in expected:
        if name not in names:
            yield f"cases: {name!r} is missing"


def read(path: Path) -> Any:
    """Return the report in a file; raises OSError or ValueError."""
    return json.loads(path.read_bytes())


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a report; return 0 if it holds, 1 if not, 2 if it or the spec cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m crashtests.verify", description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--recorded", action="store_true", help="accept sources that have changed")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        Lifecycle()
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"spec/: it cannot be read: {error}", file=sys.stderr)
        return 2
    try:
        report = read(options.report)
    except (OSError, ValueError, RecursionError) as error:
        print(f"{options.report}: it cannot be read: {error}", file=sys.stderr)
        return 2
    found = findings(report, recorded=options.recorded)
    for finding in found:
        print(finding)
    if options.recorded and not found:
        for said in provenance.drift(report["about"]):
            print(f"accepted, since --recorded was given: {said}")
    if not found:
        print(f"{options.report}: {_summary(report)}")
    return 1 if found else 0


def _summary(report: Any) -> str:
    if "scenarios" in report:
        return sweep.summary(report)
    kills = sum(len(row["kills"]) for row in report["cases"])
    return f"{len(report['cases'])} cases with {kills} kills hold"


if __name__ == "__main__":
    sys.exit(main())
