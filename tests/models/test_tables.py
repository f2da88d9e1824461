"""The tables that engines are given say what the shipped code says."""

from __future__ import annotations

import pytest

from agent_replay.lifecycles.coupling import PERMITTED
from agent_replay.lifecycles.run import RunState
from agent_replay.lifecycles.step import Contract, StepState
from agent_replay.recovery import NOTHING_OWED, Act, Acts, Append, News, Situation, Why, decide
from models.tables import (
    READINGS,
    SHIPPED,
    Case,
    Tables,
    cases,
    situations,
    with_decisions,
    with_rows,
)

ROWS = len(Contract) * len(StepState) * (len(RunState) - 1) * len(News) * 2 ** len(READINGS)


def meets(situation: Situation, case: Case) -> bool:
    readings = [getattr(situation, name) for name in READINGS]
    return (
        situation.run_state is case.run_state
        and case.state in (None, situation.state)
        and situation.news in case.news
        and all(asked in (None, read) for asked, read in zip(case.readings, readings, strict=True))
    )


def test_the_table_is_the_function_on_every_row() -> None:
    assert len(list(situations())) == len(set(situations())) == len(SHIPPED.decisions) == ROWS
    assert all(decide(situation) == acts for situation, acts in SHIPPED.decisions.items())


@pytest.mark.parametrize("contract", Contract)
def test_the_cases_that_engines_get_are_the_function_on_every_row(contract: Contract) -> None:
    """Exactly one case for each situation, and it owes what the function owes."""
    found = cases(SHIPPED, contract)
    by_run: dict[RunState, list[Case]] = {}
    for case in found:
        by_run.setdefault(case.run_state, []).append(case)
    asked = [situation for situation in situations() if situation.contract is contract]
    for situation in asked:
        (case,) = (case for case in by_run[situation.run_state] if meets(situation, case))
        assert case.acts == decide(situation)
    assert len(found) < len(asked) / 50  # or nothing was gained by it


def test_no_more_than_one_act_is_owed_at_a_time() -> None:
    """The models carry out one act an event; a decision with two needs them to learn that."""
    assert max(map(len, SHIPPED.decisions.values())) == 1


def test_every_suspend_and_every_resend_of_the_runtime_has_a_reason() -> None:
    """The named reason of L1 and S10: a step in doubt says why."""
    appended = {
        act for acts in SHIPPED.decisions.values() for act in acts if isinstance(act, Append)
    }
    assert {act.event for act in appended if act.why is Why.NONE} == {"request"}


def test_a_mutant_of_decisions_changes_what_it_says() -> None:
    changed = with_decisions(
        SHIPPED, lambda _, acts: NOTHING_OWED if acts == (Act.PROBE,) else acts
    )
    differ = [one for one in situations() if changed.decisions[one] != SHIPPED.decisions[one]]
    assert differ
    assert {decide(one) for one in differ} == {(Act.PROBE,)}
    assert changed.permitted is SHIPPED.permitted


def test_a_mutant_of_rows_changes_what_it_says() -> None:
    changed = with_rows(SHIPPED, lambda key, row: None if key[2] == "exhaust" else row)
    assert PERMITTED.keys() - changed.permitted.keys() == {
        key for key in PERMITTED if key[2] == "exhaust"
    }


def test_cases_that_differ_in_one_reading_are_kept_apart() -> None:
    def only_first(situation: Situation) -> Acts:
        return (Act.CALL,) if situation.attempts_left and situation.bound_passed else NOTHING_OWED

    asked = [one for one in situations() if one.contract is Contract.OPAQUE]
    decisions = {one: only_first(one) for one in asked}
    found = cases(Tables(PERMITTED, decisions), Contract.OPAQUE)
    owed = {case.readings for case in found if case.acts}
    assert owed == {(True, None, True, None)}
    for situation in asked[::7]:
        (case,) = (case for case in found if meets(situation, case))
        assert case.acts == only_first(situation)
