"""Spin: every state once more by an engine that shares nothing with ours, and liveness.

The compiled verifier lies in a temporary folder that is removed, whatever happens. No partial-order
reduction, so its counts are those of the model: Spin counts the first state among the transitions
too, and `edges` here does not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from models.engines.search import Progress
from models.language.program import Claim, Eventually, Model, without_claims
from models.language.promela import Rendered, rendered

PROGRAMS = ("spin", "gcc")
TABLE_BITS, TABLE_BITS_LARGE = 18, 24
"""Of the hash table: for bounds that the search can hold, and for larger ones."""
SECONDS_MAX = 1800
MEMORY_MEGABYTES_MAX = 8000
DEPTH_MAX = 2_000_000
"""Of Spin's depth-first search; a longer path makes it incomplete, and it says so."""
EVERYTHING = ("-w", "-DNOREDUCE", "-DNOBOUNDCHECK", f"-DMEMLIM={MEMORY_MEGABYTES_MAX}")
SAFETY = ("-DSAFETY", "-DNOCLAIM")

_STORED = re.compile(r"^\s*(\d+) states, stored", re.MULTILINE)
_TRANSITIONS = re.compile(r"^\s*(\d+) transitions", re.MULTILINE)
_DEPTH = re.compile(r"depth reached (\d+), errors: (\d+)")
_MEMORY = re.compile(r"([\d.]+)\s+total actual memory usage")
_PROGRESS = re.compile(r"States=\s*([\d.e+]+)\s+Transitions=\s*([\d.e+]+)")
_ASSERTION = re.compile(r"assertion violated (.*) \(at depth")
_INCOMPLETE = ("Search not completed", "max search depth too small", "out of memory", "aborted")


class SpinFailed(Exception):
    """Spin, the compiler or the verifier did not do what was asked; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What Spin has found; `violated` is a claim, or a liveness property, that does not hold."""

    states: int
    edges: int
    complete: bool
    violated: Claim | Eventually | None
    seconds: float
    memory_megabytes: float


def missing() -> tuple[str, ...]:
    """Return the programs that this engine needs and this machine does not have."""
    return tuple(program for program in PROGRAMS if shutil.which(program) is None)


def check_safety(
    model: Model, *, large: bool = False, exact: bool = True, progress: Progress | None = None
) -> Verified:
    """Visit every state and look at every claim.

    `large` says that there are millions of them, so that it pays to compile with care. Without
    `exact` only hashes of states are kept, and a few states may be missed.
    """
    options = (*SAFETY, "-O2" if large else "-O0", *(() if exact else ("-DHC4",)))
    table_bits = TABLE_BITS_LARGE if large else TABLE_BITS
    with _verifier(model, options) as (folder, text):
        return _verified(folder, text, ("-E", f"-w{table_bits}"), progress, None)


def check_liveness(model: Model) -> dict[str, Verified]:
    """Check each liveness property under weak fairness of every actor."""
    found = {}
    with _verifier(without_claims(model), ("-O0", "-DNFAIR=3")) as (folder, text):
        for name, one in text.formulas.items():
            arguments = ("-a", "-f", "-E", f"-w{TABLE_BITS}", "-N", name)
            found[name] = _verified(folder, text, arguments, None, one)
    return found


@contextmanager
def _verifier(model: Model, options: Sequence[str]) -> Iterator[tuple[Path, Rendered]]:
    """Yield a folder with the compiled verifier of a model."""
    text = rendered(model)
    with tempfile.TemporaryDirectory(prefix="agent-replay-models-") as name:
        folder = Path(name)
        (folder / "model.pml").write_text(text.text, encoding="utf-8")
        _done(folder, ["spin", "-a", "model.pml"])
        _done(folder, ["gcc", *EVERYTHING, *options, "-o", "pan", "pan.c"])
        yield folder, text


def _done(folder: Path, command: Sequence[str]) -> None:
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    if ended.returncode:
        raise SpinFailed(f"{' '.join(command)} failed: {(ended.stdout + ended.stderr)[-2000:]}")


def _verified(
    folder: Path,
    text: Rendered,
    arguments: Sequence[str],
    progress: Progress | None,
    property_: Eventually | None,
) -> Verified:
    began = time.monotonic()
    command = [str(folder / "pan"), f"-m{DEPTH_MAX}", *arguments]
    said = "".join(_lines(folder, command, progress))
    depth, stored, transitions = (one.search(said) for one in (_DEPTH, _STORED, _TRANSITIONS))
    if depth is None or stored is None or transitions is None:
        raise SpinFailed(f"{' '.join(command)} did not finish: {said[-2000:]}")
    errors = int(depth[2])
    memory = _MEMORY.search(said)
    return Verified(
        states=int(stored[1]),
        edges=int(transitions[1]) - 1,
        complete=not errors and not any(one in said for one in _INCOMPLETE),
        violated=_broken(said, text, property_) if errors else None,
        seconds=time.monotonic() - began,
        memory_megabytes=float(memory[1]) if memory else 0.0,
    )


def _broken(said: str, text: Rendered, property_: Eventually | None) -> Claim | Eventually:
    assertion = _ASSERTION.search(said)
    claim = None if assertion is None else text.broken(assertion[1])
    found = claim or property_
    if found is None:
        raise SpinFailed(f"an error that no claim of the model explains: {said[:2000]}")
    return found


def _lines(folder: Path, command: Sequence[str], progress: Progress | None) -> Iterator[str]:
    """Yield what the verifier prints, as it does, and kill it if it takes too long."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None, "it was asked for"
        until = time.monotonic() + SECONDS_MAX
        try:
            for line in process.stdout:
                counted = _PROGRESS.search(line)
                if counted and progress:
                    progress(int(float(counted[1])), int(float(counted[2])))
                if time.monotonic() > until:
                    raise SpinFailed(f"{command[0]} took longer than {SECONDS_MAX} seconds")
                yield line
        finally:
            process.kill()
