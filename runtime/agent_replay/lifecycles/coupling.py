"""GENERATED from spec/step.toml and spec/run.toml by spec/generate.py; do not edit.

The product of the two machines: every row that the history may hold.
"""

from typing import Final, NamedTuple

from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState

SPEC_VERSION: Final = 1
MOVES_DIGEST: Final = "00e95a9eb1f4d44cdfb74ced1b1907f0895c21663bd1411e72d6f68525bc398a"
"""SHA-256 of what is enforced: a change of words leaves it alone."""
FILE_DIGEST: Final = "005643e048478909c915007a18867c6ab3d4814ec1d78b142c4461f87fc16b88"
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
_ROWS: Final = """\
read_only  planned   request     runtime  running    more -> requested running
read_only  planned   request     runtime  running    last -> requested running
idempotent planned   request     runtime  running    more -> requested running
idempotent planned   request     runtime  running    last -> requested running
queryable  planned   request     runtime  running    more -> requested running
queryable  planned   request     runtime  running    last -> requested running
opaque     planned   request     runtime  running    more -> requested running
opaque     planned   request     runtime  running    last -> requested running
queryable  planned   exhaust     runtime  running    more -> failed    failed     fail
queryable  planned   exhaust     runtime  running    last -> failed    failed     fail
queryable  planned   exhaust     recovery running    more -> failed    failed     fail
queryable  planned   exhaust     recovery running    last -> failed    failed     fail
read_only  requested resend      runtime  running    more -> requested running
read_only  requested resend      runtime  running    last -> requested running
read_only  requested resend      recovery running    more -> requested running
read_only  requested resend      recovery running    last -> requested running
idempotent requested resend      runtime  running    more -> requested running
idempotent requested resend      runtime  running    last -> requested running
idempotent requested resend      recovery running    more -> requested running
idempotent requested resend      recovery running    last -> requested running
read_only  requested acknowledge runtime  running    more -> succeeded running
read_only  requested acknowledge runtime  running    last -> succeeded completed  complete
read_only  requested acknowledge runtime  cancelling more -> succeeded cancelled  cancel
read_only  requested acknowledge runtime  cancelling last -> succeeded cancelled  cancel
idempotent requested acknowledge runtime  running    more -> succeeded running
idempotent requested acknowledge runtime  running    last -> succeeded completed  complete
idempotent requested acknowledge runtime  cancelling more -> succeeded cancelled  cancel
idempotent requested acknowledge runtime  cancelling last -> succeeded cancelled  cancel
queryable  requested acknowledge runtime  running    more -> succeeded running
queryable  requested acknowledge runtime  running    last -> succeeded completed  complete
queryable  requested acknowledge runtime  cancelling more -> succeeded cancelled  cancel
queryable  requested acknowledge runtime  cancelling last -> succeeded cancelled  cancel
opaque     requested acknowledge runtime  running    more -> succeeded running
opaque     requested acknowledge runtime  running    last -> succeeded completed  complete
opaque     requested acknowledge runtime  cancelling more -> succeeded cancelled  cancel
opaque     requested acknowledge runtime  cancelling last -> succeeded cancelled  cancel
read_only  requested reject      runtime  running    more -> failed    failed     fail
read_only  requested reject      runtime  running    last -> failed    failed     fail
read_only  requested reject      runtime  cancelling more -> failed    cancelled  cancel
read_only  requested reject      runtime  cancelling last -> failed    cancelled  cancel
idempotent requested reject      runtime  running    more -> failed    failed     fail
idempotent requested reject      runtime  running    last -> failed    failed     fail
idempotent requested reject      runtime  cancelling more -> failed    cancelled  cancel
idempotent requested reject      runtime  cancelling last -> failed    cancelled  cancel
queryable  requested reject      runtime  running    more -> failed    failed     fail
queryable  requested reject      runtime  running    last -> failed    failed     fail
queryable  requested reject      runtime  cancelling more -> failed    cancelled  cancel
queryable  requested reject      runtime  cancelling last -> failed    cancelled  cancel
opaque     requested reject      runtime  running    more -> failed    failed     fail
opaque     requested reject      runtime  running    last -> failed    failed     fail
opaque     requested reject      runtime  cancelling more -> failed    cancelled  cancel
opaque     requested reject      runtime  cancelling last -> failed    cancelled  cancel
read_only  requested reject      recovery running    more -> failed    failed     fail
read_only  requested reject      recovery running    last -> failed    failed     fail
read_only  requested reject      recovery cancelling more -> failed    cancelled  cancel
read_only  requested reject      recovery cancelling last -> failed    cancelled  cancel
idempotent requested suspend     runtime  running    more -> in_doubt  paused     pause
idempotent requested suspend     runtime  running    last -> in_doubt  paused     pause
idempotent requested suspend     runtime  cancelling more -> in_doubt  cancelling
idempotent requested suspend     runtime  cancelling last -> in_doubt  cancelling
idempotent requested suspend     recovery running    more -> in_doubt  paused     pause
idempotent requested suspend     recovery running    last -> in_doubt  paused     pause
idempotent requested suspend     recovery cancelling more -> in_doubt  cancelling
idempotent requested suspend     recovery cancelling last -> in_doubt  cancelling
queryable  requested suspend     runtime  running    more -> in_doubt  paused     pause
queryable  requested suspend     runtime  running    last -> in_doubt  paused     pause
queryable  requested suspend     runtime  cancelling more -> in_doubt  cancelling
queryable  requested suspend     runtime  cancelling last -> in_doubt  cancelling
queryable  requested suspend     recovery running    more -> in_doubt  paused     pause
queryable  requested suspend     recovery running    last -> in_doubt  paused     pause
queryable  requested suspend     recovery cancelling more -> in_doubt  cancelling
queryable  requested suspend     recovery cancelling last -> in_doubt  cancelling
opaque     requested suspend     runtime  running    more -> in_doubt  paused     pause
opaque     requested suspend     runtime  running    last -> in_doubt  paused     pause
opaque     requested suspend     runtime  cancelling more -> in_doubt  cancelling
opaque     requested suspend     runtime  cancelling last -> in_doubt  cancelling
opaque     requested suspend     recovery running    more -> in_doubt  paused     pause
opaque     requested suspend     recovery running    last -> in_doubt  paused     pause
opaque     requested suspend     recovery cancelling more -> in_doubt  cancelling
opaque     requested suspend     recovery cancelling last -> in_doubt  cancelling
idempotent in_doubt  resend      operator paused     more -> requested running    resume
idempotent in_doubt  resend      operator paused     last -> requested running    resume
queryable  in_doubt  confirm     probe    paused     more -> succeeded running    resume
queryable  in_doubt  confirm     probe    paused     last -> succeeded completed  resume complete
queryable  in_doubt  confirm     probe    cancelling more -> succeeded cancelled  cancel
queryable  in_doubt  confirm     probe    cancelling last -> succeeded cancelled  cancel
queryable  in_doubt  confirm     operator paused     more -> succeeded running    resume
queryable  in_doubt  confirm     operator paused     last -> succeeded completed  resume complete
queryable  in_doubt  confirm     operator cancelling more -> succeeded cancelled  cancel
queryable  in_doubt  confirm     operator cancelling last -> succeeded cancelled  cancel
idempotent in_doubt  confirm     operator paused     more -> succeeded running    resume
idempotent in_doubt  confirm     operator paused     last -> succeeded completed  resume complete
idempotent in_doubt  confirm     operator cancelling more -> succeeded cancelled  cancel
idempotent in_doubt  confirm     operator cancelling last -> succeeded cancelled  cancel
opaque     in_doubt  confirm     operator paused     more -> succeeded running    resume
opaque     in_doubt  confirm     operator paused     last -> succeeded completed  resume complete
opaque     in_doubt  confirm     operator cancelling more -> succeeded cancelled  cancel
opaque     in_doubt  confirm     operator cancelling last -> succeeded cancelled  cancel
queryable  in_doubt  refute      probe    paused     more -> planned   running    resume
queryable  in_doubt  refute      probe    paused     last -> planned   running    resume
queryable  in_doubt  refute      probe    cancelling more -> planned   cancelled  cancel
queryable  in_doubt  refute      probe    cancelling last -> planned   cancelled  cancel
queryable  in_doubt  refute      operator paused     more -> planned   running    resume
queryable  in_doubt  refute      operator paused     last -> planned   running    resume
queryable  in_doubt  refute      operator cancelling more -> planned   cancelled  cancel
queryable  in_doubt  refute      operator cancelling last -> planned   cancelled  cancel
idempotent in_doubt  refute      operator paused     more -> planned   running    resume
idempotent in_doubt  refute      operator paused     last -> planned   running    resume
idempotent in_doubt  refute      operator cancelling more -> planned   cancelled  cancel
idempotent in_doubt  refute      operator cancelling last -> planned   cancelled  cancel
opaque     in_doubt  refute      operator paused     more -> planned   running    resume
opaque     in_doubt  refute      operator paused     last -> planned   running    resume
opaque     in_doubt  refute      operator cancelling more -> planned   cancelled  cancel
opaque     in_doubt  refute      operator cancelling last -> planned   cancelled  cancel
idempotent in_doubt  abandon     operator paused     more -> abandoned failed     fail
idempotent in_doubt  abandon     operator paused     last -> abandoned failed     fail
idempotent in_doubt  abandon     operator cancelling more -> abandoned cancelled  cancel
idempotent in_doubt  abandon     operator cancelling last -> abandoned cancelled  cancel
queryable  in_doubt  abandon     operator paused     more -> abandoned failed     fail
queryable  in_doubt  abandon     operator paused     last -> abandoned failed     fail
queryable  in_doubt  abandon     operator cancelling more -> abandoned cancelled  cancel
queryable  in_doubt  abandon     operator cancelling last -> abandoned cancelled  cancel
opaque     in_doubt  abandon     operator paused     more -> abandoned failed     fail
opaque     in_doubt  abandon     operator paused     last -> abandoned failed     fail
opaque     in_doubt  abandon     operator cancelling more -> abandoned cancelled  cancel
opaque     in_doubt  abandon     operator cancelling last -> abandoned cancelled  cancel
-          planned   ask_cancel  operator running    more -> planned   cancelled  cancel
-          planned   ask_cancel  operator running    last -> planned   cancelled  cancel
-          requested ask_cancel  operator running    more -> requested cancelling
-          requested ask_cancel  operator running    last -> requested cancelling
-          in_doubt  ask_cancel  operator paused     more -> in_doubt  cancelling
-          in_doubt  ask_cancel  operator paused     last -> in_doubt  cancelling
-          planned   adopt       recovery running    more -> planned   running
-          planned   adopt       recovery running    last -> planned   running
-          requested adopt       recovery running    more -> requested running
-          requested adopt       recovery running    last -> requested running
-          in_doubt  adopt       recovery paused     more -> in_doubt  paused
-          in_doubt  adopt       recovery paused     last -> in_doubt  paused
-          requested adopt       recovery cancelling more -> requested cancelling
-          requested adopt       recovery cancelling last -> requested cancelling
-          in_doubt  adopt       recovery cancelling more -> in_doubt  cancelling
-          in_doubt  adopt       recovery cancelling last -> in_doubt  cancelling
"""


def _permitted() -> dict[Key, Permitted]:
    contracts = {"-": None, **{member.value: member for member in Contract}}
    states = {member.value: member for member in StepState}
    riding = {member.value: member for member in RunEvent}
    events: dict[str, StepEvent | RunEvent] = {member.value: member for member in StepEvent}
    events.update(riding)
    actors = {member.value: member for member in Actor}
    runs = {member.value: member for member in RunState}
    outcomes: dict[str, Permitted] = {}  # few are distinct: each is built once
    table: dict[Key, Permitted] = {}
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
"""Every row that the history may hold, 142 in all; a row that is not here does not exist."""
