"""Several plans in one command: how their runs are called, what is told, and how it ends."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_replay.cli.batch import WRONG_SHOWN_MAX
from agent_replay.cli.exits import Exit
from tests.cli import tools
from tests.cli.support import (
    TOOLS,
    Brief,
    Given,
    Place,
    Process,
    Said,
    ended,
    on_a_terminal,
    wait_until,
)

QUOTE = ("quote", "quote")


class Folder:
    """A folder of plans, and the command that runs them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.path = place.folder / "plans"
        self.path.mkdir()

    def add(self, name: str, *steps: Brief | Given) -> Path:
        """Write a plan, and return its path."""
        return self.place.plan(*(steps or (QUOTE,))).rename(self.path / name)

    def words(self, *more: object) -> tuple[object, ...]:
        return ("run", self.path, "--db", self.place.database, "--adapters", TOOLS, *more)

    def run(self, *more: object) -> Said:
        return self.place.run(*self.words(*more))

    def listed(self) -> dict[str, Any]:
        """Return how each run stands, by its id."""
        said = self.place.on("list", "--json")
        return {run["run"]: run["standing"] for run in said.document["runs"]}


@pytest.fixture
def plans(place: Place) -> Folder:
    return Folder(place)


def calls_by_key() -> Counter[str]:
    return Counter(effect["key"] for effect in tools.effects())


# --- how runs are called ------------------------------------------------------------------------


def test_the_runs_of_a_directory_are_called_as_their_files(plans: Folder) -> None:
    for name in ("b.json", "a.json", "order-42.v2.json"):
        plans.add(name)
    (plans.path / ".hidden.json").write_text("no plan")
    (plans.path / "readme.txt").write_text("no plan")
    (plans.path / "further.json").mkdir()
    (plans.path / "further.json" / "in.json").write_text("no plan")
    said = plans.run("--workers", "1")
    assert said.code == Exit.OK
    assert said.err == ""
    heads = [line for line in said.out.splitlines() if not line.startswith(" ")]
    assert heads == [
        "a: completed",
        "b: completed",
        "order-42.v2: completed",
        "3 runs: 3 completed",
    ]
    assert set(plans.listed()) == {"a", "b", "order-42.v2"}


def test_files_and_directories_may_be_mixed_and_prefixed(plans: Folder) -> None:
    plans.add("a.json")
    other = plans.place.plan(QUOTE).rename(plans.place.folder / "no-suffix")
    words = (other, plans.path, "--run-id-prefix", "batch-7.", "--adapters", TOOLS)
    said = plans.place.on("run", *words)
    assert said.code == Exit.OK
    assert set(plans.listed()) == {"batch-7.a", "batch-7.no-suffix"}


def test_one_plan_is_called_as_its_file_where_a_prefix_is_given(place: Place) -> None:
    words = (place.plan(QUOTE), "--adapters", TOOLS, "--run-id-prefix", "")
    said = place.on("run", *words)
    assert said.code == Exit.OK
    assert said.out.splitlines()[-1] == "1 run: 1 completed"
    assert place.on("show", "plan").code == Exit.OK


