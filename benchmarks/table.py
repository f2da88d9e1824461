"""A record in words: the tables of docs/performance.md."""

from __future__ import annotations

from typing import Any

from benchmarks.bars import BARS, Bar


def tables(record: dict[str, Any]) -> str:
    """Return what the page says of a record, in Markdown."""
    return "\n\n".join(
        [
            _machine(record["about"]),
            _bars(record["bars"]),
            _speeds(record["measures"]),
            _restart(record["measures"]),
        ]
    )


def said(value: float) -> str:
    """Return a figure with three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _machine(about: dict[str, Any]) -> str:
    memory = about["memory_bytes"] / 1024**3
    return (
        f"Measured {about['created']} at revision `{about['revision'][:12]}`: "
        f"{about['processors']} processors ({about['processor']}), {memory:.0f} GB, "
        f"{about['platform']}, {about['file_system']}, Python {about['python']}, SQLite "
        f"{about['sqlite']}; load before the first measure {about['load']:.2f}."
    )


def _bars(found: list[dict[str, Any]]) -> str:
    lines = ["| what | measured | bar | reached |", "|---|---|---|---|"]
    for one in found:
        bar = f"≥ {said(one['least'])}" if one["least"] is not None else f"≤ {said(one['most'])}"
        reached = "yes" if one["reached"] else "**no**"
        lines.append(f"| {one['says']} | {said(one['value'])} | {bar} | {reached} |")
    return "\n".join(lines)


def _speeds(measures: dict[str, Any]) -> str:
    """Return steps a second, medians with the least and the most."""
    lines = [
        "| steps per second | ours | bare loop | two commits | append and sync |",
        "|---|---|---|---|---|",
    ]
    for name in ("new log", "grown log", "grown log, long"):
        one = measures[name]
        cells = [
            _speed(one["steps"], one["seconds"].get(who))
            for who in ("ours", "bare", "two commits", "append")
        ]
        lines.append(f"| {name}, {one['steps']:,} steps | {' | '.join(cells)} |")
    one = measures["concurrent"]
    steps = one["runs"] * one["steps"]
    ours, group = (_speed(steps, one["seconds"][who]) for who in ("ours", "group"))
    lines.append(
        f"| {one['runs']} runs at once, {one['steps']} steps each | {ours} | {group} (group) | | |"
    )
    return "\n".join(lines)


def _speed(steps: int, seconds: dict[str, Any] | None) -> str:
    if seconds is None:
        return ""
    spread = f"{said(steps / seconds['most'])} to {said(steps / seconds['least'])}"
    return f"{said(steps / seconds['median'])} ({spread})"


def _restart(measures: dict[str, Any]) -> str:
    lines = [
        "| killed before its last step, spawn to finished | ours, ms | bare loop, ms |",
        "|---|---|---|",
    ]
    for name in ("resume, quarter", "resume, half", "resume", "resume, others"):
        one = measures[name]
        beside = f", beside {one['others']:,} other runs" if one["others"] else ""
        cells = [f"{one['seconds'][who]['median'] * 1000:.0f}" for who in ("ours", "bare")]
        lines.append(f"| {one['steps']:,} steps{beside} | {' | '.join(cells)} |")
    return "\n".join(lines)


def judged(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each bar with its figure, and whether it is reached."""
    return [_judged(bar, measured) for bar in BARS if bar.measure in measured]


def _judged(bar: Bar, measured: dict[str, Any]) -> dict[str, Any]:
    return {
        "says": bar.says,
        "measure": bar.measure,
        "value": bar.value(measured),
        "least": bar.least,
        "most": bar.most,
        "reached": bar.reached(measured),
    }
