"""The matrix as a picture: one line a case, with request, effect, kill, recovery and outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from crashtests import cases, svg
from crashtests.cases import HEADLINE

_NAME_WIDTH, _STAGE_WIDTH, _ROW_HEIGHT, _TOP = 330, 132, 46, 64
_STAGES = ("request", "effect", "acknowledgement", "recovery")
_REACHED = {cases.AFTER_REQUEST: 1, cases.AFTER_EFFECT: 2, cases.AFTER_ACKNOWLEDGEMENT: 3}
_GOOD, _PAUSED, _BAD = "#2e7d32", "#b45309", "#b91c1c"
_OUTCOME_COLOURS = {cases.UNRESOLVED: _PAUSED, cases.RECONCILED: _PAUSED, cases.DUPLICATE: _BAD}
_OUTCOME_WIDTH = 330
_SIZE = 14
_text = partial(svg.text, size=_SIZE)


def render(report: Mapping[str, Any]) -> str:
    """Return the picture of the eight cases as SVG."""
    rows = report["cases"][: len(HEADLINE)]
    width = _NAME_WIDTH + len(_STAGES) * _STAGE_WIDTH + _OUTCOME_WIDTH
    height = _TOP + len(rows) * _ROW_HEIGHT + 20
    parts = list(_heading())
    for number, row in enumerate(rows):
        parts += _line(row, _TOP + number * _ROW_HEIGHT + _ROW_HEIGHT // 2)
    title = "The crash matrix: where each process was killed, and what came out"
    return svg.document(parts, width=width, height=height, title=title, size=_SIZE)


def _heading() -> Iterator[str]:
    for number, stage in enumerate(_STAGES):
        yield _text(_x(number), 34, stage, anchor="middle", colour="#475569")
    yield _text(_x(len(_STAGES) - 1) + 48, 34, "outcome", colour="#475569")


def _x(stage: int) -> int:
    return _NAME_WIDTH + stage * _STAGE_WIDTH + _STAGE_WIDTH // 2


def _line(row: Mapping[str, Any], y: int) -> Iterator[str]:
    """Yield one case: a dot for each stage that was reached, a cross where it was killed."""
    kills = row["kills"]
    reached = _REACHED[kills[0]["checkpoint"]] if kills else 3
    yield _text(16, y + 5, row["case"])
    yield f'<line x1="{_x(0)}" y1="{y}" x2="{_x(reached - 1)}" y2="{y}" stroke="#64748b"/>'
    for stage in range(reached):
        yield f'<circle cx="{_x(stage)}" cy="{y}" r="6" fill="#334155"/>'
    if kills:
        yield _cross(_x(reached - 1) + _STAGE_WIDTH // 4, y)
        yield (
            f'<line x1="{_x(reached - 1) + 48}" y1="{y}" x2="{_x(3)}" y2="{y}" '
            'stroke="#64748b" stroke-dasharray="4 4"/>'
        )
        yield (
            f'<circle cx="{_x(3)}" cy="{y}" r="6" fill="#ffffff" '
            'stroke="#334155" stroke-width="2"/>'
        )
    effects = f"{row['effects']} effect{'' if row['effects'] == 1 else 's'}"
    colour = _OUTCOME_COLOURS.get(row["outcome"], _GOOD)
    yield _text(_x(3) + 24, y - 4, row["outcome"], colour=colour)
    yield _text(_x(3) + 24, y + 13, effects, colour="#475569", size=12)


def _cross(x: int, y: int) -> str:
    return (
        f'<path d="M{x - 6} {y - 6} L{x + 6} {y + 6} M{x - 6} {y + 6} L{x + 6} {y - 6}" '
        f'stroke="{_BAD}" stroke-width="3"><title>SIGKILL</title></path>'
    )
