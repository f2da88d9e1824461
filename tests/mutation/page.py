"""The part of docs/mutants.md that is made of the record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from crashtests.sources import ROOT
from tests.mutation import reasons

PAGE = ROOT / "docs" / "mutants.md"
_BLOCK = re.compile(r"(<!-- made by make mutants -->\n).*?(<!-- end -->)", re.DOTALL)
_WORDS = ("mutants", "killed", "timeout", "survived", "unknown")
_PARTIAL = """
**Not complete:** {unknown:,} of {mutants:,} mutants have not been looked at to the end. They are in
no column but the first, and where there are such no score is given; `make mutants` goes on.
"""
_HEAD = "| | mutants | killed by a test | by time-out | survived | no test reaches | score |"


def groups(modules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the modules of each group come to."""
    found: dict[str, dict[str, Any]] = {}
    for module in modules:
        sums = found.setdefault(module["group"], {"group": module["group"], "unreached": 0})
        for word in (*_WORDS, "unreached"):
            sums[word] = sums.get(word, 0) + module[word]
    return list(found.values())


def share(score: dict[str, Any]) -> float:
    """Return which part of the mutants was killed; one not looked at yet counts against it."""
    return float((score["killed"] + score["timeout"]) / score["mutants"])


def told(score: dict[str, Any]) -> str:
    """Return a score in a line."""
    counts = ", ".join(
        f"{score[word]} {word}" for word in _WORDS if score[word] or word != "unknown"
    )
    return f"{share(score):6.1%}  ({counts})"


def table(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield _HEAD
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for group in groups(record["modules"]):
        inside = [one for one in record["modules"] if one["group"] == group["group"]]
        yield _row(f"**{group['group']}**", group)
        if len(inside) > 1:
            yield from (_row(f"`{one['module']}`", one) for one in inside)


def _row(name: str, score: dict[str, Any]) -> str:
    counts = [score[word] for word in ("mutants", "killed", "timeout", "survived", "unreached")]
    shown = "not complete" if score["unknown"] else f"{share(score):.1%}"
    return f"| {name} | {' | '.join(map(str, counts))} | {shown} |"


def survivors(record: dict[str, Any]) -> Iterator[str]:
    """Yield the survivors, by the reason that they have."""
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for one in record["survivors"]:
        reason = reasons.reason_of(one)
        by_reason.setdefault(
            "**No reason is known.**" if reason is None else reason.why, []
        ).append(one)
    for why, found in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"\n**{len(found)}** {why}\n"
        for one in sorted(found, key=lambda one: (one["module"], one["function"])):
            yield f"    {one['module']}, {one['function']}"
            yield from (f"      {line}" for line in one["change"].splitlines())


def rendered(record: dict[str, Any]) -> str:
    """Return the whole part."""
    about, tests = record["about"], record["tests"]
    unknown = sum(one["unknown"] for one in record["modules"])
    mutants = sum(one["mutants"] for one in record["modules"])
    left_out = [
        f"`{one['module']}`: {', '.join(one['not_mutated'])}"
        for one in record["modules"]
        if one["not_mutated"]
    ]
    return "\n".join(
        [
            f"Recorded {about['created']} at revision {about['revision'][:12]}, with mutmut "
            f"{about['mutmut']}, Python {about['python']} and SQLite {about['sqlite']}, by",
            f"\n    {' '.join(tests['command'])}\n",
            *([_PARTIAL.format(unknown=unknown, mutants=mutants)] if unknown else []),
            *table(record),
            "\n## What is not mutated\n",
            f"Functions with a decorator: {'; '.join(left_out)}.",
            "\n## The survivors",
            *survivors(record),
        ]
    )


def renewed(text: str, record: dict[str, Any]) -> str:
    """Return the page with its part as the record has it."""
    return _BLOCK.sub(lambda found: f"{found[1]}{rendered(record)}\n{found[2]}", text)


def renew(record: dict[str, Any]) -> None:
    """Write the part into the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
