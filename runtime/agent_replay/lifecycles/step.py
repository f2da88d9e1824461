"""GENERATED from spec/step.toml by spec/generate.py; do not edit.

The step machine: the life of one tool call.
"""

from enum import StrEnum
from typing import Final


class StepState(StrEnum):
    """What is durable of a step."""

    PLANNED = "planned"
    """Declared; nothing of it has left the process, or all that was sent is refuted."""

    REQUESTED = "requested"
    """The request is durable; the effect may or may not have happened."""

    IN_DOUBT = "in_doubt"
    """The outcome is unknown and the runtime may not send again by itself; evidence is needed."""

    SUCCEEDED = "succeeded"
    """It happened; the result is durable, with where it came from: a reply, a probe or an operator.
    """

    FAILED = "failed"
    """Refused or exhausted, and no effect has happened or can land."""

    ABANDONED = "abandoned"
    """A person closed it without knowing, and it says so for ever."""


class StepEvent(StrEnum):
    """What is written to move a step."""

    REQUEST = "request"
    EXHAUST = "exhaust"
    RESEND = "resend"
    ACKNOWLEDGE = "acknowledge"
    REJECT = "reject"
    SUSPEND = "suspend"
    CONFIRM = "confirm"
    REFUTE = "refute"
    ABANDON = "abandon"


