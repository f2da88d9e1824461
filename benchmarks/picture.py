"""Pictures of a record: ratios as bars, and the cost of a step against the length of its run."""

from __future__ import annotations

from typing import Any

from crashtests import svg

_WIDTH = 760
_LEFT = 330
_ROW = 26
_OURS, _BAR = "#0f766e", "#94a3b8"


def ratios(found: list[tuple[str, float, float]], title: str) -> str:
    """Return bars of (name, figure, what is to be reached); a line across each marks the latter."""
    most = max(max(figure, bar) for _, figure, bar in found)
    scale = (_WIDTH - _LEFT - 90) / most
    parts = [svg.text(12, 24, title, size=15)]
    for row, (name, figure, bar) in enumerate(found):
        y = 44 + row * _ROW
        end = _LEFT + figure * scale
        parts += [
            svg.text(_LEFT - 8, y + 13, name, anchor="end", size=12),
            f'<rect x="{_LEFT}" y="{y}" width="{end - _LEFT:.1f}" height="16" fill="{_OURS}"/>',
            svg.text(int(end) + 6, y + 13, f"{figure:.2f}", size=12),
        ]
        if bar:
            at = _LEFT + bar * scale
            parts.append(
                f'<path d="M{at:.1f} {y - 3}v22" stroke="#b91c1c" stroke-width="2" fill="none"/>'
            )
    return svg.document(parts, width=_WIDTH, height=60 + len(found) * _ROW, title=title, size=12)


def lengths(measure: dict[str, Any], title: str) -> str:
    """Return what a step costs in each tenth of a long run, in microseconds."""
    tenths = [seconds * 1e6 for seconds in measure["tenths_seconds"]]
    height, bottom, left = 260, 220, 70
    scale = 160 / (max(tenths) or 1)
    width = (_WIDTH - left - 40) / len(tenths)
    parts = [svg.text(12, 24, title, size=15)]
    for at, cost in enumerate(tenths):
        x, top = left + at * width, bottom - cost * scale
        parts += [
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{width - 6:.1f}" height="{bottom - top:.1f}" '
            f'fill="{_OURS}"/>',
            svg.text(int(x + width / 2) - 3, int(top) - 6, f"{cost:.0f}", anchor="middle", size=12),
            svg.text(
                int(x + width / 2) - 3,
                bottom + 18,
                f"{(at + 1) * measure['steps'] // len(tenths):,}",
                anchor="middle",
                size=12,
            ),
        ]
    parts.append(svg.text(left - 8, 60, "µs", anchor="end", size=12))
    return svg.document(parts, width=_WIDTH, height=height, title=title, size=12)
