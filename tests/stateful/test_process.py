"""A death in this process leaves what a killed one would: the file as it is, and no lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_replay.store.verify import verify
from tests.stateful.lab import Lab

PLAN = [("dark", ["ok"], ["ok"])]


def _log(lab: Lab) -> bytes:
    return Path(f"{lab.path}-wal").read_bytes()


def test_a_torn_commit_leaves_a_part_of_it_in_the_log(lab: Lab) -> None:
    lab.start("r1", PLAN)
    before = _log(lab)
    lab.start("r2", PLAN, [(1, "tear", 0)])
    after = _log(lab)
    assert after != before, "some of the commit is there"
    assert lab.process is None
    lab.open()
    assert set(lab.rehearsal.runs) == {"r1"}
    assert verify(lab.path).sound
    lab.start("r2", PLAN)
    assert set(lab.rehearsal.runs) == {"r1", "r2"}


@pytest.mark.parametrize(("point", "is_durable"), [(0, False), (1, False), (2, True), (4, True)])
def test_a_death_writes_nothing_more(lab: Lab, point: int, is_durable: bool) -> None:
    lab.start("r1", PLAN)
    before = _log(lab)
    lab.start("r2", PLAN, [(point, "die", 0)])
    assert (_log(lab) != before) is is_durable
    lab.open()
    assert ("r2" in lab.rehearsal.runs) is is_durable


@pytest.mark.invariant("S14")
@pytest.mark.parametrize("third", range(8))
@pytest.mark.parametrize("second", range(8))
def test_a_recovery_dies_and_the_recovery_of_it_dies_too(lab: Lab, second: int, third: int) -> None:
    lab.start("r1", [("keyed", ["ok"], ["ok"])], [(5, "die", 0)])
    for point in (second, third):
        lab.open()
        lab.resume("r1", [(point, "die", 0)])
        assert lab.process is None
    assert lab.reached["deaths in a row: 3"] == 1
    lab.open()
    lab.resume("r1")
    assert lab.outside.effects["r1", "s1"] == 1
