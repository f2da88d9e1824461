"""A record in words: the tables of docs/performance.md."""

from __future__ import annotations

from typing import Any


def tables(record: dict[str, Any]) -> str:
    """Return what the page says of a record, in Markdown."""
    measures = record["measures"]
    return "\n\n".join(
        [
            machine(record),
            bars(record["bars"]),
            _speeds(measures),
            _restart(measures["restart"]),
            _verify(measures),
            _files(measures),
            _processor(measures["processor"]),
        ]
    )


def said(value: float) -> str:
    """Return a figure with three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine(record: dict[str, Any]) -> str:
    """Return when and on what a record was made."""
    about, found = record["about"], record["machine"]
    memory = found["memory_bytes"] / 1024**3
    words = (
        f"Measured {about['created']} at revision `{about['revision'][:12]}`"
        f"{'' if about['clean'] else ' with changes'}: "
        f"{found['processors']} processors ({found['processor']}), {memory:.0f} GB, "
        f"{about['platform']}, {about['file_system']}, Python {about['python']}, SQLite "
        f"{about['sqlite']}, apsw {found['apsw']}; load before the first measure "
        f"{found['load']:.2f}."
    )
    if found["load"] > 0.5:
        words += "\n".join(
            [
                "",
                "",
                "**Other programs were at work meanwhile; take these figures as provisional.**",
            ]
        )
    return words


def bars(found: list[dict[str, Any]]) -> str:
    """Return each bar, with what was measured."""
    lines = ["| what | measured | bar | reached |", "|---|---|---|---|"]
    for one in found:
        lines.append(f"| {one['says']} | {figure(one)} | {bar(one)} | {verdict(one)} |")
    return "\n".join(lines)


def figure(one: dict[str, Any]) -> str:
    """Return what was measured for a bar."""
    return "not measured" if one["value"] is None else said(one["value"])


def bar(one: dict[str, Any]) -> str:
    """Return what is to be reached."""
    return f"≥ {said(one['least'])}" if one["least"] is not None else f"≤ {said(one['most'])}"


def verdict(one: dict[str, Any]) -> str:
    """Return whether it is reached; nothing where that was not judged."""
    return {True: "yes", False: "**no**", None: ""}[one["reached"]]


def speed(steps: int, seconds: dict[str, Any] | None) -> str:
    """Return steps a second, the median with the least and the most."""
    if seconds is None:
        return ""
    spread = f"{said(steps / seconds['most'])} to {said(steps / seconds['least'])}"
    return f"{said(steps / seconds['median'])} ({spread})"


def _speeds(measures: dict[str, Any]) -> str:
    lines = [
        "| steps per second | ours | bare loop | two commits | append and sync |",
        "|---|---|---|---|---|",
    ]
    for name in ("new log", "grown log", "grown log, long", "grown log, no results"):
        one = measures[name]
        cells = [
            speed(one["steps"], one["seconds"].get(who))
            for who in ("ours", "bare", "two commits", "append")
        ]
        lines.append(f"| {name}, {one['steps']:,} steps | {' | '.join(cells)} |")
    one = measures["concurrent"]
    steps = one["runs"] * one["steps"]
    ours, group = (speed(steps, one["seconds"][who]) for who in ("ours", "group"))
    lines.append(
        f"| {one['runs']} runs at once, {one['steps']} steps each | {ours} | {group} (group) | | |"
    )
    return "\n".join(lines)


def _restart(one: dict[str, Any]) -> str:
    lines = [
        "| killed before its last step, spawn to finished | ours, ms | bare loop, ms |",
        "|---|---|---|",
    ]
    whole = one["steps"][-1]
    rows = [
        *((f"{steps:,} steps", f"ours, {steps}", f"bare, {steps}") for steps in one["steps"]),
        (f"{whole:,} steps, beside {one['others']:,} other runs", "ours, beside others", ""),
        (f"{whole:,} steps, its plan read and compared again", "ours, plan given again", ""),
    ]
    for what, *names in rows:
        cells = [_milliseconds(one["seconds"].get(name)) for name in names]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _milliseconds(seconds: dict[str, Any] | None) -> str:
    if seconds is None:
        return ""
    median, least, most = (seconds[key] * 1000 for key in ("median", "least", "most"))
    return f"{median:.0f} ({least:.0f} to {most:.0f})"


def _verify(measures: dict[str, Any]) -> str:
    lines = [
        "| verify | events per second | times a bare pass, which hashes | peak memory, MB |",
        "|---|---|---|---|",
    ]
    for name in ("verify, tenth", "verify"):
        one = measures[name]
        lines.append(
            f"| {one['events']:,} events | {speed(one['events'], one['seconds']['verify'])} | "
            f"{said(one['ratio']['median'])} | {one['memory_bytes'] / 1e6:.0f} |"
        )
    return "\n".join(lines)


def _files(measures: dict[str, Any]) -> str:
    lines = [
        "| per step | syncs, ours | bare | log bytes, ours | bare | file bytes, ours | bare |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ("files", "files, long"):
        one = measures[name]
        cells = [
            said(one[who][what])
            for what in ("syncs", "log_bytes", "database_bytes")
            for who in ("ours", "bare")
        ]
        lines.append(f"| {one['steps']:,} steps | {' | '.join(cells)} |")
    return "\n".join(lines)


def _processor(one: dict[str, Any]) -> str:
    step = one["seconds_per_step"]
    ours, bare = (step[who]["median"] * 1e6 for who in ("ours", "bare"))
    lines = [
        f"| the processor's time of a step: {said(ours)} µs, the bare loop's {said(bare)} µs | "
        f"share of {one['samples']:,} samples |",
        "|---|---|",
    ]
    lines += [f"| {part} | {share:.1%} |" for part, share in one["parts"].items()]
    return "\n".join(lines)
