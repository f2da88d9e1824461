"""Faults that other systems have had around a death, each shown to be absent here."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

import pytest

from agent_replay import Json
from tests.crash.harness import Acts, Answer, Lab, Order, Scene, Seen
from tests.crash.verdicts import KINDS, Cases
from tests.crash.world import SETTLES_SECONDS, Point, plan_of

FOUR = ("one", "two", "three", "four")


def between(points: Sequence[Point], done: str, following: str) -> range:
    """Return the points from the effect of one step on, before the next tool is called."""
    last = Point("before_effect", (following,))
    return range(points.index(Point("after_effect", (done,))), points.index(last))


def counts(seen: Seen, what: str, steps: Sequence[str]) -> list[int]:
    return [seen.count(what, step) for step in steps]


# --- results and requests -----------------------------------------------------------------------

NO, SHORT, LONG = 0.0, 0.08, 0.3
SOME_DELAYS = [(NO, NO), (SHORT, NO), (NO, SHORT), (LONG, NO), (NO, LONG)]
EVERY_DELAY = list(product((NO, SHORT, LONG), repeat=2))
WRITES = ("before_begin", "before_commit", "after_commit")


@pytest.mark.fault("A01")
@pytest.mark.invariant("S15")
@pytest.mark.parametrize(
    ("name", "delays"),
    [
        pytest.param("opaque", SOME_DELAYS, id="opaque, some"),
        pytest.param("opaque", EVERY_DELAY, id="opaque, all", marks=pytest.mark.slow),
        pytest.param("idempotent", EVERY_DELAY, id="idempotent, all", marks=pytest.mark.slow),
    ],
)
def test_no_delay_around_a_write_changes_what_happens_outside(
    name: str, delays: list[tuple[float, float]], lab: Lab
) -> None:
    """The workers sleep side by side, before and after commits; at each write one is killed."""
    kind = KINDS[name]
    points = lab.record(lab.empty, kind.first_run)
    sent = {}
    for (before, after), (number, point) in product(delays, enumerate(points)):
        if point.place in WRITES:
            slow = {"before_commit": before, "after_commit": after}
            order = dataclasses.replace(kind.first_run, delays=slow)
            sent[number, before, after] = lab.send(lab.empty, order, number, points)
    cases = Cases(lab, name)
    for at, one in sent.items():
        cases.add(str(at), one.kill(), kind.recovery())
    cases.judge()
    outside: dict[int, set[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for number, before, after in sent:
        came = cases.came[str((number, before, after))]
        outside.setdefault(number, set()).add((came.effects, came.calls))
    assert len(sent) == len(delays) * len(outside)
    assert all(len(counted) == 1 for counted in outside.values()), outside


@pytest.mark.fault("A01")
@pytest.mark.invariant("S8")
@pytest.mark.invariant("S15")
@pytest.mark.parametrize("delay_seconds", [NO, SHORT, LONG])
def test_a_result_is_committed_before_the_next_request_exists(
    delay_seconds: float, lab: Lab
) -> None:
    """Seen from beside, while the process lives: its second tool has just been called."""
    kind = KINDS["opaque"]
    points = lab.record(lab.empty, kind.first_run)
    slow = {"before_commit": delay_seconds, "after_commit": delay_seconds}
    order = dataclasses.replace(kind.first_run, delays=slow)
    number = points.index(Point("before_effect", ("second",)))
    sent = lab.send(lab.empty, order, number, points)
    (seen,) = lab.check(sent.arrive())
    sent.worker.kill()
    assert [(row["event"], row["step"]) for row in seen.rows] == [
        ("request", 1),
        ("acknowledge", 1),
        ("request", 2),
    ]


@pytest.mark.fault("A02")
def test_a_result_is_stored_before_the_next_tool_is_called(lab: Lab) -> None:
    """Killed after the second tool has returned, before the third: both ran exactly once."""
    steps = FOUR[:3]
    order = Order(acts=[["run"]], plan=plan_of("dark", *steps))
    points = lab.record(lab.empty, order)
    ends = []
    for number in between(points, "two", "three"):
        killed = lab.kill(lab.empty, order, number, points)
        ends.append(lab.finish(killed, order).scene)
    assert len(ends) >= 4
    for seen in lab.check(*ends):
        assert counts(seen, "call", steps) == counts(seen, "effect", steps) == [1, 1, 0]
        assert (seen.run, seen.step) == ("paused", "in_doubt")


@pytest.mark.fault("A06")
def test_the_last_result_and_the_end_of_the_run_are_one_row(lab: Lab) -> None:
    """No death leaves the one without the other, and neither is made up for by a call."""
    steps = FOUR[:2]
    order = Order(acts=[["run"]], plan=plan_of("keyed", *steps))
    points = lab.record(lab.empty, order)
    last = points.index(Point("after_effect", (steps[-1],)))
    kills = [lab.kill(lab.empty, order, number, points) for number in range(last, len(points))]
    finishes = [lab.finish(killed, order) for killed in kills]
    views = lab.check(*(lab.copy(killed) for killed in kills))
    ends = lab.check(*(finished.scene for finished in finishes))
    ended = []
    for seen, end in zip(views, ends, strict=True):
        final = seen.rows[-1]
        completed = final["coupled"] == "complete"
        assert (final["event"] == "acknowledge") == completed == (seen.run == "completed")
        assert counts(end, "call", steps) == [1, 1 if completed else 2]
        assert end.run == "completed"
        if completed:
            assert end.rows == seen.rows
        ended.append(completed)
    assert ended == sorted(ended)
    assert set(ended) == {False, True}


@pytest.mark.fault("A07")
@pytest.mark.parametrize("tool", ["keyed", "dark"])
def test_no_death_between_two_steps_leaves_a_run_that_goes_nowhere(tool: str, lab: Lab) -> None:
    """A result and the next request are one transaction; a resume goes on, or names a reason."""
    order = Order(acts=[["run"]], plan=plan_of(tool, *FOUR))
    points = lab.record(lab.empty, order)
    kills: list[Scene] = []
    for done, following in pairwise(FOUR):
        for number in between(points, done, following):
            kills.append(lab.kill(lab.empty, order, number, points))
    assert len(kills) >= 3 * (len(FOUR) - 1)
    finishes = [lab.finish(killed, Order(acts=[["resume"]])) for killed in kills]
    views = lab.check(*(lab.copy(killed) for killed in kills))
    ends = lab.check(*(finished.scene for finished in finishes))
    for seen, finished, end in zip(views, finishes, ends, strict=True):
        known = seen.events.count("acknowledge")
        assert seen.events == ["request", *["acknowledge", "request"] * known]
        assert end.events[: len(seen.events)] == seen.events
        (came,) = finished.outcomes
        assert len(end.rows) > len(seen.rows)
        reasons = [doubt["why"] for doubt in came["in_doubt"]]
        assert came["state"] == "completed" or (came["state"], reasons) == ("paused", ["died"])


# --- four steps, three of them in doubt ---------------------------------------------------------


@pytest.mark.fault("A04")
@pytest.mark.invariant("S3")
@pytest.mark.parametrize("killed", [False, True], ids=["lost replies", "killed"])
def test_what_a_resume_has_finished_no_later_one_runs_again(killed: bool, lab: Lab) -> None:
    """Paused at three steps, reconciled and resumed three times, each time in another process."""
    loses: dict[str, Json] = {step: {"do": ["lose"]} for step in FOUR[1:]}
    plan = plan_of("dark", *FOUR, arguments={} if killed else loses)
    scene = lab.empty
    known: list[Seen] = []
    results: list[dict[str, str]] = []
    for paused_at in (*FOUR[1:], ""):
        settled = FOUR[FOUR.index(paused_at) - 1] if paused_at else FOUR[-1]
        confirm: list[Json] = ["confirm", {"receipt": f"{settled}-1"}]
        acts: Acts = [["resume"], confirm, ["resume"]] if known else [["run"]]
        order = Order(acts=acts, plan=plan)
        if killed and paused_at:
            number = lab.record(scene, order).index(Point("after_effect", (paused_at,)))
            scene = lab.kill(scene, order, number, lab.record(scene, order))
        else:
            finished = lab.finish(scene, order)
            scene = finished.scene
            results.append(finished.outcomes[-1]["results"])
        (seen,) = lab.check(scene)
        assert (
            counts(seen, "call", FOUR)
            == counts(seen, "effect", FOUR)
            == [int(not paused_at or step in FOUR[: FOUR.index(paused_at) + 1]) for step in FOUR]
        )
        for earlier in known:
            assert seen.rows[: len(earlier.rows)] == earlier.rows
        known.append(seen)
    assert [seen.run for seen in known] == ["running" if killed else "paused"] * 3 + ["completed"]
    for fewer, more in pairwise(results):
        assert fewer.items() <= more.items()
    assert results[-1] == {step: f'{{"receipt": "{step}-1"}}' for step in FOUR}


# --- a call that kills, hangs on, or is interrupted ---------------------------------------------


@pytest.mark.fault("A10")
@pytest.mark.invariant("S8")
def test_who_looks_from_beside_sees_what_is_under_way_and_what_a_death_left(lab: Lab) -> None:
    """While the tool works, and after the death, before anybody has resumed."""
    order = Order(acts=[["run"]], plan=plan_of("keyed", *FOUR[:2]))
    points = lab.record(lab.empty, order)
    number = points.index(Point("after_effect", ("two",)))
    sent = lab.send(lab.empty, order, number, points)
    scene = sent.arrive()
    (alive,) = lab.check(scene)
    sent.worker.kill()
    (dead,) = lab.check(scene)
    for seen in (alive, dead):
        assert (seen.run, seen.step) == ("running", "requested")
        last = seen.rows[-1]
        assert (last["event"], last["step"], last["attempt"]) == ("request", 2, 1)
        assert seen.keys["two"] == seen.ledger[-1].key
    assert dead.rows == alive.rows
    assert (alive.unconfirmed, dead.unconfirmed) == (False, True)


@pytest.mark.fault("C03")
@pytest.mark.invariant("S11")
def test_a_mark_of_work_in_progress_does_not_outlive_its_worker(lab: Lab) -> None:
    """A resume asks again at once, with the same key; it waits for nothing to lapse."""
    order = Order(acts=[["run"]], plan=plan_of("keyed", "one"))
    points = lab.record(lab.empty, order)
    for place in ("before_effect", "after_effect"):
        killed = lab.kill(lab.empty, order, points.index(Point(place, ("one",))), points)
        (seen,) = lab.check(lab.finish(killed, order).scene)
        calls = [one for one in seen.ledger if one.what == "call"]
        assert [call.attempt for call in calls] == [1, 2]
        assert len({(call.key, call.at_seconds) for call in calls}) == 1
        assert seen.run == "completed"


@pytest.mark.fault("C03")
@pytest.mark.parametrize("busy", range(5))
def test_a_service_that_says_in_progress_has_neither_done_it_nor_refused_it(
    busy: int, lab: Lab
) -> None:
    """The mark is that of a call whose process is dead; each answer uses up an attempt."""
    attempts_max = 4
    plan = plan_of("marked", "one", arguments={"one": {"busy": busy}})
    order = Order(acts=[["run"]], plan=plan, attempts_max=attempts_max)
    points = lab.record(lab.empty, order)
    number = points.index(Point("before_effect", ("one",)))
    finished = lab.finish(lab.kill(lab.empty, order, number, points), order)
    (seen,) = lab.check(finished.scene)
    enough = 1 + busy + 1 <= attempts_max
    assert seen.count("call", "one") == min(1 + busy + 1, attempts_max)
    assert seen.count("effect", "one") == int(enough)
    assert len({one.key for one in seen.ledger}) == 1
    assert (seen.run, seen.step) == (
        ("completed", "succeeded") if enough else ("paused", "in_doubt")
    )
    whys = [one["why"] for one in finished.outcomes[-1]["in_doubt"]]
    assert whys == ([] if enough else ["attempts_used_up"])


INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError", "MemoryError")


@pytest.mark.fault("I06")
@pytest.mark.parametrize(
    ("interrupt", "tool"),
    [
        *product(INTERRUPTS, ["keyed"]),
        *product(["KeyboardInterrupt", "MemoryError"], ["look", "asked", "dark"]),
    ],
)
def test_an_interrupt_is_not_retried_and_comes_out(interrupt: str, tool: str, lab: Lab) -> None:
    """The step is left requested; what to make of it is decided by whoever resumes."""
    plan = plan_of(tool, "one", arguments={"one": {"do": [interrupt, "ok"]}})
    finished = lab.finish(lab.empty, Order(acts=[["run"]], plan=plan))
    resumed = lab.finish(finished.scene, Order(acts=[["resume"]]))
    seen, later = lab.check(finished.scene, resumed.scene)
    assert finished.outcomes == [{"raised": interrupt}]
    assert seen.events == ["request"]
    assert (seen.run, seen.step) == ("running", "requested")
    assert seen.count("call", "one") == 1
    again = tool in ("look", "keyed")
    assert later.count("call", "one") == 1 + again
    assert later.count("effect", "one") == (tool != "look")
    assert later.run == ("paused" if tool == "dark" else "completed")


@pytest.mark.fault("I06")
@pytest.mark.parametrize(
    ("interrupt", "status"),
    [("KeyboardInterrupt", -signal.SIGINT), ("SystemExit", 7), ("CancelledError", 1)],
)
def test_an_interrupted_program_ends_with_the_status_of_one(
    interrupt: str, status: int, lab: Lab
) -> None:
    plan = plan_of("keyed", "one", arguments={"one": {"do": [interrupt, "ok"]}})
    scene = lab.copy(lab.empty)
    order = Order(acts=[["run"]], plan=plan, fresh=True, let_out=True)
    assert lab.start(scene, order).ended() == status
    (seen,) = lab.see(scene)
    assert seen.sound
    assert seen.events == ["request"]


class Fate(NamedTuple):
    """A tool that kills its process each time, and what becomes of its run."""

    tool: str
    deed: str
    deaths: int
    effects: int
    run: str
    step: str


ATTEMPTS_MAX = 3
RESUMES = 20
FATES = [
    Fate("keyed", "die", ATTEMPTS_MAX, 1, "paused", "in_doubt"),
    Fate("keyed", "die_before", ATTEMPTS_MAX, 0, "paused", "in_doubt"),
    Fate("look", "die", ATTEMPTS_MAX, 0, "failed", "failed"),
    Fate("asked", "die_before", ATTEMPTS_MAX, 0, "failed", "failed"),
    Fate("dark", "die", 1, 1, "paused", "in_doubt"),
]


@pytest.mark.fault("I07")
@pytest.mark.invariant("S2")
@pytest.mark.parametrize("fate", FATES, ids=lambda fate: f"{fate.tool}, {fate.deed}")
def test_a_tool_that_kills_its_process_is_not_called_for_ever(fate: Fate, lab: Lab) -> None:
    """Each attempt is counted before its call; a supervisor that never gives up changes nothing."""
    scene = lab.copy(lab.empty)
    plan = plan_of(fate.tool, "one", arguments={"one": {"do": [fate.deed]}})
    acts: Acts = [["run"], ["pass_by", SETTLES_SECONDS + 1], ["run"]]
    statuses: list[int] = []
    views: list[Seen] = []
    outcomes: list[Answer] = []
    for number in range(RESUMES):
        at_seconds = number * (SETTLES_SECONDS + 1)
        worker = lab.start(
            scene, Order(acts=acts, plan=plan, at_seconds=at_seconds, attempts_max=ATTEMPTS_MAX)
        )
        reply = worker.listen()
        outcomes += reply["said"]["outcomes"] if "said" in reply else []
        statuses.append(reply["ended"] if "ended" in reply else worker.ended())
        if number == fate.deaths:
            views += lab.see(scene)
    views += lab.see(scene)
    assert statuses == [-signal.SIGKILL] * fate.deaths + [0] * (RESUMES - fate.deaths)
    first, last = views
    assert last.sound, last.findings
    assert last.rows == first.rows, "a resume added to a run that waits or has ended"
    assert last.count("call", "one") == fate.deaths
    assert last.count("effect", "one") == fate.effects
    assert len({one.key for one in last.ledger}) == 1
    assert (last.run, last.step) == (fate.run, fate.step)
    told = outcomes[-1]["failure"] or outcomes[-1]["in_doubt"][0]
    assert told["why"] == ("died" if fate.tool == "dark" else "attempts_used_up")
