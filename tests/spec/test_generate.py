"""Projections are fresh, the product is as reasoned by hand, the command says what it did."""

from __future__ import annotations

import copy
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from agent_replay.lifecycles import coupling, run, step
from agent_replay.lifecycles.run import RunEvent, RunState
from agent_replay.lifecycles.step import Actor, Contract, StepEvent, StepState
from spec import generate, lint
from spec.digest import file_digest, moves_digest
from spec.model import Spec, Table, build, parse
from spec.product import product

FOLDER = generate.ROOT / "spec"
ENDED_SECONDS_MAX = 30


@pytest.fixture(scope="module")
def spec() -> Spec:
    return lint.load(FOLDER)


def tables() -> tuple[Table, Table]:
    return parse(FOLDER / "step.toml"), parse(FOLDER / "run.toml")


def rows(table: Table) -> list[Table]:
    return cast("list[Table]", table["moves"])


@pytest.mark.parametrize("name", sorted(generate.projections(generate.ROOT)))
def test_a_projection_is_what_the_spec_renders(name: str) -> None:
    text = generate.projections(generate.ROOT)[name]
    assert (generate.ROOT / name).read_text(encoding="utf-8") == text, f"run {generate.COMMAND}"


# --- the generated modules say what the spec says -------------------------------------------------


def test_the_modules_hold_exactly_the_rows_of_the_spec(spec: Spec) -> None:
    assert {
        (contract, move.source, move.event, actor): move.target
        for move in spec.step_moves
        for contract in move.contracts
        for actor in move.actor
    } == step.MOVES
    assert {(move.source, move.event): move.target for move in spec.run_moves} == run.MOVES


def test_the_modules_hold_the_names_and_ends_of_the_spec(spec: Spec) -> None:
    assert list(StepState) == list(spec.step_states)
    assert list(RunState) == list(spec.run_states)
    assert list(StepEvent) == list(spec.step_events)
    assert list(RunEvent) == list(spec.run_events)
    assert list(Contract) == list(spec.contracts)
    assert list(Actor) == list(spec.actors)
    assert (spec.step_initial, spec.run_initial) == (step.INITIAL, run.INITIAL)
    assert {name for name, state in spec.step_states.items() if state.terminal} == step.TERMINAL
    assert {name for name, state in spec.run_states.items() if state.terminal} == run.TERMINAL


def test_the_coupling_module_holds_the_product_and_the_digests(spec: Spec) -> None:
    permitted, holes = product(spec)
    assert not holes
    assert {
        (key.contract or None, *key[1:]): tuple(row) for key, row in permitted.items()
    } == coupling.PERMITTED
    assert spec.version == coupling.SPEC_VERSION
    assert moves_digest(spec) == coupling.MOVES_DIGEST
    assert file_digest(FOLDER) == coupling.FILE_DIGEST


def test_the_tables_hold_members_and_not_only_equal_strings() -> None:
    for (contract, source, event, actor, run_state, last), row in coupling.PERMITTED.items():
        assert contract is None or type(contract) is Contract
        assert (type(source), type(actor)) == (StepState, Actor)
        assert (type(run_state), type(last)) == (RunState, bool)
        assert type(event) is (StepEvent if contract else RunEvent)
        assert (type(row.target), type(row.run_target)) == (StepState, RunState)
        assert {type(one) for one in row.coupled} <= {RunEvent}


@pytest.mark.parametrize("name", ["step", "run", "coupling"])
def test_the_modules_import_next_to_nothing(name: str) -> None:
    """A process that has just been killed waits for its successor to be imported."""
    lines = (generate.ROOT / generate.PACKAGE / f"{name}.py").read_text().splitlines()
    imported = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    own = {f"agent_replay.lifecycles.{other}" for other in ("step", "run")}
    assert imported <= {"enum", "typing", *own}


# --- the product, by hand -------------------------------------------------------------------------

E_, R_ = StepEvent, RunEvent
RUNNING, PAUSED, CANCELLING = RunState.RUNNING, RunState.PAUSED, RunState.CANCELLING
EITHER = (False, True)

