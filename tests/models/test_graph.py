"""The shipped store has the spec's graph, and a store that has another one is told apart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import apsw
import pytest

from agent_replay import history
from agent_replay.errors import IllegalMove
from agent_replay.events import Event, Head
from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.store import writer as shipped_writer
from agent_replay.store.sql import text_of
from models.graph import worlds
from models.graph.bounds import BOUNDS, Bounds
from models.graph.command import main
from models.graph.compare import Comparison, Task, Total, compare, expected_of, tasks
from models.graph.expected import product_size
from models.graph.images import walk_by_images
from models.graph.refused import RefusedByHand, RefusedByWriter
from models.graph.walk import Difference, Walk
from models.graph.ways import ShellWay, WriterWay
from models.graph.worlds import Alteration, first_world, keep, second_world

TINY = Bounds(attempts=(1, 1), epochs=2)
PLAN = ("queryable", "opaque")
TRIGGERS = text_of("triggers.sql")
JUDGE = re.search(r"create trigger events_are_judged.*?\nend;", TRIGGERS, re.DOTALL)
assert JUDGE is not None
CONDITIONS = {
    message: condition
    for condition, message in re.findall(
        r"when ((?:(?!then raise).)*?)\s+then raise\(abort, '([^']*)'\)", JUDGE[0], re.DOTALL
    )
}
"""What the trigger on `events` refuses: the message, and when."""


def by_hand(alter: Alteration) -> Walk:
    expected = expected_of(PLAN, TINY)
    world = second_world(PLAN, alter)
    way = ShellWay(world)
    refused = RefusedByHand(way, expected)
    graph = expected.graph()
    walk = Walk(world, way, expected, graph, backwards=True, refused=refused, enough=2)
    walk.run()
    return walk


def by_writer(alter: Alteration = keep) -> Walk:
    expected = expected_of(PLAN, TINY)
    world = first_world(PLAN, alter)
    way = WriterWay(world)
    refused = RefusedByWriter(way, expected)
    walk = Walk(world, way, expected, expected.graph(), refused=refused, enough=2)
    walk.run()
    return walk


def judging(change: Callable[[str], str]) -> Alteration:
    """Return an alteration that puts another trigger in the place of the one that judges events."""
    assert JUDGE is not None
    changed = change(JUDGE[0])
    assert changed != JUDGE[0]

    def alter(connection: apsw.Connection) -> None:
        connection.execute("drop trigger events_are_judged")
        connection.execute(changed)

    return alter


def without(message: str) -> Alteration:
    """Return an alteration after which the trigger on `events` has one check less."""
    condition = CONDITIONS[message]
    return judging(lambda sql: sql.replace(f"when {condition}\n", "when 0\n", 1))


def permitting(statement: str) -> Alteration:
    """Return an alteration of the permitted moves."""

    def alter(connection: apsw.Connection) -> None:
        connection.execute("drop trigger permitted_stays")
        connection.execute("drop trigger permitted_is_closed")
        connection.execute("drop trigger permitted_remains")
        connection.execute(statement)
        assert connection.changes() > 0
        for name in ("permitted_stays", "permitted_is_closed", "permitted_remains"):
            found = re.search(rf"create trigger {name} .*?end;", TRIGGERS, re.DOTALL)
            assert found is not None
            connection.execute(found[0])

    return alter


# --- equal --------------------------------------------------------------------------------------


@pytest.mark.invariant("S5")
@pytest.mark.invariant("S6")
@pytest.mark.invariant("S7")
@pytest.mark.invariant("S9")
@pytest.mark.invariant("S13")
@pytest.mark.invariant("S15")
def test_the_shipped_store_has_the_graph_of_the_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bounds", "quick", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["equal"]
    assert said["differences"] == []
    for way in ("writer", "shell"):
        assert said["store"][way] == said["spec"]
        assert said["refused"][way] > said["spec"]["edges"]
    assert said["spec"]["states"] > 1_000
    assert said["states_by_two_histories"] > said["spec"]["states"] * 0.9


def test_every_check_of_the_trigger_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    """A check that no offer meets would be judged by nobody."""
    walk = by_hand(keep)
    assert walk.differences == []
    never = CONDITIONS.keys() - walk.refusals.keys()
    assert never == {
        # Every statement of the runtime registers a run with all its steps, and appends at its end.
        "events: the registration of the run is not complete",
        "events: a row beyond the head exists",
    }


def test_the_spec_s_product_is_as_large_as_the_generated_one() -> None:
    assert product_size() == len(PERMITTED)


@pytest.mark.slow
@pytest.mark.invariant("S6")
def test_the_complete_graphs_are_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bounds", "full", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["store"]["writer"] == said["store"]["shell"] == said["spec"]
    assert said["spec"]["states"] >= 100_000
    assert said["spec"]["edges"] >= 500_000
    assert said["product_rows"] == {"expected": len(PERMITTED), "gone_along": len(PERMITTED)}


def totalled(one: Comparison) -> Total:
    total = Total()
    total.add(one)
    return total


def test_equal_means_as_many_states_and_edges_and_no_difference() -> None:
    assert not Total().equal
    sound = compare(Task(("read_only", "opaque"), TINY, False))
    assert totalled(sound).equal
    difference = Difference("extra edge", PLAN, "shell", (), "", "")
    assert not totalled(replace(sound, differences=(difference,))).equal
    for walk in sound.walks:
        for short in (replace(walk, edges=walk.edges - 1), replace(walk, states=walk.states - 1)):
            walks = tuple(short if other is walk else other for other in sound.walks)
            assert not totalled(replace(sound, walks=walks)).equal


# --- different ----------------------------------------------------------------------------------


def test_a_removed_trigger_is_a_difference() -> None:
    walk = by_hand(lambda connection: connection.execute("drop trigger events_stay"))
    difference = walk.differences[0]
    assert difference.kind == "extra edge"
    assert "update events set" in difference.says


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("delete from permitted where event = 'refute' and actor = 'probe'", "missing edge"),
        (
            "insert into permitted select spec, contract, source, 'confirm', 'recovery', "
            "run_state, last, 'succeeded', 'resume', 'running' from permitted "
            "where event = 'refute' and actor = 'probe' and last = 0 and run_state = 'paused'",
            "extra edge",
        ),
    ],
)
def test_a_changed_permitted_row_is_a_difference(statement: str, kind: str) -> None:
    walk = by_hand(permitting(statement))
    assert kind in {difference.kind for difference in walk.differences}
    assert any("probe" in d.says or "recovery" in d.says for d in walk.differences)


def test_a_widened_coupling_is_a_difference() -> None:
    """The run may fail, or not, when a step is rejected."""
    widened = judging(
        lambda sql: sql.replace(
            "new.coupled is not permitted.coupled or new.run_state is not permitted.run_target",
            "new.coupled is not permitted.coupled and new.run_state is not permitted.run_target",
        )
    )
    walk = by_hand(widened)
    assert walk.differences[0].kind == "extra edge"


def test_a_dropped_epoch_check_is_a_difference() -> None:
    check = "events: the run belongs to another epoch and must be adopted first"
    for walk in (by_hand(without(check)), by_writer(without(check))):
        difference = walk.differences[0]
        assert difference.kind == "extra edge"
        assert "written by the successor" in difference.text()


def test_a_store_that_counts_attempts_otherwise_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stuck(head: Head, event: str, step: int | None) -> int | None:
        return None if step is None else max(head.attempt, 1)

    monkeypatch.setattr(shipped_writer, "expected_attempt", stuck)
    expected = expected_of(("idempotent", "opaque"), Bounds(attempts=(2, 1), epochs=1))
    world = first_world(expected.contracts)
    walk = Walk(world, WriterWay(world), expected, expected.graph())
    walk.run()
    assert any("resend" in difference.says for difference in walk.differences)


def test_a_fold_that_forgets_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refute that does not end the key window, say."""

    def forgetful(
        head: Head, known: history.OpenStep, contract: str, event: Event
    ) -> tuple[Head, history.OpenStep]:
        told, after = history.advance(head, known, contract, event)
        return told, after._replace(first=after.first or known.first)

    monkeypatch.setattr(worlds, "advance", forgetful)
    assert {difference.kind for difference in by_writer().differences} >= {"extra edge"}


