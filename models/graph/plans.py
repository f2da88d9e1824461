"""The plan that is walked: a step for each of some contracts, with terms that two readings decide.

The readings lie further apart than the key window and the settle bound, so that a request is inside
its window at the same reading and outside at the other.
"""

from __future__ import annotations

from agent_replay.contracts import Terms, idempotent, opaque, queryable, read_only
from agent_replay.events import Registration, StepRow
from agent_replay.keys import idempotency_key
from agent_replay.lifecycles.step import Contract
from agent_replay.plan import Step, plan_digest
from agent_replay.values import Json, canonical

APART_SECONDS = 100
ATTEMPTS_MAX = 2
"""The limit that the run pins: reached within the bounds, and exceeded by what a person grants."""

TERMS: dict[Contract, Terms] = {
    terms.contract: terms
    for terms in (
        read_only(),
        idempotent(key_window=60, lands_within=10),
        queryable(settles_within=60),
        opaque(),
    )
}


def registered(
    namespace: str, run_id: str, contracts: tuple[str, ...]
) -> tuple[Registration, list[StepRow]]:
    """Return what `Store.register` takes: a run without its number and writer, and its steps."""
    steps = [
        Step(
            id=f"step-{number}",
            adapter=contract,
            version="1",
            contract=Contract(contract),
            arguments_text="{}",
        )
        for number, contract in enumerate(contracts, start=1)
    ]
    pinned: dict[str, Json] = {
        f"{contract}@1": {**TERMS[Contract(contract)].pinned(), "source": ""}
        for contract in contracts
    }
    registration = Registration(
        run=0,
        id=run_id,
        plan=plan_digest(steps),
        steps=len(steps),
        attempts_max=ATTEMPTS_MAX,
        adapters=canonical(pinned),
        hint="",
        epoch=0,
        writer=b"",
        wall_ns=1,
        boot_ns=1,
        hash=b"",
    )
    return registration, [
        _row(namespace, run_id, number, step) for number, step in enumerate(steps, 1)
    ]


def _row(namespace: str, run_id: str, number: int, step: Step) -> StepRow:
    key = idempotency_key(namespace, run_id, step.id, step.adapter, step.arguments_text)
    return StepRow(
        run=0,
        step=number,
        id=step.id,
        adapter=f"{step.adapter}@{step.version}",
        contract=step.contract.value,
        arguments=step.arguments_text,
        key=key,
    )
