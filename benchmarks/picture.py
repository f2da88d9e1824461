"""Pictures of a record: ratios as bars, and the cost of a step against the length of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crashtests import svg

_WIDTH = 840
_LEFT = 410
_ROW = 26
_OURS, _BARE, _MISSED, _LINE = "#0f766e", "#94a3b8", "#b91c1c", "#0f172a"


class Figure(NamedTuple):
    """A ratio, and what it is to be at least or at most, if anything."""

    name: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def missed(self) -> bool:
        """Return whether it is not what it is to be."""
        return (self.least is not None and self.value < self.least) or (
            self.most is not None and self.value > self.most
        )

    @property
    def bar(self) -> float | None:
        """Return where the line is drawn."""
        return self.most if self.least is None else self.least

    @property
    def words(self) -> str:
        """Return the figure, with what it is to be."""
        if self.bar is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({'≤' if self.least is None else '≥'} {self.bar:g})"


def ratios(found: Sequence[Figure], title: str) -> str:
    """Return a bar for each figure; a line across it marks what it is to be, and one that is missed
    is red."""
    most = max(max(one.value, one.bar or 0) for one in found)
    scale = (_WIDTH - _LEFT - 110) / most
    parts = [svg.text(12, 24, title, size=15)]
    for row, one in enumerate(found):
        y = 44 + row * _ROW
        length, colour = one.value * scale, _MISSED if one.missed else _OURS
        parts += [
            svg.text(_LEFT - 8, y + 13, one.name, anchor="end", size=12),
            f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="16" fill="{colour}"/>',
        ]
        if one.bar is not None:
            at = _LEFT + one.bar * scale
            parts.append(
                f'<path d="M{at:.1f} {y - 3}v22" stroke="{_LINE}" stroke-width="2" fill="none"/>'
            )
        right = _LEFT + max(one.value, one.bar or 0) * scale
        parts.append(svg.text(int(right) + 6, y + 13, one.words, colour=colour, size=12))
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
