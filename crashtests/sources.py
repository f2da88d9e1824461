"""The sources that a recorded result depends on, by their hashes. Standard library only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PATTERNS = (
    "spec/*.toml",
    "runtime/agent_replay/**/*.py",
    "runtime/agent_replay/**/*.sql",
    "crashtests/**/*.py",
)
_APART = ("runtime/agent_replay/cli/", "runtime/agent_replay/report/")
"""What the harness does not run."""


def hashes(root: Path = ROOT) -> dict[str, str]:
    """Return the SHA-256 of each file that the result depends on, by its path in the checkout."""
    found = {}
    for pattern in _PATTERNS:
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            if not name.startswith(_APART):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return dict(sorted(found.items()))


def drift(recorded: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Return in words how the checkout differs from what a result was recorded with."""
    now = hashes(root)
    said = []
    for name in sorted(now.keys() | recorded.keys()):
        if name not in now:
            said.append(f"{name} is no longer there")
        elif name not in recorded:
            said.append(f"{name} is new")
        elif now[name] != recorded[name]:
            said.append(f"{name} has changed")
    return said