class Contract(StrEnum):
    """What an adapter promises of its tool."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    QUERYABLE = "queryable"
    OPAQUE = "opaque"


class Actor(StrEnum):
    """Who makes a move."""

    RUNTIME = "runtime"
    RECOVERY = "recovery"
    PROBE = "probe"
    OPERATOR = "operator"


INITIAL: Final = StepState.PLANNED
TERMINAL: Final = frozenset({StepState.SUCCEEDED, StepState.FAILED, StepState.ABANDONED})
MOVES: Final[dict[tuple[Contract, StepState, StepEvent, Actor], StepState]] = {
    (Contract.READ_ONLY, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME): StepState.REQUESTED,
    (Contract.IDEMPOTENT, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME): StepState.REQUESTED,
    (Contract.QUERYABLE, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME): StepState.REQUESTED,
    (Contract.OPAQUE, StepState.PLANNED, StepEvent.REQUEST, Actor.RUNTIME): StepState.REQUESTED,
    (Contract.QUERYABLE, StepState.PLANNED, StepEvent.EXHAUST, Actor.RUNTIME): StepState.FAILED,
    (Contract.QUERYABLE, StepState.PLANNED, StepEvent.EXHAUST, Actor.RECOVERY): StepState.FAILED,
    (Contract.READ_ONLY, StepState.REQUESTED, StepEvent.RESEND, Actor.RUNTIME): StepState.REQUESTED,
    (
        Contract.READ_ONLY,
        StepState.REQUESTED,
        StepEvent.RESEND,
        Actor.RECOVERY,
    ): StepState.REQUESTED,
    (
        Contract.IDEMPOTENT,
        StepState.REQUESTED,
        StepEvent.RESEND,
        Actor.RUNTIME,
    ): StepState.REQUESTED,
    (
        Contract.IDEMPOTENT,
        StepState.REQUESTED,
        StepEvent.RESEND,
        Actor.RECOVERY,
    ): StepState.REQUESTED,
    (
        Contract.READ_ONLY,
        StepState.REQUESTED,
        StepEvent.ACKNOWLEDGE,
        Actor.RUNTIME,
    ): StepState.SUCCEEDED,
    (
        Contract.IDEMPOTENT,
        StepState.REQUESTED,
        StepEvent.ACKNOWLEDGE,
        Actor.RUNTIME,
    ): StepState.SUCCEEDED,
    (
        Contract.QUERYABLE,
        StepState.REQUESTED,
        StepEvent.ACKNOWLEDGE,
        Actor.RUNTIME,
    ): StepState.SUCCEEDED,
    (
        Contract.OPAQUE,
        StepState.REQUESTED,
        StepEvent.ACKNOWLEDGE,
        Actor.RUNTIME,
    ): StepState.SUCCEEDED,
    (Contract.READ_ONLY, StepState.REQUESTED, StepEvent.REJECT, Actor.RUNTIME): StepState.FAILED,
    (Contract.IDEMPOTENT, StepState.REQUESTED, StepEvent.REJECT, Actor.RUNTIME): StepState.FAILED,
    (Contract.QUERYABLE, StepState.REQUESTED, StepEvent.REJECT, Actor.RUNTIME): StepState.FAILED,
    (Contract.OPAQUE, StepState.REQUESTED, StepEvent.REJECT, Actor.RUNTIME): StepState.FAILED,
    (Contract.READ_ONLY, StepState.REQUESTED, StepEvent.REJECT, Actor.RECOVERY): StepState.FAILED,
    (
        Contract.IDEMPOTENT,
        StepState.REQUESTED,
        StepEvent.SUSPEND,
        Actor.RUNTIME,
    ): StepState.IN_DOUBT,
    (
        Contract.IDEMPOTENT,
        StepState.REQUESTED,
        StepEvent.SUSPEND,
        Actor.RECOVERY,
    ): StepState.IN_DOUBT,
    (Contract.QUERYABLE, StepState.REQUESTED, StepEvent.SUSPEND, Actor.RUNTIME): StepState.IN_DOUBT,
    (
        Contract.QUERYABLE,
        StepState.REQUESTED,
        StepEvent.SUSPEND,
        Actor.RECOVERY,
    ): StepState.IN_DOUBT,
    (Contract.OPAQUE, StepState.REQUESTED, StepEvent.SUSPEND, Actor.RUNTIME): StepState.IN_DOUBT,
    (Contract.OPAQUE, StepState.REQUESTED, StepEvent.SUSPEND, Actor.RECOVERY): StepState.IN_DOUBT,
    (
        Contract.IDEMPOTENT,
        StepState.IN_DOUBT,
        StepEvent.RESEND,
        Actor.OPERATOR,
    ): StepState.REQUESTED,
    (Contract.QUERYABLE, StepState.IN_DOUBT, StepEvent.CONFIRM, Actor.PROBE): StepState.SUCCEEDED,
    (
        Contract.QUERYABLE,
        StepState.IN_DOUBT,
        StepEvent.CONFIRM,
        Actor.OPERATOR,
    ): StepState.SUCCEEDED,
    (
        Contract.IDEMPOTENT,
        StepState.IN_DOUBT,
        StepEvent.CONFIRM,
        Actor.OPERATOR,
    ): StepState.SUCCEEDED,
    (Contract.OPAQUE, StepState.IN_DOUBT, StepEvent.CONFIRM, Actor.OPERATOR): StepState.SUCCEEDED,
    (Contract.QUERYABLE, StepState.IN_DOUBT, StepEvent.REFUTE, Actor.PROBE): StepState.PLANNED,
    (Contract.QUERYABLE, StepState.IN_DOUBT, StepEvent.REFUTE, Actor.OPERATOR): StepState.PLANNED,
    (Contract.IDEMPOTENT, StepState.IN_DOUBT, StepEvent.REFUTE, Actor.OPERATOR): StepState.PLANNED,
    (Contract.OPAQUE, StepState.IN_DOUBT, StepEvent.REFUTE, Actor.OPERATOR): StepState.PLANNED,
    (
        Contract.IDEMPOTENT,
        StepState.IN_DOUBT,
        StepEvent.ABANDON,
        Actor.OPERATOR,
    ): StepState.ABANDONED,
    (
        Contract.QUERYABLE,
        StepState.IN_DOUBT,
        StepEvent.ABANDON,
        Actor.OPERATOR,
    ): StepState.ABANDONED,
    (Contract.OPAQUE, StepState.IN_DOUBT, StepEvent.ABANDON, Actor.OPERATOR): StepState.ABANDONED,
}
