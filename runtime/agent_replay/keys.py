"""The idempotency keys of steps."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted


def idempotency_key(namespace: str, run: str, step: str, adapter: str, arguments: str) -> str:
    """Return the key that every attempt of a step carries: 64 hex digits.

    SHA-256 over the JSON array of the database's namespace, the run's id, the step's id, the
    adapter's name without its version, and the canonical text of the arguments. Attempts, epochs,
    writers and clocks are no part of it, so that nothing that a retry changes can change the key.
    """
    return keys_of(namespace, run, (step,), (adapter,), (arguments,))[0]


def keys_of(
    namespace: str,
    run: str,
    steps: Iterable[str],
    adapters: Iterable[str],
    arguments: Iterable[str],
) -> list[str]:
    """Return the keys of steps of one run, which are given by their columns."""
    begin = f"[{quoted(namespace)},{quoted(run)},"
    texts = [
        f"{begin}{quoted(step)},{quoted(adapter)},{quoted(text)}]"
        for step, adapter, text in zip(steps, adapters, arguments, strict=True)
    ]
    return [sha256(text.encode("ascii")).hexdigest() for text in texts]