BY_HAND: list[tuple[StepEvent | RunEvent, RunState, tuple[bool, ...], tuple[RunEvent, ...]]] = [
    (E_.REQUEST, RUNNING, EITHER, ()),
    (E_.ACKNOWLEDGE, RUNNING, (True,), (R_.COMPLETE,)),
    (E_.ACKNOWLEDGE, RUNNING, (False,), ()),
    (E_.ACKNOWLEDGE, CANCELLING, EITHER, (R_.CANCEL,)),
    (E_.REJECT, RUNNING, EITHER, (R_.FAIL,)),
    (E_.REJECT, CANCELLING, EITHER, (R_.CANCEL,)),
    (E_.EXHAUST, RUNNING, EITHER, (R_.FAIL,)),
    (E_.SUSPEND, RUNNING, EITHER, (R_.PAUSE,)),
    (E_.SUSPEND, CANCELLING, EITHER, ()),
    (E_.RESEND, RUNNING, EITHER, ()),
    (E_.RESEND, PAUSED, EITHER, (R_.RESUME,)),
    (E_.CONFIRM, PAUSED, (True,), (R_.RESUME, R_.COMPLETE)),
    (E_.CONFIRM, PAUSED, (False,), (R_.RESUME,)),
    (E_.CONFIRM, CANCELLING, EITHER, (R_.CANCEL,)),
    (E_.REFUTE, PAUSED, EITHER, (R_.RESUME,)),
    (E_.REFUTE, CANCELLING, EITHER, (R_.CANCEL,)),
    (E_.ABANDON, PAUSED, EITHER, (R_.FAIL,)),
    (E_.ABANDON, CANCELLING, EITHER, (R_.CANCEL,)),
    (R_.ASK_CANCEL, PAUSED, EITHER, ()),
    (R_.ADOPT, RUNNING, EITHER, ()),
    (R_.ADOPT, PAUSED, EITHER, ()),
    (R_.ADOPT, CANCELLING, EITHER, ()),
]


@pytest.mark.parametrize(("event", "state", "places", "coupled"), BY_HAND)
def test_what_rides_is_what_was_reasoned_by_hand(
    event: StepEvent | RunEvent,
    state: RunState,
    places: tuple[bool, ...],
    coupled: tuple[RunEvent, ...],
) -> None:
    found = {
        row.coupled
        for key, row in coupling.PERMITTED.items()
        if (key[2], key[4]) == (event, state) and key[5] in places
    }
    assert found == {coupled}


@pytest.mark.parametrize("last", EITHER)
def test_a_cancel_asked_while_nothing_is_open_is_a_cancel_at_once(last: bool) -> None:
    asked = Actor.OPERATOR, RUNNING, last
    planned = coupling.PERMITTED[None, StepState.PLANNED, R_.ASK_CANCEL, *asked]
    assert planned == (StepState.PLANNED, (R_.CANCEL,), RunState.CANCELLED)
    requested = coupling.PERMITTED[None, StepState.REQUESTED, R_.ASK_CANCEL, *asked]
    assert requested == (StepState.REQUESTED, (), RunState.CANCELLING)


def test_every_situation_of_the_product_was_reasoned_by_hand() -> None:
    reasoned = {(event, state, last) for event, state, places, _ in BY_HAND for last in places}
    reasoned |= {(R_.ASK_CANCEL, RUNNING, last) for last in EITHER}
    assert {(key[2], key[4], key[5]) for key in coupling.PERMITTED} == reasoned
    assert len(coupling.PERMITTED) == 142


def test_no_row_leads_out_of_an_ended_run_or_a_closed_step() -> None:
    for _, source, _, _, state, _ in coupling.PERMITTED:
        assert source not in step.TERMINAL
        assert state not in run.TERMINAL
        assert state is not run.INITIAL


# --- the digests ----------------------------------------------------------------------------------


def changed(change: Callable[[Table, Table], None]) -> str:
    both = copy.deepcopy(tables())
    change(*both)
    return moves_digest(build(*both))


def words(step_table: Table, run_table: Table) -> None:
    for table in (step_table, run_table):
        for row in rows(table):
            row["why"] = "For no reason."
        for state in cast("dict[str, Table]", table["states"]).values():
            state.update(says="It is so.", crash="It stays so.")


def order(step_table: Table, run_table: Table) -> None:
    shuffle = random.Random(7).shuffle
    for table in (step_table, run_table):
        shuffle(rows(table))
        table["states"] = dict(reversed(cast("dict[str, Table]", table["states"]).items()))
        for row in rows(table):
            for value in row.values():
                if isinstance(value, list):
                    value.reverse()


def grouping(step_table: Table, run_table: Table) -> None:
    """Write the first row, which stands for four contracts, as two."""
    first, *others = rows(step_table)
    contracts = cast("list[str]", first["contracts"])
    halves = [{**first, "contracts": contracts[:1]}, {**first, "contracts": contracts[1:]}]
    step_table["moves"] = [*halves, *others]


@pytest.mark.parametrize("change", [words, order, grouping])
def test_the_digest_of_the_moves_does_not_see(change: Callable[[Table, Table], None]) -> None:
    assert changed(change) == coupling.MOVES_DIGEST


STEP_ROWS, RUN_ROWS = (len(rows(table)) for table in tables())
EVERY_ROW = [(0, index) for index in range(STEP_ROWS)] + [(1, index) for index in range(RUN_ROWS)]


@pytest.mark.parametrize(("file", "index"), EVERY_ROW)
def test_the_digest_of_the_moves_changes_with_every_row(file: int, index: int) -> None:
    def lose(*both: Table) -> None:
        del rows(both[file])[index]

    def lead_astray(*both: Table) -> None:
        row = rows(both[file])[index]
        row["target"] = "failed" if row["target"] != "failed" else row["source"]

    digests = {changed(lose), changed(lead_astray), coupling.MOVES_DIGEST}
    assert len(digests) == 3


