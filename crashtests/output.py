"""Files of a report, each whole or not there. Standard library only."""

from __future__ import annotations

import argparse
import os
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


def publish(output: Path, text: str, *, page: str, picture: str, holds: bool) -> list[Path]:
    """Write a report, its page and its picture; return where they are.

    A report that does not hold goes to a name of its own, so that it replaces none that does.
    """
    place = output if holds else output.with_name(f"{output.stem}.refused{output.suffix}")
    place.parent.mkdir(parents=True, exist_ok=True)
    texts = {place.suffix: text, **dict(zip(_BESIDE, (page, picture), strict=True))}
    return [_write(place.with_suffix(suffix), content) for suffix, content in texts.items()]


def _write(path: Path, text: str) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
    return path
