"""Situations that were found by experiment, by name: the shipped tables get through, a careless
change of one decision does not."""

from __future__ import annotations

import pytest

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import StepState
from models.bounds import IDEMPOTENT, OPAQUE, QUERYABLE, READ_ONLY
from models.check import path_result
from models.language.expressions import both, negated
from models.mutants import Mutant, named
from models.paths import Graph, stuck
from models.world.state import CLOSED, LAPSED, Setting
from tests.models.support import after, searched, small, states_where, world_of


def story_of(mutant: Mutant) -> list[str]:
    """Return the shortest story in which a mutant breaks what it is meant to break."""
    _, found = searched(mutant.setting())
    return [command.says for command in found.violations[mutant.breaks].commands]


@pytest.mark.invariant("S2")
def test_a_late_resend_past_the_window_is_not_sent() -> None:
    """A process dies, recovery comes when the provider may have forgotten the key: in doubt."""
    bounds = small(IDEMPOTENT)
    world = world_of(bounds)
    program, _ = searched(bounds)
    late = states_where(
        bounds,
        both(
            world.step[1].is_(StepState.REQUESTED),
            world.run.is_(RunState.RUNNING),
            world.window.is_(LAPSED, CLOSED),
            world.workers[1].driver.is_("found_open"),
        ),
    )
    assert late
    for state in late:
        assert not after(program, state, "resend")
        (edge,) = after(program, state, "recovery (worker 1)")
        assert edge[0].says == "recovery (worker 1): suspend step 1 (window_lapsed)"
    mistaken = story_of(named("a resend begins the key window anew"))
    assert mistaken[-1] == "the request of step 1 lands"
    assert any("the key window of step 1 lapses" in says for says in mistaken)


@pytest.mark.invariant("S4")
def test_a_refused_resend_after_an_unknown_first_attempt_is_in_doubt() -> None:
    """The first charge may have happened; "no money left" speaks of the second alone."""
    bounds = small(IDEMPOTENT)
    world = world_of(bounds)
    program, _ = searched(bounds)
    refused = states_where(
        bounds,
        both(
            world.step[1].is_(StepState.REQUESTED),
            world.run.is_(RunState.RUNNING),
            world.unresolved.is_(2),
            world.workers[1].driver.is_("refusal"),
        ),
    )
    assert refused
    for state in refused:
        ((_, target),) = after(program, state, "runtime (worker 1)")
        assert program.condition(world.step[1].is_(StepState.IN_DOUBT))(target)
    mistaken = story_of(named("a refusal settles the step, whatever was sent before"))
    assert mistaken[-2:] == [
        "the tool refuses this call of step 1",
        "runtime (worker 1): reject step 1 (refused)",
    ]


@pytest.mark.invariant("S4")
def test_the_settle_bound_counts_from_the_suspend_and_not_from_the_request() -> None:
    """A writer stopped between commit and send outlives a bound that counts from its request."""
    bounds = small(QUERYABLE, stops=True)
    world = world_of(bounds)
    stopped = both(world.workers[1].life.is_("stopped"), world.workers[1].driver.is_("calls"))
    assert states_where(bounds, both(stopped, world.step[1].is_(StepState.REQUESTED)))
    passed = both(world.step[1].is_(StepState.REQUESTED), world.bound.is_(1))
    assert not states_where(bounds, passed)
    mistaken = story_of(named("the settle bound counts from the request"))
    assert mistaken[-1] == "probe (worker 1): refute step 1 (probe_absent)"


@pytest.mark.invariant("L4")
def test_an_attempt_that_is_used_up_after_a_refute_fails_the_step() -> None:
    """Nothing happened and no attempt is left: not stuck, but exhausted."""
    bounds = small(QUERYABLE, cancels=False)
    world = world_of(bounds)
    program, found = searched(bounds)
    used_up = states_where(
        bounds,
        both(
            world.step[1].is_(StepState.PLANNED),
            negated(world.attempts_left()),
            world.workers[1].driver.is_("nothing"),
        ),
    )
    assert used_up
    for state in used_up:
        ((_, target),) = after(program, state, "exhaust step 1")
        assert program.condition(world.step[1].is_(StepState.FAILED))(target)
    assert not list(stuck(Graph(Setting(bounds=bounds), program, found)))
    mutant = named("nothing is owed when the last attempt was refuted")
    assert path_result("L4", mutant.setting()).verdict == "violated"


@pytest.mark.invariant("S2")
def test_a_probe_and_a_resend_without_the_bound_charge_twice_without_any_crash() -> None:
    """Check, then retry: the request was on its way while the probe was asked."""
    mutant = named("an absence counts before the settle bound has passed")
    assert mutant.bounds.kills_max == 0
    program, found = searched(mutant.setting())
    twice = found.violations["S2"]
    says = [command.says for command in twice.commands]
    assert says.index("the probe does not find the key of step 1") < says.index(
        "runtime (worker 1): request step 1", 1
    )
    assert not any(command.harm for command in twice.commands)
    assert program.values(twice.states[-1])["effects_1"] == 2
    assert searched(mutant.whole())[1].violations == {}


@pytest.mark.invariant("S4")
def test_a_cancel_with_no_live_driver_settles_the_step_and_the_probe_still_waits() -> None:
    """The request may be under way: in doubt at once; an absence counts only after the bound."""
    bounds = small(QUERYABLE)
    world = world_of(bounds)
    program, _ = searched(bounds)
    orphan = both(
        world.step[1].is_(StepState.REQUESTED),
        world.run.is_(RunState.RUNNING),
        world.workers[1].life.is_("alive"),
        world.workers[1].driver.is_("unstarted"),
    )
    doubt = both(world.step[1].is_(StepState.IN_DOUBT), world.run.is_(RunState.CANCELLING))
    asked = states_where(bounds, orphan)
    assert asked
    for state in asked:
        ((command, target),) = after(program, state, "ask_cancel")
        assert [row.event for row in command.rows] == ["ask_cancel", "suspend"]
        assert program.condition(doubt)(target)
    mutant = named("an absence counts before the settle bound has passed")
    mistaken = Setting(
        bounds=small(QUERYABLE, attempts_max=1, operator=False), tables=mutant.tables()
    )
    assert "S4" in searched(mistaken)[1].violations


def test_a_cancel_with_no_live_driver_rejects_a_read_only_step() -> None:
    bounds = small(READ_ONLY)
    world = world_of(bounds)
    program, _ = searched(bounds)
    orphan = both(
        world.step[1].is_(StepState.REQUESTED),
        world.run.is_(RunState.RUNNING),
        world.workers[1].life.is_("alive"),
        world.workers[1].driver.is_("unstarted"),
    )
    for state in states_where(bounds, orphan):
        ((command, target),) = after(program, state, "ask_cancel")
        assert [row.event for row in command.rows] == ["ask_cancel", "reject"]
        assert program.condition(world.run.is_(RunState.CANCELLED))(target)


def test_a_cancel_beside_a_driver_leaves_the_step_to_it() -> None:
    bounds = small(OPAQUE)
    world = world_of(bounds)
    program, _ = searched(bounds)
    waiting = both(
        world.workers[1].driver.is_("waits"),
        world.run.is_(RunState.RUNNING),
        world.workers[1].life.is_("alive"),
    )
    states = states_where(bounds, waiting)
    assert states
    for state in states:
        ((command, target),) = after(program, state, "ask_cancel")
        assert [row.event for row in command.rows] == ["ask_cancel"]
        assert program.condition(world.step[1].is_(StepState.REQUESTED))(target)
