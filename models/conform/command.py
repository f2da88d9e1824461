"""`python -m models conform FILE`: is every history in a file a path of the spec?

Each row must be a row of the spec's product at its place, with the moves of the run that ride in
it, the attempt, the epoch and the writer that the rules give; and it must be one that the shipped
decision function can have asked for in the situation that the rows before it make. The file is only
read. Whether its bytes are those that were written is another question: `agent-replay verify`.

Exit codes: 0 every history conforms; 1 some row does not, and the first one of each run is printed;
2 the file cannot be read as a history of this spec, or the arguments are wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from agent_replay.errors import ReplayError
from crashtests.independent.lifecycle import Lifecycle
from models.conform.decision import decision_problems
from models.conform.path import Path, registration_findings
from models.conform.rows import Finding, Histories, RunOf, read

CONFORMS = 0
DIFFERS = 1
UNREADABLE = 2


def findings(path: str | os.PathLike[str], *, decisions: bool = True) -> list[Finding]:
    """Return what in a file is no path; each run is judged up to its first bad row.

    Raises `ReplayError` if the file cannot be read. Without `decisions` only the spec's product is
    asked, as for rows that a test has appended by itself.
    """
    return findings_in(read(path), decisions=decisions)


def findings_in(histories: Histories, *, decisions: bool = True) -> list[Finding]:
    """Return what in these histories is no path."""
    found = [
        Finding(f"number {number}", 0, "steps or events of a run that is not there", "none of them")
        for number in histories.strays
    ]
    for run in histories.runs:
        found += registration_findings(run, histories.namespace, histories.writers)
        if len(run.steps) == run.steps_registered:  # else no row has a step to be judged by
            found += _run_findings(run, histories.writers, decisions=decisions)
    return found


def _run_findings(run: RunOf, writers: dict[int, bytes], *, decisions: bool) -> Iterator[Finding]:
    path = Path(run, _lifecycle(), writers)
    for row in run.rows:
        problem = path.problem(row)
        if problem is not None:
            yield problem
            return
        problems = list(decision_problems(path, row)) if decisions else []
        if problems:
            yield from problems
            return
        path.take(row)
    if decisions and not run.rows:
        yield Finding(run.id, 0, "a run without events", "a run registered with its first request")
    elif decisions and run.rows[-1].event == "adopt":
        last = run.rows[-1]
        yield path.finding(
            last, "an adopt as the last row", "an adopt with the row it was made for"
        )


@cache
def _lifecycle() -> Lifecycle:
    return Lifecycle()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m models conform", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        _lifecycle()  # of a spec that cannot be read nothing can be said
        histories = read(options.file)
    except (ReplayError, OSError, ValueError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return UNREADABLE
    found = findings_in(histories)
    if options.json:
        print(json.dumps(_as_json(histories, found), indent=2, sort_keys=True))
    else:
        for finding in found:
            print(finding.text())
        verdict = f"{len(found)} findings" if found else "every history conforms"
        print(f"{len(histories.runs)} runs, {_rows(histories)} rows: {verdict}")
        if histories.archived:
            print(f"{histories.archived} more runs are archived, and were not looked at")
    return DIFFERS if found else CONFORMS


def _rows(histories: Histories) -> int:
    return sum(len(run.rows) for run in histories.runs)


def _as_json(histories: Histories, found: list[Finding]) -> dict[str, object]:
    return {
        "conforms": not found,
        "findings": [finding._asdict() for finding in found],
        "rows": _rows(histories),
        "archived": histories.archived,
        "runs": len(histories.runs),
    }


if __name__ == "__main__":
    sys.exit(main())
