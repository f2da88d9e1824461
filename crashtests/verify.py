"""Judge a report of the crash matrix, trusting nothing in it and nothing of the runtime.

    python -m crashtests.verify results/crash-matrix.json [--recorded]

Uses the standard library and `spec/*.toml` only, so it runs on a bare clone. It computes every
chain anew, replays every history through the spec's tables, derives each outcome from the rows, and
checks that each kill was reached, that it was a SIGKILL, and that the cases are exactly the
expected ones. It compares the sources with the checkout; `--recorded` accepts a difference there,
and there alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crashtests import judgement, sources
from crashtests.cases import CASES
from crashtests.independent.history import Impossible
from crashtests.independent.lifecycle import SPEC_FOLDER, Lifecycle, file_digest

FORMAT = 1
ABOUT_FIELDS = {
    *("created", "revision", "clean", "python", "sqlite", "platform", "file_system"),
    *("spec", "sources", "digest"),
}
_FORMS = {
    "created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "revision": r"[0-9a-f]{40}|unknown",
    "python": r"3\.\d+\.\d+\S*",
    "sqlite": r"3\.\d+\.\d+",
    "platform": r"\S+ \S+ \S+",
    "file_system": r"\S+",
}
_DIGEST = r"[0-9a-f]{64}"
_SOURCE = r"(spec|runtime/agent_replay|crashtests)/[a-z0-9_/]+\.(py|sql|toml)"
EMPTY = "the report holds no case"


def findings(report: Any, *, recorded: bool = False) -> list[str]:
    """Return what is wrong with a report, each with its place; nothing if it holds."""
    if not isinstance(report, dict) or report.keys() != {"format", "about", "cases"}:
        return ["the report: it is not an object with format, about and cases"]
    if type(report["format"]) is not int or report["format"] != FORMAT:
        return [f"format: {report['format']!r}, and this verifier knows {FORMAT}"]
    found = [f"about: {problem}" for problem in _guarded(_about, report["about"])]
    if not recorded:
        found += [f"sources: {said}" for said in _drift(report)]
    found += list(_cases(report["cases"]))
    return found + list(_guarded(_written_under, report))


def _guarded(judge: Any, *given: Any) -> Iterator[str]:
    """Yield what `judge` yields; what it stumbles over is a malformed report, and named."""
    try:
        yield from judge(*given)
    except (KeyError, IndexError) as error:
        yield f"malformed: {error} is missing"
    except (TypeError, ValueError, AttributeError, Impossible) as error:
        yield f"malformed: {error}"


def _about(about: Mapping[str, Any]) -> Iterator[str]:
    for field in sorted(about.keys() ^ ABOUT_FIELDS):
        yield f"the field {field!r} is {'missing' if field in ABOUT_FIELDS else 'foreign'}"
    for field, form in _FORMS.items():
        if not re.fullmatch(form, about[field]):
            yield f"{field}: {about[field]!r} is not of the form {form}"
    if type(about["clean"]) is not bool:
        yield "clean: it is true or false"
    if about["digest"] != judgement.digest_of(about):
        yield "digest: something about the report was changed"
    yield from _spec(about["spec"], about["sources"])


def _spec(spec: Mapping[str, Any], recorded: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with what a report says of its spec."""
    if spec.keys() != {"version", "moves", "files"}:
        yield "spec: it has version, moves and files"
    if type(spec["version"]) is not int or spec["version"] != Lifecycle().version:
        yield f"spec.version: {spec['version']}, the checkout has {Lifecycle().version}"
    digests = {**recorded, "spec.moves": spec["moves"], "spec.files": spec["files"]}
    for name, digest in digests.items():
        if not re.fullmatch(_DIGEST, digest):
            yield f"{name}: {digest!r} is no SHA-256"
    for name in recorded:
        if not re.fullmatch(_SOURCE, name):
            yield f"sources: {name!r} is not one of the files that a result can depend on"
    here = sources.hashes()
    names = ("spec/step.toml", "spec/run.toml")
    unchanged = all(recorded[name] == here[name] for name in names)
    if unchanged and spec["files"] != file_digest(SPEC_FOLDER):
        yield "spec.files: it is not the digest of the files whose hashes stand beside it"


def _written_under(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cases with a history that was written under another spec than the report names."""
    moves = report["about"]["spec"]["moves"]
    for row in report["cases"]:
        histories = [stage["database"] for stage in (*row["kills"], row) if stage["database"]]
        rows = [row for history in histories for row in (history["identity"], *history["writers"])]
        if any(one["spec"] != moves for one in rows):
            yield f"case {row['case']!r}: its history is of another spec than about.spec.moves"


def _drift(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield each source that differs from the one that the report was made with."""

    def compare() -> Iterator[str]:
        yield from sources.drift(report["about"]["sources"])

    yield from _guarded(compare)


def _cases(rows: Any) -> Iterator[str]:
    if not isinstance(rows, list) or not rows:
        yield f"cases: {EMPTY}"
        return
    names = [row.get("case") if isinstance(row, dict) else None for row in rows]
    yield from _names(names)
    lifecycle = Lifecycle()
    by_name = {case.name: case for case in CASES}
    for name, row in zip(names, rows, strict=True):
        if name in by_name:
            for problem in _guarded(judgement.complaints, row, by_name[name], lifecycle):
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
    """Judge a report; return 0 if it holds, 1 if not, 2 if it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m crashtests.verify", description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--recorded", action="store_true", help="accept sources that have changed")
    options = parser.parse_args(arguments)
    try:
        report = read(options.report)
    except (OSError, ValueError, RecursionError) as error:
        print(f"{options.report}: it cannot be read: {error}", file=sys.stderr)
        return 2
    found = findings(report, recorded=options.recorded)
    for finding in found:
        print(finding)
    if options.recorded and not found:
        for said in _drift(report):
            print(f"accepted, since --recorded was given: {said}")
    if not found:
        kills = sum(len(row["kills"]) for row in report["cases"])
        print(f"{options.report}: {len(report['cases'])} cases with {kills} kills hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
