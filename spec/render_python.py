"""The Python projections: enums and tables of literals, quick to import and formatted by ruff.

They leave out `from __future__ import annotations`: with it, each field of a NamedTuple is a string
that is compiled at import, which costs more than all the rest.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from spec.model import Spec, State
from spec.product import Key, Permitted

_WIDTH = 100


def _docstring(text: str, indent: str = "") -> Iterator[str]:
    if len(indent) + len(text) + 6 <= _WIDTH:
        yield f'{indent}"""{text}"""'
        return
    first, *rest = textwrap.wrap(text, _WIDTH - len(indent) - 3)
    yield f'{indent}"""{first}'
    yield from (f"{indent}{line}" for line in rest)
    yield f'{indent}"""'


def _header(name: str, holds: str) -> Iterator[str]:
    yield f'"""GENERATED from {name} by spec/generate.py; do not edit.'
    yield ""
    yield from textwrap.wrap(holds, _WIDTH)
    yield '"""'
    yield ""


def _enum(name: str, holds: str, members: Iterable[str]) -> Iterator[str]:
    yield from ("", "", f"class {name}(StrEnum):")
    yield from _docstring(holds, "    ")
    yield ""
    for member in members:
        yield f'    {member.upper()} = "{member}"'


def _state_enum(name: str, holds: str, states: dict[str, State]) -> Iterator[str]:
    yield from ("", "", f"class {name}(StrEnum):")
    yield from _docstring(holds, "    ")
    for state in states.values():
        yield ""
        yield f'    {state.name.upper()} = "{state.name}"'
        yield from _docstring(state.says, "    ")


def _ends(enum: str, initial: str, states: dict[str, State]) -> Iterator[str]:
    yield from ("", f"INITIAL: Final = {enum}.{initial.upper()}")
    ends = [f"{enum}.{name.upper()}" for name, state in states.items() if state.terminal]
    yield from _wrapped("TERMINAL: Final = frozenset(", "{" + ", ".join(ends) + "}", ")", ends)


def _wrapped(head: str, inner: str, tail: str, items: list[str]) -> Iterator[str]:
    if len(head + inner + tail) <= _WIDTH:
        yield head + inner + tail
        return
    yield head
    if len(inner) + 4 <= _WIDTH:
        yield f"    {inner}"
    else:
        yield "    {"
        yield from (f"        {item}," for item in items)
        yield "    }"
    yield tail


def _entry(key: list[str], value: str) -> Iterator[str]:
    line = f"    ({', '.join(key)}): {value},"
    if len(line) <= _WIDTH:
        yield line
        return
    yield "    ("
    yield from (f"        {item}," for item in key)
    yield f"    ): {value},"


def step_module(spec: Spec) -> str:
    """Return the text of lifecycles/step.py."""
    lines = [
        *_header("spec/step.toml", "The step machine: the life of one tool call."),
        "from enum import StrEnum",
        "from typing import Final",
        *_state_enum("StepState", "What is durable of a step.", spec.step_states),
        *_enum("StepEvent", "What is written to move a step.", spec.step_events),
        *_enum("Contract", "What an adapter promises of its tool.", spec.contracts),
        *_enum("Actor", "Who makes a move.", spec.actors),
        "",
        *_ends("StepState", spec.step_initial, spec.step_states),
        "MOVES: Final[dict[tuple[Contract, StepState, StepEvent, Actor], StepState]] = {",
    ]
    for move in spec.step_moves:
        for contract in move.contracts:
            for actor in move.actor:
                key = [
                    f"Contract.{contract.upper()}",
                    f"StepState.{move.source.upper()}",
                    f"StepEvent.{move.event.upper()}",
                    f"Actor.{actor.upper()}",
                ]
                lines += _entry(key, f"StepState.{move.target.upper()}")
    return "\n".join([*lines, "}", ""])


