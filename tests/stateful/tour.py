"""A tour of the lifecycle: short stories that make every move, and a death at each of their points.

The random search meets the moves in any order; the tour makes sure that each (contract, move, point
of a commit) is met, on real files, whatever the search does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from tests.stateful.lab import Brief, Doings, Lab
from tests.stateful.outside import CONTRACT_OF
from tests.stateful.points import ENDS, FITS

RUN = "a"
FORTH_SECONDS = 950
MEDDLED = ("windowed loses one reply", "asked is refuted by its probe", "keyed answers")
"""Stories in which not only deaths happen."""
ENDLESS = 40
"""More points than any act of the tour has."""

Act = Callable[[Lab, Doings], None]


class Story(NamedTuple):
    """Acts on one run, and the limit of attempts."""

    limit: int
    acts: Sequence[Act]


def _start(*steps: Brief) -> Act:
    return lambda lab, doings: lab.start(RUN, steps, doings)


def _resume(lab: Lab, doings: Doings) -> None:
    lab.resume(RUN, doings)


def _cancel(lab: Lab, doings: Doings) -> None:
    lab.cancel(RUN, doings)


def _give(event: str, *, earlier: int = 0) -> Act:
    def act(lab: Lab, doings: Doings) -> None:
        step = lab.rehearsal.runs[RUN].open
        lab.settle(
            RUN,
            event,
            step=step.name,
            attempt=max(1, step.attempt - earlier),
            key_of=(RUN, step.name),
            doings=doings,
        )

    return act


def _start_and_die(*steps: Brief) -> Act:
    """Start a run whose process dies when the tool has done its work, if not before."""
    return lambda lab, doings: lab.start(RUN, steps, doings or [(5, "die", 0)])


def _after_a_while(lab: Lab, doings: Doings) -> None:
    lab.pass_time(61)
    lab.resume(RUN, doings)


def stories() -> Iterator[tuple[str, Story]]:
    """Yield the stories with their names."""
    for tool in sorted(CONTRACT_OF):
        yield from _of_any(tool)
        if tool != "look":
            yield from _of_doubt(tool)
    yield from _of_probes()
    yield from _of_evidence()
    yield from _of_answers()
    yield from _of_landings()


def _of_any(tool: str) -> Iterator[tuple[str, Story]]:
    fine, lost, refused = [(tool, [deed], ["ok"]) for deed in ("ok", "lost", "refuse")]
    yield f"{tool} answers", Story(1, [_start(fine, fine)])
    yield f"{tool} refuses", Story(1, [_start(refused)])
    yield f"{tool} loses every reply", Story(2, [_start(lost), _resume])
    yield f"{tool} loses one reply", Story(2, [_start((tool, ["lost", "ok"], ["ok"]))])
    yield f"{tool} is interrupted", Story(2, [_start((tool, ["interrupt", "ok"], ["ok"])), _resume])
    yield f"{tool} is resumed", Story(2, [_start_and_die(fine, fine), _resume])
    yield f"{tool} has no attempt left", Story(1, [_start_and_die(fine), _resume])
    yield f"{tool} is cancelled at rest", Story(2, [_start_and_die(fine), _cancel, _resume])


def _of_doubt(tool: str) -> Iterator[tuple[str, Story]]:
    unsent = (tool, ["unsent", "ok"], ["raise"])
    lost = (tool, ["lost", "ok"], ["raise"])
    yield f"{tool} is confirmed", Story(1, [_start(lost, lost), _give("confirm"), _resume])
    yield f"{tool} is refuted", Story(1, [_start(unsent), _give("refute"), _resume])
    yield f"{tool} is refuted and cancelled", Story(1, [_start(unsent), _give("refute"), _cancel])
    yield f"{tool} is abandoned", Story(1, [_start(lost), _give("abandon")])
    yield f"{tool} is sent again", Story(1, [_start(lost), _give("resend"), _resume])
    yield f"{tool} is cancelled in doubt", Story(1, [_start(lost), _cancel, _give("confirm")])


def _land_after(seconds: int) -> Act:
    def act(lab: Lab, _doings: Doings) -> None:
        lab.pass_time(seconds)
        if lab.outside.landings:
            lab.land(0)

    return act


def _of_landings() -> Iterator[tuple[str, Story]]:
    late = ("asked", ["late", "ok"], ["ok"])
    for seconds in (59, 61):
        acts = [_start(late), _land_after(seconds), _resume]
        yield f"asked lands after {seconds} seconds", Story(2, acts)


def _of_answers() -> Iterator[tuple[str, Story]]:
    yield "keyed cannot be stored", Story(1, [_start(("keyed", ["unstorable"], ["ok"]))])
    yield "keyed is lost, then refused", Story(2, [_start(("keyed", ["lost", "refuse"], ["ok"]))])
    yield "keyed is too large", Story(1, [_start(("keyed", ["large"], ["ok"]))])


def _of_evidence() -> Iterator[tuple[str, Story]]:
    twice = ("dark", ["lost", "lost"], ["ok"])
    acts = [_start(twice), _give("refute"), _resume, _give("confirm", earlier=1)]
    yield "dark is refuted and had happened", Story(1, acts)


def _of_probes() -> Iterator[tuple[str, Story]]:
    unsent = ("asked", ["unsent", "ok"], ["ok"])
    yield "asked is found", Story(1, [_start(("asked", ["lost"], ["ok"]))])
    yield "asked is refuted by its probe", Story(2, [_start(unsent), _after_a_while])
    yield "asked is used up", Story(1, [_start(unsent), _after_a_while])


def take(name: str, story: Story, reached: Counter[str]) -> int:
    """Tell a story with a death at each point of each act; return how often it was told.

    In some stories everything else that may happen at a point happens, too.
    """
    told = 0
    whats = sorted(FITS) if name in MEDDLED else ["die", "tear"]
    for number, what in product(range(len(story.acts)), whats):
        at: int | None = 0
        while at is not None:
            assert at < ENDLESS, f"{name}: an act with more than {ENDLESS} points"
            at = _tell(story, number, at, what, reached)
            told += 1
    return told


def _tell(story: Story, number: int, at: int, what: str, reached: Counter[str]) -> int | None:
    """Tell a story with a death in one act, at a point or later; return the point to try next."""
    lab = Lab()
    after: int | None = None
    try:
        for place, act in enumerate(story.acts):
            if lab.process is None:
                lab.open(story.limit)
            if RUN not in lab.rehearsal.runs and place:
                break  # it died before it was registered
            before = len(lab.done)
            act(lab, [(at, what, FORTH_SECONDS)] if place == number else [])
            if place == number and len(lab.done) > before:
                after = lab.passed if what in ENDS else at + 1
            if lab.rehearsal.stopped:
                lab.reopen()
        if lab.process is None:
            lab.open(story.limit)
        if RUN in lab.rehearsal.runs:
            lab.resume(RUN)
        reached.update(lab.reached)
        return after
    finally:
        lab.close()
