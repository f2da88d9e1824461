"""The machines that judge every row before it is written.

This is the only module that imports `transitions`: one machine for each contract's step, and one
for the run, built from the generated tables. They have no callbacks, no guards and no automatic
`to_*` triggers; a machine says whether a move exists and where it leads, and nothing else. A
trigger is named by event and actor ("confirm by probe"), since who may make a move is part of the
move.

A row of the history is one step move (or one of the run's own moves) with the run's moves that ride
in it. `judge` asks the machines for each of them, and the coupling table for their combination.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import NamedTuple

from agent_replay.errors import IllegalMove
from agent_replay.lifecycles import run, step
from agent_replay.lifecycles.coupling import PERMITTED, Permitted
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState


class _Cursor:
    """The one thing that a machine moves; it holds a state only while a move is judged."""

    state: str


class Lifecycle:
    """A `transitions` machine that answers one question and keeps no state between answers."""

    def __init__(
        self, name: str, states: list[str], initial: str, rows: list[tuple[str, str, str]]
    ) -> None:
        # Loaded with the first move that is judged: whoever only reads or replays needs none of it.
        from transitions import Machine, MachineError

        self.name = name
        self._refused = MachineError
        self.machine = Machine(
            model=None,
            states=states,
            initial=initial,
            transitions=[
                {"trigger": trigger, "source": source, "dest": target}
                for trigger, source, target in rows
            ],
            auto_transitions=False,
            ignore_invalid_triggers=False,
        )
        self._cursor = _Cursor()
        # Adding a model to a machine for each move costs five times as much, and the machine would
        # keep it alive.
        self.machine.add_model(self._cursor, initial=initial)
        self._lock = Lock()

    def advance(self, state: str, trigger: str) -> str:
        """Return the state that `trigger` leads to, or raise `IllegalMove`; either way nothing is
        kept."""
        event = self.machine.events.get(trigger)
        if event is None:
            raise IllegalMove(f"{self.name}: no move '{trigger}' from state '{state}'")
        with self._lock:
            self._cursor.state = state
            try:
                moved = event.trigger(self._cursor)
            except (self._refused, ValueError):
                raise IllegalMove(
                    f"{self.name}: no move '{trigger}' from state '{state}'"
                ) from None
            if not moved:
                raise IllegalMove(
                    f"{self.name}: the move '{trigger}' from state '{state}' did not happen"
                )
            return self._cursor.state


def trigger_name(event: StepEvent, actor: Actor) -> str:
    """Return the trigger of a step machine for an event made by an actor."""
    return f"{event.value} by {actor.value}"


@cache
def step_lifecycle(contract: Contract) -> Lifecycle:
    """Return the machine of a step with this contract."""
    rows = [
        (trigger_name(event, actor), source.value, target.value)
        for (of, source, event, actor), target in step.MOVES.items()
        if of is contract
    ]
    return Lifecycle(
        f"a {contract.value} step", [s.value for s in StepState], step.INITIAL.value, rows
    )


@cache
def run_lifecycle() -> Lifecycle:
    """Return the machine of a run."""
    rows = [
        (event.value, source.value, target.value) for (source, event), target in run.MOVES.items()
    ]
    return Lifecycle("a run", [s.value for s in RunState], run.INITIAL.value, rows)


_TRIGGERS = {(event, actor): trigger_name(event, actor) for event in StepEvent for actor in Actor}


def advance(contract: Contract, state: StepState, event: StepEvent, actor: Actor) -> StepState:
    """Return the state that a step of this contract reaches, or raise `IllegalMove` naming both."""
    return StepState(step_lifecycle(contract).advance(state.value, _TRIGGERS[event, actor]))


def advance_run(state: RunState, event: RunEvent) -> RunState:
    """Return the state that the run reaches, or raise `IllegalMove` naming both."""
    return RunState(run_lifecycle().advance(state.value, event.value))


class Verdict(NamedTuple):
    """What a permitted row holds, in the texts of its columns; `state` is where the step comes
    to."""

    event: str
    coupled: str
    actor: str
    state: str
    run_state: str


_verdicts: dict[tuple[str | None, str, str, str, str, bool], Verdict] = {}


def verdict(
    contract: str | None,
    source: str,
    event: StepEvent | RunEvent,
    actor: Actor,
    run_state: str,
    *,
    last: bool,
) -> Verdict:
    """Return what `judge` says, in the texts of a row; raises `IllegalMove`.

    The machines are asked once for each kind of row: nothing changes them once they are built, and
    asking costs as much as writing the row.
    """
    key = (contract, source, event, actor, run_state, last)
    found = _verdicts.get(key)
    if found is None:
        permitted = judge(
            None if contract is None else Contract(contract),
            StepState(source),
            event,
            actor,
            RunState(run_state),
            last=last,
        )
        found = _verdicts[key] = Verdict(
            event.value,
            " ".join(permitted.coupled),
            actor.value,
            permitted.target.value,
            permitted.run_target.value,
        )
    return found


def judge(
    contract: Contract | None,
    source: StepState,
    event: StepEvent | RunEvent,
    actor: Actor,
    run_state: RunState,
    *,
    last: bool,
) -> Permitted:
    """Return what the row leads to, or raise `IllegalMove`.

    `contract` is None for the run's own events, which leave the open step where it is. `last` says
    that the open step is the plan's last one.
    """
    permitted = PERMITTED.get((contract, source, event, actor, run_state, last))
    if isinstance(event, StepEvent):
        if contract is None:
            raise IllegalMove(f"a run: '{event}' is a move of a step")
        target = advance(contract, source, event, actor)
        reached = run_state
    else:
        target = source
        reached = advance_run(run_state, event)
    if permitted is None:
        raise IllegalMove(
            f"no move '{event}' by {actor} of a {contract or 'run'} step in state '{source}' while "
            f"the run is '{run_state}'"
        )
    for ride in permitted.coupled:
        reached = advance_run(reached, ride)
    if target is not permitted.target or reached is not permitted.run_target:
        raise IllegalMove(
            f"'{event}' by {actor}: the machines lead to '{target}' and '{reached}', "
            f"the coupling to '{permitted.target}' and '{permitted.run_target}'"
        )
    return permitted