def run_module(spec: Spec) -> str:
    """Return the text of lifecycles/run.py."""
    lines = [
        *_header("spec/run.toml", "The run machine: the life of one execution of a plan."),
        "from enum import StrEnum",
        "from typing import Final",
        *_state_enum("RunState", "What is true of a run.", spec.run_states),
        *_enum("RunEvent", "What is written to move a run.", spec.run_events),
        "",
        *_ends("RunState", spec.run_initial, spec.run_states),
        "MOVES: Final[dict[tuple[RunState, RunEvent], RunState]] = {",
    ]
    for move in spec.run_moves:
        key = [f"RunState.{move.source.upper()}", f"RunEvent.{move.event.upper()}"]
        lines += _entry(key, f"RunState.{move.target.upper()}")
    return "\n".join([*lines, "}", ""])


_COUPLING = '''\
from typing import Final, NamedTuple

from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState

SPEC_VERSION: Final = {version}
MOVES_DIGEST: Final = "{moves_digest}"
"""SHA-256 of what is enforced: a change of words leaves it alone."""
FILE_DIGEST: Final = "{file_digest}"
"""SHA-256 of the bytes of spec/step.toml, a NUL, and spec/run.toml."""


class Permitted(NamedTuple):
    """Where a permitted row leads: the open step, the run moves that ride in the row, the run."""

    target: StepState
    coupled: tuple[RunEvent, ...]
    run_target: RunState


Key = tuple[Contract | None, StepState, StepEvent | RunEvent, Actor, RunState, bool]
"""Contract (None for the run's own events), state of the open step, event, actor, state of the run,
and whether the open step is the last of the plan."""

# One row a line: contract, state of the open step, event, actor, state of the run, and whether the
# open step is the "last" of the plan or "more" follow; then the step's target, the run's, and the
# run moves that ride in the row.
_ROWS: Final = """\\
{rows}
"""


def _permitted() -> dict[Key, Permitted]:
    contracts = {{"-": None, **{{member.value: member for member in Contract}}}}
    states = {{member.value: member for member in StepState}}
    riding = {{member.value: member for member in RunEvent}}
    events: dict[str, StepEvent | RunEvent] = {{member.value: member for member in StepEvent}}
    events.update(riding)
    actors = {{member.value: member for member in Actor}}
    runs = {{member.value: member for member in RunState}}
    outcomes: dict[str, Permitted] = {{}}  # few are distinct: each is built once
    table: dict[Key, Permitted] = {{}}
    for row in _ROWS.splitlines():
        key, _, leads_to = row.partition(" -> ")
        outcome = outcomes.get(leads_to)
        if outcome is None:
            target, run_target, *names = leads_to.split()
            coupled = tuple([riding[name] for name in names])
            outcome = outcomes[leads_to] = Permitted(states[target], coupled, runs[run_target])
        contract, source, event, actor, run, place = key.split()
        table[
            contracts[contract],
            states[source],
            events[event],
            actors[actor],
            runs[run],
            place == "last",
        ] = outcome
    return table


PERMITTED: Final = _permitted()
"""Every row that the history may hold, {count} in all; a row that is not here does not exist."""
'''


def coupling_module(
    spec: Spec, permitted: dict[Key, Permitted], moves_digest: str, file_digest: str
) -> str:
    """Return the text of lifecycles/coupling.py."""
    cells = [
        [
            *(key.contract or "-", key.source, key.event, key.actor, key.run_state),
            "last ->" if key.last else "more ->",
            *(row.target, row.run_target, " ".join(row.coupled)),
        ]
        for key, row in permitted.items()
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    rows = [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    header = _header(
        "spec/step.toml and spec/run.toml",
        "The product of the two machines: every row that the history may hold.",
    )
    body = _COUPLING.format(
        version=spec.version,
        moves_digest=moves_digest,
        file_digest=file_digest,
        rows="\n".join(rows),
        count=len(rows),
    )
    return "\n".join([*header, body])


def package_module() -> str:
    """Return the text of lifecycles/__init__.py."""
    return '"""The machines as tables, GENERATED from spec/ by spec/generate.py; do not edit."""\n'
