"""One runtime, several threads: one driver for a run, one transaction at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from agent_replay import (
    DatabaseLocked,
    InvalidInput,
    Json,
    Outcome,
    Request,
    Runtime,
    adapter,
    idempotent,
)
from agent_replay.store.verify import verify
from tests.outside import plan_of
from tests.runtime.conftest import World


def _at_once(count: int, work: Callable[[int], object]) -> None:
    """Run `work` in several threads that start together, and raise what one of them raised."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def start(number: int) -> None:
        try:
            barrier.wait(timeout=20)
            work(number)
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.mark.fault("E17")
def test_eight_threads_run_their_own_runs(world: World) -> None:
    plan = plan_of(*[(f"s{number}", "keyed") for number in range(5)])
    outcomes: list[Outcome] = []
    with world.open() as runtime:
        _at_once(8, lambda number: outcomes.append(runtime.run(f"r{number}", plan)))
        _at_once(8, lambda number: outcomes.append(runtime.outcome(f"r{number}")))
    assert [outcome.completed for outcome in outcomes] == [True] * 16
    verdict = verify(world.path)
    assert verdict.sound
    assert (verdict.runs, verdict.events) == (8, 80)


def test_runs_of_several_threads_share_commits_and_keep_their_order(world: World) -> None:
    """Each run has its next row ready before the first of them is committed, so they must share."""
    threads, steps = 8, 12
    in_step = threading.Barrier(threads)

    @adapter(name="keyed", contract=idempotent())
    def keyed(request: Request) -> Json:
        in_step.wait(timeout=20)
        return request.step

    plan = plan_of(*[(f"s{number:02}", "keyed") for number in range(steps)])
    outcomes: list[Outcome] = []
    commits: list[str] = []

    def trace(_connection: object, sql: str, _values: object) -> bool:
        commits.extend([sql] if sql == "commit" else [])
        return True

    with world.open(adapters=[keyed]) as runtime:
        runtime._store.connection.set_exec_trace(trace)
        _at_once(threads, lambda number: outcomes.append(runtime.run(f"r{number}", plan)))
    assert all(outcome.completed for outcome in outcomes)
    assert len(commits) < threads * (steps + 1) / 2
    verdict = verify(world.path)
    assert verdict.sound
    assert (verdict.runs, verdict.events) == (threads, threads * steps * 2)


@pytest.mark.fault("C05")
@pytest.mark.fault("B01")
def test_one_id_from_many_threads_is_one_run(world: World) -> None:
    plan = plan_of(("a", "dark"), ("b", "dark"))
    outcomes: list[Outcome] = []
    with world.open() as runtime:
        _at_once(8, lambda _: outcomes.append(runtime.run("r", plan)))
    assert [outcome.completed for outcome in outcomes] == [True] * 8
    assert world.ledger.calls == [("a", 1), ("b", 1)]
    assert verify(world.path).runs == 1


@pytest.mark.fault("B01")
def test_of_many_resumes_of_a_dead_run_one_drives(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "keyed", {"do": ["interrupt", "ok"]})))
    with world.open() as runtime:
        _at_once(6, lambda _: runtime.resume("r"))
    assert world.ledger.calls == [("pay", 1), ("pay", 2)]


def test_a_tool_cannot_drive_its_own_run(world: World) -> None:
    runtimes: list[Runtime] = []
    caught: list[str] = []

    @adapter(name="keyed", contract=idempotent())
    def nested(request: Request) -> Json:
        try:
            runtimes[0].resume(request.run)
        except InvalidInput as error:
            caught.append(str(error))
        return runtimes[0].run("inner", plan_of(("x", "dark"))).completed

    @adapter(name="dark")
    def plain(request: Request) -> Json:
        return None

    with world.open(adapters=[nested, plain]) as runtime:
        runtimes.append(runtime)
        assert runtime.run("outer", plan_of(("a", "keyed"))).results["a"] is True
    assert "cannot drive its own run" in caught[0]


def test_a_runtime_is_not_closed_under_a_run(world: World) -> None:
    runtimes: list[Runtime] = []
    caught: list[str] = []

    @adapter(name="dark")
    def closes(request: Request) -> Json:
        for act in (runtimes[0].close, runtimes[0].reopen):
            with pytest.raises(InvalidInput) as error:
                act()
            caught.append(str(error.value))
        return None

    with world.open(adapters=[closes]) as runtime:
        runtimes.append(runtime)
        assert runtime.run("r", plan_of(("a", "dark"))).completed
    assert "under way" in caught[0]


@pytest.mark.fault("B02")
def test_a_second_runtime_in_the_same_process_is_refused(world: World) -> None:
    with world.open() as runtime:
        with pytest.raises(DatabaseLocked):
            world.open()
        assert runtime.run("r", plan_of(("a", "dark"))).completed
    with world.open() as runtime:
        assert runtime.run("r", plan_of(("a", "dark"))).completed
