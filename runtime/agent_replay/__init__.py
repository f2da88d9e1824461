"""Durable tool calls for agents: a request is durable before its tool is called, a result before
the next step.

from agent_replay import Runtime, adapter, idempotent

@adapter(contract=idempotent())
def charge(request):
    return payments.charge(request.arguments, idempotency_key=request.key)

with Runtime("runs.db", adapters=[charge]) as runtime:
    outcome = runtime.run("order-42", plan)
"""

import sys

if sys.platform == "win32":
    raise ImportError(
        "agent_replay needs locks that the kernel ties to a living process and syncs of "
        "directories; "
        "Windows has neither in the form it relies on: use Linux, or macOS"
    )

from agent_replay.adapters import Absent, Adapter, Found, Request, ToolRejected, adapter
from agent_replay.contracts import FOREVER, Terms, idempotent, opaque, queryable, read_only
from agent_replay.errors import (
    AdapterMismatch,
    ArchiveError,
    DamagedHistory,
    DatabaseLocked,
    EvidenceRefused,
    Fenced,
    IllegalMove,
    InvalidInput,
    InvalidPlan,
    NoSuchRun,
    PlanMismatch,
    ReplayError,
    SpecMismatch,
    StorageError,
    UnsafeSQLite,
    UnstorableResult,
    UnusableDatabase,
    WrongProcess,
)
from agent_replay.events import Event
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.outcome import Doubt, Failure, Finished, Outcome, Results
from agent_replay.plan import Plan, load_plan, read_plan
from agent_replay.reconcile import Evidence
from agent_replay.runtime import Runtime
from agent_replay.values import Json

__version__ = "0.1.0"

__all__ = [
    "FOREVER",
    "Absent",
    "Adapter",
    "AdapterMismatch",
    "ArchiveError",
    "Contract",
    "DamagedHistory",
    "DatabaseLocked",
    "Doubt",
    "Event",
    "Evidence",
    "EvidenceRefused",
    "Failure",
    "Fenced",
    "Finished",
    "Found",
    "IllegalMove",
    "InvalidInput",
    "InvalidPlan",
    "Json",
    "NoSuchRun",
    "Outcome",
    "Plan",
    "PlanMismatch",
    "ReplayError",
    "Request",
    "Results",
    "RunState",
    "Runtime",
    "SpecMismatch",
    "StepState",
    "StorageError",
    "Terms",
    "ToolRejected",
    "UnsafeSQLite",
    "UnstorableResult",
    "UnusableDatabase",
    "WrongProcess",
    "adapter",
    "idempotent",
    "load_plan",
    "opaque",
    "queryable",
    "read_only",
    "read_plan",
]
