"""A storage that fails: the true error, nothing lost, no new call until the store is reopened."""

from __future__ import annotations

import apsw
import pytest

from agent_replay import (
    DatabaseLocked,
    Event,
    Fenced,
    IllegalMove,
    Json,
    Request,
    RunState,
    Runtime,
    StepState,
    StorageError,
    adapter,
)
from agent_replay import machine as machines
from agent_replay.lifecycles.step import Actor, Contract, StepEvent
from agent_replay.store.verify import verify
from tests.outside import plan_of
from tests.runtime.conftest import World

TWO = plan_of(("pay", "keyed"), ("tell", "dark"))


def _connection(runtime: Runtime) -> apsw.Connection:
    return runtime._store.connection


def _limit_pages(runtime: Runtime, extra: int) -> None:
    """Let the database grow by so many pages and no more, as a full disk does."""
    connection = _connection(runtime)
    ((count,),) = connection.execute("pragma page_count")
    list(connection.execute(f"pragma max_page_count={count + extra}"))


@pytest.mark.fault("E01")
@pytest.mark.invariant("S12")
def test_a_full_disk_is_called_a_full_disk_and_loses_no_reply(world: World) -> None:
    plan = plan_of(("a", "dark", {"do": ["large"]}), ("b", "dark"))
    with world.open() as runtime:
        _limit_pages(runtime, 4)
        with pytest.raises(StorageError, match="database or disk is full"):
            runtime.run("r", plan)
        assert world.ledger.calls == [("a", 1)]
        with pytest.raises(StorageError, match=r"stopped after an error.*full.*reopen"):
            runtime.resume("r")
        with pytest.raises(StorageError, match="reopen"):
            runtime.run("other", TWO)
        assert verify(world.path).sound
        assert world.ledger.calls == [("a", 1)]
        runtime.reopen()
        list(_connection(runtime).execute("pragma max_page_count=1000000"))
        outcome = runtime.run("r", plan)
    assert outcome.completed, (
        "the reply that this process had seen was written, not asked for again"
    )
    assert world.ledger.calls == [("a", 1), ("b", 1)]
    assert verify(world.path).sound


def test_after_a_full_disk_another_process_treats_the_call_as_open(world: World) -> None:
    plan = plan_of(("a", "dark", {"do": ["large"]}))
    with world.open() as runtime:
        _limit_pages(runtime, 4)
        with pytest.raises(StorageError):
            runtime.run("r", plan)
    assert world.resume("r").waits
    assert world.ledger.calls == [("a", 1)]


class _Fails:
    """Raise at the n-th commit: before it, or after it as if its outcome were not known."""

    def __init__(self, runtime: Runtime, number: int, *, durable: bool) -> None:
        self.runtime = runtime
        self.number = number
        self.durable = durable
        self.commits = 0

    def __enter__(self) -> None:
        store = self.runtime._store
        real = store.connection

        class Wrapped:
            def __getattr__(_, name: str) -> object:
                return getattr(real, name)

            def execute(_, statement: str, *arguments: object) -> object:
                if statement == "commit":
                    self.commits += 1
                    if self.commits == self.number:
                        if self.durable:
                            real.execute(statement)
                        raise apsw.IOError("disk I/O error")
                return real.execute(statement, *arguments)  # type: ignore[arg-type]

        store.connection = Wrapped()  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.invariant("S12")
@pytest.mark.parametrize("tool", ["look", "keyed", "asked", "dark"])
def test_no_call_begins_after_the_storage_has_failed_for_somebody_else(
    world: World, tool: str
) -> None:
    """The request is durable, its call has not begun, and the commit of another act raises."""

    def told(_run: str, row: Event) -> None:
        if row.event == StepEvent.REQUEST:
            with _Fails(runtime, 1, durable=False), pytest.raises(StorageError):
                runtime.run("other", TWO)

    plan = plan_of(("a", tool))
    with world.open(on_event=told) as runtime:
        with pytest.raises(StorageError, match="reopen"):
            runtime.run("r", plan)
        assert world.ledger.calls == []
        runtime.reopen()
        assert runtime.run("r", plan).completed
    assert world.ledger.calls == [("a", 1)]


@pytest.mark.invariant("S8")
@pytest.mark.invariant("S12")
@pytest.mark.parametrize("durable", [False, True], ids=["lost", "durable"])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("again", ["same process", "next process"])
def test_a_commit_that_raises_is_unknown_and_read_again(
    world: World, number: int, durable: bool, again: str
) -> None:
    with world.open() as runtime:
        with _Fails(runtime, number, durable=durable), pytest.raises(StorageError) as error:
            runtime.run("r", TWO)
        assert error.value.outcome_unknown
        calls = list(world.ledger.calls)
        with pytest.raises(StorageError, match="reopen"):
            runtime.run("r", TWO)
        assert world.ledger.calls == calls
        if again == "same process":
            runtime.reopen()
            outcome = runtime.run("r", TWO)
            assert outcome.completed
            assert world.ledger.calls == [("pay", 1), ("tell", 1)]
    if again == "next process":
        with world.open() as runtime:
            outcome = runtime.run("r", TWO)
        known = number == 1 or (number == 2 and not durable) or (number == 3 and durable)
        assert outcome.completed is known
        assert world.ledger.called("tell") <= 1
    assert world.ledger.effects["pay"] == 1
    assert verify(world.path).sound


@pytest.mark.invariant("S7")
def test_a_reopen_keeps_the_epoch(world: World) -> None:
    with world.open() as runtime:
        with _Fails(runtime, 2, durable=False), pytest.raises(StorageError):
            runtime.run("r", TWO)
        epoch = runtime._store.epoch
        runtime.reopen()
        assert runtime._store.epoch == epoch
        assert runtime.run("r", TWO).completed
    ((count,),) = apsw.Connection(str(world.path)).execute("select count(*) from writers")
    assert count == 1


