"""Many runs at once: they overlap, each ends by itself, and nothing is left under way behind."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_replay import (
    Fenced,
    Finished,
    InvalidInput,
    Json,
    Outcome,
    PlanMismatch,
    Request,
    RunState,
    Runtime,
    StorageError,
    ToolRejected,
    adapter,
    idempotent,
    many,
)
from agent_replay.runtime import WORKERS, WORKERS_LIMIT
from agent_replay.store.verify import verify
from tests.outside import plain, plan_of
from tests.runtime.conftest import World

WAIT_SECONDS = 30
"""No wait here may take longer."""

ONE = plan_of(("a", "keyed"))
TWO = plan_of(("a", "keyed"), ("b", "keyed"))
Tool = Callable[[Request], Json]


class Tools:
    """One tool that does what a test gives it, and notes each call."""

    def __init__(self, world: World, act: Tool = lambda request: request.step) -> None:
        self.world = world
        self.calls: list[tuple[str, str]] = []
        self.act = act

    def open(self, **options: object) -> Runtime:
        @adapter(name="keyed", contract=idempotent())
        def keyed(request: Request) -> Json:
            self.calls.append((request.run, request.step))
            return self.act(request)

        return self.world.open(adapters=[keyed], **options)


@pytest.fixture
def tools(world: World) -> Tools:
    return Tools(world)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert workers_alive() == []


def workers_alive() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("agent-replay-")]


class Counted:
    """An input, and how many of its entries were read."""

    def __init__(self, entries: Iterator[tuple[str, Json]]) -> None:
        self.read = 0
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[str, Json]]:
        for entry in self._entries:
            self.read += 1
            yield entry


def numbered(count: int, plan: Json = ONE) -> Iterator[tuple[str, Json]]:
    return ((f"r{number}", plan) for number in range(count))


def waiting_behind_the_first(tools: Tools) -> tuple[threading.Barrier, threading.Event]:
    """Let the calls of all runs but r0 wait: two of them and the caller for each other, and then
    until they are let go."""
    inside, let_go = threading.Barrier(3), threading.Event()

    def act(request: Request) -> Json:
        if request.run != "r0":
            inside.wait(WAIT_SECONDS)
            assert let_go.wait(WAIT_SECONDS)
        return request.step

    tools.act = act
    return inside, let_go


def outcome_of(finished: Finished) -> Outcome:
    assert finished.error is None
    assert finished.outcome is not None
    assert finished.outcome.run == finished.run
    return finished.outcome


# --- they overlap, and come out as if one after the other ---------------------------------------


def test_as_many_tools_as_workers_are_inside_at_once(tools: Tools) -> None:
    inside = threading.Barrier(8)
    tools.act = lambda request: inside.wait(WAIT_SECONDS) >= 0
    with tools.open() as runtime:
        done = list(runtime.run_many(numbered(16), workers=8))
    assert [outcome_of(each).completed for each in done] == [True] * 16


def test_no_more_are_inside_than_workers(tools: Tools) -> None:
    lock = threading.Lock()
    inside, most = 0, 0

    def act(request: Request) -> Json:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        with lock:
            inside -= 1
        return None

    tools.act = act
    with tools.open() as runtime:
        assert len(list(runtime.run_many(numbered(60, TWO), workers=3))) == 60
    assert 1 <= most <= 3


@pytest.mark.invariant("S1")
def test_the_outcomes_are_those_of_runs_one_after_the_other(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def act(request: Request) -> Json:
        if request.run in ("r3", "r17") and request.step == "b":
            raise ToolRejected("no")
        return [request.run, request.step]

    def told(outcome: Outcome) -> tuple[RunState, dict[str, Json], object]:
        return outcome.state, dict(outcome.results), outcome.failure

    alone = Tools(World(tmp_path_factory.mktemp("alone")), act)
    with alone.open() as runtime:
        expected = {run: told(runtime.run(run, plan)) for run, plan in numbered(40, TWO)}
    together = Tools(world, act)
    with together.open() as runtime:
        found = {each.run: told(outcome_of(each)) for each in runtime.run_many(numbered(40, TWO))}
    assert found == expected
    assert sorted(together.calls) == sorted(alone.calls)
    verdict = verify(world.path)
    assert verdict.sound
    assert verdict.runs == 40


def test_results_come_as_runs_end_and_not_as_they_were_given(tools: Tools) -> None:
    let_go = threading.Event()
    tools.act = lambda request: request.run != "r0" or let_go.wait(WAIT_SECONDS)
    with tools.open() as runtime:
        order = []
        for each in runtime.run_many(numbered(4), workers=2):
            order.append(each.run)
            if len(order) == 3:
                let_go.set()
    assert order[-1] == "r0"
    assert sorted(order) == ["r0", "r1", "r2", "r3"]


@pytest.mark.fault("C05")
def test_one_id_given_often_is_executed_once(tools: Tools) -> None:
    with tools.open() as runtime:
        done = list(runtime.run_many((("same", TWO) for _ in range(20)), workers=8))
    assert [outcome_of(each).completed for each in done] == [True] * 20
    assert tools.calls == [("same", "a"), ("same", "b")]


def test_runs_that_are_known_are_resumed_and_not_repeated(tools: Tools) -> None:
    with tools.open() as runtime:
        first = {each.run for each in runtime.run_many(numbered(10))}
        again = {each.run for each in runtime.run_many(numbered(10))}
    assert first == again
    assert len(tools.calls) == 10


def test_no_run_at_all_is_no_error(tools: Tools) -> None:
    with tools.open() as runtime:
        assert list(runtime.run_many([])) == []
    assert not tools.calls


# --- held -----------------------------------------------------------------------------------------


def test_an_endless_input_is_read_a_few_entries_ahead(tools: Tools) -> None:
    endless = Counted(numbered(9_999))
    with tools.open() as runtime, closing(runtime.run_many(endless, workers=4)) as done:
        for ended, _ in enumerate(itertools.islice(done, 100), start=1):
            assert endless.read <= ended + 2 * 4
    assert len(tools.calls) <= 108
    assert verify(tools.world.path).sound


def test_nothing_is_begun_before_the_first_result_is_asked_for(tools: Tools) -> None:
    with tools.open() as runtime:
        done = runtime.run_many(numbered(3))
        assert workers_alive() == []
        done.close()
    assert not tools.calls


def test_no_more_threads_than_runs_are_started(tools: Tools) -> None:
    names = set()
    tools.act = lambda request: names.add(threading.current_thread().name)
    with tools.open() as runtime:
        assert len(list(runtime.run_many(numbered(2), workers=WORKERS_LIMIT))) == 2
    assert len(names) <= 2


# --- one run's error ------------------------------------------------------------------------------


def test_an_error_of_one_run_touches_that_run_alone(tools: Tools) -> None:
    other = plan_of(("a", "dark"))
    with tools.open() as runtime:
        assert runtime.run("known", ONE).completed
        runs: list[tuple[str, Json]] = [("x/y", ONE), ("broken", {"plan": 1})]
        runs += [("known", TWO), ("lacks", other)]
        done = {each.run: each for each in runtime.run_many([*runs, *numbered(5)], workers=3)}
    errors = {run: type(each.error).__name__ for run, each in done.items() if each.error}
    assert errors == {
        "x/y": "InvalidInput",
        "broken": "InvalidPlan",
        "known": "PlanMismatch",
        "lacks": "AdapterMismatch",
    }
    assert isinstance(done["known"].error, PlanMismatch)
    assert all(outcome_of(done[f"r{number}"]).completed for number in range(5))
    assert verify(tools.world.path).runs == 6


def test_a_run_that_waits_is_an_outcome(world: World) -> None:
    plan = plan_of(("pay", "dark", {"do": ["lost"]}))
    with world.open() as runtime:
        (done,) = runtime.run_many([("r", plan)])
    assert outcome_of(done).waits


def test_entries_are_pairs(tools: Tools) -> None:
    for entry in ("ab", "r", None, 7, ("r",), ("r", ONE, 3)):
        with tools.open() as runtime, pytest.raises(InvalidInput, match="pairs of run id and plan"):
            list(runtime.run_many([entry]))  # type: ignore[list-item]
    assert not tools.calls


@pytest.mark.parametrize("runs", [{"r": ONE}, "runs", None, 7], ids=plain)
def test_what_is_no_input_is_refused_at_once(tools: Tools, runs: object) -> None:
    with tools.open() as runtime, pytest.raises(InvalidInput, match="iterable of pairs"):
        runtime.run_many(runs)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, -1, WORKERS_LIMIT + 1, True, 2.0, "4", None])
def test_a_strange_number_of_workers_is_refused_at_once(tools: Tools, workers: object) -> None:
    with tools.open() as runtime, pytest.raises(InvalidInput, match="number from 1 to 1000"):
        runtime.run_many(numbered(1), workers=workers)  # type: ignore[arg-type]
    assert 1 <= WORKERS <= WORKERS_LIMIT


def test_an_input_that_raises_stops_what_is_under_way_and_is_raised(tools: Tools) -> None:
    def breaks() -> Iterator[tuple[str, Json]]:
        yield from numbered(3)
        raise OSError("the list cannot be read on")

    with tools.open() as runtime, pytest.raises(OSError, match="cannot be read on"):
        list(runtime.run_many(breaks(), workers=2))
    assert verify(tools.world.path).sound


# --- the storage ----------------------------------------------------------------------------------


class Storage:
    """A connection whose commits fail from a moment on, with an unknown outcome."""

    def __init__(self, runtime: Runtime) -> None:
        self.fails = False
        self.commits = 0
        store = runtime._store
        real = store.connection

        class Wrapped:
            def __getattr__(_, name: str) -> object:
                return getattr(real, name)

            def execute(_, statement: str, *arguments: object) -> object:
                if statement == "commit" and self.fails:
                    self.commits += 1
                    raise apsw.IOError("disk I/O error")
                return real.execute(statement, *arguments)  # type: ignore[arg-type]

        store.connection = Wrapped()  # type: ignore[assignment]


@pytest.mark.invariant("S12")
def test_a_storage_error_ends_it_and_says_which_runs_it_hit(tools: Tools) -> None:
    inside = threading.Barrier(4)
    storage: list[Storage] = []

    def act(request: Request) -> Json:
        if inside.wait(WAIT_SECONDS) == 0:
            storage[0].fails = True
        inside.wait(WAIT_SECONDS)
        return None

    tools.act = act
    done: list[Finished] = []
    with tools.open() as runtime:
        storage.append(Storage(runtime))
        with pytest.raises(StorageError, match="disk I/O error") as raised:
            done.extend(runtime.run_many(numbered(50), workers=4))
        assert "r0, r1, r2, r3" in raised.value.__notes__[0]
        assert len(tools.calls) == 4
        assert storage[0].commits == 1
        runtime.reopen()
        tools.act = lambda request: None
        for each in runtime.run_many(numbered(50), workers=8):
            assert outcome_of(each).completed
    assert len(tools.calls) == 50, "what had been answered was written, and not asked for again"
    assert verify(tools.world.path).sound


@pytest.mark.invariant("S12")
def test_each_run_that_a_storage_error_hit_is_told_before_it_is_raised(tools: Tools) -> None:
    inside = threading.Barrier(3)
    storage: list[Storage] = []

    def act(request: Request) -> Json:
        inside.wait(WAIT_SECONDS)
        storage[0].fails = True
        return None

    tools.act = act
    with tools.open() as runtime:
        storage.append(Storage(runtime))
        done = runtime.run_many(numbered(9), workers=3)
        told = [next(done) for _ in range(3)]
        with pytest.raises(StorageError):
            next(done)
        with pytest.raises(StopIteration):
            next(done)
    assert sorted(each.run for each in told) == ["r0", "r1", "r2"]
    assert all(isinstance(each.error, StorageError) for each in told)
    assert any(each.error.outcome_unknown for each in told if isinstance(each.error, StorageError))


@pytest.mark.invariant("S7")
def test_a_writer_that_was_taken_over_begins_nothing_more(tools: Tools) -> None:
    with tools.open() as runtime:
        assert runtime.run("first", ONE).completed
        with closing(apsw.Connection(str(tools.world.path))) as other:
            other.execute(
                "insert into writers select epoch + 1, x'00112233445566778899aabbccddeeff', "
                "spec, boot_id, opened_ns, 1, host, hash from writers"
            )
        with pytest.raises(Fenced, match="another writer"):
            list(runtime.run_many(numbered(1000), workers=2))
    assert tools.calls == [("first", "a")]


# --- interruptions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError])
def test_what_a_tool_raises_beyond_errors_reaches_the_caller(
    tools: Tools, kind: type[BaseException]
) -> None:
    raising = True

    def act(request: Request) -> Json:
        if request.run == "r2" and raising:
            raise kind("enough")
        return request.run

    tools.act = act
    with tools.open() as runtime:
        with pytest.raises(kind, match="enough") as raised:
            list(runtime.run_many(numbered(500, TWO), workers=3))
        assert "r2" in raised.value.__notes__[0]
        assert workers_alive() == []
        assert len(tools.calls) < 1000
        assert runtime.outcome("r2").state is RunState.RUNNING
        raising = False
        done = list(runtime.run_many(numbered(500, TWO), workers=3))
    assert all(outcome_of(each).completed for each in done)
    assert len(tools.calls) == 1001, "the call that was interrupted, once more"
    assert verify(tools.world.path).sound


def test_what_ends_it_ends_the_reading_of_the_input(tools: Tools) -> None:
    many_more = Counted(numbered(9_999))

    def act(request: Request) -> Json:
        raise KeyboardInterrupt

    tools.act = act
    with tools.open() as runtime, pytest.raises(KeyboardInterrupt):
        list(runtime.run_many(many_more, workers=2))
    assert many_more.read <= 4


@pytest.mark.invariant("S8")
def test_closing_it_stops_runs_between_two_steps_and_loses_nothing(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is told to stop writes the answer that it has, and requests nothing more."""
    inside, let_go = waiting_behind_the_first(tools)

    stop = many._Crew.stop

    def stop_once_they_are_inside(crew: many._Crew) -> None:
        if not let_go.is_set():
            inside.wait(WAIT_SECONDS)
        stop(crew)
        let_go.set()

    with tools.open() as runtime:
        done = runtime.run_many(numbered(100, TWO), workers=2)
        assert next(done).run == "r0"
        monkeypatch.setattr(many._Crew, "stop", stop_once_they_are_inside)
        done.close()
        assert workers_alive() == []
        assert sorted(tools.calls) == [("r0", "a"), ("r0", "b"), ("r1", "a"), ("r2", "a")]
        for run in ("r1", "r2"):
            outcome = runtime.outcome(run)
            assert outcome.state is RunState.RUNNING
            assert dict(outcome.results) == {"a": "a"}
            assert len(tools.world.events(run)) == 2
    tools.act = lambda request: request.step
    with tools.open() as runtime:
        assert runtime.resume("r1").completed
        assert runtime.run("r2", TWO).completed
    assert tools.calls.count(("r1", "a")) == tools.calls.count(("r2", "a")) == 1


