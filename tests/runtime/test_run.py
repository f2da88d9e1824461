"""Running and resuming: what is on record is returned, and only what is owed is done."""

from __future__ import annotations

import json
import sqlite3

import pytest

from agent_replay import (
    Adapter,
    AdapterMismatch,
    InvalidInput,
    InvalidPlan,
    Json,
    NoSuchRun,
    PlanMismatch,
    Request,
    RunState,
    Runtime,
    Terms,
    UnstorableResult,
    UnusableDatabase,
    adapter,
    idempotent,
    opaque,
)
from agent_replay.store.verify import verify
from tests.outside import plain, plan_of, tools
from tests.runtime.conftest import World

THREE = plan_of(("look", "look"), ("pay", "keyed"), ("tell", "dark"))


def test_a_plan_runs_to_its_end(world: World) -> None:
    with world.open() as runtime:
        outcome = runtime.run("order-42", THREE)
    assert outcome.completed
    assert list(outcome.results) == ["look", "pay", "tell"]
    assert outcome.results["pay"] == {"receipt": "pay-1"}
    assert world.ledger.calls == [("look", 1), ("pay", 1), ("tell", 1)]


@pytest.mark.invariant("S5")
def test_a_finished_run_is_replayed_without_any_adapter(world: World) -> None:
    with world.open() as runtime:
        first = runtime.run("order-42", THREE)
    with world.open(adapters=[]) as runtime:
        again = runtime.run("order-42", THREE)
        assert dict(runtime.resume("order-42").results) == dict(first.results)
    assert again.completed
    assert dict(again.results) == dict(first.results)
    assert len(world.ledger.calls) == 3


def test_n_steps_cost_n_and_one_commits(world: World) -> None:
    with world.open() as runtime:
        commits: list[int] = []
        runtime._store.connection.set_commit_hook(lambda: bool(commits.append(1)))  # type: ignore[func-returns-value]
        runtime.run("order-42", THREE)
    assert len(commits) == 3 + 1


@pytest.mark.invariant("S1")
@pytest.mark.invariant("S15")
def test_a_request_is_durable_before_its_tool_is_called(world: World) -> None:
    """The tool looks for itself, on a connection of its own."""
    seen: list[list[tuple[object, ...]]] = []

    @adapter(name="keyed", contract=idempotent())
    def looks(request: object) -> Json:
        connection = sqlite3.connect(f"file:{world.path}?mode=ro", uri=True)
        seen.append(
            connection.execute("select step, event, attempt from events order by seq").fetchall()
        )
        connection.close()
        return None

    with world.open(adapters=[looks]) as runtime:
        runtime.run("r", plan_of(("a", "keyed"), ("b", "keyed")))
    assert seen == [
        [(1, "request", 1)],
        [(1, "request", 1), (1, "acknowledge", 1), (2, "request", 1)],
    ]


@pytest.mark.fault("C07")
@pytest.mark.parametrize(
    "value",
    [
        None,
        False,
        True,
        0,
        "",
        [],
        {},
        {"a": [1, {"b": None}]},
        2**70,
        -0.0,
        1e20,
        5e-324,
        "\u2028 \U0001f600 \ufb33 \x00",
        {"\U0001f600": 1},
    ],
    ids=plain,
)
def test_a_result_is_the_same_at_once_and_for_ever(world: World, value: Json) -> None:
    @adapter(name="dark")
    def gives(request: object) -> Json:
        return value

    with world.open(adapters=[gives]) as runtime:
        first = runtime.run("r", plan_of(("a", "dark"))).results["a"]
    with world.open(adapters=[]) as runtime:
        later = runtime.resume("r").results["a"]
    with sqlite3.connect(world.path) as connection:
        ((payload,),) = connection.execute("select payload from events where event = 'acknowledge'")
    connection.close()
    for found in (first, later, json.loads(payload)["result"]):
        assert found == value
        assert type(found) is type(value)


