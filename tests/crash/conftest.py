"""What the tests of death share: the server that forks workers, and an empty database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.crash.harness", "tests.crash.verdicts")

from tests.crash.harness import Lab, Order, Server  # noqa: E402 - its assertions are to be explained


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("workers") / "errors")
    yield started
    started.close()


@pytest.fixture(scope="session")
def empty_folder(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the database that most scenes begin with: it is open for the first time, and empty."""
    folder = tmp_path_factory.mktemp("empty")
    server.start(folder, Order(acts=[["open"]])).answer()
    return folder


@pytest.fixture
def lab(server: Server, empty_folder: Path, tmp_path: Path) -> Iterator[Lab]:
    yield Lab(server, tmp_path, empty_folder)
    shutil.rmtree(tmp_path)  # pytest keeps folders of several runs, and these are large
