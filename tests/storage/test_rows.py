"""Rows as they come out of the database, and the values that are made of them."""

from __future__ import annotations

import pytest

from agent_replay.errors import DamagedHistory
from agent_replay.events import StepRow
from agent_replay.lifecycles.step import Contract
from agent_replay.plan import Step
from agent_replay.store.rows import planned_steps, typed

STEPS = [
    StepRow(7, 1, "pay", "pay@1.2", "idempotent", '{"amount":3}', "key-1"),
    StepRow(7, 2, "tell", "tell@1", "opaque", "{}", "key-2"),
]


def test_the_steps_of_a_plan_are_those_that_were_stored() -> None:
    assert planned_steps(STEPS) == [
        Step("pay", "pay", "1.2", Contract.IDEMPOTENT, '{"amount":3}'),
        Step("tell", "tell", "1", Contract.OPAQUE, "{}"),
    ]


def test_a_value_of_another_type_is_told_by_the_column_that_names_the_row() -> None:
    kinds = (int, str)
    assert list(typed("things", [(1, "a"), (2, "b")], kinds)) == [(1, "a"), (2, "b")]
    for column, name in ((0, "1"), (1, "b'a'")):
        with pytest.raises(DamagedHistory) as caught:
            list(typed("things", [(1, b"a")], kinds, column))
        assert str(caught.value) == f"things {name}: a value in the row is of another type"
    with pytest.raises(DamagedHistory, match=r"^things True:"):
        list(typed("things", [(True, "a")], kinds))
