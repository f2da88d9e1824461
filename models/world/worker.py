"""A process that holds the database: what its driver does, and how a store fails and is reopened.

The driver decides nothing: each of its commands is a case of the tabulated decision function. A
decision and the row that it owes are one event, as in the runtime, where both happen under the
run's lock.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepEvent, StepState
from agent_replay.recovery import Act, Append, News, Why
from models.language.expressions import (
    FALSE,
    TRUE,
    Constant,
    Expression,
    Read,
    both,
    either,
    implied,
    negated,
    plus,
    up_to_most,
)
from models.language.program import Claim, Command
from models.tables import READINGS, Case, cases
from models.world.errors import after_an_error
from models.world.rows import SENDS, Becomes, Lead, command, draft
from models.world.state import (
    A3,
    A5,
    ALIVE,
    CALLS,
    DEAD,
    DECIDING,
    FINISHED,
    KEPT,
    PROBES,
    WAITS,
    Worker,
    World,
)


def commands(world: World, worker: Worker) -> Iterator[Command]:
    """Yield everything that one process does by itself."""
    yield from _opens(world, worker)
    yield from _begins(world, worker)
    for step in world.setting.steps:
        every = cases(world.setting.tables, world.setting.contract(step))
        for case in every:
            yield from _decides(world, worker, step, case)
        yield _returns(world, worker, step, [case for case in every if not case.acts])
        yield from _calls(world, worker, step)
        yield _forgets_old_news(world, worker, step)
    yield from after_an_error(world, worker)


def _opens(world: World, worker: Worker) -> Iterator[Command]:
    """A process opens the database: the kernel's lock is free once the other one is dead."""
    lock = world.others_dead(worker) if world.setting.assumes(A5) else TRUE
    synced: Becomes = {world.unsynced: Constant(0)}
    if "opening does not make the log durable" in world.setting.variants:
        synced = {}
    yield command(
        worker.name,
        f"{worker.name} opens the database",
        (worker.life.is_(DEAD), lock, world.unfinished()),
        {worker.life: worker.life.to(ALIVE), worker.epoch: plus(world.epoch, 1), **synced},
    )


def _begins(world: World, worker: Worker) -> Iterator[Command]:
    """A driver begins: with what this process still knows of the open request, or as recovery."""
    ready = (worker.life.is_(ALIVE), worker.rests(), worker.broken.is_(0), world.unfinished())
    claim = Claim("S8", "what recovery acts on is durable", world.unsynced.is_(0))
    yield command(
        worker.name,
        f"{worker.name} resumes the run",
        (*ready, worker.known.is_("")),
        {worker.driver: worker.driver.to(News.FOUND_OPEN)},
        claims=(claim,),
    )
    for step in world.setting.steps:
        for news in KEPT:
            yield command(
                worker.name,
                f"{worker.name} resumes the run, and still knows: {news}",
                (*ready, worker.known.is_(news), world.is_open(step)),
                {
                    worker.driver: worker.driver.to(news),
                    worker.about: Constant(step),
                    worker.known: worker.known.to(""),
                },
                claims=(claim,),
            )


# --- deciding -----------------------------------------------------------------------------------


def readings(world: World, worker: Worker, case: Case) -> Iterator[Expression]:
    """Yield the conditions under which the readings of a case are what the runtime sees."""
    seen_as = {
        "attempts_left": world.attempts_left(),
        "window_open": world.reads_window_open(),
        "bound_passed": worker.probed.is_(1),
        "earlier_unresolved": world.unresolved.is_(2),
    }
    for name, asked in zip(READINGS, case.readings, strict=True):
        seen = seen_as[name]
        if asked is not None:
            yield seen if asked else negated(seen)


def _decides(world: World, worker: Worker, step: int, case: Case) -> Iterator[Command]:
    """Yield what a driver does in one case of the decision function, for one step."""
    if not case.acts:
        return
    guard = (
        worker.life.is_(ALIVE),
        worker.driver.is_(*case.news),
        worker.broken.is_(0),
        worker.about.is_(0, step),
        *_met(world, worker, step, case),
    )
    (act,) = case.acts  # more than one at a time is never owed; a test says so
    if isinstance(act, Append):
        yield _appends(world, worker, step, case, act, guard)
    elif act is Act.CALL:
        yield _begins_a_call(world, worker, step, guard)
    else:
        yield command(
            worker.name,
            f"{worker.name} asks the probe of step {step}",
            guard,
            {
                worker.driver: worker.driver.to(PROBES),
                worker.about: Constant(step),
                worker.probed: Read(world.bound),
            },
        )


def _met(world: World, worker: Worker, step: int, case: Case) -> Iterator[Expression]:
    """Yield the conditions, its news aside, under which a driver meets a case."""
    if case.state is not None:
        yield world.step[step].is_(case.state)
    yield world.run.is_(case.run_state)
    yield world.is_open(step)
    yield from readings(world, worker, case)


def _returns(world: World, worker: Worker, step: int, nothing_owed: list[Case]) -> Command:
    """Where nothing is owed the driver returns, and its caller is told the outcome.

    Without A5 another process may have gone on with the run meanwhile, and what this one learnt is
    old: then only what it has just come to must be settled.
    """
    met = (
        both(worker.driver.is_(*case.news), *_met(world, worker, step, case))
        for case in nothing_owed
    )
    settled = world.step[step].is_not(StepState.REQUESTED)
    if not world.setting.assumes(A5):
        settled = either(settled, worker.driver.is_not(News.FOUND_OPEN))
    return command(
        worker.name,
        f"{worker.name} owes nothing more, and returns the outcome",
        (
            worker.life.is_(ALIVE),
            worker.driver.is_(*DECIDING),
            worker.broken.is_(0),
            worker.about.is_(0, step),
            either(*met),
        ),
        worker.left_at(FINISHED),
        claims=(Claim("S10", "a recovery that is finished leaves no request open", settled),),
    )


