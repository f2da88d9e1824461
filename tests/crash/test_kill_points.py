"""Every point of a run, killed once: what a new process makes of it, for every contract and way.

The points are those that an undisturbed run passes, so that a new write or a new call is killed
too, without a change here.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from agent_replay import Contract, Runtime, Terms
from agent_replay.store.database import LOG_BYTES
from tests.crash.harness import Acts, Finished, Lab, written
from tests.crash.verdicts import (
    AFTER,
    KINDS,
    STEPS,
    Cases,
    Situation,
    situation,
)
from tests.crash.worker import DATABASE, LEDGER
from tests.crash.world import (
    CONTRACTS,
    SETTLES_SECONDS,
    WINDOW_SECONDS,
    Ledger,
    Point,
    World,
    tools,
)

WAYS = ("run", "resume", "resume_all")
"""The public ways to go on with a run."""

OTHER_WAYS = {
    "resend": "starts from evidence: test_operator_moves.py",
    "confirm": "calls nothing",
    "refute": "calls nothing",
    "abandon": "calls nothing",
    "cancel": "calls nothing",
    "archive": "calls nothing: test_archive_kills.py",
    "outcome": "reads",
    "close": "calls nothing",
    "reopen": "calls nothing",
    "path": "reads",
    "run_many": "drives each run as run does: tests/cli/test_running_many.py kills one",
}


def assert_the_contract_is_kept(lab: Lab, name: str, *, every_way_everywhere: bool) -> None:
    """Kill a run at each of its points; go on with it in a new process in each of the ways.

    The ways other than the first are gone at those points only where something is new since the
    point before, unless they are to be gone everywhere.
    """
    kind = KINDS[name]
    cases = Cases(lab, name)
    unknown: list[tuple[str, Finished]] = []
    covered: Counter[tuple[str, Situation]] = Counter()
    for at, killed in lab.sweep(lab.empty, kind.first_run):
        now = situation(killed.points)
        for way in WAYS:
            if way != WAYS[0] and covered[way, now] and not every_way_everywhere:
                continue
            covered[way, now] += 1
            if way == "run" or now.registered:
                cases.add(f"{at}, {way}", killed, kind.recovery(way))
            else:
                unknown.append((way, lab.finish(killed, kind.recovery(way))))
    cases.judge()
    assert_nothing_is_known(lab, unknown)
    points = lab.record(lab.empty, kind.first_run)
    assert_the_points_are_those_of_the_lifecycle(points)
    assert sum(covered[WAYS[0], one] for _, one in covered) // len(WAYS) == len(points)
    assert {(way, one) for way in WAYS for _, one in covered} == set(covered), "a way was left out"


@pytest.mark.fault("B06")
@pytest.mark.invariant("S1")
@pytest.mark.invariant("S2")
@pytest.mark.invariant("S3")
@pytest.mark.invariant("S8")
@pytest.mark.invariant("S11")
@pytest.mark.invariant("S15")
@pytest.mark.parametrize("name", KINDS)
def test_a_kill_at_any_point_comes_out_as_the_contract_says(name: str, lab: Lab) -> None:
    assert_the_contract_is_kept(lab, name, every_way_everywhere=False)


@pytest.mark.slow
@pytest.mark.fault("B06")
@pytest.mark.parametrize("name", KINDS)
def test_a_kill_at_any_point_comes_out_so_whatever_way_is_gone(name: str, lab: Lab) -> None:
    assert_the_contract_is_kept(lab, name, every_way_everywhere=True)


def assert_nothing_is_known(lab: Lab, unknown: list[tuple[str, Finished]]) -> None:
    """A run that was not registered is not made up by a resume."""
    assert {way for way, _ in unknown} == {*WAYS} - {"run"}
    views = lab.check(*(finished.scene for _, finished in unknown))
    for (way, finished), seen in zip(unknown, views, strict=True):
        assert (seen.rows, seen.ledger) == ([], [])
        errors = {one.get("error") for one in finished.outcomes if one != {"passed": True}}
        assert errors == {"NoSuchRun" if way == "resume" else None}


def assert_the_points_are_those_of_the_lifecycle(points: list[Point]) -> None:
    """Each step costs one commit, and each commit and each call has its points."""
    places = Counter(point.place for point in points)
    commits = [point.about for point in points if point.place == "after_commit"]
    between = [("acknowledge", "request")] * (len(STEPS) - 1)
    assert commits == [("register", "request"), *between, ("acknowledge",)]
    assert places["before_begin"] == places["before_commit"] == len(commits)
    assert places["before_effect"] == places["after_effect"] == len(STEPS)
    assert places["told"] == sum(len(written([point])) for point in points)
    assert (places["opened"], places["returned"], places["closed"]) == (1, 1, 1)


@pytest.mark.fault("B06")
def test_every_contract_and_every_way_has_its_row() -> None:
    """A contract, a term of one, or a method that is added fails here until it is covered."""
    registered = tools(World())
    swept = {kind.tool for kind in KINDS.values()}
    covered = {terms_given(one.terms) for one in registered if one.name in swept}
    assert covered == {terms_given(one.terms) for one in registered}
    assert {contract for contract, *_ in covered} == set(Contract)
    assert {name for _, *names in covered for name in names} == set(Terms._fields[1:])
    assert set(CONTRACTS) == {one.name for one in registered}
    assert set(AFTER) == set(KINDS)
    public = {name for name in vars(Runtime) if not name.startswith("_")}
    assert public == {*WAYS, *OTHER_WAYS}
    assert not set(WAYS) & set(OTHER_WAYS)


def terms_given(terms: Terms) -> tuple[str, ...]:
    names = (name for name in Terms._fields[1:] if getattr(terms, name) is not None)
    return (terms.contract, *names)


@pytest.mark.invariant("S11")
def test_an_interpreter_that_hashes_otherwise_sends_the_same_key(lab: Lab) -> None:
    """Here the processes are not forks of one another: each begins as a new interpreter."""
    kind = KINDS["idempotent"]
    points = lab.record(lab.empty, kind.first_run)
    number = points.index(Point("after_effect", ("second",)))
    order = dataclasses.replace(kind.first_run, fresh=True, hash_seed="1")
    killed = lab.kill(lab.empty, order, number, points)
    acts: Acts = [["interpreter"], ["resume"]]
    order = dataclasses.replace(order, acts=acts, hash_seed="2")
    finished = lab.finish(killed, order)
    here = lab.finish(killed, dataclasses.replace(order, fresh=False))
    (seen, _) = lab.check(finished.scene, here.scene)
    assert finished.outcomes[0]["hash"] != here.outcomes[0]["hash"]
    assert finished.outcomes[1] == here.outcomes[1]
    assert (seen.run, seen.count("call", "second"), len(seen.keys)) == ("completed", 2, 2)


@pytest.mark.invariant("S2")
def test_a_resend_that_was_killed_does_not_move_the_window(lab: Lab) -> None:
    """The window begins with the first request: a tool that forgets the key would do it twice."""
    kind = KINDS["idempotent, inside its window"]
    points = lab.record(lab.empty, kind.first_run)
    number = points.index(Point("after_effect", ("first",)))
    first = lab.kill(lab.empty, kind.first_run, number, points)
    points = lab.record(first, kind.recovery())
    second = lab.kill(
        first, kind.recovery(), points.index(Point("before_effect", ("first",))), points
    )
    late = dataclasses.replace(kind.recovery(), at_seconds=WINDOW_SECONDS + 1)
    finished = lab.finish(second, late)
    (seen,) = lab.check(finished.scene)
    assert (seen.run, seen.step) == ("paused", "in_doubt")
    assert [one["why"] for one in finished.outcomes[-1]["in_doubt"]] == ["window_lapsed"]
    assert (seen.count("effect", "first"), seen.count("call", "first")) == (1, 2)


@pytest.mark.invariant("S2")
@pytest.mark.invariant("S4")
@pytest.mark.parametrize("probes", range(3))
def test_what_lands_late_is_waited_for(probes: int, lab: Lab) -> None:
    """Sent, and under way when its process was killed: inside the bound an absence says nothing.

    The bound counts from the suspend, which the first resume has written shortly before the bound
    would have passed since the request.
    """
    kind = KINDS["queryable, past its bound"]
    points = lab.record(lab.empty, kind.first_run)
    number = points.index(Point("before_effect", ("first",)))
    scene = lab.kill(lab.empty, kind.first_run, number, points)
    at_seconds = SETTLES_SECONDS - 1
    for _ in range(probes):
        order = dataclasses.replace(kind.first_run, at_seconds=at_seconds)
        finished = lab.finish(scene, order)
        assert finished.outcomes[0]["state"] == "paused"
        scene = finished.scene
        at_seconds += SETTLES_SECONDS
    ledger = Ledger(scene.folder / LEDGER)
    ledger.write([*ledger.entries(), ledger.entries("call")[0]._replace(what="effect")])
    order = dataclasses.replace(kind.first_run, at_seconds=at_seconds + 1)
    (seen,) = lab.check(lab.finish(scene, order).scene)
    assert seen.run == "completed"
    assert (seen.count("effect", "first"), seen.count("call", "first")) == (1, 1)


@pytest.mark.parametrize("name", ["idempotent", "opaque"])
def test_a_log_that_was_grown_is_read_up_to_its_end(name: str, lab: Lab) -> None:
    """In all other tests a log ends where its last row does; by default there are zeros behind."""
    kind = KINDS[name]
    first_run = dataclasses.replace(kind.first_run, log_bytes=LOG_BYTES)
    cases = Cases(lab, name)
    for at, killed in lab.sweep(lab.empty, first_run, ["before_commit", "after_commit"]):
        assert (killed.folder / f"{DATABASE}-wal").stat().st_size == LOG_BYTES
        cases.add(at, killed, dataclasses.replace(kind.recovery(), log_bytes=LOG_BYTES))
    cases.judge()
