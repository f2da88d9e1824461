"""The process that kills: starts workers, waits for their word, sends SIGKILL, and reaps them.

Nothing here sleeps, and every wait is bounded. A worker that ends by itself, that never reaches its
checkpoint, or that announces another one has not been killed there: that is `Fooled`, and no report
is made of it. Workers run one after another, each as the leader of a process group of its own, so
that what it started is killed with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from crashtests.worker import ANNOUNCES_VARIABLE

WAIT_SECONDS_MAX = 60.0
ROOT = Path(__file__).resolve().parent.parent

Said = dict[str, Any]


class Fooled(Exception):
    """What was seen does not show what it was meant to show."""


class Killed(NamedTuple):
    """A worker that announced its checkpoint and was killed there."""

    handshake: Said
    pid: int
    termination: int


class Worker:
    """A worker that has been started."""

    def __init__(self, folder: Path, subject: str, act: str, stop: str | None = None) -> None:
        reads, announces = os.pipe()
        command = [sys.executable, "-m", "crashtests.worker", str(folder), subject, act]
        with (folder / "errors.txt").open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "--stop", stop] if stop else command,
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
                    ANNOUNCES_VARIABLE: str(announces),
                },
                start_new_session=True,
                pass_fds=(announces,),
            )
        os.close(announces)
        self._reads = reads
        self._errors = folder / "errors.txt"

    def hear(self, seconds: float = WAIT_SECONDS_MAX) -> Said | None:
        """Return what the worker says next, or None if it has ended without a word."""
        line = b""
        deadline = time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._reads], [], [], left)[0]:
                raise Fooled(f"the worker said nothing for {seconds} seconds; {self._complaint()}")
            part = os.read(self._reads, 1)
            if not part:
                return None
            line += part
        said = json.loads(line)
        if not isinstance(said, dict):
            raise Fooled(f"the worker said {said!r}")
        return said

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
        if handshake["pid"] != self._process.pid:
            raise Fooled(f"process {handshake['pid']} spoke for worker {self._process.pid}")
        os.killpg(self._process.pid, signal.SIGKILL)
        termination = self._process.wait(WAIT_SECONDS_MAX)
        if termination != -signal.SIGKILL:
            raise Fooled(f"the worker ended with {termination} before it was killed")
        return Killed(handshake, self._process.pid, termination)

    def finished(self) -> Said:
        """Return what a worker came to that is left to its end; or raise `Fooled`."""
        said = self.hear()
        if said is None or "finished" not in said:
            raise Fooled(f"the worker was to finish, and said {said!r}; {self._complaint()}")
        termination = self._process.wait(WAIT_SECONDS_MAX)
        if termination != 0:
            raise Fooled(f"the worker finished, and ended with {termination}; {self._complaint()}")
        return {**said, "termination": termination}

    def _complaint(self) -> str:
        text = self._errors.read_text(encoding="utf-8", errors="replace").strip()
        return f"its errors end with: {text[-500:]}" if text else "it wrote no errors"

    def close(self) -> None:
        """Leave no process behind."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_SECONDS_MAX)
        if self._process.stdin is not None:
            self._process.stdin.close()
        os.close(self._reads)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
