"""The machine that figures were measured on, and under which circumstances."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw

from crashtests.about import about


def described(place: Path) -> dict[str, Any]:
    """Return what a reader needs to judge the figures; the load is that before the first."""
    return {
        **about(place),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": os.getloadavg()[0],
        "apsw": apsw.apsw_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
