"""Pictures of a record: ratios as bars, and the cost of a step against the length of its run."""

from __future__ import annotations

from typing import Any

from crashtests import svg

_WIDTH = 840
_LEFT = 410
_ROW = 26
_OURS, _BARE = "#0f766e", "#94a3b8"


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
    """Return what a step costs in each tenth of a long run, in microseconds, ours and bare."""
    tenths = {
        who: [seconds * 1e6 for seconds in found]
        for who, found in measure["tenths_seconds"].items()
    }
    bottom, left = 230, 70
    count = len(tenths["ours"])
    scale = 160 / max(max(costs) for costs in tenths.values())
    width = (_WIDTH - left - 40) / count
    parts = [svg.text(12, 24, title, size=15), svg.text(left - 8, 60, "µs", anchor="end", size=12)]
    for at in range(count):
        for nth, (who, colour) in enumerate((("ours", _OURS), ("bare", _BARE))):
            cost, bar = tenths[who][at], (width - 8) / 2
            x, top = left + at * width + nth * bar, bottom - tenths[who][at] * scale
            parts += [
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{bar:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour}"/>',
                svg.text(int(x + bar / 2), int(top) - 5, f"{cost:.0f}", anchor="middle", size=10),
            ]
        steps = f"{(at + 1) * measure['steps'] // count:,}"
        parts.append(
            svg.text(
                int(left + (at + 0.5) * width) - 4, bottom + 16, steps, anchor="middle", size=11
            )
        )
    parts += [
        svg.text(_WIDTH - 210, 24, "ours", colour=_OURS, size=12),
        svg.text(_WIDTH - 160, 24, "the bare loop", colour=_BARE, size=12),
        svg.text(left, bottom + 34, "steps done", size=11),
    ]
    return svg.document(parts, width=_WIDTH, height=bottom + 46, title=title, size=12)
