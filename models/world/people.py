"""People: an operator with evidence, and somebody who asks for a cancel.

They act in the process that holds the database, beside its driver where it has one. Evidence is
true (A2): whoever confirms has seen the effect, whoever refutes knows that no request of the step
had an effect or can still have one.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from agent_replay.recovery import Append, News
from models.language.expressions import TRUE, Constant, Expression, negated
from models.language.program import Command
from models.tables import Case, cases
from models.world.rows import Becomes, Draft, Lead, command, draft
from models.world.state import A2, ALIVE, KEPT, Worker, World
from models.world.worker import readings

OPERATOR = "operator"
RESUMED = (News.FOUND_OPEN, *KEPT)
"""The news with which a request is come to that nobody works on."""
UNDER_EVIDENCE = (RunState.PAUSED, RunState.CANCELLING)


def commands(world: World, worker: Worker) -> Iterator[Command]:
    """Yield what people do through one process."""
    bounds = world.setting.bounds
    for step in world.setting.steps:
        if bounds.operator:
            for run_state in UNDER_EVIDENCE:
                yield from _settles(world, worker, step, run_state)
            yield from _resends(world, worker, step)
        if bounds.cancels:
            yield from _cancels(world, worker, step)


def _acts(worker: Worker) -> tuple[Expression, ...]:
    return (worker.life.is_(ALIVE), worker.broken.is_(0))


def _settles(world: World, worker: Worker, step: int, run_state: RunState) -> Iterator[Command]:
    """Yield confirm, refute and abandon of a step in doubt."""
    believed = not world.setting.assumes(A2)
    happened = TRUE if believed else negated(world.effects[step].is_(0))
    nothing = TRUE if believed else world.nothing_happened(step)
    granted = world.grants.is_not(world.setting.bounds.grants_max)
    offered = [
        (StepEvent.CONFIRM, (happened,)),
        (StepEvent.REFUTE, (granted, nothing)),
    ]
    if world.setting.bounds.abandons:
        offered.append((StepEvent.ABANDON, (TRUE,)))
    for event, conditions in offered:
        lead = Lead(step, StepState.IN_DOUBT, run_state, event, Actor.OPERATOR)
        row = draft(world, worker, lead)
        if row is not None:
            says = f"operator (through {worker.name}): {event} step {step}"
            yield command(OPERATOR, says, (*_acts(worker), *conditions), {}, row)


def _resends(world: World, worker: Worker, step: int) -> Iterator[Command]:
    """Yield the operator's resend: the process that writes it makes the call itself."""
    lead = Lead(step, StepState.IN_DOUBT, RunState.PAUSED, StepEvent.RESEND, Actor.OPERATOR)
    row = draft(world, worker, lead)
    if row is None:
        return
    in_time: Expression = TRUE
    if world.setting.contract(step) is Contract.IDEMPOTENT:
        in_time = world.reads_window_open()
    yield command(
        OPERATOR,
        f"operator (through {worker.name}): resend step {step}",
        (
            *_acts(worker),
            worker.rests(),
            world.grants.is_not(world.setting.bounds.grants_max),
            in_time,
        ),
        {worker.driver: worker.driver.to(News.READY), worker.about: Constant(step)},
        row,
    )


# --- cancelling ---------------------------------------------------------------------------------


def _cancels(world: World, worker: Worker, step: int) -> Iterator[Command]:
    """Yield the ask for a cancel: with no driver at work the open step is settled with it."""
    says = f"operator (through {worker.name}): ask_cancel"
    for run_state in (RunState.RUNNING, RunState.PAUSED):
        for source in StepState:
            lead = Lead(step, source, run_state, RunEvent.ASK_CANCEL, Actor.OPERATOR)
            row = draft(world, worker, lead)
            if row is None:
                continue
            guard = (*_acts(worker), world.is_open(step))
            if source is not StepState.REQUESTED:
                yield command(OPERATOR, says, guard, {}, row)
                continue
            yield command(OPERATOR, says, (*guard, worker.at_work()), {}, _beside(row, worker))
            yield from _settled_with_it(world, worker, step, row, (*guard, worker.rests()), says)


def _beside(row: Draft, worker: Worker) -> Draft:
    """Return a row that a person writes beside a driver, which keeps what it knows."""
    becomes = {one: value for one, value in row.becomes.items() if one != worker.known}
    return row._replace(becomes=becomes)


def _settled_with_it(
    world: World,
    worker: Worker,
    step: int,
    asked: Draft,
    guard: tuple[Expression, ...],
    says: str,
) -> Iterator[Command]:
    """Yield the ask and, in the same transaction, what is owed to a request nobody works on."""
    for case in cases(world.setting.tables, world.setting.contract(step)):
        if (case.state, case.run_state) != (StepState.REQUESTED, RunState.CANCELLING):
            continue
        known = ["" if news is News.FOUND_OPEN else news for news in case.news if news in RESUMED]
        joined = _joined(world, worker, step, asked, case)
        if known and joined is not None:
            with_it = "".join(
                f", and {row.actor}: {row.event} step {step}" for row in joined.rows[1:]
            )
            yield command(
                OPERATOR,
                f"{says}{with_it}",
                (*guard, worker.known.is_(*known), *readings(world, worker, case)),
                {},
                joined,
            )


def _joined(world: World, worker: Worker, step: int, asked: Draft, case: Case) -> Draft | None:
    """Return the two rows of a cancel that settles the open step; its own where nothing is owed."""
    if not case.acts:
        return asked
    (act,) = case.acts
    if not isinstance(act, Append) or case.state is None:
        return None
    lead = Lead(step, case.state, case.run_state, act.event, act.actor)
    settling = draft(world, worker, lead)
    if settling is None:
        return None
    becomes: Becomes = {**asked.becomes, **settling.becomes}
    return Draft(asked.guard, becomes, asked.claims, (*asked.rows, *settling.rows))
