"""Files of a report, each whole or not there. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def write(output: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write each text beside `output` under the suffix that it has in `texts`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, text in texts.items():
        path = output.with_suffix(suffix)
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
        paths.append(path)
    return paths