def test_a_run_whose_registration_is_under_way_sends_its_first_request(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal inside of a transaction that runs share would be an error of them all."""
    with tools.open() as runtime:
        register = runtime._store.register

        def stopped_meanwhile(*given: Any) -> Any:
            crew[0].runtime.stop.asked = True
            return register(*given)

        monkeypatch.setattr(runtime._store, "register", stopped_meanwhile)
        crew: list[many._Crew] = []
        finished = many._Crew.finished

        def noted(self: many._Crew, runs: Any) -> Iterator[Finished]:
            crew.append(self)
            return finished(self, runs)

        monkeypatch.setattr(many._Crew, "finished", noted)
        assert list(runtime.run_many([("r", TWO)])) == []
        assert tools.calls == [("r", "a")]
        assert dict(runtime.outcome("r").results) == {"a": "a"}


def raise_at_the_first(runtime: Runtime) -> None:
    for each in runtime.run_many(numbered(100), workers=4):
        raise ZeroDivisionError(each.run)


def test_leaving_the_loop_waits_for_what_is_under_way(tools: Tools) -> None:
    with tools.open() as runtime:
        for each in runtime.run_many(numbered(100), workers=4):
            assert outcome_of(each).completed
            break
        assert workers_alive() == []
        with pytest.raises(ZeroDivisionError):
            raise_at_the_first(runtime)
        assert workers_alive() == []
    assert verify(tools.world.path).sound


def test_an_interruption_while_it_is_told_that_it_stops_does_not_wait(tools: Tools) -> None:
    """That is the second one: nobody is kept waiting for a tool after it."""
    inside, let_go = waiting_behind_the_first(tools)

    def interrupted_again() -> None:
        assert workers_alive() != []
        raise KeyboardInterrupt

    with tools.open() as runtime:
        done = runtime.run_many(numbered(100, TWO), workers=2, on_stop=interrupted_again)
        assert next(done).run == "r0"
        inside.wait(WAIT_SECONDS)
        with pytest.raises(KeyboardInterrupt):
            done.close()
        there = [one for one in threading.enumerate() if one.name in workers_alive()]
        assert len(there) == 2
        let_go.set()
        for thread in there:
            thread.join(WAIT_SECONDS)
    assert verify(tools.world.path).sound


def test_an_error_of_whoever_is_told_that_it_stops_is_raised_after_the_calls(tools: Tools) -> None:
    def broken() -> None:
        raise BrokenPipeError

    with tools.open() as runtime:
        done = runtime.run_many(numbered(100), workers=4, on_stop=broken)
        next(done)
        with pytest.raises(BrokenPipeError):
            done.close()
        assert workers_alive() == []


INTERRUPTED = """
import itertools, sys, threading
from agent_replay import Runtime, adapter, idempotent

inside = threading.Barrier(4)

@adapter(contract=idempotent())
def keyed(request):
    if request.step == "a" and request.run in ("r0", "r1", "r2", "r3"):
        inside.wait(30)
    if (request.run, request.step) == ("r0", "a") and sys.stdin.readline() != "go on\\n":
        raise AssertionError
    sys.stdout.write(f"{request.run} {request.step}\\n")
    return request.step

plan = {"plan": 1, "steps": [
    {"id": id, "adapter": "keyed@1", "contract": "idempotent", "arguments": {}} for id in "ab"
]}
with Runtime(sys.argv[1], adapters=[keyed]) as runtime:
    try:
        for each in runtime.run_many(((f"r{n}", plan) for n in itertools.count()), workers=4):
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("workers", threading.active_count() - 1, flush=True)
        print(*(runtime.outcome(f"r{n}").state for n in range(4)), flush=True)
"""


def test_a_ctrl_c_while_results_are_waited_for_lets_the_calls_end(world: World) -> None:
    """The signal reaches the main thread, which then waits for a tool that is still inside."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(world.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(many.__file__).parents[1])},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.stdin.write("go on\n")
            rest, _ = process.communicate(timeout=WAIT_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0
    lines = (said + rest).splitlines()
    assert "r0 a" in lines
    assert lines[-2] == "workers 0"
    assert lines[-1].split()[0] in ("running", "completed")
    assert len(lines) == len(set(lines)), "no call was made twice"
    assert verify(world.path).sound


# --- all that is unfinished -----------------------------------------------------------------------


def test_all_unfinished_runs_are_resumed_at_once(tools: Tools) -> None:
    """What a stopped call has left goes on, and each call that was answered stays so."""
    leaves = True

    def act(request: Request) -> Json:
        if leaves and request.step == "b":
            raise KeyboardInterrupt
        return request.step

    tools.act = act
    with tools.open() as runtime:
        for run, plan in numbered(6, TWO):
            with pytest.raises(KeyboardInterrupt):
                runtime.run(run, plan)
    leaves = False
    inside = threading.Barrier(6)
    tools.act = lambda request: inside.wait(WAIT_SECONDS) >= 0
    with tools.open() as runtime:
        outcomes, refused = runtime.resume_all(workers=6)
        assert runtime.resume_all(workers=6) == ([], [])
    assert sorted(outcome.run for outcome in outcomes) == [f"r{number}" for number in range(6)]
    assert all(outcome.completed for outcome in outcomes)
    assert refused == []
    assert sorted(tools.calls) == sorted(
        (f"r{number}", step) for number in range(6) for step in "abb"
    )


def test_runs_that_cannot_be_resumed_are_listed_with_any_number_of_workers(
    world: World, tools: Tools
) -> None:
    for number in range(3):
        world.interrupted(f"r{number}", plan_of(("a", "dark", {"do": ["interrupt"]})))
    for workers in (1, 3):
        with tools.open() as runtime:
            outcomes, refused = runtime.resume_all(workers=workers)
        assert outcomes == []
        assert sorted((run, type(error).__name__) for run, error in refused) == [
            (f"r{number}", "AdapterMismatch") for number in range(3)
        ]
    with tools.open() as runtime, pytest.raises(InvalidInput, match="number from 1 to 1000"):
        runtime.resume_all(workers=0)


# --- from a tool ----------------------------------------------------------------------------------


def test_a_tool_cannot_wait_for_many_runs(tools: Tools) -> None:
    """A worker could come to wait for the tool's own run, and the tool for the worker."""
    refused: list[str] = []

    def act(request: Request) -> Json:
        with pytest.raises(InvalidInput) as error:
            runtime.run_many([(request.run, ONE)])
        refused.append(str(error.value))
        return None

    tools.act = act
    with tools.open() as opened:
        runtime = opened
        assert runtime.run("alone", ONE).completed
        done = list(runtime.run_many(numbered(2), workers=2))
    assert [outcome_of(each).completed for each in done] == [True, True]
    assert len(refused) == 3
    assert "run alone is being driven by this thread" in refused[0]


def test_a_tool_cannot_iterate_what_was_made_outside(tools: Tools) -> None:
    refused: list[str] = []

    def act(request: Request) -> Json:
        with pytest.raises(InvalidInput) as error:
            next(outside)
        refused.append(str(error.value))
        return None

    tools.act = act
    with tools.open() as runtime:
        outside = runtime.run_many(numbered(2))
        assert runtime.run("alone", ONE).completed
    assert "cannot wait for run_many" in refused[0]


def test_what_a_tool_runs_by_itself_is_not_stopped_half_way(tools: Tools) -> None:
    """What a tool does with the caller's runtime is part of its call, and ends with it."""
    inside, gone = threading.Event(), threading.Event()

    def act(request: Request) -> Json:
        if request.run == "breaks":
            assert inside.wait(WAIT_SECONDS)
            gone.set()
            raise KeyboardInterrupt
        if request.run == "outer":
            inside.set()
            assert gone.wait(WAIT_SECONDS)
            return runtime.run("inner", long).completed
        return None

    long = plan_of(*((f"s{number}", "keyed") for number in range(50)))
    tools.act = act
    with tools.open() as opened:
        runtime = opened
        with pytest.raises(KeyboardInterrupt):
            list(runtime.run_many([("outer", TWO), ("breaks", ONE)], workers=2))
        assert runtime.outcome("inner").completed
        assert runtime.outcome("outer").results["a"] is True
        assert runtime.outcome("outer").state is RunState.RUNNING
