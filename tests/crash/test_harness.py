"""The harness cannot be fooled: a death that is not a kill at the point in question is a failure.

Known faults of such harnesses are M04 (what ran nothing passes), M06 (a grandchild keeps it
waiting) and M08 (a dead child that was not reaped seems to live).
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_replay import Json
from tests.crash.harness import WAIT_SECONDS_MAX, Lab, Misled, Order, Scene, Server
from tests.crash.verdicts import KINDS, Cases
from tests.crash.worker import LEDGER
from tests.crash.world import Ledger, Point

SOON_SECONDS = 0.2
"""For workers that are known never to say anything; nothing rests on how long it is."""

KIND = KINDS["opaque"]


@pytest.fixture
def here(lab: Lab) -> Scene:
    return lab.copy(lab.empty)


def to_the_barrier(*before: list[Json]) -> Order:
    """Return an order whose point is a barrier, with acts before it."""
    return Order(acts=[*before, ["barrier"]], stops=["barrier"], plan=KIND.plan)


def past_the_barrier(*after: list[Json]) -> Order:
    """Return an order for a worker that announces the barrier and goes on all the same."""
    return Order(acts=[["barrier"], *after], stops=["barrier"], waits=False)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.005)


def is_dead(pid: int) -> bool:
    """Say whether a process is dead, reaped or not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return text.rpartition(")")[2].split()[0] in "ZX"


def is_held(path: Path) -> bool:
    """Say whether a process still lives that holds a file, or that was started by one that did."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


# --- a worker that is not killed at its point ---------------------------------------------------


@pytest.mark.parametrize(
    ("act", "status"),
    [(["exit", 0], 0), (["exit", 9], 9), (["die"], -signal.SIGKILL)],
    ids=["exits", "fails", "kills itself"],
)
def test_a_worker_that_dies_before_its_point_is_no_kill(
    act: list[Json], status: int, lab: Lab, here: Scene
) -> None:
    worker = lab.start(here, to_the_barrier(act))
    with pytest.raises(Misled, match=f"reached no point .*: {{'ended': {status}}}"):
        worker.reached()


def test_a_worker_that_breaks_before_its_point_says_why(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, dataclasses.replace(to_the_barrier(["no_such_act"]), let_out=True))
    with pytest.raises(Misled, match="no attribute 'no_such_act'"):
        worker.reached()


def test_a_worker_that_finishes_without_its_point_is_no_kill(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, Order(acts=[["run"]], stops=["barrier"], plan=KIND.plan))
    with pytest.raises(Misled, match="finished and did not reach its point"):
        worker.reached()


def test_a_worker_that_never_says_anything_is_ended_and_no_kill(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, to_the_barrier(["hang"]))
    with pytest.raises(Misled, match=f"said nothing for {SOON_SECONDS} s"):
        worker.reached(SOON_SECONDS)
    with pytest.raises(Misled, match="has reaped it"):
        worker.kill()
    assert is_dead(worker.pid)


@pytest.mark.parametrize(
    ("act", "complaint"),
    [(["exit", 0], "ended with 0 before"), (["die"], "ended with -9 before")],
    ids=["exits", "kills itself"],
)
@pytest.mark.fault("M08")
def test_a_worker_that_is_dead_but_not_reaped_is_no_kill(
    act: list[Json], complaint: str, lab: Lab, here: Scene
) -> None:
    """It takes every signal without an error (M08)."""
    worker = lab.start(here, past_the_barrier(act))
    worker.reached()
    until(lambda: is_dead(worker.pid))
    os.kill(worker.pid, 0)
    kills = lab.server.kills
    with pytest.raises(Misled, match=complaint):
        worker.kill()
    assert lab.server.kills == kills


def test_a_worker_that_does_not_wait_at_its_point_is_no_kill(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, past_the_barrier(["barrier"], ["hold", "mark"], ["hang"]))
    worker.reached()
    until((here.folder / "mark").exists)
    with pytest.raises(Misled, match="did not wait until it was killed"):
        worker.kill()


def test_another_point_than_the_recorded_one_is_no_kill(lab: Lab) -> None:
    points = lab.record(lab.empty, KIND.first_run)
    points[3] = Point("told", ("acknowledge",))
    with pytest.raises(Misled, match=r"in place of 3, .*acknowledge"):
        lab.kill(lab.empty, KIND.first_run, 3, points)


def test_a_worker_that_is_not_left_alone_to_finish_has_no_answer(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, to_the_barrier())
    with pytest.raises(Misled, match="did not finish, it stopped"):
        worker.answer()
    assert is_dead(worker.pid)


# --- what a worker leaves behind ----------------------------------------------------------------


@pytest.mark.fault("M06")
@pytest.mark.parametrize("leave", [["leave", "sleep", "300"], ["leave_a_fork"]])
def test_what_a_worker_has_started_dies_with_it(leave: list[Json], lab: Lab, here: Scene) -> None:
    """It has inherited what the worker had open (M06), and is not waited for."""
    worker = lab.start(here, to_the_barrier(["hold", "mark"], leave))
    worker.reached()
    assert is_held(here.folder / "mark")
    worker.kill()
    until(lambda: not is_held(here.folder / "mark"))


def test_a_worker_that_ended_and_left_a_fork_on_its_line_is_no_kill(lab: Lab, here: Scene) -> None:
    worker = lab.start(here, to_the_barrier(["hold", "mark"], ["leave_a_fork"], ["exit", 0]))
    with pytest.raises(Misled, match="said nothing"):
        worker.reached(SOON_SECONDS)
    until(lambda: not is_held(here.folder / "mark"))


def test_a_server_that_ends_takes_its_workers_along(tmp_path: Path) -> None:
    server = Server(tmp_path / "errors")
    workers = [server.start(tmp_path, to_the_barrier()) for _ in range(3)]
    for worker in workers:
        worker.reached()
    server.close()
    assert all(is_dead(worker.pid) for worker in workers)


def test_a_server_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Their line ends, whoever of them lives on."""
    server = Server(tmp_path / "errors")
    workers = [server.start(tmp_path, to_the_barrier()) for _ in range(3)]
    for worker in workers:
        worker.reached()
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(Misled, match="the server has ended"):
        workers[0].kill()
    until(lambda: all(is_dead(worker.pid) for worker in workers))
    server.close()


