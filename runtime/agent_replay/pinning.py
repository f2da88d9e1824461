"""What a run pins of its adapters, and whether those at hand are still what it has pinned."""

from __future__ import annotations

from agent_replay.adapters import Registry
from agent_replay.clock import NANOSECONDS
from agent_replay.contracts import Terms
from agent_replay.errors import AdapterMismatch
from agent_replay.events import Registration
from agent_replay.outcome import sources_of, terms_of
from agent_replay.plan import Plan
from agent_replay.values import Json


def pinned_by(plan: Plan, registry: Registry) -> dict[str, Json]:
    """Return what a run pins of each adapter; raises `AdapterMismatch` naming the first
    difference."""
    pinned: dict[str, Json] = {}
    for step in plan.steps:
        identity = f"{step.adapter}@{step.version}"
        adapter = registry.get(identity)
        if adapter.terms.contract is not step.contract:
            raise AdapterMismatch(
                f"step {step.id!r} counts on {identity} being {step.contract}, "
                f"but it is registered as {adapter.terms.contract}; correct the plan or the "
                "adapter"
            )
        pinned[identity] = {**adapter.terms.pinned(), "source": adapter.source}
    return pinned


def check_adapters(
    registration: Registration, registry: Registry, *, missing_is_fine: bool
) -> tuple[str, ...]:
    """Raise `AdapterMismatch` at the first adapter that is missing or has other terms; return
    warnings."""
    warnings = []
    sources = sources_of(registration)
    for identity, terms in terms_of(registration).items():
        if missing_is_fine and not registry.has(identity):
            continue
        adapter = registry.get(identity)
        if adapter.terms != terms:
            raise AdapterMismatch(
                f"run {registration.id} has pinned {identity} as {_in_words(terms)}, "
                f"but it is registered as {_in_words(adapter.terms)}; register it as it was, "
                "under its version"
            )
        if sources.get(identity) != adapter.source:
            warnings.append(f"the source of adapter {identity} has changed since the run began")
    return tuple(warnings)


def _in_words(terms: Terms) -> str:
    parts = [
        f"{name.removesuffix('_ns')}={value / NANOSECONDS:g}"
        for name, value in terms.pinned().items()
        if isinstance(value, int)
    ]
    return f"{terms.contract}({', '.join(parts)})"