@pytest.mark.fault("G01")
@pytest.mark.fault("G06")
@pytest.mark.parametrize(
    "value",
    [float("nan"), {"x": float("inf")}, 10**5000, object(), {1: "a"}, "\ud800", {1, 2}],
    ids=["nan", "inf", "int", "object", "key", "surrogate", "set"],
)
def test_a_result_that_cannot_be_stored_is_on_record_and_never_asked_for_again(
    world: World, value: object
) -> None:
    calls: list[int] = []

    @adapter(name="dark")
    def gives(request: object) -> Json:
        calls.append(1)
        return value  # type: ignore[return-value]

    plan = plan_of(("a", "dark"), ("b", "dark"))
    with world.open(adapters=[gives]) as runtime:
        outcome = runtime.run("r", plan)
        again = runtime.run("r", plan)
    with world.open(adapters=[]) as runtime:
        later = runtime.resume("r")
    for found in (outcome, again, later):
        assert found.completed
        assert len(found.warnings) == 2
        with pytest.raises(UnstorableResult, match="step 'a' ran"):
            found.results["a"]
    assert len(calls) == 2
    assert verify(world.path).sound


def test_an_unknown_run_is_named(world: World) -> None:
    with world.open() as runtime, pytest.raises(NoSuchRun, match="'nobody'"):
        runtime.resume("nobody")


@pytest.mark.fault("A09")
@pytest.mark.fault("L03")
@pytest.mark.fault("G12")
@pytest.mark.parametrize(
    "run_id",
    ["", " ", "a b", "../x", "/etc/x", "a/b", "a\0b", "é", "-x", "x" * 300, False, 0, None, "%"],
    ids=plain,
)
def test_an_id_that_is_not_plain_is_refused_at_every_way_in(world: World, run_id: str) -> None:
    with world.open() as runtime:
        with pytest.raises(InvalidInput):
            runtime.run(run_id, THREE)
        with pytest.raises((InvalidInput, NoSuchRun)):
            runtime.resume(run_id)
        with pytest.raises((InvalidInput, NoSuchRun)):
            runtime.cancel(run_id, who="ada", why="test")
    assert verify(world.path).runs == 0
    assert world.ledger.calls == []


CHANGED = {
    "another id": plan_of(("look", "look"), ("paid", "keyed"), ("tell", "dark"), ("end", "dark")),
    "another order": plan_of(("pay", "keyed"), ("look", "look"), ("tell", "dark"), ("end", "dark")),
    "other arguments": plan_of(
        ("look", "look"), ("pay", "keyed", {"x": 1}), ("tell", "dark"), ("end", "dark")
    ),
    "one inserted": plan_of(
        ("look", "look"), ("new", "look"), ("pay", "keyed"), ("tell", "dark"), ("end", "dark")
    ),
    "one more": plan_of(
        ("look", "look"), ("pay", "keyed"), ("tell", "dark"), ("end", "dark"), ("more", "dark")
    ),
    "another adapter": plan_of(
        ("look", "look"), ("pay", "windowed"), ("tell", "dark"), ("end", "dark")
    ),
}


@pytest.mark.fault("A11")
@pytest.mark.parametrize("change", CHANGED)
def test_a_run_id_with_another_plan_is_refused_before_anything_is_called(
    world: World, change: str
) -> None:
    plan = plan_of(
        ("look", "look"), ("pay", "keyed"), ("tell", "dark", {"do": ["interrupt"]}), ("end", "dark")
    )
    world.interrupted("r", plan)
    before = world.dump()
    calls = len(world.ledger.calls)
    with (
        world.open() as runtime,
        pytest.raises(PlanMismatch, match=r"run r has another plan: .*(step \d|5 steps)"),
    ):
        runtime.run("r", CHANGED[change])
    assert world.dump() == before
    assert len(world.ledger.calls) == calls


def test_key_order_and_white_space_of_a_plan_do_not_matter(world: World) -> None:
    with world.open() as runtime:
        runtime.run("r", plan_of(("a", "keyed", {"x": 1, "y": 2})))
        assert runtime.run("r", plan_of(("a", "keyed", {"y": 2, "x": 1}))).completed
    assert len(world.ledger.calls) == 1


