"""The sweep as a picture: for each scenario, its operations in order, and what came of each kill.

A column is an operation of the first run. The upper band is a kill before it; below it are the
kills of the recovery after that, and of the recovery of the recovery, as shares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from xml.sax.saxutils import escape

from crashtests import svg
from crashtests.independent.lifecycle import Lifecycle
from crashtests.sweep.judge import WORDS
from crashtests.sweep.scenarios import PATHS
from crashtests.sweep.tally import came_of

COLOURS = {
    "once": "#2e7d32",
    "unknown": "#d69e2e",
    "avoidable": "#7c3aed",
    "duplicates": "#b91c1c",
    "false_successes": "#7f1d1d",
    "lost": "#0f172a",
    "denied": "#be185d",
}
_MEANINGS = {
    "once": "exactly once (or, for read_only, answered)",
    "unknown": "unknown, and said so",
    "avoidable": "unknown without need",
    "duplicates": "duplicate effect",
    "false_successes": "false success",
    "lost": "lost step",
    "denied": "said not to have happened",
}
_SIGNS = {"write": "w", "sync": "s", "lock": "·", "truncate": "t", "delete": "d", "rename": "n"}
_SIGN_OF_TOOL = {"call": "▼", "reply": "▲", "probe": "▼", "answer": "▲"}
_SIZE = 12
_text = partial(svg.text, size=_SIZE)
_LEFT, _TOP, _CELL, _BAND, _GAP = 190, 112, 8, 18, 26
_BANDS = {"run": "first run", "recovery": "recovery", "recovery-of-recovery": "recovery of that"}


def render(report: Mapping[str, Any]) -> str:
    """Return the picture as SVG."""
    lifecycle = Lifecycle()
    parts: list[str] = []
    y, columns_max = _TOP, 0
    for told in report["scenarios"]:
        columns = _columns(told, lifecycle)
        columns_max = max(columns_max, len(columns["run"]))
        parts += _scenario(told, columns, y)
        y += 14 + sum(_BAND for path in PATHS if columns[path]) + _GAP
    width = _LEFT + columns_max * _CELL + 20
    title = "The sweep: what came of a kill before each operation"
    parts = [*_heading(report), *parts]
    return svg.document(parts, width=width, height=y, title=title, size=_SIZE)


def _heading(report: Mapping[str, Any]) -> Iterator[str]:
    kills = sum(row["kills"] for row in report["totals"])
    yield _text(16, 24, f"{kills} kills: a column is an operation of the first run", size=15)
    yield _text(
        16,
        44,
        "w write  s sync  · lock of the wal-index  t truncate  d delete  n rename  "
        "▼ the tool is about to be called  ▲ it has answered",
        colour="#475569",
    )
    yield _text(
        16,
        62,
        "A gap: the kill left the same files as the one before, which are recovered from once.",
        colour="#475569",
    )
    words = {word for word in WORDS if any(row.get(word) for row in report["totals"])} | {"once"}
    x = 16
    for word in (word for word in WORDS if word in words):
        yield f'<rect x="{x}" y="76" width="12" height="12" fill="{COLOURS[word]}"/>'
        yield _text(x + 18, 86, _MEANINGS[word])
        x += 40 + 7 * len(_MEANINGS[word])


def _columns(told: Mapping[str, Any], lifecycle: Lifecycle) -> dict[str, dict[int, Counter[str]]]:
    """Return for each path what came of its kills, by the operation of the first run."""
    words = [came.word for came in came_of(told, lifecycle)]
    columns: dict[str, dict[int, Counter[str]]] = {path: {} for path in PATHS}
    for row in told["paths"]:
        for after in row["after"]:
            for number, state in enumerate(row["states"]):
                column = after[0] if after else number
                columns[row["path"]].setdefault(column, Counter())[words[state]] += 1
    return columns


def _scenario(
    told: Mapping[str, Any], columns: Mapping[str, dict[int, Counter[str]]], y: int
) -> Iterator[str]:
    yield _text(16, y + 12, told["scenario"], size=13)
    first = next(row for row in told["paths"] if row["path"] == "run")
    for number, kind in enumerate(first["recorded"]):
        operation, file = told["kinds"][kind]
        sign = _SIGNS.get(operation) or _SIGN_OF_TOOL.get(operation, "?")
        x = _LEFT + number * _CELL + _CELL // 2
        yield (
            f'<text x="{x}" y="{y + 10}" text-anchor="middle" font-size="8" fill="#475569">'
            f"{sign}<title>{escape(f'{number}: {operation} {file}')}</title></text>"
        )
    y += 14
    for path in PATHS:
        if columns[path]:
            yield _text(_LEFT - 8, y + 13, _BANDS[path], anchor="end", colour="#475569", size=10)
            for number, counts in columns[path].items():
                yield from _stack(_LEFT + number * _CELL, y, counts)
            y += _BAND


def _stack(x: int, y: int, counts: Counter[str]) -> Iterator[str]:
    """Yield one column of a band, divided as its kills came out."""
    total, height = sum(counts.values()), _BAND - 2
    said = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    yield f"<g><title>{said}</title>"
    top = float(y)
    for word in WORDS:
        if counts[word]:
            part = height * counts[word] / total
            yield (
                f'<rect x="{x}" y="{top:.1f}" width="{_CELL - 1}" height="{part:.1f}" '
                f'fill="{COLOURS[word]}"/>'
            )
            top += part
    yield "</g>"
