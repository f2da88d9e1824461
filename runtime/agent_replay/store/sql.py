"""The SQL of the store, read from the files beside this module.

Files are opened by path: `importlib.resources` would cost a quarter of the package's import time.
"""

from __future__ import annotations

import os

_FOLDER = os.path.dirname(__file__)
_MARK = "-- name: "


def text_of(name: str) -> str:
    """Return the text of a file of SQL."""
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _blocks(text: str) -> dict[str, str]:
    blocks = {}
    for block in text.split(_MARK)[1:]:
        name, _, statement = block.partition("\n")
        blocks[name.strip()] = statement.strip()
    return blocks


QUERIES = _blocks(text_of("queries.sql"))
