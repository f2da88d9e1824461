"""Make a fresh report of the crash matrix.

    python -m crashtests.reproduce --output work/crash-matrix.json

Writes the report, a table in Markdown and a picture beside it, and judges them before it says that
it is done. Workers run one after another.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crashtests import about, command, judgement, picture, table
from crashtests.cases import CASES, Case
from crashtests.evidence import database_of, ledger_of
from crashtests.independent.lifecycle import Lifecycle
from crashtests.output import output, publish
from crashtests.parent import Worker
from crashtests.verify import FORMAT, findings

Report = dict[str, Any]


def run_case(case: Case, folder: Path) -> Report:
    """Run one case in an empty folder, and return its evidence."""
    folder.mkdir()
    kills = []
    for number, checkpoint in enumerate(case.kills):
        act = "run" if number == 0 or case.subject == "baseline" else "resume"
        with Worker(folder, case.subject, act, checkpoint) as worker:
            killed = worker.killed_at(checkpoint)
        kills.append(
            {
                "checkpoint": checkpoint,
                "handshake": killed.handshake,
                "pid": killed.pid,
                "termination": killed.termination,
                "database": database_of(folder),
                "ledger": ledger_of(folder),
            }
        )
    acts = ["resume" if case.kills and case.subject != "baseline" else "run"]
    acts += ["reconcile"] * case.reconciles
    finishes = []
    for act in acts:
        with Worker(folder, case.subject, act) as worker:
            said = worker.finished()
        finishes.append(
            {
                "act": act,
                "pid": said["pid"],
                "termination": said["termination"],
                "outcome": said["outcome"],
            }
        )
    return _judged(case, kills, finishes, folder)


def _judged(case: Case, kills: list[Report], finishes: list[Report], folder: Path) -> Report:
    database = database_of(folder)
    key = judgement.BASELINE_KEY if database is None else database["steps"][0]["key"]
    evidence: Report = {
        "case": case.name,
        "subject": case.subject,
        "key": key,
        "kills": kills,
        "finishes": finishes,
        "database": database,
        "ledger": ledger_of(folder),
    }
    outcome = judgement.outcome_of(evidence, Lifecycle())
    evidence["effects"] = judgement.effects_in(evidence["ledger"], key)
    evidence["outcome"] = outcome
    evidence["why"] = judgement.WHY.get(outcome, "")
    evidence["digest"] = judgement.digest_of(evidence)
    return evidence


def reproduce(cases: Sequence[Case], progress: Callable[[str], None]) -> Report:
    """Run the cases and return the report; raises `Fooled` if one shows nothing."""
    with tempfile.TemporaryDirectory(prefix="crash-matrix-") as scratch:
        rows = []
        for number, case in enumerate(cases, start=1):
            rows.append(run_case(case, Path(scratch) / f"case-{number}"))
            progress(f"{number:2}/{len(cases)} {case.name}: {rows[-1]['outcome']}")
        return {"format": FORMAT, "about": about.about(Path(scratch)), "cases": rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a report, and return 0 if it is sound."""
    parser = argparse.ArgumentParser(prog="python -m crashtests.reproduce", description=__doc__)
    parser.add_argument("--output", type=output, required=True, help="where the report goes (JSON)")
    parser.add_argument("--quiet", action="store_true", help="print no line for each case")
    options = parser.parse_args(arguments)
    return command.ended(lambda: _make(options.output, quiet=options.quiet))


def _make(place: Path, *, quiet: bool) -> int:
    report = reproduce(CASES, (lambda _: None) if quiet else print)
    found = findings(report)
    text = json.dumps(report, indent=1, sort_keys=True) + "\n"
    page, drawn = table.render(report), picture.render(report)
    paths = publish(place, text, page=page, picture=drawn, holds=not found)
    for finding in found:
        print(finding, file=sys.stderr)
    print(f"{len(report['cases'])} cases, {len(found)} findings: {', '.join(map(str, paths))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
