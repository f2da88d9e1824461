"""The parts of docs/performance.md that are made of the records."""

from __future__ import annotations

import re

from crashtests.sources import ROOT

PAGE = ROOT / "docs" / "performance.md"


def renewed(page: str, name: str, text: str) -> str:
    """Return the page with the block of that name holding a text."""
    block = re.compile(rf"(<!-- made by {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    made, count = block.subn(lambda found: f"{found[1]}{text}\n{found[2]}", page)
    if count != 1:
        raise ValueError(
            f"{PAGE} has {count} blocks that are made by {name!r}, and should have one"
        )
    return made


def renew(name: str, text: str) -> None:
    """Write a text into its block of the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")
