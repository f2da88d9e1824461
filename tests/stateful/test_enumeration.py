"""Each case of a finite family is tried once, and their number is known."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.stateful.enumeration import STEPS_MAX, TOOLS, WAYS, Count, Exploration, cases
from tests.stateful.search import Record, quiet

PARTS = 12
COUNTED = (
    *(24_642, 23_824, 23_998, 23_858, 24_655, 23_726),
    *(23_622, 24_530, 25_831, 23_940, 24_158, 24_280),
)
"""The cases of each part; a change of the runtime that adds a point changes them."""
CASES_EXACTLY = 291_064
LATE_AND_ASKED = slice(13, 14)
"""The plan of one step whose tool can be asked, and whose effect lands late."""

pytestmark = [
    pytest.mark.invariant("S2"),
    pytest.mark.invariant("S3"),
    pytest.mark.invariant("S4"),
    pytest.mark.invariant("S8"),
    pytest.mark.invariant("S10"),
    pytest.mark.invariant("S13"),
    pytest.mark.invariant("S14"),
    pytest.mark.invariant("S15"),
]


def counted(part: slice, *, each: bool = False) -> Count:
    cases_there = processes = 0
    with quiet():
        for case in islice(cases(), part.start, part.stop, part.step):
            found = Exploration(case, each=each).count()
            cases_there, processes = cases_there + found.cases, processes + found.processes
    return Count(cases_there, processes)


def test_every_plan_goes_in_every_way() -> None:
    plans = [len(TOOLS) ** count for count in range(1, STEPS_MAX + 1)]
    ways = [1 + len(WAYS) * count for count in range(1, STEPS_MAX + 1)]
    found = [case.name for case in cases()]
    assert len(found) == sum(map(int.__mul__, plans, ways)) == 996
    assert len(set(found)) == len(found)
    assert sum(COUNTED) == CASES_EXACTLY


def test_deaths_that_leave_equal_states_are_recovered_from_alike() -> None:
    """They are recovered from once for equal states, and then each time."""
    once = counted(LATE_AND_ASKED)
    each = counted(LATE_AND_ASKED, each=True)
    assert once.cases == each.cases > 100
    assert each.processes > 3 * once.processes


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_death_of_every_plan(part: int, record_property: Record) -> None:
    found = counted(slice(part, None, PARTS))
    record_property(
        "shown",
        f"enumeration, part {part + 1} of {PARTS}: {found.cases} of {CASES_EXACTLY} cases, "
        f"in {found.processes} processes",
    )
    assert found.cases == COUNTED[part]