@pytest.mark.invariant("S7")
def test_a_former_writer_that_may_go_on_is_a_difference() -> None:
    lax = judging(
        lambda sql: sql.replace("and writer.epoch = (select max(epoch) from writers)", "")
    )
    for walk in (by_hand(lax), by_writer(lax)):
        assert "written by the former" in walk.differences[0].says


@pytest.mark.invariant("S9")
def test_a_head_that_moves_elsewhere_is_a_contradiction() -> None:
    found = re.search(r"create trigger events_move_the_head .*?\nend;", TRIGGERS, re.DOTALL)
    assert found is not None
    stuck = re.sub(r"attempt   = .*", "attempt   = attempt,", found[0])
    assert stuck != found[0]

    def alter(connection: apsw.Connection) -> None:
        connection.execute("drop trigger events_move_the_head")
        connection.execute(stuck)

    walk = by_hand(alter)
    assert walk.differences[0].kind == "contradiction"
    assert walk.differences[0].says.startswith("the head says")


def test_a_reader_that_tells_another_state_is_a_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = history.RunHistory.take

    def miscount(told: history.RunHistory, event: Event) -> None:
        taken(told, event)
        told.open = told.open._replace(grants=0)

    monkeypatch.setattr(history.RunHistory, "take", miscount)
    difference = by_writer().differences[0]
    assert difference.kind == "contradiction"
    assert difference.says.startswith("the reader tells")


