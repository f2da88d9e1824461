"""A stand-in for a tool: a store of effects in its own SQLite file.

It shows what a provider must do for the contract `idempotent` (`apply`) and for `queryable`
(`look_up`), and what a tool does that promises nothing (`apply_blindly`). Examples and tests call
it from adapters, and count in it what has really happened. The runtime never opens it, and nothing
of the package imports it.
"""

from agent_replay.effects.store import EffectStore, KeyReused, Receipt

__all__ = ["EffectStore", "KeyReused", "Receipt"]