def _appends(
    world: World,
    worker: Worker,
    step: int,
    case: Case,
    act: Append,
    guard: tuple[Expression, ...],
) -> Command:
    assert case.state is not None, "a case that owes something names its state"
    lead = Lead(step, case.state, case.run_state, act.event, act.actor)
    row = draft(world, worker, lead)
    why = f" ({act.why})" if act.why is not Why.NONE else ""
    says = f"{act.actor} ({worker.name}): {act.event} step {step}{why}"
    if row is None:
        refused = Claim(
            "S6", f"the decision function owes no {act.event} that the spec has not", FALSE
        )
        return command(worker.name, says, guard, {}, claims=(refused,))
    sends = act.event in SENDS
    becomes: Becomes = {
        worker.driver: worker.driver.to(News.READY if sends else News.NOTHING),
        worker.about: Constant(step if sends else 0),
        worker.probed: Constant(0),
    }
    claims = _honest(world, worker, step, case) if act.event is StepEvent.SUSPEND else ()
    return command(worker.name, says, guard, becomes, row, claims=claims)


def _honest(world: World, worker: Worker, step: int, case: Case) -> tuple[Claim, ...]:
    """Return the claim that a step is in doubt only where the runtime may not send it again."""
    contract = world.setting.contract(step)
    if contract in (Contract.QUERYABLE, Contract.OPAQUE) or case.run_state is RunState.CANCELLING:
        return ()
    lapsed = negated(world.reads_window_open())
    refused = (News.REFUSAL, News.REFUSAL_OF_KEY)
    may_not = {
        **dict.fromkeys(News, either(lapsed, negated(world.attempts_left()))),
        **dict.fromkeys(refused, world.unresolved.is_(2)),
        News.READY: lapsed,
    }
    if contract is Contract.READ_ONLY:
        may_not = dict.fromkeys(News, FALSE)
    holds = both(*(implied(worker.driver.is_(news), may_not[news]) for news in case.news))
    return (Claim("S10", "a step in doubt is one that may not be sent again", holds),)


def _begins_a_call(
    world: World, worker: Worker, step: int, guard: tuple[Expression, ...]
) -> Command:
    if "a call begins after a storage error" in world.setting.variants:
        guard = tuple(part for part in guard if part != worker.broken.is_(0))
    return command(
        worker.name,
        f"{worker.name} begins the call of step {step}",
        guard,
        {worker.driver: worker.driver.to(CALLS), worker.known: worker.known.to("")},
        claims=(Claim("S12", "no call begins after a storage error", worker.broken.is_(0)),),
    )


# --- calling ------------------------------------------------------------------------------------


def _calls(world: World, worker: Worker, step: int) -> Iterator[Command]:
    """Yield the way of a request out of the process, and of a reply or an error back into it."""
    here = (worker.life.is_(ALIVE), worker.driver.is_(CALLS), worker.about.is_(step))
    idempotent = world.setting.contract(step) is Contract.IDEMPOTENT
    in_time = world.reads_window_open() if idempotent and world.setting.assumes(A3) else TRUE
    durable = either(
        world.step[step].is_not(StepState.PLANNED),
        both(world.is_open(step), negated(world.attempt.is_(0))),
        world.restored.is_(1),  # the row was durable, in a file that was since replaced
    )
    request_first = Claim("S1", "a request is durable before it is sent", durable)
    sent: Becomes = {worker.driver: worker.driver.to(WAITS)}
    yield command(
        worker.name,
        f"{worker.name} sends the request of step {step}",
        (*here, in_time),
        sent,
        claims=(request_first,),
    )
    failed: Expression = worker.driver.to(News.FAILURE)
    if in_time != TRUE:
        yield command(
            worker.name,
            f"{worker.name}'s call of step {step} raises: it may not leave after its send_before",
            (*here, negated(in_time)),
            {worker.driver: failed},
        )
    waits = (worker.life.is_(ALIVE), worker.driver.is_(WAITS), worker.about.is_(step))
    gone: Becomes = {world.abroad[step]: up_to_most(world.abroad[step])}
    yield command(
        worker.name,
        f"{worker.name}'s call of step {step} times out; the request is still under way",
        waits,
        {worker.driver: failed, **gone},
    )
    if "a request is sent before it is durable" in world.setting.variants:
        planned = (worker.life.is_(ALIVE), worker.driver.is_(News.NOTHING), worker.about.is_(0))
        yield command(
            worker.name,
            f"{worker.name} sends a request of step {step} that is not on record",
            (*planned, world.step[step].is_(StepState.PLANNED), world.is_open(step)),
            {**sent, worker.about: Constant(step)},
            claims=(request_first,),
        )


def _forgets_old_news(world: World, worker: Worker, step: int) -> Command:
    """Somebody settled the step meanwhile: what the driver learnt of it says nothing any more."""
    return command(
        worker.name,
        f"{worker.name} sees that step {step} was settled meanwhile",
        (
            worker.life.is_(ALIVE),
            worker.driver.is_(*DECIDING),
            worker.broken.is_(0),
            worker.about.is_(step),
            negated(world.is_open(step)),
        ),
        worker.left_at(News.NOTHING),
    )
