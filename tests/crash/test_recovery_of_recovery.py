"""A recovery that is killed, and the recovery of that: it ends as an undisturbed one would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from tests.crash.harness import Lab, Scene
from tests.crash.verdicts import KINDS, Cases, Kind

EVERYWHERE: Sequence[str] = ()
INSIDE = (
    "before_begin",
    "before_commit",
    "after_commit",
    "before_effect",
    "after_effect",
    "before_probe",
    "after_probe",
)
"""All but the points at which nothing has changed since the one before."""

BETWEEN = ("after_commit",)
"""Where the second of three deaths is in what belongs to every change."""


def orphan(lab: Lab, kind: Kind, place: str) -> Scene:
    """Return a run that was killed in its first call."""
    points = lab.record(lab.empty, kind.first_run)
    number = next(number for number, point in enumerate(points) if point.place == place)
    return lab.kill(lab.empty, kind.first_run, number, points)


def killed_recoveries(
    lab: Lab, kind: Kind, scene: Scene, places: Sequence[Sequence[str]], round: int = 1
) -> Iterator[tuple[str, Scene]]:
    """Kill one recovery after the other, and yield where that was, and what the last one left.

    There is an entry in `places` for each of them: it is killed at every point of these places.
    """
    for at, killed in lab.sweep(scene, kind.recovery(round=round), places[0], writes=False):
        if len(places) == 1:
            yield at, killed
            continue
        for later, last in killed_recoveries(lab, kind, killed, places[1:], round + 1):
            yield f"{at}; {later}", last


def assert_it_ends_as_one_would(lab: Lab, name: str, place: str, *places: Sequence[str]) -> None:
    kind = KINDS[name]
    first = orphan(lab, kind, place)
    cases = Cases(lab, name)
    cases.add("undisturbed", first, kind.recovery())
    of_recovery = {"undisturbed"}
    for at, killed in killed_recoveries(lab, kind, first, places):
        cases.add(at, killed, kind.recovery(round=len(places) + 1))
        if not sent_anew(killed, since=first):
            of_recovery.add(at)
    cases.judge()
    assert len({cases.came[at].but_for_attempts for at in of_recovery}) == 1


def sent_anew(killed: Scene, *, since: Scene) -> bool:
    """Say whether a recovery had gone on to a request that was not there before: a new orphan."""
    passed = killed.points[len(since.points) :]
    return any("request" in about for place, about in passed if place == "after_commit")


def cases(*quick: tuple[str, str]) -> list[object]:
    """Return every contract with a death on either side of the effect; the others are slow."""
    return [
        pytest.param(name, place, marks=() if (name, place) in quick else pytest.mark.slow)
        for name, place in product(KINDS, ("before_effect", "after_effect"))
    ]


@pytest.mark.slow
@pytest.mark.invariant("S2")
@pytest.mark.invariant("S14")
@pytest.mark.parametrize(
    ("name", "place"),
    cases(
        ("read only", "after_effect"),
        ("idempotent", "after_effect"),
        ("idempotent, inside its window", "before_effect"),
        ("idempotent, past its window", "after_effect"),
        ("queryable, past its bound", "before_effect"),
        ("queryable, past its bound", "after_effect"),
        ("queryable, inside its bound", "before_effect"),
        ("opaque", "before_effect"),
        ("opaque", "after_effect"),
    ),
)
def test_a_recovery_that_is_killed_at_any_point(name: str, place: str, lab: Lab) -> None:
    assert_it_ends_as_one_would(lab, name, place, INSIDE)


@pytest.mark.invariant("S14")
@pytest.mark.parametrize("name", ["idempotent", "opaque"])
def test_a_recovery_of_a_killed_recovery_that_is_killed(name: str, lab: Lab) -> None:
    assert_it_ends_as_one_would(lab, name, "after_effect", BETWEEN, INSIDE)


@pytest.mark.invariant("S14")
@pytest.mark.parametrize(("name", "place"), cases())
def test_a_recovery_after_each_killed_change_of_another_that_is_killed_everywhere(
    name: str, place: str, lab: Lab
) -> None:
    assert_it_ends_as_one_would(lab, name, place, BETWEEN, EVERYWHERE)
