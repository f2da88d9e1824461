"""What became of the mutants: the score of each module and group, the survivors, and the record."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from crashtests.about import about
from crashtests.sources import ROOT
from tests.mutation import page, reasons, scope, tree, verdicts

RECORD = ROOT / "results" / "mutants.json"
_MUTABLE = ("staticmethod", "classmethod")


def report(only: list[str]) -> int:
    """Print the scores, and record them if all is known; 1 unless all is well."""
    found = [one for one in verdicts.settled() if one.module in only or not only]
    counted = _modules(found)
    scores = [*page.groups(counted), *counted]
    for score in scores:
        name = score.get("module") or f"all of {score['group']}"
        print(f"{name:22} {page.told(score)}")
    survivors = _survivors(found)
    unexplained = [one for one in survivors if reasons.reason_of(one) is None]
    for one in unexplained:
        print(f"\n{one['module']}, {one['function']}: no reason\n{one['change']}")
    if counted and not only:
        _record(counted, survivors)
    missed = [score["group"] for score in page.groups(counted) if page.share(score) < scope.BAR]
    for group in missed:
        print(f"{group}: under {scope.BAR:.0%} killed of all")
    unknown = sum(score["unknown"] for score in counted)
    print(f"{unknown} mutants were not looked at yet")
    print(f"{len(survivors)} survivors, {len(unexplained)} of them without a reason")
    return 1 if missed or unexplained or unknown or not counted else 0


def _modules(found: list[verdicts.Mutant]) -> list[dict[str, Any]]:
    """Return for each module how many mutants it has, and what became of them."""
    counted = []
    for group, modules in scope.GROUPS.items():
        for module in modules:
            words = Counter(one.verdict for one in found if one.module == module)
            if not words:
                continue
            unreached = sum(
                one.module == module and one.verdict == "survived" and not one.reached
                for one in found
            )
            counted.append(
                {
                    "module": module,
                    "group": group,
                    "mutants": words.total(),
                    **{word: words[word] for word in ("killed", "timeout", "unknown")},
                    "survived": words["survived"],
                    "unreached": unreached,
                    "not_mutated": _not_mutated(module),
                }
            )
    return counted


def _not_mutated(module: str) -> list[str]:
    """Return the functions that mutmut leaves alone, since they have a decorator."""
    path = ROOT / "runtime" / "agent_replay" / module
    return [
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one) not in _MUTABLE for one in node.decorator_list)
    ]


def _survivors(found: list[verdicts.Mutant]) -> list[dict[str, Any]]:
    changes = {module: verdicts.changes(module) for module in {one.module for one in found}}
    return [
        {
            "module": one.module,
            "function": one.function,
            "reached": one.reached,
            "change": changes[one.module][one.name.rpartition(".")[2]],
        }
        for one in found
        if one.verdict == "survived"
    ]


def _record(counted: list[dict[str, Any]], survivors: list[dict[str, Any]]) -> None:
    record = {
        "about": {**about(tree.TREE), "mutmut": metadata.version("mutmut")},
        "tests": {
            "command": ["pytest", *scope.HOW, *scope.TESTS],
            "quick_seconds": scope.QUICK_SECONDS,
            "thorough_seconds": scope.THOROUGH_SECONDS,
            "digest": _digest(),
        },
        "modules": counted,
        "survivors": survivors,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page.renew(record)


def _digest() -> str:
    """Return a digest of the tests that judged."""
    digest = hashlib.sha256()
    for path in _tests():
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _tests() -> Iterator[Path]:
    for folder in scope.FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))
