"""What must come out of a death, from the contract and from what had happened by then.

Nothing here asks the runtime or reads its tables. `situation` folds the points that the dead
processes had passed; `AFTER` says for each contract what is right then.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from operator import add
from typing import NamedTuple

from agent_replay import Json
from tests.crash.harness import SENDS, Acts, Finished, Lab, Order, Scene, Seen
from tests.crash.world import (
    LANDS_SECONDS,
    SETTLES_SECONDS,
    WINDOW_SECONDS,
    Point,
    plan_of,
)

STEPS = ("first", "second")
ROUNDS_MAX = 3
TOGETHER_MAX = 50


class Kind(NamedTuple):
    """A contract, and when somebody comes to resume: once, or twice with some time between.

    In `ROUNDS_MAX` rounds of twice, the settle bound is passed in the first already, or in none.
    """

    tool: str
    at_seconds: float = 0
    passes_seconds: float = 0

    @property
    def plan(self) -> Json:
        return plan_of(self.tool, *STEPS)

    @property
    def first_run(self) -> Order:
        return Order(acts=[["run"]], plan=self.plan)

    def recovery(self, way: str = "run", *, round: int = 1) -> Order:
        """Return what a supervisor does in a new process, for the first time or later."""
        acts: Acts = [[way]]
        if self.passes_seconds:
            acts = [[way], ["pass_by", self.passes_seconds], [way]]
        at_seconds = self.at_seconds + (round - 1) * self.passes_seconds
        return Order(acts=acts, plan=self.plan, at_seconds=at_seconds)


KINDS = {
    "read only": Kind("look"),
    "idempotent": Kind("keyed"),
    "idempotent, inside its window": Kind("windowed", WINDOW_SECONDS - LANDS_SECONDS),
    "idempotent, past its window": Kind("windowed", WINDOW_SECONDS - LANDS_SECONDS + 1),
    "queryable, past its bound": Kind("asked", passes_seconds=SETTLES_SECONDS + 1),
    "queryable, inside its bound": Kind("asked", passes_seconds=SETTLES_SECONDS / ROUNDS_MAX),
    "opaque": Kind("dark", 365 * 86_400),
}


class Deed(StrEnum):
    """What is right for a step whose request is durable and whose answer is not."""

    AGAIN = "resend"  # the same request with the same key
    CONFIRM = "confirm"  # the probe knows it: nothing is sent
    AFRESH = "refute"  # the probe rules it out: it is requested as if for the first time
    DOUBT = "suspend"  # nobody can know: nothing is sent, and a person is asked


class Right(NamedTuple):
    """The right deed if the effect has happened and if it has not; and why there is doubt."""

    happened: Deed
    not_happened: Deed
    doubt: str = ""


AFTER = {
    "read only": Right(Deed.AGAIN, Deed.AGAIN),
    "idempotent": Right(Deed.AGAIN, Deed.AGAIN),
    "idempotent, inside its window": Right(Deed.AGAIN, Deed.AGAIN),
    "idempotent, past its window": Right(Deed.DOUBT, Deed.DOUBT, "window_lapsed"),
    "queryable, past its bound": Right(Deed.CONFIRM, Deed.AFRESH),
    "queryable, inside its bound": Right(Deed.CONFIRM, Deed.DOUBT, "died"),
    "opaque": Right(Deed.DOUBT, Deed.DOUBT, "died"),
}


class Situation(NamedTuple):
    """What is durable, and what happened outside.

    `known` counts the steps whose result is durable; `asked` says whether the next one's request
    is, `happened` whether its effect has happened since. `attempts` counts the durable requests and
    resends of each step, `calls` what came of them.
    """

    registered: bool
    known: int
    asked: bool
    happened: bool
    attempts: tuple[int, ...]
    calls: tuple[int, ...]


def situation(points: Sequence[Point]) -> Situation:
    """Return where the processes were that passed these points, each up to its death."""
    registered = asked = happened = False
    known = 0
    attempts = [0] * len(STEPS)
    calls = dict.fromkeys(STEPS, 0)
    for place, about in points:
        if place == "before_effect":
            calls[about[0]] += 1
        elif place == "after_effect":
            happened = True
        elif place == "after_commit":
            for event in about:
                registered |= event == "register"
                if event in SENDS:
                    attempts[known] += 1
                known += event in ("acknowledge", "confirm")
                if event in ("request", "acknowledge", "confirm", "refute"):
                    asked, happened = event == "request", False
    counted = tuple(attempts), tuple(calls.values())
    return Situation(registered, known, asked, happened, *counted)


class Verdict(NamedTuple):
    """What counts: effects, attempts and calls of each step, where run and step stand, why, how."""

    effects: tuple[int, ...]
    attempts: tuple[int, ...]
    calls: tuple[int, ...]
    run: str
    step: str
    why: str = ""
    deed: str = ""

    @property
    def but_for_attempts(self) -> Verdict:
        return self._replace(attempts=(), calls=())


def verdict(name: str, before: Situation) -> Verdict:
    """Return what must be there after an undisturbed recovery."""
    right = AFTER[name]
    deed = None
    if before.asked:
        deed = right.happened if before.happened else right.not_happened
    effects = [0 if KINDS[name].tool == "look" else 1] * len(STEPS)
    if deed is Deed.DOUBT:
        effects[before.known :] = [0] * (len(STEPS) - before.known)
        effects[before.known] = int(before.happened)
        counted = before.attempts, before.calls
        return Verdict(tuple(effects), *counted, "paused", "in_doubt", right.doubt, deed)
    first = before.known + (deed is Deed.CONFIRM)
    more = [int(number >= first) for number in range(len(STEPS))]
    attempts = tuple(map(add, before.attempts, more))
    calls = tuple(map(add, before.calls, more))
    return Verdict(tuple(effects), attempts, calls, "completed", "succeeded", "", deed or "")


def found(finished: Finished, seen: Seen, before: Situation) -> Verdict:
    """Return what is there; the deed is that of the step that was open before."""
    last = finished.outcomes[-1]  # empty where `resume_all` has found nothing to resume
    assert last.get("state", seen.run) == seen.run, "the outcome says something else"
    doubts = [one["why"] for one in last.get("in_doubt", ())]
    sends = [row["step"] for row in seen.rows if row["event"] in SENDS]
    number = before.known + 1
    deeds = [row["event"] for row in seen.rows if row["step"] == number and before.asked]
    told = [one for one in deeds if one in set(Deed)]
    return Verdict(
        tuple(seen.count("effect", step) for step in STEPS),
        tuple(sends.count(number) for number, _ in enumerate(STEPS, start=1)),
        tuple(seen.count("call", step) for step in STEPS),
        seen.run,
        seen.step,
        "".join(doubts),
        told[-1] if told else "",
    )


class Cases:
    """The cases of one test. Many are looked at together, by one process, which is quicker."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._name = name
        self._waiting: list[tuple[str, Situation, Finished]] = []
        self.came: dict[str, Verdict] = {}
        self._right: dict[str, Verdict] = {}

    def add(self, at: str, killed: Scene, order: Order) -> None:
        """Let a worker carry an order out after a kill, undisturbed, and take in its end."""
        finished = self._lab.finish(killed, order)
        self._waiting.append((at, situation(killed.points), finished))
        if len(self._waiting) >= TOGETHER_MAX:
            self._look()

    def judge(self) -> None:
        """Compare every case with what is right for it."""
        self._look()
        assert self.came, "there is nothing to judge"
        assert self.came == self._right

    def _look(self) -> None:
        scenes = [finished.scene for _, _, finished in self._waiting]
        views = self._lab.check(*scenes) if scenes else []
        for (at, before, finished), seen in zip(self._waiting, views, strict=True):
            assert at not in self._right, f"twice: {at}"
            self.came[at] = found(finished, seen, before)
            self._right[at] = verdict(self._name, before)
            if seen.run == "completed" and finished.outcomes[-1]:
                assert finished.outcomes[-1]["results"] == results(KINDS[self._name].tool), at
        self._lab.drop(*scenes)
        self._waiting.clear()


def results(tool: str) -> dict[str, str]:
    """Return the results of a completed run, as text: each step had the one effect it tells of."""
    if tool == "look":
        return dict.fromkeys(STEPS, '{"looked": true}')
    return {step: f'{{"receipt": "{step}-1"}}' for step in STEPS}
