"""The matrix as a table in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crashtests.cases import HEADLINE


def render(report: Mapping[str, Any]) -> str:
    """Return the page that says what came out of each case."""
    about = report["about"]
    kills = sum(len(row["kills"]) for row in report["cases"])
    lines = [
        "# The crash matrix",
        "",
        "Made by `python -m crashtests.reproduce`; do not edit.",
        "",
        f"{len(report['cases'])} cases, {kills} processes ended by SIGKILL, at revision "
        f"`{about['revision'][:12]}` on {about['created']}: Python {about['python']}, "
        f"SQLite {about['sqlite']}, {about['platform']}, {about['file_system']}. "
        f"Spec version {about['spec']['version']}, moves `{about['spec']['moves'][:12]}`.",
        "",
        "Effects are counted in the tool's own ledger, which the runtime never opens.",
        "",
    ]
    rows = report["cases"]
    for title, part in (
        ("The eight", rows[: len(HEADLINE)]),
        ("Further contracts, and a second kill inside recovery", rows[len(HEADLINE) :]),
    ):
        lines += [f"## {title}", "", "| case | killed at | effects | outcome | why |"]
        lines += ["|---|---|---|---|---|"]
        lines += [_row(row) for row in part] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _row(row: Mapping[str, Any]) -> str:
    killed = ", then ".join(kill["checkpoint"] for kill in row["kills"]) or "not killed"
    cells = [row["case"], killed, str(row["effects"]), row["outcome"], row["why"]]
    return f"| {' | '.join(cells)} |"
