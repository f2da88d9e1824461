"""What a row of the history does to the variables, and where it is permitted.

The counterpart of `next_head` and `next_open` in the runtime's `history`; a test compares the two
on every edge of a search.
"""

from __future__ import annotations

from typing import NamedTuple

from agent_replay.lifecycles.run import TERMINAL as RUN_TERMINAL
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import TERMINAL as STEP_TERMINAL
from agent_replay.lifecycles.step import Actor, StepEvent, StepState
from models.language.expressions import (
    FALSE,
    TRUE,
    Constant,
    Expression,
    Read,
    Variable,
    both,
    negated,
    plus,
    up_to_most,
)
from models.language.program import Assignment, Claim, Command, Row
from models.world.state import OPEN, Worker, World

Becomes = dict[Variable, Expression]
SENDS = (StepEvent.REQUEST, StepEvent.RESEND)


class Draft(NamedTuple):
    """A row, or two of one transaction: where it may be written, and what it changes."""

    guard: tuple[Expression, ...]
    becomes: Becomes
    claims: tuple[Claim, ...]
    rows: tuple[Row, ...]


class Lead(NamedTuple):
    """A row before it is looked up."""

    step: int
    source: StepState
    run_state: RunState
    event: StepEvent | RunEvent
    actor: Actor


def command(
    actor: str,
    says: str,
    guard: tuple[Expression, ...],
    becomes: Becomes,
    draft: Draft | None = None,
    *,
    claims: tuple[Claim, ...] = (),
    harm: bool = False,
) -> Command:
    """Return a command, with what a draft adds to it."""
    if draft is not None:
        guard = (*guard, *draft.guard)
        becomes = {**draft.becomes, **becomes}
        claims = (*draft.claims, *claims)
    return Command(
        actor=actor,
        says=says,
        guard=tuple(part for part in guard if part != TRUE),
        assignments=tuple(
            Assignment(variable, value)
            for variable, value in becomes.items()
            if value != Read(variable)
        ),
        claims=tuple(claim for claim in claims if claim.holds != TRUE),
        rows=() if draft is None else draft.rows,
        harm=harm,
    )


def draft(world: World, worker: Worker, lead: Lead) -> Draft | None:
    """Return what a worker's row would do, or None where the spec has no such row."""
    setting = world.setting
    last = lead.step == len(setting.steps)
    contract = setting.contract(lead.step) if isinstance(lead.event, StepEvent) else None
    found = setting.tables.permitted.get(
        (contract, lead.source, lead.event, lead.actor, lead.run_state, last)
    )
    if found is None:
        return None
    becomes: Becomes = {
        world.holder: Constant(worker.number),
        world.epoch: Read(worker.epoch),
        worker.known: worker.known.to(""),
    }
    becomes[world.step[lead.step]] = world.step[lead.step].to(found.target)
    becomes[world.run] = world.run.to(found.run_target)
    if contract is not None:
        becomes |= _open_step(world, lead, found.target, last=last)
    return Draft(
        (
            world.run.is_(lead.run_state),
            world.step[lead.step].is_(lead.source),
            _comes_next(world, lead),
            _may_write(world, worker, lead, last=last),
        ),
        becomes,
        _claims(world, worker, lead),
        (Row(contract or "", lead.source, lead.event, lead.actor, lead.run_state, last),),
    )


def _comes_next(world: World, lead: Lead) -> Expression:
    """Return the condition that the steps before this one succeeded."""
    if "a step does not wait for the one before" in world.setting.variants:
        return TRUE
    return world.earlier_succeeded(lead.step)


def _may_write(world: World, worker: Worker, lead: Lead, *, last: bool) -> Expression:
    """Return the condition that the database takes the row: by its holder, or with an adopt."""
    adopt = (None, lead.source, RunEvent.ADOPT, Actor.RECOVERY, lead.run_state, last)
    if "a replaced writer may write" in world.setting.variants:
        return TRUE
    if adopt in world.setting.tables.permitted:
        return world.may_write(worker)
    return world.holder.is_(worker.number)


def _open_step(world: World, lead: Lead, target: StepState, *, last: bool) -> Becomes:
    """Return what a step's own event does to what is known of the open step."""
    anew: Becomes = {
        world.unresolved: Constant(0),
        world.window: world.window.to(OPEN),
        world.bound: Constant(0),
    }
    granted = lead.actor is Actor.OPERATOR
    if lead.event in SENDS and "an operator's resend grants nothing" in world.setting.variants:
        granted = False
    if target is StepState.SUCCEEDED and not last:
        return {**anew, world.attempt: Constant(0), world.grants: Constant(0)}
    becomes: Becomes = {}
    if lead.event in SENDS:
        becomes = {
            world.attempt: plus(world.attempt, 1),
            world.unresolved: up_to_most(world.unresolved),
        }
    elif lead.event is StepEvent.SUSPEND:
        if "the settle bound counts from the request" not in world.setting.variants:
            becomes = {world.bound: Constant(0)}
    elif lead.event is StepEvent.REFUTE:
        becomes = anew
    if granted and lead.event in (StepEvent.REFUTE, *SENDS):
        becomes[world.grants] = plus(world.grants, 1)
    return becomes


def _claims(world: World, worker: Worker, lead: Lead) -> tuple[Claim, ...]:
    """Return what must hold wherever such a row is written."""
    final = lead.run_state in RUN_TERMINAL or (
        isinstance(lead.event, StepEvent) and lead.source in STEP_TERMINAL
    )
    return (
        Claim("S5", "no row changes what is final", FALSE if final else TRUE),
        Claim(
            "S7",
            "the epoch does not go back, and a writer that was replaced changes nothing",
            both(negated(world.goes_back(worker)), world.may_write(worker)),
        ),
    )
