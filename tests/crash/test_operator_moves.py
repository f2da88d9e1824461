"""What a person decides is there wholly or not at all, wherever the process dies that records it.

`Lab.check` compares the rows that are left with the transactions that had returned, and finds an
adopt that was written alone. Here it is shown as well that the person can simply do it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from agent_replay import Json
from tests.crash.harness import Finished, Lab, Order, Scene, Seen, written
from tests.crash.verdicts import STEPS, situation
from tests.crash.worker import LEDGER
from tests.crash.world import SETTLES_SECONDS, Ledger, Point, plan_of

RESULT: Json = {"receipt": "first-1"}
ACTS: dict[str, list[Json]] = {
    "confirm": ["confirm", RESULT],
    "refute": ["refute"],
    "abandon": ["abandon"],
    "resend": ["resend"],
    "cancel": ["cancel"],
}


class Left(NamedTuple):
    """What is left in the end: effects of each step, and where run and step stand."""

    effects: tuple[int, ...]
    run: str
    step: str


AFTER_DOUBT = {
    "confirm": Left((1, 1), "completed", "succeeded"),
    "refute": Left((1, 1), "completed", "succeeded"),
    "abandon": Left((0, 0), "failed", "abandoned"),
    "resend": Left((1, 1), "completed", "succeeded"),
    "cancel": Left((0, 0), "cancelling", "in_doubt"),
}
"""What the moves of a person come to, and a resume after each, if nothing else is known."""

IN_DOUBT = ("keyed", "asked", "dark")
"""Tools that leave a step in doubt; that of an idempotent one is one whose attempts are used up."""

ROW = {"cancel": "ask_cancel"}
"""What a move is called in the history, where that is another word."""

AROUND_THE_WRITE = (
    "before_begin",
    "before_commit",
    "after_commit",
    "before_effect",
    "after_effect",
)

CANCELLED_ORPHANS = {
    "look": Left((0, 0), "cancelled", "failed"),
    "keyed": Left((0, 0), "cancelling", "in_doubt"),
    "asked": Left((0, 0), "cancelling", "in_doubt"),
    "dark": Left((0, 0), "cancelling", "in_doubt"),
}
"""What a cancel makes of a request that may have been sent, by a process that is dead."""


def order(tool: str, *acts: str) -> Order:
    attempts_max = 1 if tool == "keyed" else 3
    plan = plan_of(tool, *STEPS)
    return Order(acts=[ACTS.get(act, [act]) for act in acts], plan=plan, attempts_max=attempts_max)


def orphan(lab: Lab, tool: str) -> Scene:
    """Return a run that was killed before the first effect."""
    points = lab.record(lab.empty, order(tool, "run"))
    number = next(number for number, point in enumerate(points) if point.place == "before_effect")
    return lab.kill(lab.empty, order(tool, "run"), number, points)


def in_doubt(lab: Lab, tool: str) -> Scene:
    return lab.finish(orphan(lab, tool), order(tool, "resume")).scene


def landed_late(lab: Lab, scene: Scene) -> Scene:
    """Return the scene with the effect of the first call in the ledger: it was only under way."""
    late = lab.copy(scene)
    ledger = Ledger(late.folder / LEDGER)
    ledger.write([*ledger.entries(), ledger.entries("call")[0]._replace(what="effect")])
    return late


def assert_all_or_nothing(
    lab: Lab,
    scene: Scene,
    tool: str,
    move: str,
    right: Left,
    *,
    places: Sequence[str],
    follows: tuple[str, ...] = (),
    resumed_first: bool = False,
) -> None:
    """Kill a move at each of its points; then do it all again, as a person would, and resume."""
    acts = ["resume"] * resumed_first + [move, "resume"]
    commits = [p.about for p in lab.record(scene, order(tool, move)) if p.place == "after_commit"]
    assert commits[0] == ("adopt", ROW.get(move, move), *follows), "it is not all in one"
    assert len(commits) == 1 or move == "resend"
    kills: dict[str, Scene] = {}
    finishes: dict[str, Finished] = {}
    for at, killed in lab.sweep(scene, order(tool, move), places):
        kills[at] = killed
        finishes[at] = lab.finish(killed, order(tool, *acts))
    views = lab.check(*(finished.scene for finished in finishes.values()))
    assert {at: left(seen) for at, seen in zip(kills, views, strict=True)} == dict.fromkeys(
        kills, right
    )
    errors = {at: one.outcomes[acts.index(move)].get("error") for at, one in finishes.items()}
    assert errors == {
        at: "EvidenceRefused" if is_settled(move, killed) else None for at, killed in kills.items()
    }
    for seen in views:
        rows = [
            row for row in seen.rows[len(written(scene.points)) :] if row["actor"] == "operator"
        ]
        assert {row["event"] for row in rows} == {ROW.get(move, move)}
        assert len(rows) == 1 or move == "resend"
        assert all('"who":"an operator"' in row["payload"] for row in rows)


def is_settled(move: str, killed: Scene) -> bool:
    """Say whether there is nothing left for that move to settle."""
    if move == "resend":  # it drives on, and the second step can be left in doubt too
        return situation(killed.points).known == len(STEPS)
    return move != "cancel" and move in written(killed.points)


def left(seen: Seen) -> Left:
    return Left(tuple(seen.count("effect", step) for step in STEPS), seen.run, seen.step)


at_each_place = pytest.mark.parametrize(
    "places",
    [
        pytest.param(AROUND_THE_WRITE, id="around the write"),
        pytest.param((), id="everywhere", marks=pytest.mark.slow),
    ],
)


@pytest.mark.slow
@pytest.mark.invariant("S8")
@at_each_place
@pytest.mark.parametrize("tool", IN_DOUBT)
@pytest.mark.parametrize("move", ["confirm", "refute", "abandon"])
def test_evidence_is_taken_wholly_or_not_at_all(
    move: str, tool: str, places: Sequence[str], lab: Lab
) -> None:
    scene = in_doubt(lab, tool)
    if move == "confirm":
        scene = landed_late(lab, scene)
    assert_all_or_nothing(lab, scene, tool, move, AFTER_DOUBT[move], places=places)


@pytest.mark.invariant("S2")
@at_each_place
def test_an_attempt_that_a_person_grants_is_spent_once(places: Sequence[str], lab: Lab) -> None:
    """The process that records it makes the call too: if it dies in it, a person is asked again."""
    scene = in_doubt(lab, "keyed")
    right = AFTER_DOUBT["resend"]
    assert_all_or_nothing(lab, scene, "keyed", "resend", right, places=places, resumed_first=True)


@at_each_place
@pytest.mark.parametrize("tool", IN_DOUBT)
def test_a_cancel_of_a_step_in_doubt_is_there_wholly_or_not_at_all(
    tool: str, places: Sequence[str], lab: Lab
) -> None:
    assert_all_or_nothing(
        lab, in_doubt(lab, tool), tool, "cancel", AFTER_DOUBT["cancel"], places=places
    )


@at_each_place
@pytest.mark.parametrize("tool", CANCELLED_ORPHANS)
def test_a_cancel_settles_the_call_of_a_dead_process_or_is_not_there(
    tool: str, places: Sequence[str], lab: Lab
) -> None:
    """The ask and the settling are one transaction: a cancel never leaves an orphan behind."""
    scene, right = orphan(lab, tool), CANCELLED_ORPHANS[tool]
    follows = ("reject" if tool == "look" else "suspend",)
    assert_all_or_nothing(lab, scene, tool, "cancel", right, places=places, follows=follows)


@at_each_place
def test_a_cancel_with_nothing_open_ends_the_run_or_is_not_there(
    places: Sequence[str], lab: Lab
) -> None:
    refuted = lab.finish(in_doubt(lab, "dark"), order("dark", "refute")).scene
    right = Left((0, 0), "cancelled", "planned")
    assert_all_or_nothing(lab, refuted, "dark", "cancel", right, places=places)


# --- a cancel while a tool works ----------------------------------------------------------------


class Asked(NamedTuple):
    """What becomes of a first step whose process dies after a cancel was asked in its call."""

    happened: Left
    not_happened: Left


AFTER_A_CANCEL = {
    "look": Asked(Left((0, 0), "cancelled", "failed"), Left((0, 0), "cancelled", "failed")),
    "keyed": Asked(Left((1, 0), "cancelling", "in_doubt"), Left((0, 0), "cancelling", "in_doubt")),
    "asked": Asked(Left((1, 0), "cancelled", "succeeded"), Left((0, 0), "cancelled", "planned")),
    "dark": Asked(Left((1, 0), "cancelling", "in_doubt"), Left((0, 0), "cancelling", "in_doubt")),
}


def left_of_first(seen: Seen) -> Left:
    """Return what is left, with the state of the first step, whether it is the open one or not."""
    states = [row["state"] for row in seen.rows if row["step"] == 1]
    return left(seen)._replace(step=states[-1])


def right_after_a_cancel(tool: str, points: Sequence[Point]) -> Left | None:
    """Return what is right, or None while no cancel is durable."""
    rows = written(points)
    if "ask_cancel" not in rows:
        return None
    if "acknowledge" in rows:
        return Left((int(tool != "look"), 0), "cancelled", "succeeded")
    happened = Point("after_effect", ("first",)) in points
    return AFTER_A_CANCEL[tool].happened if happened else AFTER_A_CANCEL[tool].not_happened


@pytest.mark.slow
@pytest.mark.parametrize("tool", AFTER_A_CANCEL)
def test_a_cancel_that_was_asked_during_a_call_outlives_the_process(tool: str, lab: Lab) -> None:
    """Nothing more is sent, whoever resumes; what was sent is settled as far as it can be known."""
    plan = plan_of(tool, *STEPS, arguments={"first": {"do": ["be_cancelled", "ok"]}})
    run = Order(acts=[["run"]], plan=plan)
    resume = Order(acts=[["resume"], ["pass_by", SETTLES_SECONDS + 1], ["resume"]])
    ends: dict[str, Scene] = {}
    right: dict[str, Left] = {}
    for at, killed in lab.sweep(lab.empty, run, AROUND_THE_WRITE):
        expected = right_after_a_cancel(tool, killed.points)
        if expected is not None:
            right[at] = expected
            ends[at] = lab.finish(killed, resume).scene
    views = lab.check(*ends.values())
    assert {at: left_of_first(seen) for at, seen in zip(ends, views, strict=True)} == right
    assert [seen.count("call", "first") for seen in views] == [1] * len(right)
    assert len(right) >= 6, "the cancel, the effect and the acknowledgement were not all passed"