@pytest.mark.parametrize("column", ["contracts", "actor", "run"])
@pytest.mark.parametrize("index", range(STEP_ROWS))
def test_the_digest_of_the_moves_changes_with_every_set(index: int, column: str) -> None:
    def widen(step_table: Table, _: Table) -> None:
        extra = {"contracts": "opaque", "actor": "operator", "run": "failed"}[column]
        row = rows(step_table)[index]
        names = cast("list[str]", row[column])
        row[column] = [name for name in names if name != extra] if extra in names else [extra]

    assert changed(widen) != coupling.MOVES_DIGEST


def test_the_digest_of_the_moves_changes_with_version_ends_and_coupling() -> None:
    def version(step_table: Table, _: Table) -> None:
        step_table["version"] = 99

    def end(step_table: Table, _: Table) -> None:
        cast("dict[str, Table]", step_table["states"])["in_doubt"]["terminal"] = True

    def condition(_: Table, run_table: Table) -> None:
        cast("dict[str, Table]", run_table["states"])["cancelled"]["none"] = ["in_doubt"]

    digests = [coupling.MOVES_DIGEST, changed(version), changed(end), changed(condition)]
    assert len(set(digests)) == len(digests)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what the command needs, and nothing else."""
    kept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(FOLDER, tmp_path / "spec", ignore=kept)
    shutil.copytree(generate.ROOT / generate.PACKAGE, tmp_path / generate.PACKAGE, ignore=kept)
    (tmp_path / "docs").mkdir()
    command(tmp_path)  # the pages name the files that cite an invariant, and here are none
    return tmp_path


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a checkout as a person would: no package, no settings, no site."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "spec/generate.py", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=ENDED_SECONDS_MAX,
        check=False,
    )


def test_check_of_a_fresh_checkout_finds_nothing(checkout: Path) -> None:
    done = command(checkout, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "every projection is up to date" in done.stdout


@pytest.mark.parametrize("name", sorted(generate.projections(generate.ROOT)))
def test_check_names_the_stale_file_and_the_command(checkout: Path, name: str) -> None:
    with (checkout / name).open("a") as file:
        file.write("# by hand\n")
    done = command(checkout, "--check")
    assert done.returncode == 1
    assert done.stdout == f"{name} is out of date: run python spec/generate.py\n"


def test_check_names_a_missing_file_and_writes_nothing(checkout: Path) -> None:
    (checkout / "docs/lifecycles.md").unlink()
    done = command(checkout, "--check")
    assert done.returncode == 1
    assert "docs/lifecycles.md is out of date" in done.stdout
    assert not (checkout / "docs/lifecycles.md").exists()


def test_a_changed_spec_makes_pages_and_modules_stale_until_it_is_rendered(checkout: Path) -> None:
    path = checkout / "spec/step.toml"
    path.write_text(path.read_text().replace("The tool answered;", "The tool has answered;"))
    done = command(checkout, "--check")
    assert done.returncode == 1
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == [
        f"{generate.PACKAGE}/coupling.py",  # the digest of the files
        "docs/lifecycles.md",
    ]
    done = command(checkout)
    assert (done.returncode, done.stdout) == (
        0,
        f"wrote {generate.PACKAGE}/coupling.py\nwrote docs/lifecycles.md\n",
    )
    assert command(checkout, "--check").returncode == 0
    assert "nothing to write" in command(checkout).stdout
    assert not list(checkout.rglob(".*")), "no file is left over from writing"


def test_an_unsound_spec_is_named_and_nothing_is_written(checkout: Path) -> None:
    path = checkout / "spec/step.toml"
    path.write_text(path.read_text().replace('run = ["paused"], ', 'run = ["asleep"], '))
    before = (checkout / "docs/lifecycles.md").read_bytes()
    for arguments in ([], ["--check"]):
        done = command(checkout, *arguments)
        assert done.returncode == 1
        assert "(resend from in_doubt) names the unknown run state 'asleep'" in (
            done.stdout + done.stderr
        )
    assert (checkout / "docs/lifecycles.md").read_bytes() == before


@pytest.mark.parametrize("name", ["step", "run", "invariants"])
def test_a_file_that_is_not_toml_is_one_sentence_and_no_traceback(
    checkout: Path, name: str
) -> None:
    (checkout / f"spec/{name}.toml").write_text("moves = [\n")
    for arguments in ([], ["--check"]):
        done = command(checkout, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"{name}.toml: is not TOML: ")
        assert done.stderr.count("\n") == 1


def test_an_uncited_invariant_fails_the_check(checkout: Path) -> None:
    (checkout / "tests").mkdir()
    (checkout / "tests/test_nothing.py").write_text("")
    done = command(checkout, "--check")
    assert done.returncode == 1
    assert "is cited by no file under tests/" in done.stdout


def test_help_says_what_check_does(checkout: Path) -> None:
    done = command(checkout, "--help")
    assert done.returncode == 0
    assert "--check" in done.stdout
    assert command(checkout, "--chek").returncode == 2
