"""A writer that is stopped (SIGSTOP) still owns its database: no other takes over, and it goes on.

Such a process looks dead: it answers nobody, and no time limit of anybody is kept. But it may be
continued at any moment, in the middle of its call, and then it does what is left to do.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crashtests.child import REPORTS_ON, WAITS_ON, Child, readable, spawn
from tests.crash.harness import WAIT_SECONDS_MAX, Answer, Lab, Order, Scene, point_of
from tests.crash.test_ownership import content, is_locked_out
from tests.crash.verdicts import KINDS
from tests.crash.worker import DATABASE, LEDGER
from tests.crash.world import Ledger

BECOMES = {
    signal.SIGSTOP: (os.WSTOPPED, os.CLD_STOPPED),
    signal.SIGCONT: (os.WCONTINUED, os.CLD_CONTINUED),
    signal.SIGKILL: (0, os.CLD_KILLED),
}
"""What to wait for after a signal, beside the end of the process, and what the kernel then says."""

KIND = {"idempotent": KINDS["idempotent"], "opaque": KINDS["opaque"]}
STEP = "first"


def started(folder: Path, order: Order) -> Child:
    """Start a worker as this process's own child: only a parent is told that one was stopped."""
    line = [str(REPORTS_ON), str(WAITS_ON)]
    text = json.dumps({**order.__dict__, "folder": str(folder)})
    words = ["-m", "tests.crash.worker", "work", *line, text]
    return spawn(words, path=sys.path, errors=folder.with_suffix(".errors"))


def heard(child: Child) -> Answer:
    """Return what it says next; it fails if it ends before, or takes too long."""
    said = child.hear()
    assert said is not None, f"it has ended with {child.reap()}"
    return said


def send(child: Child, number: signal.Signals) -> None:
    """Send a signal, and return when the kernel says that it has had its effect."""
    wait, becomes = BECOMES[number]
    os.killpg(child.pid, number)
    # It cannot refuse. Should it take for ever all the same, it is killed, which is seen below.
    bound = threading.Timer(WAIT_SECONDS_MAX, os.kill, (child.pid, signal.SIGKILL))
    bound.start()
    try:
        seen = os.waitid(os.P_PID, child.pid, wait | os.WEXITED | os.WNOWAIT)
    finally:
        bound.cancel()
    assert seen is not None
    assert (seen.si_pid, seen.si_code) == (child.pid, becomes)


@contextlib.contextmanager
def stopped(folder: Path, order: Order) -> Iterator[Child]:
    """Start a worker, let it come to its point, and stop it there."""
    with started(folder, order) as child:
        assert point_of(heard(child)["point"]).place == order.stops[0]
        send(child, signal.SIGSTOP)
        yield child


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def others_are_refused(lab: Lab, scene: Scene, plan: Any, pid: int) -> None:
    """Let others come to the database of a stopped process: writers change nothing, readers read.

    A reader marks in the shared memory what it reads, so only the files that last are compared.
    """
    before = content(scene.folder)
    for way in ("run", "resume", "cancel"):
        other = lab.start(scene, Order(acts=[[way]], plan=plan)).answer()
        assert is_locked_out(other), other
        (refusal,) = other["outcomes"]
        assert f"process {pid} (" in refusal["message"]
        assert content(scene.folder) == before
    (seen,) = lab.see(scene)
    assert seen.sound, seen.findings
    assert not seen.unconfirmed
    lasting = [name for name in before if not name.endswith("-shm")]
    assert DATABASE in lasting
    after = content(scene.folder)
    assert [after[name] for name in lasting] == [before[name] for name in lasting]


@pytest.mark.fault("B01")
@pytest.mark.invariant("S2")
@pytest.mark.parametrize("contract", KIND)
@pytest.mark.parametrize("place", ["before_effect", "after_effect", "before_commit"])
def test_a_stopped_writer_keeps_its_database_and_goes_on(
    lab: Lab, contract: str, place: str
) -> None:
    """It is stopped in its call, or in the middle of a transaction."""
    scene = lab.copy(lab.empty)
    plan = KIND[contract].plan
    with stopped(scene.folder, Order(acts=[["run"]], plan=plan, stops=[place])) as child:
        child.release()
        others_are_refused(lab, scene, plan, child.pid)
        assert not readable(child.fileno(), 0)
        assert state_of(child.pid) == "T"

        send(child, signal.SIGCONT)
        while "reached" in (said := heard(child)):
            child.release()
        assert child.reap() == 0
    (outcome,) = said["outcomes"]
    assert outcome["state"] == "completed"
    (seen,) = lab.check(scene._replace(points=tuple(map(point_of, said["points"]))))
    assert {row["epoch"] for row in seen.rows} == {1}, "another has written"
    assert {entry.pid for entry in seen.ledger} == {child.pid}, "another has called"
    assert (seen.count("call", STEP), seen.count("effect", STEP)) == (1, 1)

    again = lab.start(scene, Order(acts=[["run"]], plan=plan)).answer()
    assert again["outcomes"] == [outcome]
    assert Ledger(scene.folder / LEDGER).entries() == seen.ledger


@pytest.mark.parametrize(("contract", "state"), [("idempotent", "completed"), ("opaque", "paused")])
def test_a_writer_that_is_killed_while_it_is_stopped_leaves_its_database_to_others(
    lab: Lab, contract: str, state: str
) -> None:
    scene = lab.copy(lab.empty)
    plan = KIND[contract].plan
    with stopped(scene.folder, Order(acts=[["run"]], plan=plan, stops=["after_effect"])) as child:
        refused = lab.start(scene, Order(acts=[["resume"]], plan=plan)).answer()
        assert is_locked_out(refused)
        send(child, signal.SIGKILL)
        assert child.reap() == -signal.SIGKILL
    (outcome,) = lab.start(scene, Order(acts=[["resume"]], plan=plan)).answer()["outcomes"]
    assert outcome["state"] == state
    assert [entry.step for entry in Ledger(scene.folder / LEDGER).entries("effect")].count(
        STEP
    ) == 1
