"""With one check of the runtime removed, the stateful tests fail: each guard is worth something.

A check is removed in memory, and what must fail is a part of the suite: stories of the tour, acts
past the runtime, and (slow) the random search.
"""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_replay import driver, recovery
from agent_replay.events import Event
from agent_replay.recovery import Acts, News, Situation
from agent_replay.store import schema, verify
from agent_replay.store.sql import text_of
from tests.stateful import reached, tour
from tests.stateful.lab import Brief, Lab
from tests.stateful.search import CI, quiet, search

Removal = Callable[[pytest.MonkeyPatch], None]
PLAN: list[Brief] = [("keyed", ["lost", "ok"], ["ok"]), ("dark", ["lost"], ["ok"])]


def _without_clauses(monkeypatch: pytest.MonkeyPatch, *messages: str) -> None:
    """Let new databases have a trigger without the clauses that raise these messages."""

    def patched(name: str) -> str:
        text = text_of(name)
        if name == "triggers.sql":
            for message in messages:
                assert text.count(message) == 1
                text = text.replace(f"abort, '{message}'", "ignore")
                before, _, after = text.partition("raise(ignore)")
                text = f"{before}0{after}"
        return text

    monkeypatch.setattr(schema, "text_of", patched)


def without_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a request that is found open for one that was not sent."""
    decide = recovery.decide

    def careless(situation: Situation) -> Acts:
        found = situation.news is News.FOUND_OPEN
        return decide(situation._replace(news=News.READY) if found else situation)

    monkeypatch.setattr(driver, "decide", careless)


def without_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any writer write in any epoch."""
    _without_clauses(
        monkeypatch,
        "events: another writer holds the epoch",
        "events: the run belongs to another epoch and must be adopted first",
    )


def without_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a key again, however old it is."""
    monkeypatch.setattr(driver, "window_is_open", lambda *_, **__: True)


def without_coupling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a move of a step go with any move of the run."""
    _without_clauses(monkeypatch, "events: these moves of the run do not go with the move")


def without_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every row's hash for right."""

    def as_stored(_previous: bytes, event: Event) -> bytes:
        return event.hash

    monkeypatch.setattr(verify, "event_link", as_stored)


def tell(name: str) -> None:
    with quiet():
        tour.take(name, dict(tour.stories())[name], Counter())


def move(lab: Lab) -> None:
    lab.every_move("r1")


def damage(lab: Lab) -> None:
    for number in range(len(reached.DAMAGES)):
        lab.damage(number)


def in_lab(act: Callable[[Lab], None]) -> None:
    lab = Lab()
    try:
        with quiet():
            lab.open()
            lab.start("r1", PLAN)
            act(lab)
    finally:
        lab.close()


GUARDS: dict[str, tuple[Removal, Callable[[], None]]] = {
    "pending": (without_pending, lambda: tell("dark is resumed")),
    "epoch": (without_epoch, lambda: in_lab(move)),
    "window": (without_window, lambda: tell("windowed loses one reply")),
    "coupling": (without_coupling, lambda: in_lab(move)),
    "chain": (without_chain, lambda: in_lab(damage)),
}


@pytest.mark.parametrize("name", GUARDS)
def test_without_a_check_the_suite_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, part = GUARDS[name]
    remove(monkeypatch)
    with pytest.raises(AssertionError):
        part()


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_with_every_check_the_same_part_passes(name: str) -> None:
    _, part = GUARDS[name]
    part()


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_without_a_check_the_random_search_fails(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, _ = GUARDS[name]
    remove(monkeypatch)
    with pytest.raises(AssertionError):
        search(CI, seed=1)


def test_a_failure_is_a_script_that_reproduces_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_pending(monkeypatch)
    with pytest.raises(AssertionError) as failure:
        tell("dark is resumed")
    (note,) = failure.value.__notes__
    title, _, program = note.partition("\n")
    assert title == "--- a script that reproduces this ---"
    script = tmp_path / "again.py"
    script.write_text(program)
    with quiet(), pytest.raises(AssertionError) as again:
        runpy.run_path(str(script))
    assert str(again.value) == str(failure.value)
    assert again.value.__notes__ == failure.value.__notes__
