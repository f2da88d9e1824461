"""The little of SVG that the pictures of the reports are made of. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape


def document(parts: Iterable[str], *, width: int, height: int, title: str, size: int) -> str:
    """Return a picture on white; `size` is that of its font, all in pixels."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="{size}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def text(
    x: int, y: int, words: str, *, anchor: str = "start", colour: str = "#0f172a", size: int
) -> str:
    """Return words at a place, with their spaces as they are."""
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-size="{size}" '
        f'xml:space="preserve">{escape(words)}</text>'
    )
