"""The runtime and the reference agree, whatever happens, and enough does happen."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.stateful import reached, reference, tour
from tests.stateful.lab import Lab
from tests.stateful.search import CI, QUICK, Record, quiet, search

REFERENCE_LINES_MAX = 149
QUICK_SITUATIONS = (
    *(f"an act ended: {end}" for end in ("done", "died", "interrupted", "refused", "stopped")),
    *("tear at inside", "deaths in a row: 1", "several runs at once", "the clock was set back"),
    *("a second writer was refused", "a move was refused by the database"),
)
CI_SITUATIONS = (
    *QUICK_SITUATIONS,
    *("die at before", "die at inside", "die at call", "die at told", "tear at inside"),
    *("cancel at told", "read at told", "a stopped writer met Fenced", "something landed late"),
    *("suspend idempotent: attempts_used_up", "a row says unstorable"),
    *("the machine was started anew", "deaths in a row: 2"),
    *("fail at before", "fail at inside", "fail at after", "die at called"),
    *("evidence was refused: key", "evidence was refused: stale", "evidence was refused: run"),
    *("false evidence counted", "a process went on after a storage error"),
    "confirm queryable: probe_present",
    *("resend idempotent: died", "suspend opaque: cancel_asked"),
)
pytestmark = [
    pytest.mark.invariant("S1"),
    pytest.mark.invariant("S2"),
    pytest.mark.invariant("S3"),
    pytest.mark.invariant("S4"),
    pytest.mark.invariant("S5"),
    pytest.mark.invariant("S6"),
    pytest.mark.invariant("S7"),
    pytest.mark.invariant("S8"),
    pytest.mark.invariant("S9"),
    pytest.mark.invariant("S10"),
    pytest.mark.invariant("S11"),
    pytest.mark.invariant("S12"),
    pytest.mark.invariant("S13"),
    pytest.mark.invariant("S15"),
]


def test_the_runtime_and_the_reference_agree() -> None:
    met = search(QUICK)
    assert reached.missing(met, QUICK_SITUATIONS) == []


@pytest.mark.slow
@pytest.mark.fault("M10")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_they_agree_in_many_more_examples(seed: int, record_property: Record) -> None:
    """With three seeds and no example database: nothing is drawn but from the seed."""
    met = search(CI, seed)
    record_property("shown", table(f"reached with seed {seed}", met, CI_SITUATIONS))
    assert reached.missing(met, CI_SITUATIONS) == []


@pytest.mark.slow
def test_every_move_of_every_contract_is_met_by_a_death_at_each_point_of_its_commit(
    record_property: Record,
) -> None:
    met: Counter[str] = Counter()
    with quiet():
        told = sum(tour.take(name, story, met) for name, story in tour.stories())
    wanted = [*reached.cells(), *reached.SITUATIONS]
    record_property("shown", table(f"reached in {told} stories", met, wanted))
    assert reached.missing(met, wanted) == []


@pytest.mark.slow
@pytest.mark.fault("H03")
def test_every_value_of_every_row_is_guarded_by_the_chains() -> None:
    lab = Lab()
    try:
        lab.open()
        lab.start("r1", [("keyed", ["lost", "ok"], ["ok"]), ("dark", ["lost"], ["ok"])])
        lab.start("r2", [("look", ["ok"], ["ok"])])
        for number in range(6 * len(reached.DAMAGES)):
            lab.damage(number)
        assert reached.missing(lab.reached, reached.DAMAGES) == []
    finally:
        lab.close()


def test_a_move_that_is_never_asked_for_is_in_the_lifecycle() -> None:
    everything = {name.partition(" ")[2] for name in reached.cells()}
    assert not everything & reached.NEVER.keys()
    assert all(name.partition("/")[2] == "queryable" for name in reached.NEVER)


def test_the_reference_stays_short_and_shares_only_the_generated_words() -> None:
    text = Path(reference.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= REFERENCE_LINES_MAX
    imported = {
        node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)
    }
    ours = {name for name in imported if name and name.startswith("agent_replay")}
    assert ours == {"agent_replay.lifecycles.run", "agent_replay.lifecycles.step"}


def table(title: str, met: Counter[str], wanted: Sequence[str]) -> str:
    width = max(map(len, wanted))
    lines = (f"  {name:{width}}  {met[name]:>7}" for name in wanted)
    return "\n".join([f"{title}:", *lines])