def test_a_state_that_no_way_leads_to_is_missing() -> None:
    expected = expected_of(PLAN, TINY)
    graph = expected.graph()
    nowhere = expected.initial._replace(run_state="cancelling")
    assert nowhere not in graph
    world = first_world(PLAN)
    walk = Walk(world, WriterWay(world), expected, {**graph, nowhere: {}})
    walk.run()
    (difference,) = walk.differences
    assert difference.kind == "missing state"


OF_THE_GRAPH = re.findall(r"create trigger (?!archived_)(\w+)", TRIGGERS)
"""The triggers but those of `archived`: that is no state of a run, and no walk leads there."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_THE_GRAPH)
def test_each_trigger_is_needed(name: str) -> None:
    def alter(connection: apsw.Connection) -> None:
        connection.execute(f"drop trigger {name}")

    if name == "runs_start":  # without it there is no run to walk
        with pytest.raises(IllegalMove, match="a plan is written once"):
            by_hand(alter)
        return
    assert by_hand(alter).differences


REDUNDANT = {
    "events: no such run": "without a head nothing is the next number",
    "events: seq must be the next one of its run": "the head refuses to move otherwise",
    "events: a row beyond the head exists": "no statement leaves one; a forger could",
    "events: the registration of the run is not complete": "the store registers all steps at once",
    "events: the lifecycle has no such move": "what is not permitted has no coupling to agree with",
}
"""Checks without which the same graph is left, and why."""


@pytest.mark.slow
@pytest.mark.parametrize("message", CONDITIONS)
def test_each_check_of_the_trigger_is_needed_or_known_to_be_redundant(message: str) -> None:
    assert bool(by_hand(without(message)).differences) == (message not in REDUNDANT)


def test_a_difference_is_told_as_a_story_with_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = "delete from permitted where event = 'abandon'"
    altered = compare(tasks(BOUNDS["quick"], refused=False)[0], permitting(statement))
    monkeypatch.setattr("models.graph.command.compare", lambda task: altered)
    assert main(["--bounds", "quick", "--processes", "1"]) == 1
    said = capsys.readouterr().out
    assert "missing edge: abandon by operator with fail" in said
    assert f"plan: {' then '.join(altered.contracts)}; way in: writer" in said
    assert "1. " in said
    assert "the graphs are DIFFERENT" in said


# --- transactions as they ship ------------------------------------------------------------------


def by_images(plan: tuple[str, str], bounds: Bounds, alter: Alteration = keep) -> tuple[int, int]:
    """Return how many states and edges the walk by images is short of those expected."""
    expected = expected_of(plan, bounds)
    graph = expected.graph()
    walked = walk_by_images(plan, graph, expected.initial, alter)
    assert walked.states <= graph.keys()
    assert (walked.other == []) == (walked.edges == sum(map(len, graph.values())))
    return len(graph) - len(walked.states), len(walked.other)


def test_committed_transactions_have_the_same_graph() -> None:
    assert by_images(("read_only", "opaque"), Bounds(attempts=(1, 1), epochs=2)) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("plan", [("idempotent", "queryable"), ("queryable", "idempotent")])
def test_committed_transactions_have_the_same_graph_in_full(plan: tuple[str, str]) -> None:
    assert by_images(plan, Bounds(attempts=(2, 1), epochs=2)) == (0, 0)


def test_committed_transactions_with_another_graph_are_told_apart() -> None:
    alter = permitting("delete from permitted where event = 'abandon'")
    states, edges = by_images(("read_only", "opaque"), TINY, alter)
    assert states > 0
    assert edges > 0