@pytest.mark.fault("D04")
@pytest.mark.parametrize("kind", ["missing", "version", "contract", "terms"])
def test_another_adapter_than_the_run_began_with_is_refused(world: World, kind: str) -> None:
    plan = plan_of(("pay", "windowed", {"do": ["interrupt"]}))
    world.interrupted("r", plan)
    before = world.dump()
    others = {
        "missing": [],
        "version": [_named("windowed", "2", idempotent())],
        "contract": [_named("windowed", "1", opaque())],
        "terms": [_named("windowed", "1", idempotent(key_window=50, lands_within=10))],
    }
    with world.open(adapters=others[kind]) as runtime:
        with pytest.raises(AdapterMismatch, match="windowed@1"):
            runtime.resume("r")
        with pytest.raises(AdapterMismatch, match="windowed@1"):
            runtime.run("r", plan)
        outcomes, refused = runtime.resume_all()
    assert outcomes == []
    assert [run for run, _ in refused] == ["r"]
    assert world.dump() == before


def test_a_plan_that_counts_on_another_contract_is_refused_before_any_row(world: World) -> None:
    document = plan_of(("pay", "keyed"))
    document["steps"][0]["contract"] = "opaque"  # type: ignore[index,call-overload]
    with (
        world.open() as runtime,
        pytest.raises(AdapterMismatch, match="'pay' counts on keyed@1 being opaque"),
    ):
        runtime.run("r", document)
    assert verify(world.path).runs == 0


def test_a_change_of_an_adapters_source_is_shown_and_not_refused(world: World) -> None:
    world.interrupted("r", plan_of(("pay", "keyed", {"do": ["interrupt", "ok"]})))
    outcome = world.resume("r", adapters=[_named("keyed", "1", idempotent())])
    assert outcome.completed
    assert outcome.warnings == ("the source of adapter keyed@1 has changed since the run began",)


def _named(name: str, version: str, terms: Terms) -> Adapter:
    @adapter(name=name, version=version, contract=terms)
    def other(request: object) -> Json:
        return "other"

    return other


@pytest.mark.fault("K01")
def test_a_plan_that_is_too_large_leaves_no_trace(world: World) -> None:
    big = plan_of(("a", "keyed", {"blob": "x" * (2 * 1024 * 1024)}))
    with world.open() as runtime:
        with pytest.raises(InvalidPlan):
            runtime.run("r", big)
        assert verify(world.path).runs == 0
        assert runtime.run("r", plan_of(("a", "keyed"))).completed


@pytest.mark.fault("D01")
def test_a_run_that_has_ended_is_never_run_again(world: World) -> None:
    with world.open() as runtime:
        runtime.run("done", plan_of(("a", "keyed")))
        runtime.run("failed", plan_of(("a", "keyed", {"do": ["refuse"]})))
    before = world.dump()
    with world.open() as runtime:
        assert runtime.resume("done").state is RunState.COMPLETED
        assert runtime.resume("failed").state is RunState.FAILED
        assert runtime.cancel("done", who="ada", why="late").state is RunState.COMPLETED
        assert runtime.resume_all() == ([], [])
    assert world.dump() == before
    assert len(world.ledger.calls) == 2


def test_a_fruitless_resume_adds_nothing(world: World) -> None:
    with world.open() as runtime:
        assert runtime.run("r", plan_of(("a", "dark", {"do": ["lost"]}))).waits
    before = world.dump()
    for _ in range(5):
        assert world.resume("r").waits
    assert world.dump() == before


def test_a_hook_hears_of_each_row_after_its_commit_and_cannot_hurt(world: World) -> None:
    heard: list[tuple[str, str]] = []

    def hook(run_id: str, event: object) -> None:
        heard.append((run_id, event.event))  # type: ignore[attr-defined]
        raise RuntimeError("hook")

    with world.open(on_event=hook) as runtime:
        assert runtime.run("r", plan_of(("a", "keyed"))).completed
    assert heard == [("r", "request"), ("r", "acknowledge")]


