"""The process that kills: starts workers, waits for their word, sends SIGKILL, and reaps them.

A worker that ends by itself, that never reaches its checkpoint, or that announces another one has
not been killed there: that is `Fooled`, and no report is made of it. Workers run one after another.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from crashtests.child import WAIT_SECONDS_MAX, Child, Fooled, Said, spawn

ROOT = Path(__file__).resolve().parent.parent


class Killed(NamedTuple):
    """A worker that announced its checkpoint and was killed there."""

    handshake: Said
    pid: int
    termination: int


class Worker:
    """A worker that has been started: an interpreter of its own."""

    def __init__(self, folder: Path, subject: str, act: str, stop: str | None = None) -> None:
        command = ["-m", "crashtests.worker", str(folder), subject, act]
        self._errors = folder / "errors.txt"
        self._child: Child = spawn(
            [*command, "--stop", stop] if stop else command,
            path=[str(ROOT), *sys.path],
            errors=self._errors,
        )

    @property
    def pid(self) -> int:
        """Return the number of its process."""
        return self._child.pid

    def hear(self, seconds: float = WAIT_SECONDS_MAX) -> Said | None:
        """Return what the worker says next, or None if it has ended without a word."""
        try:
            return self._child.hear(seconds)
        except Fooled as problem:
            raise Fooled(f"{problem}; {self._complaint()}") from None

    def killed_at(self, checkpoint: str) -> Killed:
        """Wait for the checkpoint, kill the worker there, and return the evidence; or raise
        `Fooled`.
        """
        handshake = self.hear()
        if handshake is None or handshake.get("checkpoint") != checkpoint:
            raise Fooled(
                f"the worker was to reach {checkpoint!r}, and said {handshake!r}; "
                f"{self._complaint()}"
            )
        if handshake["pid"] != self.pid:
            raise Fooled(f"process {handshake['pid']} spoke for worker {self.pid}")
        return Killed(handshake, self.pid, self._child.kill())

    def finished(self) -> Said:
        """Return what a worker came to that is left to its end; or raise `Fooled`."""
        said = self.hear()
        if said is None or "finished" not in said:
            raise Fooled(f"the worker was to finish, and said {said!r}; {self._complaint()}")
        termination = self._child.reap()
        if termination != 0:
            raise Fooled(f"the worker finished, and ended with {termination}; {self._complaint()}")
        return {**said, "termination": termination}

    def _complaint(self) -> str:
        text = self._errors.read_text(encoding="utf-8", errors="replace").strip()
        return f"its errors end with: {text[-500:]}" if text else "it wrote no errors"

    def close(self) -> None:
        """Leave no process behind."""
        self._child.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