def test_known_runs_call_nothing_again(plans: Folder) -> None:
    for name in "abc":
        plans.add(f"{name}.json", ("mail", "mail"))
    assert plans.run().code == plans.run().code == Exit.OK
    assert plans.place.effects("mail") == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("plans", "--run-id", "x"), "--run-id is for one plan"),
        (("plans/a.json", "plans/b.json", "--run-id", "x"), "--run-id is for one plan"),
        (("plans/a.json", "--run-id", "x", "--run-id-prefix", "p"), "--run-id is for one plan"),
        (("plans/a.json",), "name the run: give --run-id ID, or --run-id-prefix TEXT"),
        (("plans", "--workers", "0"), "is not a whole number from 1 to 1000"),
        (("plans", "--workers", "1001"), "is not a whole number from 1 to 1000"),
        (("plans", "other/a.json"), "its run would be called a, as that of 'plans/a.json'"),
        (("plans/a.json", "plans/a.json"), "rename one"),
        (("plans", "--run-id-prefix", "a b"), "'plans/a.json': run id"),
        (("empty",), "'empty': there is no plan in it"),
        (("plans", "lacking.json"), "'lacking.json': the plan cannot be read: No such file"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_what_is_wrong_with_the_words_is_said_before_anything_is_opened(
    plans: Folder, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(plans.place.folder)
    for folder in ("other", "empty"):
        Path(folder).mkdir()
    plans.add("a.json")
    Path("other/a.json").write_bytes(Path("plans/a.json").read_bytes())
    plans.add("b.json")
    said = plans.place.on("run", *words, "--adapters", TOOLS)
    assert said.code == Exit.USAGE
    assert says in said.err
    assert said.out == ""
    assert not plans.place.database.exists()


def test_every_plan_is_judged_before_the_first_run_begins(plans: Folder) -> None:
    plans.add("a.json", ("mail", "mail"))
    (plans.path / "b.json").write_text('{"plan": 1}')
    (plans.path / "c d.json").write_bytes((plans.path / "a.json").read_bytes())
    said = plans.run()
    assert said.code == Exit.USAGE
    lines = said.err.splitlines()
    assert len(lines) == 3
    assert "b.json', the plan: the field 'steps' is missing" in lines[0]
    assert "c d.json': run id" in lines[1]
    assert lines[2] == "agent-replay: 2 faults in 3 plans; no run was begun"
    assert not plans.place.database.exists()
    assert tools.effects() == []


def test_of_very_many_wrong_plans_some_are_shown(plans: Folder) -> None:
    for number in range(WRONG_SHOWN_MAX + 5):
        (plans.path / f"{number}.json").write_text("[]")
    said = plans.run()
    assert said.code == Exit.USAGE
    assert said.err.count("\n") == WRONG_SHOWN_MAX + 1
    assert f"{WRONG_SHOWN_MAX + 5} faults" in said.err


def test_a_name_that_is_no_text_is_refused_in_a_printable_line(plans: Folder) -> None:
    name = os.fsencode(plans.path) + b"/\xff\x1b.json"
    Path(os.fsdecode(name)).write_bytes(plans.add("a.json").read_bytes())
    said = plans.run()
    assert said.code == Exit.USAGE
    assert said.err.count("\n") == 1
    assert said.err[:-1].isprintable()


# --- what is told -------------------------------------------------------------------------------


def test_the_worst_run_decides_and_each_is_told(plans: Folder) -> None:
    plans.add("fine.json")
    plans.add("waits.json", ("mail", "mail", {"do": ["lose"]}))
    plans.add("refused.json", ("pay", "charge", {"do": ["refuse"]}))
    said = plans.run()
    assert said.code == Exit.FAILED
    lines = said.out.splitlines()
    for line in (
        "fine: completed",
        "waits: paused, and waits for evidence",
        "refused: failed",
    ):
        assert line in lines
    (summary,) = [line for line in lines if line.startswith("3 runs: ")]
    assert sorted(summary.removeprefix("3 runs: ").split(", ")) == [
        "1 completed",
        "1 failed",
        "1 paused",
    ]
    assert "doctor" in lines[-1]
    (plans.path / "refused.json").unlink()
    assert plans.run().code == Exit.PAUSED


def test_a_run_with_an_error_is_named_and_touches_no_other(plans: Folder) -> None:
    plans.place.start("b", plans.place.plan(("pay", "charge")))
    for name in "abc":
        plans.add(f"{name}.json")
    said = plans.run()
    assert said.code == Exit.USAGE
    assert "b: PlanMismatch" in said.out.splitlines()
    assert "run b: run b has another plan" in said.err
    assert "2 completed, 1 with an error" in said.out
    assert plans.listed() == {"a": "completed", "b": "completed", "c": "completed"}


def test_as_json_each_run_is_an_object_on_a_line(plans: Folder) -> None:
    plans.place.start("b", plans.place.plan(("pay", "charge")))
    plans.add("a.json", ("mail", "mail", {"do": ["long"]}))
    plans.add("b.json")
    plans.add("c.json", ("mail", "mail", {"do": ["lose"]}))
    said = plans.run("--json")
    assert said.code == Exit.USAGE
    told = {run["run"]: run for run in map(json.loads, said.out.splitlines())}
    assert {run: each["exit"] for run, each in told.items()} == {"a": 0, "b": 2, "c": 3}
    assert told["a"]["results"] == {"mail": "x" * 100_000}
    assert told["b"]["error"] == "PlanMismatch"
    assert told["c"]["state"] == "paused"


def test_progress_counts_runs_on_a_terminal_alone(plans: Folder) -> None:
    plans.add("a.json", ("pay", "charge", {"do": ["refuse"]}))
    for name in "bcd":
        plans.add(f"{name}.json")
    seen = on_a_terminal(plans.place, *plans.words("--workers", "1"))
    assert "\r0/4 runs: none has ended yet" in seen
    assert "\r1/4 runs: 1 failed" in seen
    assert "\r4/4 runs: 3 completed, 1 failed" in seen
    assert seen.endswith("\r")
    assert "\n" not in seen
    for quiet in ("--quiet", "--json"):
        assert on_a_terminal(plans.place, *plans.words(quiet)) == ""
    assert plans.run().err == ""


# --- at once ------------------------------------------------------------------------------------


def test_runs_are_driven_at_once_as_many_as_workers(plans: Folder) -> None:
    """Each tool has its effect and waits: all are inside when the last effect is there."""
    for number in range(6):
        plans.add(f"{number}.json", ("pay", "charge", {"do": ["wait"]}))
    with plans.place.spawn(*plans.words("--workers", "4")) as process:
        wait_until(lambda: len(tools.effects()) == 4)
        assert set(plans.listed().values()) == {"running"}
        assert len(plans.listed()) == 4
        tools.gate().touch()
        said = ended(process)
    assert said.code == Exit.OK
    assert said.out.splitlines()[-1] == "6 runs: 6 completed"


def waiting(plans: Folder, count: int, *more: object) -> Process:
    """Start more runs than workers, and return when each worker is inside of a tool."""
    for number in range(2 * count):
        steps: list[Given] = [("pay", "charge", {"do": ["wait"]}), ("then", "charge", {})]
        plans.add(f"{number}.json", *steps)
    process = plans.place.spawn(*plans.words("--workers", count, *more))
    wait_until(lambda: process.poll() is not None or len(tools.effects()) == count)
    assert process.poll() is None
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_lets_the_calls_end_and_the_same_command_goes_on(
    plans: Folder, number: signal.Signals
) -> None:
    with waiting(plans, 3) as process:
        process.send_signal(number)
        assert process.stderr is not None
        first = process.stderr.readline()
        tools.gate().touch()
        said = ended(process)
    assert first.startswith("agent-replay: interrupted: nothing more is begun")
    assert said.code == Exit.INTERRUPTED
    assert said.err == (
        "agent-replay: interrupted: of 6 runs these were told of so far: none; the same command "
        "goes on with those that have not ended\n"
    )
    assert set(plans.listed().values()) == {"ready"}, "the answers are on record"
    assert len(plans.listed()) == 3
    assert plans.run().code == Exit.OK
    assert sorted(calls_by_key().values()) == [1] * 12
    assert all(effect["attempt"] == 1 for effect in tools.effects())


def test_a_second_interruption_ends_the_process_whatever_a_tool_does(plans: Folder) -> None:
    with waiting(plans, 2) as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        assert "once more ends the process" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = ended(process)
    assert said.code == Exit.INTERRUPTED
    assert set(plans.listed().values()) == {"interrupted"}
    tools.gate().touch()
    assert plans.run().code == Exit.OK
    assert sorted(calls_by_key().values()) == [1] * 8


def test_a_tool_that_leaves_stops_the_others_and_says_in_which_run(plans: Folder) -> None:
    plans.add("leaves.json", ("pay", "charge", {"do": ["leave", "answer"]}))
    said = plans.run()
    assert said.code == Exit.INTERRUPTED
    assert "interrupted by a SystemExit of an adapter" in said.err
    assert "met by these of many runs: leaves" in said.err
    assert plans.run().code == Exit.OK


def test_what_was_interrupted_is_resumed_at_once(plans: Folder) -> None:
    with waiting(plans, 3) as process:
        process.kill()
        ended(process)
    words = ("resume", "--all", "--workers", "3", "--adapters", TOOLS)
    with plans.place.spawn(*words, "--db", plans.place.database) as process:
        # A key that is known has no second effect, so the world does not show who waits.
        wait_until(lambda: list(plans.listed().values()) == ["running"] * 3)
        tools.gate().touch()
        said = ended(process)
    assert said.code == Exit.OK
    assert sorted(line for line in said.out.splitlines() if line.endswith("completed")) == [
        f"{run}: completed" for run in sorted(plans.listed())
    ]


def test_a_full_disk_stops_all_and_says_how_far_it_came(plans: Folder) -> None:
    plans.add("a.json")
    assert plans.run().code == Exit.OK
    for number in range(40):
        plans.add(f"{number}.json", ("long", "charge", {"do": ["long"]}))
    said = limited(plans, plans.place.database.stat().st_size + 400_000)
    assert said.code == Exit.STORAGE
    assert "stopped at the error below: " in said.err
    assert ": of 41 runs these were told of so far: " in said.err
    assert "; the same command goes on with those that have not ended" in said.err
    hit = [line for line in said.out.splitlines() if line.endswith(": StorageError")]
    assert 1 <= len(hit) <= 32
    assert plans.place.on("verify").code == Exit.OK
    assert plans.run().code == Exit.OK
    assert set(plans.listed().values()) == {"completed"}
    assert plans.place.effects("charge") == len(calls_by_key()) - 1 == 40


def limited(plans: Folder, bytes_max: int) -> Said:
    """Run the plans in a process whose files cannot grow beyond a size."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))

    return plans.place.process(*plans.words(), preexec_fn=limit)


# --- killed -------------------------------------------------------------------------------------


@pytest.mark.invariant("S2")
@pytest.mark.parametrize("effects", [1, 7, 18])
def test_killed_and_run_again_each_effect_happens_once(plans: Folder, effects: int) -> None:
    for number in range(12):
        steps: list[Given] = [(step, "charge", {}) for step in "abc"]
        plans.add(f"order-{number}.json", *steps)
    with plans.place.spawn(*plans.words("--workers", "8")) as process:
        wait_until(lambda: len(tools.effects()) >= effects or process.poll() is not None)
        process.kill()
        ended(process)
    said = plans.run("--workers", "8")
    assert said.code == Exit.OK
    assert said.out.splitlines()[-1] == "12 runs: 12 completed"
    assert sorted(calls_by_key().values()) == [1] * 36
    assert plans.place.on("verify").code == Exit.OK


def test_killed_inside_of_a_tool_while_others_are_under_way(plans: Folder) -> None:
    for number in range(8):
        plans.add(f"{number}.json", ("pay", "charge"), ("ship", "charge"))
    plans.add("dies.json", ("pay", "charge", {"do": ["die", "answer"]}))
    assert plans.place.process(*plans.words()).code == -signal.SIGKILL
    assert plans.run().code == Exit.OK
    assert sorted(calls_by_key().values()) == [1] * 17
