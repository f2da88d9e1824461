"""A record of the peers in words, and its bars."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks import table
from benchmarks.peers.measures import FULL, Size
from benchmarks.picture import Figure


class Bar(NamedTuple):
    """How many times as fast as a peer the runtime is to be."""

    measure: str
    peer: str
    least: float


BEST = "the best peer"
BARS = (
    Bar("sequential", "agent-once", 2.0),
    Bar("sequential", "langgraph", 4.0),
    Bar("sequential", "dbos", 8.0),
    Bar("concurrent", BEST, 4.0),
)
LIMITS = ("ours", "bare")
MISSING = {
    "arguments": "the arguments of a call are not on file before it",
    "result_before": "the result of a step is not on file before the next",
}
DOES = {
    "sequential": "1,000 steps, times as fast as",
    "concurrent": "100 runs of 20 steps, times as fast as",
}


def judged(measures: dict[str, Any], size: Size) -> list[dict[str, Any]]:
    """Return each bar with its figure; where the peer is not there, it has none."""
    return [_judged(bar, measures[bar.measure], size) for bar in BARS]


def _judged(bar: Bar, measured: dict[str, Any], size: Size) -> dict[str, Any]:
    factors = {
        name: one["against_ours"]["median"] for name, one in measured.items() if name not in LIMITS
    }
    value = min(factors.values(), default=None) if bar.peer == BEST else factors.get(bar.peer)
    return {
        "says": f"{DOES[bar.measure]} {bar.peer}",
        "measure": bar.measure,
        "value": value,
        "least": bar.least,
        "most": None,
        "reached": None if value is None or size != FULL else value >= bar.least,
    }


def factors(record: dict[str, Any]) -> list[Figure]:
    """Return how many times as fast as each peer the runtime is, and the bar."""
    least = {(bar.measure, bar.peer): bar.least for bar in BARS}
    kinds = {"sequential": "one run", "concurrent": "many runs at once"}
    return [
        Figure(f"{name}, {words}", one["against_ours"]["median"], least.get((measure, name)))
        for measure, words in kinds.items()
        for name, one in record["measures"][measure].items()
        if name not in LIMITS
    ]


def tables(record: dict[str, Any]) -> str:
    """Return what the page says of a record, in Markdown."""
    parts = [table.machine(record), table.bars(record["bars"]), _peers(record)]
    parts += [f"Not measured: {why}." for why in record["unavailable"].values()]
    return "\n\n".join(parts)


def _peers(record: dict[str, Any]) -> str:
    measures, size = record["measures"], record["size"]
    one_run, many_runs = f"{size['steps']:,} steps/s", f"{size['runs']} runs at once, steps/s"
    lines = [
        f"| contender | {one_run} | {many_runs} | to first call, ms | against the bare loop's "
        "| bytes per step | syncs per step | what it skips |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, one in measures["sequential"].items():
        start = measures["start"][name]
        syncs = measures["syncs"][name]
        cells = [
            " ".join(filter(None, [name, record["versions"].get(name)])),
            table.speed(size["steps"], one["seconds"]),
            table.speed(size["runs"] * size["runs_steps"], measures["concurrent"][name]["seconds"]),
            table.said(start["seconds"]["median"] * 1000),
            table.said(start["against_bare"]["median"]),
            table.said(one["database_bytes"]),
            "?" if syncs is None else f"{syncs:.2f}",
            "; ".join(skipped(name, measures)) or "nothing",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def skipped(name: str, measures: dict[str, Any]) -> list[str]:
    """Return in words what a contender leaves out, as it was found and not as it says."""
    one, seen, syncs = measures["sequential"][name], measures["look"][name], measures["syncs"][name]
    found = []
    for what, words in MISSING.items():
        if seen[what] < 1:
            often = "" if seen[what] == 0 else f" in {1 - seen[what]:.0%} of the calls"
            found.append(words + often)
    if one["synchronous"] not in ("FULL", "EXTRA"):
        found.append(f"synchronous is {one['synchronous']}")
    elif syncs is not None and syncs < 0.9:
        found.append("not each step is synced")
    if name == "bare":
        found.append("validation, hashes, recovery")
    return found
