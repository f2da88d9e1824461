"""Of all processes that would go on with a run, one does, and the others change nothing."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from tests.crash.harness import Answer, Lab, Order, Reached, Scene, Worker
from tests.crash.verdicts import KINDS, Cases
from tests.crash.world import plan_of

PROCESSES = 8
STEPS = ("one", "two", "three")
PLAN = plan_of("keyed", *STEPS)
RESULTS = {step: f'{{"receipt": "{step}-1"}}' for step in STEPS}
ATTEMPTS_MAX = 1000


def content(folder: Path) -> dict[str, bytes]:
    """Return all that is in a folder, to the byte."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_locked_out(answer: Answer) -> bool:
    """Say whether a worker was refused the database, in all that it wanted of it."""
    return {one.get("error") for one in answer["outcomes"]} == {"DatabaseLocked"}


@pytest.mark.slow
@pytest.mark.fault("B01")
@pytest.mark.invariant("S2")
@pytest.mark.parametrize(
    "name",
    ["idempotent", "opaque", pytest.param("queryable, past its bound", marks=pytest.mark.slow)],
)
def test_nobody_takes_a_run_over_from_a_process_that_lives(name: str, lab: Lab) -> None:
    """A recovery is stopped at each of its points, and another comes: it stops, without a call."""
    kind = KINDS[name]
    points = lab.record(lab.empty, kind.first_run)
    number = next(number for number, point in enumerate(points) if point.place == "after_effect")
    orphan = lab.kill(lab.empty, kind.first_run, number, points)
    points = lab.record(orphan, kind.recovery())
    holding = [number for number, point in enumerate(points) if point.place != "closed"]
    ways = cycle(["run", "resume", "resume_all"])
    cases = Cases(lab, name)
    for number, way in zip(holding, ways, strict=False):
        first = lab.send(orphan, kind.recovery(), number, points)
        scene = first.arrive()
        before = content(scene.folder)
        other = lab.start(scene, Order(acts=[[way]], plan=kind.plan)).answer()
        assert is_locked_out(other), (points[number], other)
        assert content(scene.folder) == before, points[number]
        first.worker.kill()
        cases.add(f"{number}", scene, kind.recovery(round=2))
    cases.judge()


def to_the_first_call(lab: Lab, scene: Scene) -> Worker:
    """Start all processes, let them go at one barrier, and return the one that gets to a call.

    It waits in the call until the others have ended.
    """
    acts = [["barrier"], ["run"]]
    order = Order(
        acts=acts, plan=PLAN, stops=["barrier", "before_effect"], attempts_max=ATTEMPTS_MAX
    )
    workers = [lab.start(scene, order) for _ in range(PROCESSES)]
    for worker in workers:
        assert worker.reached().point.place == "barrier"
    for worker in workers:
        worker.release()
    came = [(worker, worker.next()) for worker in workers]
    (winner,) = [worker for worker, said in came if isinstance(said, Reached)]
    losers = [said for _, said in came if not isinstance(said, Reached)]
    assert len(losers) == PROCESSES - 1
    for answer in losers:
        released, *others = answer["outcomes"]
        assert released == {}
        assert is_locked_out({"outcomes": others}), answer
    return winner


def let_through(worker: Worker) -> Answer:
    while isinstance(said := worker.released(), Reached):
        continue
    return said


@pytest.mark.fault("B01")
@pytest.mark.fault("B02")
@pytest.mark.invariant("S2")
@pytest.mark.invariant("S11")
@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_of_eight_processes_at_one_barrier_exactly_one_proceeds(
    rounds: int, lab: Lab, tmp_path: Path
) -> None:
    """The one is killed in its call, so that they come again; the last one is let through.

    Nothing is there at first: they make the database, register the run, and resume it.
    """
    folder = tmp_path / "shared"
    folder.mkdir()
    scene = Scene(folder)
    rows = calls = 0
    came_to: Answer = {}
    for number in range(rounds):
        winner = to_the_first_call(lab, scene)
        (seen,) = lab.see(scene)
        assert seen.sound, seen.findings
        assert {row["epoch"] for row in seen.rows[rows:]} == {number + 1}, "another has written"
        assert {one.pid for one in seen.ledger[calls:]} == {winner.pid}, "another has called"
        rows, calls = len(seen.rows), len(seen.ledger)
        if number < rounds - 1:
            winner.kill()
        else:
            came_to = let_through(winner)
    assert came_to["outcomes"][-1]["results"] == RESULTS
    (seen,) = lab.see(scene)
    assert seen.sound, seen.findings
    assert [seen.count("effect", step) for step in STEPS] == [1, 1, 1]
    assert [seen.count("call", step) for step in STEPS] == [rounds, 1, 1]
    recorded = {row["step"]: row["payload"] for row in seen.rows if row["state"] == "succeeded"}
    assert recorded == {n: f'{{"result":{{"receipt":"{s}-1"}}}}' for n, s in enumerate(STEPS, 1)}
