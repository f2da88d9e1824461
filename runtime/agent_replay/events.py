"""The rows of a history, as plain values.

An event is one row: a lead move (of a step, or of the run itself) with the run's moves that ride in
the same row. Nothing here decides and nothing does I/O; `machine` says which rows may exist,
`store` writes them, `history` folds them.
"""

from typing import Final, NamedTuple

from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState

CONTRACTS: Final = {contract.value: contract for contract in Contract}
STEP_STATES: Final = {state.value: state for state in StepState}
RUN_STATES: Final = {state.value: state for state in RunState}
"""By their text, which is what rows hold."""


class Event(NamedTuple):
    """One row of a history, column by column as it is stored.

    `step` counts from 1 and is None for a move of the run itself; `attempt` counts the requests and
    resends of the step so far. `coupled` holds the run's moves in this row, separated by a space.
    `state` is the step's state after the row, `run_state` the run's. `payload` is canonical JSON
    text. `hash` is the link of the chain, over the hash before it and every other column.
    """

    run: int
    seq: int
    event: str
    coupled: str
    actor: str
    step: int | None
    attempt: int | None
    state: str | None
    run_state: str
    epoch: int
    writer: bytes
    wall_ns: int
    boot_ns: int
    payload: str
    hash: bytes


class Registration(NamedTuple):
    """The row that registers a run; it is the run's `start`, and the first link of its chain.

    `adapters` is canonical JSON text: identity to contract, terms and a digest of the source.
    `hint` says where the adapters came from; it is shown to people and never loaded from.
    """

    run: int
    id: str
    plan: str
    steps: int
    attempts_max: int
    adapters: str
    hint: str
    epoch: int
    writer: bytes
    wall_ns: int
    boot_ns: int
    hash: bytes


class StepRow(NamedTuple):
    """One step of a registered plan, with the key that every attempt of it carries."""

    run: int
    step: int
    id: str
    adapter: str
    contract: str
    arguments: str
    key: str


class Writer(NamedTuple):
    """One writer of the database; its epoch is its number in the order of taking over."""

    epoch: int
    writer: bytes
    spec: str
    boot_id: str
    opened_ns: int
    pid: int
    host: str
    hash: bytes


class Head(NamedTuple):
    """Where a run stands: the end of its chain, and the state of the run and of its open step.

    The open step is the first that has not succeeded, or the last one when all have. `attempt`
    counts its requests and resends. The row is derived: `verify` recomputes it from the events.
    """

    run: int
    seq: int
    hash: bytes
    run_state: str
    step: int
    state: str
    attempt: int
    epoch: int
    steps: int


class Stamp(NamedTuple):
    """When an event was written, by the clocks of the writer of that epoch."""

    epoch: int
    wall_ns: int
    boot_ns: int
