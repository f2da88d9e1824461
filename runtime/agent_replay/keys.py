"""The idempotency keys of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted


def idempotency_key(namespace: str, run: str, step: str, adapter: str, arguments: str) -> str:
    """Return the key that every attempt of a step carries: 64 hex digits.

    SHA-256 over the JSON array of the database's namespace, the run's id, the step's id, the
    adapter's name without its version, and the canonical text of the arguments. Attempts, epochs,
    writers and clocks are no part of it, so that nothing that a retry changes can change the key.
    """
    return next(keys_of(namespace, run, (step,), (adapter,), (arguments,)))


def keys_of(
    namespace: str,
    run: str,
    steps: Iterable[str],
    adapters: Iterable[str],
    arguments: Iterable[str],
) -> Iterator[str]:
    """Yield the keys of steps of one run, which are given by their columns."""
    begin = f"[{quoted(namespace)},{quoted(run)},"
    for step, adapter, text in zip(steps, adapters, arguments, strict=True):
        array = f"{begin}{quoted(step)},{quoted(adapter)},{quoted(text)}]"
        yield sha256(array.encode("ascii")).hexdigest()
