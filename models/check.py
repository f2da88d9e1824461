"""Check a set of bounds with the engines that are here, and compare the engines.

Safety is checked by the search and by Spin, which must visit the same states by the same edges;
liveness by Spin; what paths must be by the search. A witness that does not occur is a failure too:
the invariant that it belongs to would say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum

from models.bounds import Bounds, Set
from models.build import build
from models.engines import spin
from models.engines.search import Found, Progress, Violation, search
from models.language.python import Compiled, compiled
from models.paths import CHECKS, Graph
from models.story import told
from models.world.state import Setting

SEARCH, SPIN = "search", "spin"
ENGINES = (SEARCH, SPIN)


class Verdict(StrEnum):
    """How a check came out."""

    HOLDS = "holds"
    VIOLATED = "violated"
    DIFFERS = "differs"
    """Two engines do not agree."""
    VACUOUS = "vacuous"
    """A situation that must occur does not."""
    INCOMPLETE = "incomplete"
    """A limit was hit, so nothing is known."""
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one engine said of one model."""

    kind: str
    bounds: str
    engine: str
    verdict: Verdict
    states: int = 0
    edges: int = 0
    depth: int = 0
    seconds: float = 0.0
    memory_megabytes: float = 0.0
    lines: tuple[str, ...] = field(default=())
    """What is to be said beyond the numbers: a story, a difference, a reason."""


Watch = Callable[[str, str], Progress]
"""Makes something to report progress to, for an engine and bounds."""


def checked(
    bounds_set: Set,
    engines: Iterable[str] = ENGINES,
    *,
    watch: Watch | None = None,
    missing: tuple[str, ...] | None = None,
) -> Iterator[Result]:
    """Yield the result of every check of a set, as they come out.

    `missing` names the programs that Spin needs and that are not here; asked for if left out.
    """
    asked = set(engines)
    lacks = spin.missing() if missing is None else missing
    if SPIN in asked and lacks:
        why = f"no {' and no '.join(lacks)} here; on Debian: apt-get install {' '.join(lacks)}"
        yield Result(kind="all", bounds="", engine=SPIN, verdict=Verdict.NOT_RUN, lines=(why,))
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            pending: list[Future[list[Result]]] = []
            counts: dict[str, Future[list[Result]]] = {}
            if SPIN in asked and not lacks:
                for bounds in bounds_set.safety:
                    counts[bounds.name] = pool.submit(_safety_by_spin, bounds, watch)
                pending = [pool.submit(_liveness, bounds) for bounds in bounds_set.liveness]
            yield from _searched(bounds_set, asked, counts, watch)
            for future in pending:
                yield from future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # else all that waits is run first
            raise


def _searched(
    bounds_set: Set, asked: set[str], counts: dict[str, Future[list[Result]]], watch: Watch | None
) -> Iterator[Result]:
    """Yield what the search says, each beside what Spin says of the same bounds."""
    for bounds in bounds_set.safety:
        mine = None
        if SEARCH in asked and bounds.searched:
            mine = _safety_by_search(bounds, watch)
            yield mine
        for other in counts[bounds.name].result() if bounds.name in counts else ():
            yield compared(mine, other)
    if SEARCH in asked:
        for bounds in bounds_set.paths:
            yield from _paths(bounds)


def compared(mine: Result | None, other: Result) -> Result:
    """Return Spin's result, or that it differs from the search's of the same bounds."""
    if mine is None or not {mine.verdict, other.verdict} <= {Verdict.HOLDS, Verdict.VACUOUS}:
        return other
    if (mine.states, mine.edges) == (other.states, other.edges):
        return replace(other, lines=("agrees with the search",))
    says = (
        f"the search has {mine.states} states and {mine.edges} edges, "
        f"Spin {other.states} and {other.edges}",
    )
    return replace(other, verdict=Verdict.DIFFERS, lines=says)


def _safety_by_search(bounds: Bounds, watch: Watch | None) -> Result:
    program = compiled(build(Setting(bounds=bounds)))
    found = search(program, progress=watch(SEARCH, bounds.name) if watch else None)
    return judged(program, found)


