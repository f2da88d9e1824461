"""The table of exit codes: what is in it, and that each code is reached by a command."""

from __future__ import annotations

import inspect
import resource
from collections.abc import Callable

import pytest

from agent_replay import Runtime, errors
from agent_replay.cli import exits
from agent_replay.cli.exits import Exit
from agent_replay.errors import ReplayError
from agent_replay.lifecycles.run import RunState
from tests.cli.support import TOOLS, Place, changed

ERRORS = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, ReplayError)
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error.__name__))
def test_each_error_has_a_code_of_its_own_or_of_its_base(error: type[ReplayError]) -> None:
    if error is ReplayError:
        assert exits.of_error(error("")) is Exit.STORAGE
    else:
        assert any(kind in exits.OF_ERRORS for kind in error.__mro__)


def test_each_state_and_each_code_is_in_the_tables() -> None:
    assert set(exits.OF_STATES) == set(RunState)
    assert set(exits.MEANINGS) == set(Exit)
    assert set(exits.WORST_FIRST) == set(Exit) - {Exit.INTERRUPTED}


def test_the_worst_of_several_codes_counts() -> None:
    assert exits.worst([]) is Exit.OK
    assert exits.worst([Exit.OK, Exit.CANCELLED, Exit.PAUSED]) is Exit.PAUSED
    assert exits.worst([Exit.FAILED, Exit.DAMAGED, Exit.STORAGE]) is Exit.DAMAGED


# --- each code is reached -----------------------------------------------------------------------


def completed(place: Place) -> int:
    return place.start("a", place.plan(("quote", "quote"))).code


def refused_plan(place: Place) -> int:
    completed(place)
    return place.start("a", place.plan(("charge", "charge"))).code


def paused(place: Place) -> int:
    return place.start("a", place.plan(("mail", "mail", {"do": ["lose"]}))).code


def cancelling(place: Place) -> int:
    paused(place)
    return place.on("cancel", "a", "--who", "ann", "--why", "late").code


def failed(place: Place) -> int:
    said = place.start("a", place.plan(("charge", "charge", {"do": ["refuse"]})))
    assert "the tool refused it and says that it had no effect" in said.out
    assert "ToolRejected: the account is closed" in said.out
    return said.code


def cancelled(place: Place) -> int:
    place.killed("a", ("ask", "quote", {"do": ["die"]}))
    return place.on("cancel", "a", "--who", "ann", "--why", "late").code


def locked(place: Place) -> int:
    completed(place)
    with Runtime(place.database):
        said = place.start("b", place.folder / "plan.json")
    assert "writer" in said.err
    return said.code


def damaged(place: Place) -> int:
    completed(place)
    changed(place.database, "update events set payload = '{}' where seq = 1")
    assert place.on("show", "a").code == Exit.DAMAGED
    assert place.on("resume", "a").code == Exit.DAMAGED
    said = place.on("verify")
    assert "seq 1" in said.out
    return said.code


def without_adapter(place: Place) -> int:
    return place.on("run", place.plan(("quote", "quote")), "--run-id", "a").code


def with_another_contract(place: Place) -> int:
    plan = place.plan(("quote", "quote"))
    plan.write_text(plan.read_text().replace("read_only", "opaque"))
    return place.start("a", plan).code


def without_space(place: Place) -> int:
    plan = place.plan(("quote", "quote"))
    words = ("run", plan, "--run-id", "a", "--db", place.database, "--adapters", TOOLS)
    said = place.process(
        *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    )
    assert said.err.startswith("agent-replay: ")
    assert "Traceback" not in said.err
    return said.code


def without_room_for_the_output(place: Place) -> int:
    completed(place)
    with open("/dev/full", "w") as full:
        said = place.process("list", "--db", place.database, stdout=full)
    assert said.err == (
        "agent-replay: standard output cannot be written: No space left on device; "
        "what the command did stands\n"
    )
    return said.code


def of_no_run(place: Place) -> int:
    completed(place)
    assert place.on("show", "b").code == Exit.NO_RUN
    assert place.on("cancel", "b", "--who", "ann", "--why", "late").code == Exit.NO_RUN
    return place.on("resume", "b").code


def left_by_its_tool(place: Place) -> int:
    said = place.start("a", place.plan(("pay", "charge", {"do": ["leave"]})))
    assert "interrupted by a SystemExit of an adapter" in said.err
    assert "attempt 1 of step pay of run a stays requested" in said.err
    return said.code


@pytest.mark.parametrize(
    ("reach", "code"),
    [
        (completed, Exit.OK),
        (refused_plan, Exit.USAGE),
        (paused, Exit.PAUSED),
        (cancelling, Exit.PAUSED),
        (failed, Exit.FAILED),
        (cancelled, Exit.CANCELLED),
        (locked, Exit.LOCKED),
        (damaged, Exit.DAMAGED),
        (without_adapter, Exit.ADAPTER),
        (with_another_contract, Exit.ADAPTER),
        (without_space, Exit.STORAGE),
        (without_room_for_the_output, Exit.STORAGE),
        (of_no_run, Exit.NO_RUN),
        (left_by_its_tool, Exit.INTERRUPTED),
    ],
)
def test_a_command_ends_with_its_code(
    place: Place, reach: Callable[[Place], int], code: Exit
) -> None:
    assert reach(place) == code


def test_the_reading_commands_end_well_whatever_the_run_came_to(place: Place) -> None:
    failed(place)
    for words in (("list",), ("show", "a"), ("doctor",), ("verify",), ("export",)):
        assert place.on(*words).code == Exit.OK


def test_a_database_of_another_spec_is_refused_by_every_command(place: Place) -> None:
    completed(place)
    changed(place.database, "update identity set spec = substr(hex(zeroblob(32)), 1, 64)")
    for words in (("list",), ("show", "a"), ("doctor",), ("verify",), ("resume", "a")):
        said = place.on(*words)
        assert said.code == Exit.USAGE
        assert "spec 000000000000" in said.err


@pytest.mark.parametrize(
    "statement",
    [
        "update events set payload = cast(x'ff' as text) where seq = 2",
        "update events set payload = '[]' where seq = 2",
        "update events set event = 'strange' where seq = 2",
        "update runs set hint = cast(x'ff' as text)",
        "update runs set adapters = '[]'",
        "update heads set run_state = 'running', step = 7",
        "delete from heads",
        "delete from steps",
        "delete from events",
    ],
)
def test_damage_of_any_kind_ends_in_a_line(place: Place, statement: str) -> None:
    paused(place)
    changed(place.database, statement)
    for words in (("list",), ("show", "a"), ("doctor",), ("verify",), ("resume", "a")):
        said = place.on(*words)
        assert said.code == Exit.DAMAGED, (words, said)
        assert said.out + said.err
