"""Processes that archive runs, each killed before another of its inputs and outputs.

    python -m tests.crash.archiver DATABASE FOLDER

The database is copied to FOLDER/0, FOLDER/1 ...; in each copy a process archives what has ended,
and is killed before the operation of that number, until one comes to its end. One line of JSON a
process: how it ended, and its operations.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from agent_replay import Runtime
from agent_replay.store.archive.place import ENDING, FOLDER
from crashtests import vfs
from crashtests.vfs import Operation

_kind_of = vfs.kind_of


def kind_of(name: bytes) -> str:
    """Return which file a path names, archives too."""
    if name.endswith(ENDING.encode()):
        return "archive"
    return "archives" if name.endswith(FOLDER.encode()) else _kind_of(name)


class Passage:
    """The operations of a process, once it has begun; it is killed before one of them."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at = -1
        self.begun = False

    def watch(self, operation: Operation) -> None:
        """Note an operation, or die before it."""
        if not self.begun:
            return
        if len(self.seen) == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(f"{operation.name} {operation.file}")


PASSAGE = Passage()


def watch_more() -> None:
    """Watch what else makes a file or a folder."""
    for name, operation in (("open", "create"), ("mkdir", "create"), ("fchmod", "permit")):
        setattr(os, name, _watched(getattr(os, name), operation))


def _watched(original: Any, operation: str) -> Any:
    """Return a function of `os` that is watched; `Any`, since their signatures differ."""

    def call(path: Any, *rest: Any, **named: Any) -> Any:
        flags = rest[0] if rest and isinstance(rest[0], int) else 0
        if operation != "create" or original.__name__ == "mkdir" or flags & os.O_CREAT:
            PASSAGE.watch(Operation(operation, vfs._kind_of_argument(path)))
        return original(path, *rest, **named)

    return call


def archive(database: Path, at: int, report: int) -> NoReturn:
    """Archive what has ended, and end; die before that operation."""
    with Runtime(database, log_bytes=0) as runtime:
        PASSAGE.at, PASSAGE.begun = at, True
        runtime.archive()
        PASSAGE.begun = False
    os.write(report, json.dumps(PASSAGE.seen).encode())
    os._exit(0)


def main(database: Path, folder: Path) -> None:
    vfs.kind_of = kind_of
    vfs.install(PASSAGE.watch)
    watch_more()
    for number in itertools.count():
        copy = folder / str(number)
        shutil.copytree(database.parent, copy)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            archive(copy / database.name, number, writing)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading, "rb") as pipe:
            seen = json.loads(pipe.read() or b"null")
        print(json.dumps([os.waitstatus_to_exitcode(status), seen]), flush=True)
        if seen is not None or os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
