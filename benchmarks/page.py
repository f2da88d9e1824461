"""The part of docs/performance.md that is made of the record."""

from __future__ import annotations

import re
from typing import Any

from benchmarks import table
from crashtests.sources import ROOT

PAGE = ROOT / "docs" / "performance.md"
_BLOCK = re.compile(r"(<!-- made by benchmarks -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str, record: dict[str, Any]) -> str:
    """Return the page with its tables as the record has them."""
    return _BLOCK.sub(lambda found: f"{found[1]}{table.tables(record)}\n{found[2]}", page)


def renew(record: dict[str, Any]) -> None:
    """Write the tables into the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
