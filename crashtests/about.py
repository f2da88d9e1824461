"""Under which circumstances a report was made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from agent_replay.lifecycles.coupling import FILE_DIGEST, MOVES_DIGEST, SPEC_VERSION
from crashtests import judgement, sources


def about(scratch: Path) -> dict[str, Any]:
    """Return revision, versions, spec, sources, platform and file system, and a digest."""
    made: dict[str, Any] = {
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "revision": _git("rev-parse", "HEAD") or "unknown",
        "clean": _git("status", "--porcelain", "--untracked-files=no") == "",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": f"{sys.platform} {platform.machine()} {platform.release()}",
        "file_system": _file_system(scratch),
        "spec": {"version": SPEC_VERSION, "moves": MOVES_DIGEST, "files": FILE_DIGEST},
        "sources": sources.hashes(),
    }
    return {**made, "digest": judgement.digest_of(made)}


def _git(*words: str) -> str | None:
    """Return what git says about the checkout, or None where there is no git or no checkout."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=sources.ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _file_system(place: Path) -> str:
    """Return the type of the file system that holds a folder, as the kernel lists it."""
    here = os.path.realpath(place)
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return kind
    for line in mounts:
        _, point, found, *_ = line.split()
        if here.startswith(point) and len(point) >= len(best):
            best, kind = point, found
    return kind
