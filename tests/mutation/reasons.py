"""Why a mutant that survives may do so: kept by hand in reasons.toml, looked up here.

A reason names its mutants by what they change, in a module and a function if it says so: by the
whole text of the change (`changes`), or by a pattern that the text has in it (`pattern`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "reasons.toml"


class Reason(NamedTuple):
    """One way to recognise mutants, and why these may survive."""

    why: str
    module: str | None
    function: str | None
    change: str | None
    pattern: str | None

    def covers(self, survivor: Mapping[str, Any]) -> bool:
        """Return whether this survivor is meant."""
        for name in ("module", "function", "change"):
            wanted = getattr(self, name)
            if wanted is not None and wanted != survivor[name]:
                return False
        return self.pattern is None or re.search(self.pattern, survivor["change"]) is not None


@cache
def known() -> tuple[Reason, ...]:
    """Return all reasons; those for whole changes come first."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8")).get("reason", [])
    return tuple(sorted(_each(found), key=lambda reason: reason.change is None))


def _each(found: list[dict[str, Any]]) -> Iterator[Reason]:
    for row in found:
        if row.keys() - {"why", "module", "function", "changes", "pattern"}:
            raise ValueError(f"{FILE.name}: a reason has {', '.join(row)}")
        place = (row["why"], row.get("module"), row.get("function"))
        for change in row.get("changes", []):
            yield Reason(*place, change.strip(), None)
        if "pattern" in row:
            yield Reason(*place, None, row["pattern"])


def reason_of(survivor: Mapping[str, Any]) -> Reason | None:
    """Return why this mutant may survive, if a reason is known."""
    return next((reason for reason in known() if reason.covers(survivor)), None)
