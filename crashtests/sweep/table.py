"""The sweep as a table: in Markdown, and for a terminal. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crashtests.sweep.scenarios import SCENARIOS
from crashtests.sweep.tally import COUNTS, scenario_named

_HEADS = {
    "kills": "kills",
    "duplicates": "duplicates",
    "false_successes": "false successes",
    "lost": "lost steps",
    "denied": "said not to have happened",
    "unknown": "unknown",
    "avoidable": "avoidable unknowns",
}

_BASELINE = "the baseline: a result is kept, and what has none is made again"


def render(report: Mapping[str, Any]) -> str:
    """Return the page that says what came of the kills."""
    about, rows = report["about"], report["totals"]
    ours = [row for row in rows if scenario_named(row["scenario"]).contract]
    blind = [row for row in rows if not scenario_named(row["scenario"]).contract]
    lines = [
        "# The sweep",
        "",
        "Made by `python -m crashtests.sweep`; do not edit.",
        "",
        f"{_kills(rows)} processes ended by SIGKILL ({report['form']} form), no two of them before "
        "the same operation after the same kills, at revision "
        f"`{about['revision'][:12]}` on {about['created']}: Python {about['python']}, "
        f"SQLite {about['sqlite']}, {about['platform']}, {about['file_system']}.",
        "",
        f"Of {_kills(ours)} kills, {_share(ours, 'duplicates')} ended with a duplicate effect; of "
        f"{_kills(blind)} kills of a blind retry, {_share(blind, 'duplicates')}.",
        "",
        "A number is that of the kills after which it was so, in the end of a recovery that nobody "
        "disturbed. Effects are counted in the tool's own ledger.",
        "",
        f"| scenario | path | {' | '.join(_HEADS.values())} |",
        f"|---|---|{'---:|' * len(_HEADS)}",
        *(f"| {' | '.join(_cells(row))} |" for row in rows),
        "",
        "## Scenarios",
        "",
        *(f"- `{scenario.name}`: {_said(scenario.name)}" for scenario in SCENARIOS),
    ]
    return "\n".join(lines) + "\n"


def totals(report: Mapping[str, Any]) -> str:
    """Return the totals as lines of text."""
    table = [["scenario", "path", *_HEADS.values()], *(_cells(row) for row in report["totals"])]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = []
    for line in table:
        numbers = (cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True))
        lines.append("  ".join([line[0].ljust(widths[0]), line[1].ljust(widths[1]), *numbers]))
    return "\n".join(lines)


def _cells(row: Mapping[str, Any]) -> list[str]:
    assert tuple(_HEADS)[1:] == COUNTS, "each count has its column"
    return [row["scenario"], row["path"], *(str(row[name]) for name in _HEADS)]


def _kills(rows: list[Mapping[str, Any]]) -> int:
    return sum(row["kills"] for row in rows)


def _share(rows: list[Mapping[str, Any]], name: str) -> str:
    count, kills = sum(row[name] for row in rows), _kills(rows)
    return f"{count} ({100 * count / kills:.1f} %)" if count else "0"


def _said(name: str) -> str:
    """Return in words what a scenario is."""
    scenario = scenario_named(name)
    if not scenario.contract:
        return _BASELINE
    parts = [f"an adapter with the contract {scenario.contract}"]
    if scenario.creates:
        parts = ["the database is made, and opened for the first time; the same for all contracts"]
    if scenario.late:
        parts.append("resumed after the key window has lapsed, by when the provider has forgotten")
    if scenario.patient:
        parts.append("resumed again from the moment at which the probe's answer counts")
    if len(scenario.steps) > 1:
        parts.append(f"a plan of {len(scenario.steps)} steps")
    return ", ".join(parts)
