"""docs/models.md says what the models say today."""

from __future__ import annotations

import pytest

from models import page
from tests.models import worked_change

TEXT = page.PAGE.read_text(encoding="utf-8")


def test_every_block_of_the_page_is_there_once() -> None:
    assert sorted(page.names(TEXT)) == sorted(page.BLOCKS)


@pytest.mark.parametrize("name", sorted(page.BLOCKS))
def test_a_block_is_what_the_models_make_of_it(name: str) -> None:
    """If this fails because the model was changed on purpose: python -m models page."""
    assert f"<!-- made by the models: {name} -->\n{page.BLOCKS[name]()}\n<!-- end -->" in TEXT


def test_the_page_names_every_exit_status() -> None:
    from models.command import Exit

    for code in Exit:
        assert f"| {code.value} | " in TEXT


@pytest.mark.slow
@pytest.mark.needs("spin")
@pytest.mark.needs("gcc")
def test_the_worked_change_is_what_the_tools_say_of_it() -> None:
    """If this fails on purpose: python -m tests.models.worked_change."""
    assert worked_change.renewed(TEXT, worked_change.told()) == TEXT
    assert "S2 does not hold" in TEXT
