"""The place in which the tests of the command run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli import tools
from tests.cli.support import Place


@pytest.fixture
def place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Place:
    found = Place(tmp_path, capsys)
    monkeypatch.setenv(tools.WORLD, str(found.world))
    monkeypatch.delenv("AGENT_REPLAY_DB", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))  # loading adds to it
    return found
