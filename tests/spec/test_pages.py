"""The pages show every row of the spec, and what is owed is seen at a glance."""

from __future__ import annotations

import re

import pytest

from agent_replay.lifecycles import coupling, run, step
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Contract, StepEvent, StepState
from spec import generate
from spec.invariants import Citations, Invariant, Promises
from spec.render_markdown import invariants_page

PAGE = generate.projections(generate.ROOT)["docs/lifecycles.md"]
ARROW = re.compile(r"^    (\w+) (==>|-->|-\.->)\|(\w+)\| (\w+)$", re.MULTILINE)


def part(start: str, end: str) -> str:
    return PAGE.partition(f"{start}\n")[2].partition(f"\n{end}")[0]


def table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith("|---")]


def arrows(text: str) -> dict[tuple[str, str, str], str]:
    return {(source, event, to): line for source, line, event, to in ARROW.findall(text)}


def test_the_diagrams_have_one_arrow_a_move() -> None:
    step_moves = {(key[1], key[2], target) for key, target in step.MOVES.items()}
    run_moves = {(*key, target) for key, target in run.MOVES.items()}
    assert arrows(part("## The step", "## The run")).keys() == step_moves
    assert arrows(part("## The run", "## What rides")).keys() == run_moves
    assert len(ARROW.findall(PAGE)) == len(step_moves) + len(run_moves)


def test_the_normal_path_is_thick_and_what_the_runtime_cannot_do_is_dotted() -> None:
    lines = arrows(PAGE)
    thick = {event for (_, event, _), line in lines.items() if line == "==>"}
    dotted = {event for (_, event, _), line in lines.items() if line == "-.->"}
    assert thick == {"request", "acknowledge", "start", "complete"}
    assert dotted == {
        *("resend", "confirm", "refute", "abandon"),
        *("resume", "fail", "ask_cancel", "adopt"),
    }
    assert lines["requested", "resend", "requested"] == "-->"
    assert lines["running", "fail", "failed"] == "-->"


@pytest.mark.parametrize("contract", Contract)
def test_a_square_has_a_cell_for_every_state_and_event(contract: Contract) -> None:
    text = PAGE.partition(f"#### A step with the contract `{contract}`\n")[2].partition("\n#")[0]
    head, *rows = table(text)
    assert head == list(StepEvent)
    targets = {(key[1], key[2]): target for key, target in step.MOVES.items() if key[0] == contract}
    assert rows == [
        [f"**{state}**", *(targets.get((state, event), "·") for event in StepEvent)]
        for state in StepState
    ]


def test_the_square_of_the_run_has_a_cell_for_every_state_and_event() -> None:
    head, *rows = table(part("### Which event leads where in a run", "###"))
    assert head == list(RunEvent)
    assert rows == [
        [f"**{state}**", *(run.MOVES.get((state, event), "·") for event in RunEvent)]
        for state in RunState
    ]


def test_the_page_of_the_product_says_of_each_permitted_row_what_rides() -> None:
    _, *rows = table(PAGE.partition("## What rides with what\n")[2])
    places = {"either": (False, True), "yes": (True,), "no": (False,)}
    shown = {
        (*(cell.replace("`", "") for cell in (event, moved, state)), last): (rides, becomes)
        for event, moved, state, place, rides, becomes in rows
        for last in places[place]
    }
    expected = {}
    for (contract, source, event, _, state, last), row in coupling.PERMITTED.items():
        moved = f"{source} → {row.target}" if contract else str(source)
        rides = ", ".join(f"`{one}`" for one in row.coupled) or "\N{EN DASH}"
        expected[event.value, moved, state.value, last] = (rides, f"`{row.run_target}`")
    assert shown == expected


def test_the_page_names_the_digests() -> None:
    assert coupling.MOVES_DIGEST in PAGE
    assert coupling.FILE_DIGEST in PAGE
    assert f"Version {coupling.SPEC_VERSION}." in PAGE


def test_a_check_that_is_owed_is_an_empty_cell_and_one_that_nobody_asked_for_a_dash() -> None:
    promise = Invariant(
        id="S91", says="It holds.", assumes=("A91",), checked_by=("models", "tests"), later=()
    )
    promises = Promises(invariants=(promise,), assumptions={"A91": "The sun rises."})
    cited: Citations = {("S91", "tests"): ("tests/spec/test_it.py", "tests/test_that.py")}
    page = invariants_page(promises, cited)
    links = "[spec/test_it.py](../tests/spec/test_it.py)<br>[test_that.py](../tests/test_that.py)"
    assert f"| **S91** | It holds. | A91 |  | {links} | \N{EN DASH} |" in page
    assert "| **A91** | The sun rises. | S91 |" in page
