"""The lines of `doctor`, and of what is left to do after any command on a run."""

from __future__ import annotations

from collections.abc import Iterator

from agent_replay.report.commands import Act
from agent_replay.report.diagnosis import Diagnosis
from agent_replay.report.words import safe


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    """Yield how an unfinished run stands, why, and the commands that go on with it."""
    yield f"{found.run}: {found.standing}"
    yield from waiting_lines(found)


def waiting_lines(found: Diagnosis) -> Iterator[str]:
    """Yield which step a run waits for, why, and the commands that go on with it."""
    attempt = f", attempt {found.attempt}" if found.attempt else ""
    yield (
        f"  step  {found.number} of {found.steps}, {found.step} ({found.contract}): "
        f"{found.state}{attempt}"
    )
    yield f"  key   {found.key}"
    for reason in found.why:
        yield f"  why   {reason}"
    yield from act_lines(found.acts)


def act_lines(acts: tuple[Act, ...]) -> Iterator[str]:
    """Yield what can be done next, each with its command on a line of its own."""
    if len(acts) > 1:
        yield "  next  one of these:"
    for act in acts:
        yield f"  - {act.do}" if len(acts) > 1 else f"  next  {act.do}:"
        yield f"      {safe(act.command)}"
