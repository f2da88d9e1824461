"""An adapter that the harness knows nothing of, as a user might have one: a spool of files."""

from __future__ import annotations

import os
from pathlib import Path

from agent_replay import Json, Request, adapter, opaque
from crashtests.subjects import FOLDER_VARIABLE

SPOOL = "spool"


@adapter(name="fax", contract=opaque())
def fax(request: Request) -> Json:
    """Put a sheet into the spool, each time that it is asked."""
    spool = Path(os.environ[FOLDER_VARIABLE]) / SPOOL
    with spool.open("a", encoding="utf-8") as sheets:
        sheets.write(f"{request.key}\n")
    return {"sheets": len(spool.read_text(encoding="utf-8").splitlines())}


def count_sheets(folder: str, key: str) -> int:
    """Return how many sheets were put into the spool for a key."""
    spool = Path(folder) / SPOOL
    return spool.read_text(encoding="utf-8").split().count(key) if spool.exists() else 0
