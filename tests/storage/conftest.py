"""What the tests of storage share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Give a folder that every user can reach; those of pytest are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="agent-replay-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
