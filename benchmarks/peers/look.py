"""What is in the files of a contender. Standard library only.

They are read as bytes, not through SQLite. What is there survives the death of the process; whether
it survives a power loss is a matter of syncs.
"""

from __future__ import annotations

import base64
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks import work

_MAGIC = b"SQLite format 3\0"


def seen(folder: Path, step: int) -> dict[str, bool]:
    """Return whether the arguments of a step are on file, and the result of the one before."""
    contents = [_contents(file) for file in folder.rglob("*") if file.is_file()]
    return {
        "arguments": _is_in(contents, work.arguments(step)["path"]),
        "result_before": _is_in(contents, work.result(step - 1)["sha"]),
    }


def _contents(file: Path) -> bytes:
    """Return what is in a file, which is left open: to close it would drop the locks of SQLite."""
    descriptor = os.open(file, os.O_RDONLY)
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _is_in(contents: list[bytes], marker: str) -> bool:
    forms = list(_forms(marker.encode()))
    return any(form in content for content in contents for form in forms)


def _forms(marker: bytes) -> Iterator[bytes]:
    """Yield a text as it is, and as it looks inside of a longer one that is base64."""
    yield marker
    for before in range(3):
        whole = base64.b64encode(bytes(before) + marker)
        yield whole[(before * 8 + 5) // 6 : -4]


def database_bytes(folder: Path) -> int:
    """Return the size of the databases in a folder, with what is in their logs."""
    size = 0
    for file in folder.rglob("*"):
        if file.is_file() and file.open("rb").read(len(_MAGIC)) == _MAGIC:
            with closing(sqlite3.connect(file)) as connection:
                (count,) = connection.execute("pragma page_count").fetchone()
                (page,) = connection.execute("pragma page_size").fetchone()
            size += count * page
    return size
