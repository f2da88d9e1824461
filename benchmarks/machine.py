"""The machine that figures were measured on, and under which circumstances."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import apsw

from crashtests.sources import ROOT


def described() -> dict[str, Any]:
    """Return what a reader needs to judge the figures; the load is that before the first."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": os.getloadavg()[0],
        "apsw": apsw.apsw_version(),
        "benchmarks": hashes(),
    }


def hashes() -> dict[str, str]:
    """Return the SHA-256 of each file that measures, by its path in the checkout."""
    return {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for suffix in ("py", "txt")
        for path in sorted((ROOT / "benchmarks").rglob(f"*.{suffix}"))
    }


def disturbances() -> list[str]:
    """Return what makes this Python slower than a user's."""
    found = {
        "development mode is on (-X dev)": sys.flags.dev_mode,
        "each line is traced, as by a debugger or coverage": sys.gettrace() is not None,
    }
    return [what for what, there in found.items() if there]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
