"""What is recorded of the mutants and what is said of them agree. If not on purpose: make mutants.

The tool itself is not needed here; the mutants are made and judged by `make mutants` alone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mutation import outcome, page, reasons, scope


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outcome.RECORD.read_text(encoding="utf-8"))
    return found


def test_the_page_says_what_the_record_has(record: dict[str, Any]) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.renewed(text, record) == text


def test_the_figures_add_up(record: dict[str, Any]) -> None:
    assert [one["module"] for one in record["modules"]] == list(scope.MODULES)
    for one in record["modules"]:
        verdicts = ("killed", "timeout", "survived", "unknown")
        assert one["mutants"] == sum(one[verdict] for verdict in verdicts)
        assert one["survived"] == sum(s["module"] == one["module"] for s in record["survivors"])


def test_a_group_that_was_looked_at_reaches_the_bar_and_another_has_no_score(
    record: dict[str, Any],
) -> None:
    groups = page.groups(record["modules"])
    assert [one["group"] for one in groups] == list(scope.GROUPS)
    complete = [one for one in groups if not one["unknown"]]
    assert [one for one in complete if page.share(one) < scope.BAR] == []
    shown = [row for row in page.table(record) if row.startswith("| **")]
    assert ["%" in row for row in shown] == [one in complete for one in groups]


def test_every_survivor_has_a_reason(record: dict[str, Any]) -> None:
    assert [one for one in record["survivors"] if reasons.reason_of(one) is None] == []


def test_every_reason_has_a_survivor(record: dict[str, Any]) -> None:
    if any(one["unknown"] for one in record["modules"]):
        return  # it may be about one that has not been looked at yet
    used = {reasons.reason_of(one) for one in record["survivors"]}
    assert [reason for reason in reasons.known() if reason not in used] == []
