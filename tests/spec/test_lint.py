"""Each complaint about a spec is produced by a spec that is sound but for one mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from spec import invariants, lint
from spec.model import SpecError, Table, UnreadableSpec, parse

FOLDER = Path(lint.__file__).parent
Break = Callable[[Table, Table], None]


def tables() -> tuple[Table, Table]:
    return parse(FOLDER / "step.toml"), parse(FOLDER / "run.toml")


def moves(table: Table) -> list[Table]:
    return cast("list[Table]", table["moves"])


def states(table: Table) -> dict[str, Table]:
    return cast("dict[str, Table]", table["states"])


def row(table: Table, event: str, source: str) -> Table:
    return next(r for r in moves(table) if (r["event"], r["source"]) == (event, source))


def drop(table: Table, event: str) -> None:
    table["moves"] = [r for r in moves(table) if r["event"] != event]


def complaints(mistake: Break) -> list[str]:
    step, run = tables()
    mistake(step, run)
    return list(lint.complaints(step, run))


def test_the_spec_as_it_is_has_no_complaints() -> None:
    assert list(lint.complaints(*tables())) == []


def an_unknown_target(step: Table, run: Table) -> None:
    row(step, "request", "planned")["target"] = "sent"


def an_unknown_run_target(step: Table, run: Table) -> None:
    row(run, "pause", "running")["target"] = "asleep"


def an_unknown_initial_state(step: Table, run: Table) -> None:
    step["initial"] = "declared"


def an_unknown_contract(step: Table, run: Table) -> None:
    row(step, "request", "planned")["contracts"] = ["read_only", "magic"]


def an_unknown_actor(step: Table, run: Table) -> None:
    row(step, "request", "planned")["actor"] = ["runtime", "gremlin"]


def an_unknown_run_actor(step: Table, run: Table) -> None:
    row(run, "ask_cancel", "running")["actor"] = ["gremlin"]


def an_unknown_run_state(step: Table, run: Table) -> None:
    row(step, "request", "planned")["run"] = ["running", "jogging"]


def an_unknown_condition_state(step: Table, run: Table) -> None:
    states(run)["paused"]["some"] = ["in_trouble"]


def with_an_unknown_event(step: Table, run: Table) -> None:
    row(run, "pause", "running")["with"] = ["suspend", "hesitate"]


def with_an_event_that_rides_itself(step: Table, run: Table) -> None:
    row(run, "complete", "running")["with"] = ["acknowledge", "confirm", "resume"]


def with_the_registration(step: Table, run: Table) -> None:
    row(run, "pause", "running")["with"] = ["suspend", "start"]


def an_event_of_both_machines(step: Table, run: Table) -> None:
    row(step, "suspend", "requested")["event"] = "pause"
    row(run, "pause", "running")["with"] = ["pause"]


def an_actor_that_does_nothing(step: Table, run: Table) -> None:
    step["actors"] = [*cast("list[str]", step["actors"]), "auditor"]


def no_state_named_by_all(step: Table, run: Table) -> None:
    del states(run)["completed"]["all"]
    states(run)["completed"]["some"] = ["succeeded"]


def a_passed_state_that_goes_on(step: Table, run: Table) -> None:
    states(step)["succeeded"]["terminal"] = False


def two_versions(step: Table, run: Table) -> None:
    run["version"] = 2


def two_targets(step: Table, run: Table) -> None:
    twin = copy.deepcopy(row(step, "reject", "requested"))
    moves(step).append({**twin, "target": "abandoned", "contracts": ["opaque"]})


def two_run_targets(step: Table, run: Table) -> None:
    moves(run).append({**row(run, "pause", "running"), "target": "failed"})


def a_row_twice(step: Table, run: Table) -> None:
    moves(step).append(copy.deepcopy(row(step, "request", "planned")))


def a_run_row_twice(step: Table, run: Table) -> None:
    moves(run).append(copy.deepcopy(row(run, "pause", "running")))


def a_move_out_of_a_terminal_state(step: Table, run: Table) -> None:
    moves(step).append({**row(step, "refute", "in_doubt"), "source": "failed"})


def a_run_move_out_of_a_terminal_state(step: Table, run: Table) -> None:
    moves(run).append({**row(run, "resume", "paused"), "source": "failed"})


def an_unreachable_state(step: Table, run: Table) -> None:
    states(step)["forgotten"] = {**states(step)["failed"]}


def an_unreachable_run_state(step: Table, run: Table) -> None:
    drop(run, "complete")


def a_dead_end_for_one_contract(step: Table, run: Table) -> None:
    for move in moves(step):
        if move["source"] == "in_doubt":
            contracts = cast("list[str]", move["contracts"])
            move["contracts"] = [name for name in contracts if name != "opaque"] or ["queryable"]


def a_dead_end_of_a_run(step: Table, run: Table) -> None:
    states(run)["completed"]["terminal"] = False


def a_missing_column(step: Table, run: Table) -> None:
    del row(step, "request", "planned")["why"]


def an_unknown_column(step: Table, run: Table) -> None:
    row(step, "request", "planned")["guard"] = "is_ready"


def a_missing_state_key(step: Table, run: Table) -> None:
    del states(step)["planned"]["crash"]


def an_unknown_state_key(step: Table, run: Table) -> None:
    states(step)["planned"]["some"] = ["planned"]


def a_missing_table(step: Table, run: Table) -> None:
    del step["contracts"]


def an_unknown_table(step: Table, run: Table) -> None:
    run["contracts"] = ["opaque"]


def the_wrong_lifecycle(step: Table, run: Table) -> None:
    run["lifecycle"] = "step"


def a_version_that_is_no_number(step: Table, run: Table) -> None:
    step["version"] = run["version"] = "1"


def an_empty_set(step: Table, run: Table) -> None:
    row(step, "request", "planned")["contracts"] = []


def an_empty_condition(step: Table, run: Table) -> None:
    states(run)["running"]["some"] = []


def neither_actor_nor_with(step: Table, run: Table) -> None:
    row(run, "pause", "running")["with"] = []


def both_actor_and_with(step: Table, run: Table) -> None:
    row(run, "pause", "running")["actor"] = ["runtime"]


def a_name_twice_in_a_set(step: Table, run: Table) -> None:
    row(step, "request", "planned")["run"] = ["running", "running"]


def a_set_that_is_a_string(step: Table, run: Table) -> None:
    row(step, "request", "planned")["run"] = "running"


def a_name_that_is_no_word(step: Table, run: Table) -> None:
    row(step, "request", "planned")["event"] = "Request!"


def a_wildcard(step: Table, run: Table) -> None:
    row(step, "abandon", "in_doubt")["source"] = "*"


def a_why_without_words(step: Table, run: Table) -> None:
    row(step, "request", "planned")["why"] = " "


def a_terminal_that_is_no_boolean(step: Table, run: Table) -> None:
    states(step)["planned"]["terminal"] = 0


def no_moves(step: Table, run: Table) -> None:
    run["moves"] = []


def a_row_that_is_no_table(step: Table, run: Table) -> None:
    run["moves"] = ["start"]


def states_that_are_no_tables(step: Table, run: Table) -> None:
    run["states"] = {"new": "Not registered."}


def no_states(step: Table, run: Table) -> None:
    run["states"] = []


def a_hole_in_the_coupling(step: Table, run: Table) -> None:
    row(run, "cancel", "cancelling")["with"] = ["ask_cancel", "acknowledge", "reject", "confirm"]


def an_ambiguous_way_on(step: Table, run: Table) -> None:
    moves(run).append({**row(run, "fail", "running"), "event": "break_off", "target": "cancelled"})


def an_outcome_that_depends_on_the_first_step(step: Table, run: Table) -> None:
    """A refute would leave the run cancelling if an earlier step succeeded, and only then."""
    states(run)["cancelling"]["some"] = ["requested", "in_doubt", "succeeded"]


def a_row_that_is_never_possible(step: Table, run: Table) -> None:
    row(step, "request", "planned")["run"] = ["running", "paused"]


def a_move_in_an_ended_run(step: Table, run: Table) -> None:
    row(step, "exhaust", "planned")["run"] = ["running", "cancelled"]


def a_state_without_condition(step: Table, run: Table) -> None:
    del states(run)["cancelled"]["none"]


def a_condition_on_the_unstored_state(step: Table, run: Table) -> None:
    states(run)["new"]["all"] = ["succeeded"]


def a_way_back_to_the_unstored_state(step: Table, run: Table) -> None:
    moves(run).append({**row(run, "ask_cancel", "running"), "event": "forget", "target": "new"})


def a_start_that_is_not_true(step: Table, run: Table) -> None:
    row(run, "start", "new")["target"] = "paused"


def a_start_that_rides(step: Table, run: Table) -> None:
    row(run, "start", "new").update({"actor": [], "with": ["request"]})


def an_event_that_never_takes_its_rider(step: Table, run: Table) -> None:
    row(run, "pause", "running")["with"] = ["suspend", "acknowledge"]


def a_run_that_is_stuck(step: Table, run: Table) -> None:
    for move in moves(step):
        if move["source"] == "in_doubt":
            move["run"] = ["paused"]
    row(run, "cancel", "cancelling")["with"] = ["ask_cancel", "acknowledge", "reject"]


def a_run_state_that_no_run_gets_to(step: Table, run: Table) -> None:
    """Nothing pauses a run any more, so its moves from there are rows that never occur."""
    row(step, "suspend", "requested")["run"] = ["cancelling"]


BROKEN: list[tuple[Break, str]] = [
    (an_unknown_target, "step.toml: row 1 (request from planned) names the unknown state 'sent'"),
    (an_unknown_run_target, "run.toml: row 2 (pause from running) names the unknown state"),
    (an_unknown_initial_state, "step.toml: initial names the unknown state 'declared'"),
    (an_unknown_contract, "row 1 (request from planned) names the unknown contract 'magic'"),
    (an_unknown_actor, "row 1 (request from planned) names the unknown actor 'gremlin'"),
    (an_unknown_run_actor, "(ask_cancel from running) names the unknown actor 'gremlin'"),
    (an_unknown_run_state, "row 1 (request from planned) names the unknown run state 'jogging'"),
    (an_unknown_condition_state, "run.toml: state 'paused' names the unknown step state"),
    (with_an_unknown_event, "row 2 (pause from running) names the unknown event 'hesitate'"),
    (with_an_event_that_rides_itself, "(complete from running) names the unknown event 'resume'"),
    (with_the_registration, "(pause from running) names the unknown event 'start'"),
    (an_event_of_both_machines, "the event 'pause' is one of step.toml too"),
    (an_actor_that_does_nothing, "step.toml: the actor 'auditor' makes no move"),
    (no_state_named_by_all, "exactly one step state must be named under all"),
    (a_passed_state_that_goes_on, "'succeeded' lets the next step begin, but is not terminal"),
    (two_versions, "run.toml: version is 2, but that of step.toml is 1"),
    (two_targets, "leads for opaque by runtime to 'abandoned', an earlier row to 'failed'"),
    (two_run_targets, "(pause from running) leads to 'failed', an earlier row to 'paused'"),
    (a_row_twice, "row 14 (request from planned) repeats an earlier row for read_only by runtime"),
    (a_run_row_twice, "row 13 (pause from running) repeats an earlier row"),
    (a_move_out_of_a_terminal_state, "row 14 (refute from failed) leaves a terminal state"),
    (a_run_move_out_of_a_terminal_state, "row 13 (resume from failed) leaves a terminal state"),
    (an_unreachable_state, "state 'forgotten' cannot be reached from 'planned'"),
    (an_unreachable_run_state, "state 'completed' cannot be reached from 'new'"),
    (a_dead_end_for_one_contract, "'in_doubt' is not terminal, but no move with the contract"),
    (a_dead_end_of_a_run, "state 'completed' is not terminal, but no move leaves it"),
    (a_missing_column, "step.toml: row 1 (request from planned) lacks 'why'"),
    (an_unknown_column, "row 1 (request from planned) has the unknown key 'guard'"),
    (a_missing_state_key, "step.toml: state 'planned' lacks 'crash'"),
    (an_unknown_state_key, "step.toml: state 'planned' has the unknown key 'some'"),
    (a_missing_table, "step.toml: the file lacks 'contracts'"),
    (an_unknown_table, "run.toml: the file has the unknown key 'contracts'"),
    (the_wrong_lifecycle, "run.toml: lifecycle is 'step', but this file holds 'run'"),
    (a_version_that_is_no_number, "version is '1'; it must be a whole number"),
    (an_empty_set, "row 1 (request from planned): contracts is an empty set"),
    (an_empty_condition, "state 'running': some is an empty set"),
    (neither_actor_nor_with, "(pause from running): exactly one of actor and with must be empty"),
    (both_actor_and_with, "(pause from running): exactly one of actor and with must be empty"),
    (a_name_twice_in_a_set, "run names something twice"),
    (a_set_that_is_a_string, "run is 'running'; it must be a list of names"),
    (a_name_that_is_no_word, "event is 'Request!'; a name is lower-case words"),
    (a_wildcard, "source is '*'; a name is lower-case words"),
    (a_why_without_words, "why must be one line of text"),
    (a_terminal_that_is_no_boolean, "state 'planned': terminal must be true or false"),
    (no_moves, "run.toml: moves must be a list with at least one row"),
    (a_row_that_is_no_table, "run.toml: row 1 is not a table"),
    (states_that_are_no_tables, "run.toml: state 'new' is not a table"),
    (no_states, "run.toml: states must be tables"),
    (a_hole_in_the_coupling, "row 13 (abandon from in_doubt): contract idempotent, run cancelling"),
    (an_ambiguous_way_on, "more than one way on: 'fail' or 'break_off'"),
    (an_outcome_that_depends_on_the_first_step, "depends on whether the step is the first"),
    (a_row_that_is_never_possible, "no run with a step in 'planned' is 'paused'"),
    (a_move_in_an_ended_run, "(exhaust from planned) happens in a run that is 'cancelled'"),
    (a_state_without_condition, "state 'cancelled' asks nothing of the steps"),
    (a_condition_on_the_unstored_state, "state 'new' is never stored"),
    (a_way_back_to_the_unstored_state, "(forget from running) leads to the initial state"),
    (a_start_that_is_not_true, "row 1 (start from new) registers a run"),
    (a_start_that_rides, "row 1 (start from new) registers a run"),
    (an_event_that_never_takes_its_rider, "never rides with 'acknowledge'; take it out of with"),
    (a_run_that_is_stuck, "a run is 'cancelling' and can't go on: its opaque step is 'in_doubt'"),
    (a_run_state_that_no_run_gets_to, "no run gets so far that 'confirm' from 'in_doubt'"),
]


@pytest.mark.parametrize(
    ("mistake", "complaint"), BROKEN, ids=[mistake.__name__ for mistake, _ in BROKEN]
)
def test_a_mistake_is_named_with_its_file_and_row(mistake: Break, complaint: str) -> None:
    found = complaints(mistake)
    assert any(complaint in one for one in found), found
    assert all(one.startswith(("step.toml", "run.toml")) for one in found)


def test_a_broken_spec_is_not_loaded(tmp_path: Path) -> None:
    for name in ("step", "run"):
        text = (FOLDER / f"{name}.toml").read_text()
        (tmp_path / f"{name}.toml").write_text(text.replace('"paused"', '"asleep"'))
    with pytest.raises(SpecError, match="unknown run state 'asleep'") as refused:
        lint.load(tmp_path)
    assert len(refused.value.complaints) > 1


def test_a_missing_or_garbled_file_is_unreadable_not_unsound(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSpec, match=r"step\.toml: cannot be read: No such file"):
        lint.load(tmp_path)
    (tmp_path / "step.toml").write_bytes(b"moves = [")
    with pytest.raises(UnreadableSpec, match=r"step\.toml: is not TOML: "):
        lint.load(tmp_path)
    (tmp_path / "step.toml").write_bytes(b"\xff")
    with pytest.raises(UnreadableSpec, match=r"step\.toml: is not TOML: "):
        lint.load(tmp_path)


PROMISE: Table = {
    "id": "S91",
    "says": "It holds.",
    "assumes": ["A91"],
    "checked_by": ["tests", "models"],
}
ASSUMPTION: Table = {"id": "A91", "says": "The sun rises."}


def promises(**changed: object) -> Table:
    return {"invariant": [{**PROMISE, **changed}], "assumption": [ASSUMPTION]}


UNSOUND: list[tuple[Table, str]] = [
    ({"invariant": []}, "there must be tables [[assumption]]"),
    ({**promises(), "axiom": []}, "the file has the unknown key 'axiom'"),
    (promises(id="X1"), "row 1 (X1): the id must look like"),
    (promises(why="because"), "row 1 (S91) has the unknown key 'why'"),
    (promises(says=""), "row 1 (S91): says must be one line of text"),
    (promises(assumes=["A91", "A92"]), "S91: assumes names 'A92'; possible are A91"),
    (promises(assumes="A91"), "S91: assumes must be a list"),
    (promises(assumes=[]), "A91: nothing rests on this assumption"),
    (promises(checked_by=["hope"]), "S91: checked_by names 'hope'; possible are models, tests"),
    (promises(checked_by=[]), "S91: checked_by is empty"),
    (promises(later=["crashtests"]), "S91: later names 'crashtests'; possible are tests, models"),
    ({"invariant": [{"id": "S91", "says": "It holds."}], "assumption": []}, "lacks 'checked_by'"),
    ({"invariant": [PROMISE, PROMISE], "assumption": [ASSUMPTION]}, "the id is there twice"),
]


@pytest.mark.parametrize(("table", "complaint"), UNSOUND, ids=[one for _, one in UNSOUND])
def test_a_mistake_in_the_invariants_is_named(table: Table, complaint: str) -> None:
    found = list(invariants.complaints(table))
    assert any(complaint in one for one in found), found
    assert all(one.startswith("invariants.toml: ") for one in found)


def test_sound_invariants_have_no_complaints() -> None:
    assert list(invariants.complaints(promises())) == []


def owed(root: Path, **changed: object) -> list[str]:
    return list(invariants.uncited(root, invariants.build(promises(**changed))))


def marked(ids: str) -> str:
    """Return a marker's text; written out, it would be a citation of this file's own."""
    return f"@pytest.mark.{'invariant'}({ids})\n"


def cite(root: Path, folder: str, text: str) -> None:
    (root / folder).mkdir(exist_ok=True)
    (root / folder / "test_it.py").write_text(text)


def test_an_invariant_is_owed_a_citation_by_each_checker_that_has_files(tmp_path: Path) -> None:
    assert owed(tmp_path) == [], "no checker has files yet"
    cite(tmp_path, "tests", "# S911 is another word\n")
    assert [one.partition(",")[0] for one in owed(tmp_path)] == [
        "S91 is cited by no file under tests/"
    ]
    cite(tmp_path, "tests", marked('"S91"'))
    assert owed(tmp_path) == []


def test_a_citation_that_comes_later_is_not_owed_until_it_is_there(tmp_path: Path) -> None:
    cite(tmp_path, "tests", "pass\n")
    assert owed(tmp_path, later=["tests"]) == []
    cite(tmp_path, "tests", "# S91\n")
    assert owed(tmp_path, later=["tests"]) == [
        "spec/invariants.toml: S91 is cited in tests/test_it.py by now; "
        "take 'tests' out of its later"
    ]


def test_a_marker_with_an_unknown_id_is_named(tmp_path: Path) -> None:
    cite(tmp_path, "tests", marked('"S91", "S92"'))
    assert owed(tmp_path) == ["tests/test_it.py cites the unknown invariant S92"]
