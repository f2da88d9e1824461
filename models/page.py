"""The parts of docs/models.md that are made by running the models.

python -m models page     write them anew; a test fails where the page has something else
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from models.assumptions import broken_without
from models.bounds import CI, QUICK, Bounds
from models.build import build
from models.check import story_of
from models.engines.search import Found, search
from models.language.python import Compiled, compiled
from models.mutants import LIVENESS, PATHS, SAFETY, named
from models.world.state import ASSUMPTIONS, Setting

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"
_BLOCK = re.compile(r"(<!-- made by the models: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Write the page's blocks anew."""
    if arguments:
        print("python -m models page takes no arguments")
        return 2
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def renewed(page: str) -> str:
    """Return a page with every block made anew; raises `KeyError` for an unknown one."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", page)


def names(page: str) -> list[str]:
    """Return the names of a page's blocks."""
    return [found[2] for found in _BLOCK.finditer(page)]


def _run(setting: Setting) -> tuple[Compiled, Found]:
    program = compiled(build(setting))
    return program, search(program)


def _fenced(lines: Sequence[str]) -> str:
    return "\n".join(("```text", *lines, "```"))


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _counterexample() -> str:
    program, found = _run(named("an absence counts before the settle bound has passed").setting())
    assert found.violation is not None, "a mutant must be caught"
    return _fenced(story_of(program, found.violation))


def _assumptions() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for assumption in sorted(ASSUMPTIONS):
            broken = broken_without(assumption)
            shortest = min(broken.values(), key=lambda found: len(found[1].commands))
            events = "; ".join(command.says for command in shortest[1].commands)
            yield assumption, " ".join(sorted(broken)), f"{shortest[1].claim.id}: {events}"

    return _table(("without", "these break", "the shortest story"), rows())


def _bounds() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for bounds in CI.safety:
            counted = ("more than the search holds", "")
            if bounds.searched:
                _, found = _run(Setting(bounds=bounds))
                counted = f"{found.states:,}", f"{found.edges:,}"
            in_quick = "quick, ci" if bounds in QUICK.safety else "ci"
            yield bounds.name, in_quick, _limits(bounds), *counted, bounds.why

    return _table(("bounds", "in", "at most", "states", "edges", "why these"), rows())


def _limits(bounds: Bounds) -> str:
    one, more = ("death or stop", "deaths or stops") if bounds.stops else ("death", "deaths")
    limits = (
        _several(bounds.workers, "process", "processes"),
        _several(bounds.kills_max, one, more),
        _several(bounds.faults_max, "failure", "failures"),
        _several(bounds.attempts_max, "attempt", "attempts"),
        _several(bounds.grants_max, "grant", "grants"),
    )
    return f"{' then '.join(bounds.steps)}; {', '.join(limits)}"


def _several(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _mutants() -> str:
    def rows() -> Iterator[Sequence[str]]:
        for mutants, engine in ((SAFETY, "search"), (LIVENESS, "Spin"), (PATHS, "search, paths")):
            for mutant in mutants:
                yield mutant.name, mutant.breaks, engine

    return _table(("what is broken", "caught by", "engine"), rows())


BLOCKS: dict[str, Callable[[], str]] = {
    "a counterexample": _counterexample,
    "assumptions": _assumptions,
    "bounds": _bounds,
    "mutants": _mutants,
}
"""Each block of the page by its name."""