# --- a test that looked at nothing --------------------------------------------------------------


@pytest.mark.fault("M04")
def test_a_sweep_of_what_writes_nothing_is_refused(lab: Lab) -> None:
    """No case is not the same as no fault."""
    finished = lab.finish(lab.empty, KIND.first_run)
    with pytest.raises(Misled, match="nothing was written"):
        list(lab.sweep(finished.scene, KIND.first_run))


@pytest.mark.fault("M04")
def test_a_sweep_of_no_place_is_refused(lab: Lab) -> None:
    with pytest.raises(Misled, match="no point is at"):
        list(lab.sweep(lab.empty, KIND.first_run, ["before_probe"]))


@pytest.mark.fault("M04")
def test_no_case_is_no_verdict(lab: Lab) -> None:
    with pytest.raises(AssertionError, match="nothing to judge"):
        Cases(lab, "opaque").judge()


# --- checks that bite ---------------------------------------------------------------------------


def test_a_wrong_verdict_is_found(lab: Lab) -> None:
    """An idempotent tool is called again, which would be wrong for an opaque one."""
    idempotent = KINDS["idempotent"]
    points = lab.record(lab.empty, idempotent.first_run)
    number = next(n for n, point in enumerate(points) if point.place == "after_effect")
    cases = Cases(lab, "opaque")
    cases.add("", lab.kill(lab.empty, idempotent.first_run, number, points), idempotent.recovery())
    with pytest.raises(AssertionError, match="in_doubt"):
        cases.judge()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"what": "call", "attempt": 2}, "S1: no durable request"),
        ({"what": "call"}, "an attempt called twice"),
        ({"what": "call", "key": "another"}, "S11: another key"),
        ({"what": "effect"}, "S2: 2 effects of first"),
    ],
)
def test_a_ledger_that_the_history_does_not_explain_is_found(
    changes: dict[str, Json], complaint: str, lab: Lab
) -> None:
    scene = lab.finish(lab.empty, KIND.first_run).scene
    (seen,) = lab.check(scene)
    line = seen.ledger[0]._replace(**changes)  # type: ignore[arg-type]
    Ledger(scene.folder / LEDGER).write([*seen.ledger, line])
    with pytest.raises(AssertionError, match=complaint):
        lab.check(scene)


def test_an_effect_that_is_gone_is_found(lab: Lab) -> None:
    scene = lab.finish(lab.empty, KIND.first_run).scene
    (seen,) = lab.check(scene)
    Ledger(scene.folder / LEDGER).write([one for one in seen.ledger if one.what != "effect"])
    with pytest.raises(AssertionError, match="S3: first succeeded without an effect"):
        lab.check(scene)


def test_a_transaction_that_is_not_there_as_written_is_found(lab: Lab) -> None:
    scene = lab.finish(lab.empty, KIND.first_run).scene
    claimed = (*scene.points, Point("after_commit", ("suspend",)))
    with pytest.raises(AssertionError, match="in part"):
        lab.check(scene._replace(points=claimed))


@pytest.mark.parametrize(
    ("place", "complaint"), [("before_effect", "S1: a call"), ("before_probe", "S8: a probe")]
)
def test_what_is_done_before_its_row_is_durable_is_found(
    place: str, complaint: str, lab: Lab
) -> None:
    scene = lab.finish(lab.empty, KIND.first_run).scene
    with pytest.raises(AssertionError, match=f"{complaint} after 'acknowledge'"):
        lab.check(scene._replace(points=(*scene.points, Point(place, ("first",)))))


def test_a_row_that_was_told_of_and_is_gone_is_found(lab: Lab) -> None:
    scene = lab.finish(lab.empty, KIND.first_run).scene
    with pytest.raises(AssertionError, match="told of, and is gone"):
        lab.check(scene._replace(told=((2, "00" * 32),)))
