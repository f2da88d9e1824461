"""Files of a report, each whole or not there. Standard library only."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

_BESIDE = (".md", ".svg")
"""The suffixes of what is written beside a report."""


def output(text: str) -> Path:
    """Return where a report goes, for argparse; refuse what could not be written at the end."""
    path = Path(text)
    if not path.name or path.suffix in _BESIDE:
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a report, as report.json is")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error.strerror}") from None
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text!r}: nothing can be written to its folder")
    return path


def write(output: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write each text beside `output` under the suffix that it has in `texts`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, text in texts.items():
        path = output.with_suffix(suffix)
        beside = path.with_name(f".{path.name}.{os.getpid()}.new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
        paths.append(path)
    return paths


def refused(output: Path) -> Path:
    """Return where a report goes that does not hold, so that it replaces none that does."""
    return output.with_name(f"{output.stem}.refused{output.suffix}")