@pytest.mark.fault("L06")
def test_logs_hold_ids_only(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    secret = "canary-7f3a"

    @adapter(name="dark")
    def tells(request: object) -> Json:
        raise RuntimeError(secret)

    @adapter(name="keyed", contract=idempotent())
    def gives(request: object) -> Json:
        return {"token": secret}

    with world.open(adapters=[tells, gives]) as runtime:
        runtime.run(
            "r", plan_of(("a", "keyed", {"token": secret}), ("b", "dark", {"token": secret}))
        )
    assert caplog.records
    assert secret not in caplog.text


@pytest.mark.fault("L01")
@pytest.mark.parametrize("run_id", ["%", "_", "' or 1=1 --", "r';--", "]", "r\n"])
def test_an_id_is_never_a_pattern_or_sql(world: World, run_id: str) -> None:
    with world.open() as runtime:
        runtime.run("r", plan_of(("a", "keyed")))
        with pytest.raises((InvalidInput, NoSuchRun)):
            runtime.outcome(run_id)


def test_options_out_of_range_are_refused(world: World) -> None:
    for attempts_max in (0, -1, True, 10**20):
        with pytest.raises(InvalidInput, match="attempts_max"):
            Runtime(world.path, attempts_max=attempts_max)
    assert not world.path.exists()


def test_two_adapters_of_one_identity_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="registered twice"):
        world.open(adapters=tools(world.ledger) + tools(world.ledger))
    assert not world.path.exists()


@pytest.mark.parametrize(
    "document", [None, [], "x", {}, {"plan": 2, "steps": []}, {"plan": 1, "steps": [], "x": 1}]
)
def test_what_is_no_plan_is_refused_before_any_row(world: World, document: Json) -> None:
    with world.open() as runtime, pytest.raises(InvalidPlan):
        runtime.run("r", document)
    assert verify(world.path).runs == 0


@pytest.mark.invariant("S8")
@pytest.mark.parametrize("what", ["database", "log", "renamed"])
def test_nothing_is_said_to_be_done_when_the_file_was_taken_away(world: World, what: str) -> None:
    """A tool deletes the database under its own run: no reply is durable, no call follows."""
    calls: list[str] = []

    @adapter(name="dark")
    def deletes(request: Request) -> Json:
        calls.append(request.step)
        if what == "renamed":
            world.path.rename(world.path.with_name("elsewhere.db"))
        else:
            world.path.with_name("runs.db-wal" if what == "log" else "runs.db").unlink()
        return None

    with (
        world.open(adapters=[deletes]) as runtime,
        pytest.raises(UnusableDatabase, match="no longer there"),
    ):
        runtime.run("r", plan_of(("a", "dark"), ("b", "dark")))
    assert calls == ["a"]


def test_two_adapters_that_changed_places_are_each_shown(world: World) -> None:
    def one(name: str) -> Adapter:
        @adapter(name=name, contract=idempotent())
        def first(request: Request) -> Json:
            raise KeyboardInterrupt

        return first

    def other(name: str) -> Adapter:
        @adapter(name=name, contract=idempotent())
        def second(request: Request) -> Json:
            return "second"

        return second

    with world.open(adapters=[one("keyed"), other("windowed")]) as runtime:
        document = plan_of(("a", "keyed"), ("b", "windowed"))
        with pytest.raises(KeyboardInterrupt):
            runtime.run("r", document)
    with world.open(adapters=[other("keyed"), other("windowed")]) as runtime:
        assert len(runtime.resume("r").warnings) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"attempts_max": 2.5},
        {"attempts_max": "3"},
        {"hint": "\ud800"},
        {"on_event": 5},
        {"adapters": [7]},
    ],
    ids=plain,
)
def test_options_of_another_type_are_refused_before_any_file_is_made(
    world: World, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        world.open(**options)
    assert not world.path.exists()


def test_a_contract_without_its_parentheses_is_refused_with_the_mend() -> None:
    with pytest.raises(InvalidInput, match="parentheses"):
        adapter(contract=idempotent)(print)  # type: ignore[call-overload]


def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(InvalidInput, match="path of a file"):
        Runtime(":memory:")
