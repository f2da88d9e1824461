"""What the stateful tests share: a laboratory with a process in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stateful.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    found = Lab()
    found.open()
    yield found
    found.close()
