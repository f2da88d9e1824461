"""Clocks that jump decide nothing but what the design lets them, and callbacks lose nothing."""

from __future__ import annotations

from threading import Event as Signal
from threading import Thread

import pytest

from agent_replay import Json, Request, RunState, Runtime, adapter
from agent_replay.lifecycles.step import StepState
from agent_replay.store.verify import verify
from tests.stateful import reference
from tests.stateful.lab import Lab
from tests.stateful.outside import CONTRACT_OF
from tests.stateful.test_grammar import run

DAY = 86_400
ANY_JUMP = [-365 * DAY, -DAY, DAY, 365 * DAY]
TOOLS = sorted(CONTRACT_OF)


@pytest.mark.fault("I01")
@pytest.mark.parametrize("seconds", ANY_JUMP)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_moved_clock_declares_no_run_dead_and_none_done(
    lab: Lab, tool: str, seconds: int
) -> None:
    """What is known stays; what is unknown is sent again where that is safe, or is in doubt."""
    lab.start("done", [(tool, ["ok"], ["ok"])])
    lab.start("open", [(tool, ["ok"], ["ok"])], [(5, "die", 0)])
    lab.set_clock(seconds)
    lab.open()
    lab.resume("done")
    lab.resume("open")
    runs = lab.rehearsal.runs
    assert reference.state_of(runs["done"]) is RunState.COMPLETED
    sent_again = {"look", "keyed", "asked"}  # the probe of the last one has found it
    expected = RunState.COMPLETED if tool in sent_again else RunState.PAUSED
    assert reference.state_of(runs["open"]) is expected


@pytest.mark.fault("I01")
@pytest.mark.parametrize("seconds", ANY_JUMP)
def test_a_moved_clock_alone_refutes_nothing(lab: Lab, seconds: int) -> None:
    """The probe does not know the key, and by the clock since boot no time has passed."""
    lab.start("r", [("asked", ["late"], ["ok"])])
    lab.set_clock(seconds)
    lab.resume("r")
    assert lab.rehearsal.runs["r"].open.state is StepState.IN_DOUBT
    lab.land(0)
    lab.resume("r")
    assert reference.state_of(lab.rehearsal.runs["r"]) is RunState.COMPLETED


@pytest.mark.fault("I03")
@pytest.mark.fault("I04")
@pytest.mark.parametrize("seconds", [0, -DAY])
def test_an_answer_from_before_its_request_changes_nothing(lab: Lab, seconds: int) -> None:
    """Times are equal, or each is a day before the last: only the sequence counts."""
    steps = [(tool, ["lost", "ok"], ["ok"]) for tool in ("look", "keyed", "asked")]
    doings = [(at, "jump", seconds) for at in range(12)]
    lab.start("r", steps, doings)
    walls = [row for _, row in lab.wall_times("r")]
    assert walls == sorted(walls, reverse=True)
    assert len(walls) >= 9
    assert reference.state_of(lab.rehearsal.runs["r"]) is RunState.COMPLETED
    assert verify(lab.path).sound
    for words in (["list"], ["show", "r"], ["doctor"], ["verify"], ["export"]):
        code, text = run([*words, "--db", str(lab.path)])
        assert (code, "Traceback" in text) == (0, False), text


# --- callbacks ------------------------------------------------------------------------------------


@pytest.mark.fault("M03")
@pytest.mark.parametrize("at", range(3, 7))
@pytest.mark.parametrize("deed", ["ok", "lost", "refuse", "interrupt"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_cancel_from_inside_of_a_callback_is_not_lost(
    lab: Lab, tool: str, deed: str, at: int
) -> None:
    """From a hook, or from the tool itself, which fails right after it."""
    lab.start("r", [(tool, [deed], ["raise"]), ("look", ["ok"], ["ok"])], [(at, "cancel", 0)])
    run_ = lab.rehearsal.runs["r"]
    over = reference.state_of(run_) is RunState.FAILED
    assert [doing.what for doing, _ in lab.done] in ([], ["cancel"])
    assert run_.cancel_asked or over or not lab.done
    called = {step for _, step, _ in lab.outside.calls}
    assert not run_.cancel_asked or "s2" not in called, "nothing more is sent"


@pytest.mark.fault("M03")
@pytest.mark.parametrize("fails", [False, True])
def test_a_cancel_from_another_thread_is_not_lost_while_a_step_fails(lab: Lab, fails: bool) -> None:
    began, cancelled = Signal(), Signal()

    @adapter(name="waits")
    def waits(_request: Request) -> Json:
        began.set()
        assert cancelled.wait(30)
        if fails:
            raise TimeoutError
        return 1

    step: dict[str, Json] = {"id": "s", "adapter": "waits@1", "contract": "opaque", "arguments": {}}
    lab.close_process()
    with Runtime(lab.folder / "other.db", adapters=[waits], log_bytes=0) as runtime:

        def cancel() -> None:
            assert began.wait(30)
            runtime.cancel("r", who="ann", why="no longer wanted")
            cancelled.set()

        thread = Thread(target=cancel)
        thread.start()
        outcome = runtime.run("r", {"plan": 1, "steps": [step, {**step, "id": "t"}]})
        thread.join(30)
    assert outcome.state is (RunState.CANCELLING if fails else RunState.CANCELLED)
    assert bool(outcome.in_doubt) is fails


@pytest.mark.invariant("S12")
@pytest.mark.parametrize("at", [4, 5, 6])
@pytest.mark.parametrize("tool", TOOLS)
def test_no_call_begins_once_a_callback_has_met_a_storage_error(
    lab: Lab, tool: str, at: int
) -> None:
    """A hook is told of the request and asks for a cancel, whose commit fails."""
    lab.start("r", [(tool, ["ok"], ["ok"])], [(3, "cancel", 0), (at, "fail", 0)])
    assert [doing.what for doing, _ in lab.done] == ["cancel", "fail"]
    assert lab.outside.calls == []
    lab.reopen()
    lab.resume("r")
    assert bool(lab.outside.calls) is not lab.rehearsal.runs["r"].cancel_asked