def test_an_acknowledgement_is_committed_alone_if_the_next_request_cannot_be(world: World) -> None:
    """The second step's row is refused by the database: the first one's result is kept."""
    with world.open() as runtime:
        _connection(runtime).execute(
            "create temp trigger no_second before insert on events when new.step = 2 "
            "begin select raise(abort, 'not this one'); end"
        )
        with pytest.raises(IllegalMove, match="not this one"):
            runtime.run("r", TWO)
        assert runtime.outcome("r").results["pay"] == {"receipt": "pay-1"}
    assert verify(world.path).events == 2
    assert world.resume("r").completed
    assert world.ledger.calls == [("pay", 1), ("tell", 1)]


def test_a_refused_row_touches_its_own_run_only(world: World) -> None:
    with world.open() as runtime:
        _connection(runtime).execute(
            "create temp trigger not_run_one before insert on events when new.run = 1 and new.step "
            "= 2 "
            "begin select raise(abort, 'not this one'); end"
        )
        with pytest.raises(IllegalMove):
            runtime.run("one", TWO)
        assert runtime.run("two", TWO).completed


@pytest.mark.invariant("S6")
def test_a_move_taken_out_of_the_machine_alone_is_refused_before_any_sql(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifecycle = machines.step_lifecycle(Contract.IDEMPOTENT)
    trigger = machines.trigger_name(StepEvent.REQUEST, Actor.RUNTIME)
    with world.open() as runtime:
        statements: list[str] = []
        monkeypatch.delitem(lifecycle.machine.events, trigger)
        monkeypatch.setattr(machines, "_verdicts", {})  # what the whole machine had answered
        _connection(runtime).set_exec_trace(lambda _c, sql, _b: statements.append(sql) is None)  # type: ignore[func-returns-value]
        with pytest.raises(IllegalMove, match="request by runtime"):
            runtime.run("r", TWO)
        _connection(runtime).set_exec_trace(None)
    assert not any("insert" in sql or "begin" in sql for sql in statements)
    assert world.ledger.calls == []
    assert verify(world.path).runs == 0


@pytest.mark.invariant("S6")
def test_a_move_taken_out_of_the_database_alone_is_refused_by_sql(world: World) -> None:
    with world.open() as runtime:
        connection = _connection(runtime)
        connection.execute("drop trigger permitted_remains")
        connection.execute(
            "delete from permitted where event = 'request' and contract = 'idempotent'"
        )
        with pytest.raises(IllegalMove, match="the lifecycle has no such move"):
            runtime.run("r", TWO)
    assert world.ledger.calls == []
    assert verify(world.path).runs == 0


@pytest.mark.fault("B04")
@pytest.mark.invariant("S7")
def test_a_writer_that_lost_its_epoch_writes_no_more(world: World) -> None:
    """It was paused, its lock was lost, and another took over: every row of it is refused."""
    with world.open() as runtime:
        assert runtime.run("r1", TWO).completed
        other = apsw.Connection(str(world.path))
        other.execute(
            "insert into writers select epoch + 1, x'00112233445566778899aabbccddeeff', spec, "
            "boot_id, opened_ns, 1, host, hash from writers"
        )
        other.close()
        with pytest.raises(Fenced, match="another writer"):
            runtime.run("r2", TWO)
    assert ("pay", 1) in world.ledger.calls
    assert len(world.ledger.calls) == 2


def test_a_foreign_program_that_writes_for_long_is_named_and_nothing_is_lost(world: World) -> None:
    started: list[apsw.Connection] = []

    @adapter(name="dark")
    def blocks(request: Request) -> Json:
        other = apsw.Connection(str(world.path))
        other.execute("begin immediate")
        started.append(other)
        return "done"

    with world.open(adapters=[blocks]) as runtime:
        _connection(runtime).set_busy_timeout(50)
        with pytest.raises(DatabaseLocked, match="find the program"):
            runtime.run("r", plan_of(("a", "dark")))
        started[0].execute("rollback")
        started[0].close()
        outcome = runtime.run("r", plan_of(("a", "dark")))
    assert outcome.results["a"] == "done"
    assert len(started) == 1


@pytest.mark.invariant("S12")
def test_a_checkpoint_that_fails_starts_no_new_call(world: World) -> None:
    plan = plan_of(*[(f"s{number}", "dark") for number in range(6)])
    with world.open() as runtime:
        runtime._store._log_pages_max = 4
        real = runtime._store.checkpoint
        failures: list[int] = []

        def fails() -> None:
            if not failures:
                failures.append(len(world.ledger.calls))
                with runtime._store._reading():
                    raise apsw.IOError("disk I/O error")
            real()

        runtime._store.checkpoint = fails  # type: ignore[method-assign]
        with pytest.raises(StorageError, match="disk I/O error"):
            runtime.run("r", plan)
        assert len(world.ledger.calls) == failures[0]
        assert runtime._store.failed
        runtime.reopen()
        assert runtime.run("r", plan).completed, (
            "the request that was durable and not begun is called, not recovered"
        )
    assert len(world.ledger.calls) == 6
    assert runtime.path == str(world.path)


def test_states_are_words_that_a_shell_can_read(world: World) -> None:
    with world.open() as runtime:
        assert runtime.run("r", TWO).state == "completed"
    rows = list(
        apsw.Connection(str(world.path)).execute("select state, run_state from events order by seq")
    )
    assert rows[-1] == (StepState.SUCCEEDED, RunState.COMPLETED)
