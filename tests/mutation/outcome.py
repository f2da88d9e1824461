"""What became of each mutant: the score of each group, and those that no test has found.

A mutant counts as found when a test failed, when the run took so much longer than it should that it
was stopped, or when the process died. One that no test reaches counts as not found. One that was
not looked at yet counts in neither way, and a group with such a one has no score.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.mutation import scope, tree

_FOUND = {1: "killed", 3: "killed", -24: "timeout", 24: "timeout", 36: "timeout", 152: "timeout"}
_FOUND |= {255: "timeout", -9: "died", -11: "died"}
"""By the exit code that mutmut keeps; it numbers them in its module `stats`."""
_MISSED = {0: "survived", 5: "not reached", 33: "not reached"}


class Score(NamedTuple):
    """What became of the mutants of a group."""

    group: str
    words: Counter[str]

    @property
    def found(self) -> int:
        """Return how many were found."""
        return sum(self.words[word] for word in set(_FOUND.values()))

    @property
    def complete(self) -> bool:
        """Return whether each of them has been looked at."""
        return set(self.words) <= {*_FOUND.values(), *_MISSED.values()}

    @property
    def reached(self) -> bool:
        """Return whether the group is complete and enough were found."""
        total = sum(self.words.values())
        return self.complete and total > 0 and self.found >= scope.BAR * total


def report() -> int:
    """Print the scores; 1 unless every group reaches the bar."""
    scores = [Score(group, _words(group)) for group in scope.GROUPS]
    for score in scores:
        total = sum(score.words.values())
        share = f"{score.found / total:.1%}" if score.complete and total else "not complete"
        told = ", ".join(f"{count} {word}" for word, count in sorted(score.words.items()))
        print(f"{score.group:10} {total:5} mutants  {share:>12}  ({told})")
    print(f"survivors, one by one: cd {tree.TREE} && mutmut results, and mutmut show NAME")
    return 0 if all(score.reached for score in scores) else 1


def _words(group: str) -> Counter[str]:
    return Counter(word for _, word in _mutants(group))


def _mutants(group: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each mutant of a group, and in a word what became of it."""
    for module in scope.GROUPS[group]:
        path = tree.TREE / "mutants" / f"{tree.PACKAGE}/{module}.meta"
        if not path.is_file():
            continue
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for name, code in kept["exit_code_by_key"].items():
            yield name, {**_FOUND, **_MISSED}.get(code, "not looked at")