def judged(program: Compiled, found: Found) -> Result:
    """Return what a search has found as a result, with the story of a violation."""
    verdict, lines = Verdict.HOLDS, tuple[str, ...]()
    if found.violation:
        verdict, lines = Verdict.VIOLATED, story_of(program, found.violation)
    elif not found.complete:
        verdict = Verdict.INCOMPLETE
        lines = (f"the search stopped at {found.states} states; nothing is known of the others",)
    elif found.unseen:
        verdict = Verdict.VACUOUS
        unseen = (program.model.witnesses[place] for place in found.unseen)
        lines = tuple(f"never so, and {one.id} rests on it: {one.says}" for one in unseen)
    return Result(
        kind="safety",
        bounds=program.model.name,
        engine=SEARCH,
        verdict=verdict,
        states=found.states,
        edges=found.edges,
        depth=found.depth,
        seconds=found.seconds,
        lines=lines,
    )


def story_of(program: Compiled, violation: Violation) -> tuple[str, ...]:
    """Return what does not hold, and the shortest story of it."""
    claim = violation.claim
    heading = f"{claim.id} does not hold: {claim.says}. The shortest story:"
    return (heading, *told(program, violation.states, violation.commands))


def _safety_by_spin(bounds: Bounds, watch: Watch | None) -> list[Result]:
    model = build(Setting(bounds=bounds))
    progress = watch(SPIN, bounds.name) if watch else None
    found = spin.check_safety(model, large=not bounds.searched, progress=progress)
    return [_of_spin("safety", bounds, found)]


def _liveness(bounds: Bounds) -> list[Result]:
    model = build(Setting(bounds=bounds))
    return [
        _of_spin(name.partition("_")[0], bounds, found)
        for name, found in spin.check_liveness(model).items()
    ]


def _of_spin(kind: str, bounds: Bounds, found: spin.Verified) -> Result:
    verdict, lines = Verdict.HOLDS, tuple[str, ...]()
    if found.violated is not None:
        verdict = Verdict.VIOLATED
        lines = (f"{found.violated.id} does not hold: {found.violated.says}",)
    elif not found.complete:
        verdict = Verdict.INCOMPLETE
        lines = ("Spin stopped at a limit of depth, memory or time; nothing is known",)
    return Result(
        kind=kind,
        bounds=bounds.name,
        engine=SPIN,
        verdict=verdict,
        states=found.states,
        edges=found.edges,
        seconds=found.seconds,
        memory_megabytes=found.memory_megabytes,
        lines=lines,
    )


# --- paths --------------------------------------------------------------------------------------


def path_bounds(name: str, bounds: Bounds) -> Bounds:
    """Return the bounds in which a check of paths speaks: without what would hide its answer."""
    if name == "S14":  # deaths in recovery, and nobody who changes the outcome
        return replace(bounds, kills_max=2, faults_max=0, operator=False, cancels=False)
    if name == "L4":  # a way on that is no cancel
        return replace(bounds, cancels=False)
    return bounds


def _paths(bounds: Bounds) -> Iterator[Result]:
    for name in CHECKS:
        yield path_result(name, Setting(bounds=path_bounds(name, bounds)))


def path_result(name: str, setting: Setting) -> Result:
    """Return what one check of paths says of a setting."""
    program = compiled(build(setting))
    found = search(program, goes_on=True)
    if not found.complete:
        return replace(judged(program, found), kind=name)
    problem = next(CHECKS[name](Graph(setting, program, found)), None)
    lines = tuple[str, ...]()
    if problem is not None:
        heading = f"{name} does not hold: {problem.says}. The story:"
        lines = (heading, *told(program, problem.states, problem.commands))
    return Result(
        kind=name,
        bounds=setting.bounds.name,
        engine=SEARCH,
        verdict=Verdict.HOLDS if problem is None else Verdict.VIOLATED,
        states=found.states,
        edges=found.edges,
        depth=found.depth,
        seconds=found.seconds,
        lines=lines,
    )
