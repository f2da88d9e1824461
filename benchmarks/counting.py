"""What SQLite does to the files, counted at its VFS: `python -m benchmarks.counting STEPS FOLDER`.

The methods of the VFS are wrapped for good, so this is a process of its own, which prints JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import bare, ours, work
from crashtests import vfs

PAGE_BYTES = 4096
FRAME_BYTES = PAGE_BYTES + 24
"""A page in the log with its header, https://sqlite.org/fileformat2.html#walformat; SQLite writes
the two one after the other."""


def main() -> None:
    """Count for both contenders and print it."""
    steps = int(sys.argv[1])
    counts: Counter[tuple[str, str]] = Counter()
    vfs.install(lambda operation: counts.update([(operation.name, operation.file)]))
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        folder = Path(name)
        with ours.open_runtime(folder / "ours.db") as runtime:
            counts.clear()
            runtime.run("run", ours.plan(steps))
            mine = _said(counts, steps)
        with closing(bare.connect(folder / "bare.db")) as connection:
            counts.clear()
            bare.loop(connection, steps, work.WHEN_NEEDED)
            theirs = _said(counts, steps)
            connection.wal_checkpoint()
        for said, file in ((mine, "ours.db"), (theirs, "bare.db")):
            said["database_bytes"] = (folder / file).stat().st_size / steps
    print(json.dumps({"ours": mine, "bare": theirs}))


def _said(counts: Counter[tuple[str, str]], steps: int) -> dict[str, Any]:
    """Return what was counted, for each step."""
    syncs = sum(count for (name, _), count in counts.items() if name == "sync")
    frames = counts["write", "log"] / 2
    return {"syncs": syncs / steps, "log_bytes": frames * FRAME_BYTES / steps}


if __name__ == "__main__":
    main()
