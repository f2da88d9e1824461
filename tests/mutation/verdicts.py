"""What mutmut has found out so far, read from what it keeps beside the mutants.

A mutant counts as killed when a test failed or the process died, and as a time-out when it ran for
so much longer than it should that it was ended. One that no test reaches has survived.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.mutation import scope, tree

LOOKED_AT = tree.TREE / "looked-at.json"
"""Which mutants have survived a closer look, and in which version of their function."""

_KILLED = {1, 2, 3, -6, -9, -11}
_TIMEOUT = {-14, -24, 24, 36, 152}
_SURVIVED = {0, 5, 33}
"""Exit codes of the process that judged; mutmut numbers its own in its module `stats`."""


class Mutant(NamedTuple):
    """One mutant, and what became of it: killed, timeout, survived, unknown, or failed."""

    name: str
    module: str
    verdict: str
    reached: bool
    version: str
    """The hash of its function, as mutmut computes it."""

    @property
    def function(self) -> str:
        """Return the function as the source names it."""
        return _plain(self.name.rpartition(".")[2].rpartition("__mutmut_")[0])


def settled() -> list[Mutant]:
    """Return all mutants; what has not survived a closer look yet is unknown."""
    looked_at = closely()
    return [
        mutant._replace(verdict="unknown")
        if mutant.verdict == "failed"
        or (mutant.verdict == "survived" and looked_at.get(mutant.name) != mutant.version)
        else mutant
        for mutant in read()
    ]


def closely() -> dict[str, str]:
    """Return what has survived a closer look."""
    try:
        found: dict[str, str] = json.loads(LOOKED_AT.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def read() -> list[Mutant]:
    """Return all mutants that there are, in the order of the sources."""
    return [mutant for module in scope.MODULES for mutant in _of(module)]


def _of(module: str) -> Iterator[Mutant]:
    kept = _kept(module, "meta")
    for name, code in kept.get("exit_code_by_key", {}).items():
        function = name.rpartition(".")[2].rpartition("__mutmut_")[0]
        version = kept["hash_by_function_name"].get(function, "")
        yield Mutant(name, module, _verdict(code), code != 33, version)


def _verdict(code: int | None) -> str:
    if code is None:
        return "unknown"
    named = {"killed": _KILLED, "timeout": _TIMEOUT, "survived": _SURVIVED}
    return next((word for word, codes in named.items() if code in codes), "failed")


def _kept(module: str, kind: str) -> dict[str, Any]:
    path = tree.TREE / "mutants" / tree.PACKAGE / f"{module}.{kind}"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):  # not there yet, or just being written
        return {}
    return found


def _plain(mangled: str) -> str:
    return mangled.removeprefix("x").removeprefix("_").strip("ǁ").replace("ǁ", ".")


def changes(module: str) -> dict[str, str]:
    """Return what each mutant of a module changes: the lines that go, and those that come."""
    spans = _kept(module, "spans").get("spans", {})
    path = tree.TREE / "mutants" / tree.PACKAGE / module
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {}
    for name, (start, end) in spans.items():
        function = name.rpartition("__mutmut_")[0]
        first, last = spans[f"{function}__mutmut_orig"]
        before, after = lines[first - 1 : last], lines[start - 1 : end]
        after = [line.replace(f"{name}(", f"{function}__mutmut_orig(") for line in after]
        rows = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        kept = [row.replace(f"{function}__mutmut_orig", "f") for row in rows if row[0] in "+-"]
        found[name] = "\n".join(f"{row[0]} {row[1:].strip()}" for row in kept)
    return found
