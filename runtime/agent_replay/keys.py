"""The idempotency key of a step."""

from __future__ import annotations

from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted


def idempotency_key(namespace: str, run: str, step: str, adapter: str, arguments: str) -> str:
    """Return the key that every attempt of a step carries: 64 hex digits.

    SHA-256 over the JSON array of the database's namespace, the run's id, the step's id, the
    adapter's name without its version, and the canonical text of the arguments. Attempts, epochs,
    writers and clocks are no part of it, so that nothing that a retry changes can change the key.
    """
    return KeyMaker(namespace, run)(step, adapter, arguments)


class KeyMaker:
    """Makes the keys of a run's steps, one after the other: `key(step, adapter, arguments)`."""

    __slots__ = ("_begin",)

    def __init__(self, namespace: str, run: str) -> None:
        self._begin = f"[{quoted(namespace)},{quoted(run)},"

    def __call__(self, step: str, adapter: str, arguments: str) -> str:
        """Return the key of a step of this run."""
        text = f"{self._begin}{quoted(step)},{quoted(adapter)},{quoted(arguments)}]"
        return sha256(text.encode("ascii")).hexdigest()
