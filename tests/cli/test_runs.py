"""The commands that drive runs and those that look at them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from agent_replay.cli.exits import Exit
from agent_replay.lifecycles.coupling import FILE_DIGEST, MOVES_DIGEST
from tests.cli.support import ROOT, TOOLS, Place

ORDER = (("quote", "quote"), ("charge", "charge"), ("mail", "mail"))


# --- run and resume -----------------------------------------------------------------------------


def test_run_prints_each_result_on_a_line(place: Place) -> None:
    said = place.start("order-42", place.plan(*ORDER))
    assert said.code == Exit.OK
    lines = said.out.splitlines()
    assert lines[0] == "order-42: completed"
    assert [line.split()[0] for line in lines[1:]] == ["quote", "charge", "mail"]
    assert said.err == ""


def test_run_prints_all_of_a_result_as_json_and_its_beginning_as_text(place: Place) -> None:
    plan = place.plan(("long", "mail", {"do": ["long"]}))
    said = place.start("a", plan, "--json")
    assert said.document["results"] == {"long": "x" * 100_000}
    assert (said.document["state"], said.document["exit"]) == ("completed", 0)
    said = place.start("a", plan)
    assert "x... (100002 characters)" in said.out
    assert len(said.out) < 500


def test_run_under_a_known_id_calls_nothing_again(place: Place) -> None:
    plan = place.plan(*ORDER)
    first = place.start("order-42", plan)
    assert place.start("order-42", plan).out == first.out
    assert place.effects("mail") == 1


def test_a_result_that_could_not_be_stored_is_told(place: Place) -> None:
    plan = place.plan(("odd", "mail", {"do": ["odd"]}))
    said = place.start("a", plan)
    assert said.code == Exit.OK
    assert "could not be stored" in said.out
    assert "its result could not be stored" in said.err
    said = place.start("a", plan, "--json")
    assert said.document["results"] == {}
    assert "could not be stored" in said.document["unstorable"]["odd"]


def test_what_a_tool_prints_does_not_disturb_the_outcome(place: Place) -> None:
    said = place.start("a", place.plan(("say", "mail", {"do": ["print"]})), "--json")
    assert said.document["state"] == "completed"
    assert "noise of the tool" in said.err


def test_what_a_tool_returns_cannot_steer_the_terminal(place: Place) -> None:
    plan = place.plan(("paint", "mail", {"do": ["steer"]}))
    outputs = [place.start("a", plan), place.on("show", "a"), place.start("a", plan, "--json")]
    for said in outputs:
        assert "red" in said.out
        for mark in "\x1b\u202e\u2028":
            assert mark not in said.out + said.err
        assert "\\u001b" in said.out and "\\u202e" in said.out  # noqa: PT018


def test_the_limit_of_attempts_is_the_runs_own(place: Place) -> None:
    plan = place.plan(("pay", "charge", {"do": ["fail"]}))
    said = place.start("a", plan, "--attempts-max", "2", "--json")
    assert said.code == Exit.PAUSED
    (doubt,) = said.document["in_doubt"]
    assert (doubt["attempt"], doubt["why"]) == (2, "attempts_used_up")


def test_a_paused_run_says_step_attempt_key_reason_and_what_to_do(place: Place) -> None:
    said = place.start("a", place.plan(("quote", "quote"), ("mail", "mail", {"do": ["lose"]})))
    assert said.code == Exit.PAUSED
    assert "step  2 of 2, mail (opaque): in_doubt, attempt 1" in said.out
    assert re.search(r"key   [0-9a-f]{64}\n", said.out)
    assert "does not say whether it happened" in said.out
    assert "ConnectionError: the reply was lost" in said.out
    assert "reconcile a mail" in said.out


def test_a_probe_has_its_time_in_the_outcome(place: Place) -> None:
    said = place.start("a", place.plan(("send", "parcel", {"do": ["lose"]})))
    # The probe finds it at once; one that finds nothing has to wait.
    assert said.code == Exit.OK
    plan = place.plan(("send", "parcel", {"do": ["fail"]}))
    said = place.start("b", plan)
    assert said.code == Exit.PAUSED
    assert re.search(r"says nothing before \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", said.out)
    (doubt,) = place.start("b", plan, "--json").document["in_doubt"]
    assert doubt["not_before"].endswith("Z")


def test_resume_all_lists_each_run_and_ends_as_the_worst(place: Place) -> None:
    place.start("paused", place.plan(("mail", "mail", {"do": ["lose"]})))
    place.killed("killed", ("pay", "charge", {"do": ["die", "answer"]}))
    place.start("done", place.plan(("quote", "quote")))
    said = place.on("resume", "--all", "--adapters", TOOLS)
    assert said.code == Exit.PAUSED
    lines = said.out.splitlines()
    assert "paused: paused, and waits for evidence" in lines
    assert "killed: completed" in lines
    assert not any(line.startswith("done") for line in lines)
    assert "doctor" in lines[-1]


def test_resume_all_goes_on_after_a_run_that_lacks_its_adapter(place: Place) -> None:
    place.killed("first", ("send", "mail", {"do": ["die"]}))
    place.killed("second", ("pay", "charge", {"do": ["die", "answer"]}))
    said = place.on("resume", "--all", "--adapters", f"{TOOLS}:charge", "--json")
    assert said.code == Exit.ADAPTER
    assert [run["run"] for run in said.document["runs"]] == ["second"]
    (refused,) = said.document["refused"]
    assert (refused["run"], refused["exit"]) == ("first", Exit.ADAPTER)
    said = place.on("resume", "--all", "--adapters", f"{TOOLS}:charge")
    assert "first: not resumed" in said.out
    assert "adapter mail@1 is missing" in said.err


def test_resume_all_says_that_there_is_nothing_to_do(place: Place) -> None:
    place.start("done", place.plan(("quote", "quote")))
    said = place.on("resume", "--all")
    assert (said.code, said.out) == (Exit.OK, "no run is unfinished\n")


def test_the_database_may_be_named_by_the_environment(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_REPLAY_DB", str(place.database))
    plan = place.plan(("quote", "quote"))
    assert place.run("run", plan, "--run-id", "a", "--adapters", TOOLS).code == Exit.OK
    assert place.run("list").out.startswith("1  a  completed")


def test_verbose_logs_each_move(place: Place) -> None:
    said = place.start("a", place.plan(("quote", "quote")), "--verbose")
    assert "agent-replay: run a seq 1: request by runtime" in said.err
    assert place.start("b", place.plan(("quote", "quote"))).err == ""


# --- list ---------------------------------------------------------------------------------------


def test_list_has_a_line_for_each_run_and_pages(place: Place) -> None:
    plan = place.plan(("quote", "quote"))
    for number in range(1, 6):
        place.start(f"run-{number}", plan)
    said = place.on("list", "--limit", 2)
    assert [line.split()[:3] for line in said.out.splitlines()] == [
        ["1", "run-1", "completed"],
        ["2", "run-2", "completed"],
    ]
    assert "--after 2" in said.err
    said = place.on("list", "--after", 4, "--json")
    assert [run["run"] for run in said.document["runs"]] == ["run-5"]
    assert said.document["next_after"] is None
    assert place.on("list", "--after", 2**63 - 1).out == ""


def test_list_says_that_there_are_no_runs(place: Place) -> None:
    place.start("no", place.plan(("quote", "quote")), "--adapters", TOOLS)
    empty = Place(place.folder / "empty", place._capture)
    empty.folder.mkdir()
    # A run that is refused leaves a database without runs.
    assert empty.on("run", place.folder / "plan.json", "--run-id", "a").code == Exit.ADAPTER
    assert "there are no runs" in empty.on("list").err
    assert empty.on("doctor").out.endswith("no run is unfinished\n")
    assert empty.on("verify").code == Exit.OK


# --- show ---------------------------------------------------------------------------------------


def test_show_is_a_timeline(place: Place) -> None:
    place.start("a", place.plan(("quote", "quote"), ("mail", "mail", {"do": ["lose"]})))
    said = place.on("show", "a")
    lines = said.out.splitlines()
    assert lines[0] == "a: paused"
    events = [line.split() for line in lines if re.match(r"  \d+  ", line)]
    assert [words[0] for words in events] == ["1", "2", "3", "4"]
    assert [words[3:5] for words in events] == [
        ["quote", "request"],
        ["quote", "acknowledge"],
        ["mail", "request"],
        ["mail", "suspend"],
    ]
    assert "run running -> paused (pause)" in said.out
    assert "does not say whether it happened" in said.out
    assert "quote@1: read_only" in said.out
    assert f"process {os.getpid()} on" in said.out


def test_show_as_json_has_results_and_evidence_in_full(place: Place) -> None:
    place.start("a", place.plan(("long", "mail", {"do": ["long"]})))
    shown = place.on("show", "a", "--json").document
    assert shown["events"][-1]["payload"]["result"] == "x" * 100_000
    assert shown["events"][-1]["coupled"] == ["complete"]
    assert shown["run_state"] == "completed"
    assert shown["diagnosis"] is None
    assert "arguments" not in shown["steps"][0]
    shown = place.on("show", "a", "--json", "--arguments").document
    assert shown["steps"][0]["arguments"] == {"do": ["long"]}


def test_show_says_when_the_source_of_an_adapter_has_changed(place: Place) -> None:
    tools = place.folder / "mine.py"
    tools.write_text(TOOLS.read_text())
    plan = place.plan(("pay", "charge", {"do": ["die", "answer"]}))
    words = ("run", plan, "--run-id", "a", "--db", place.database, "--adapters", tools)
    assert place.process(*words).code == -9
    tools.write_text(
        TOOLS.read_text().replace('"charge", once=True)', '"charge", once=True)  # changed')
    )
    said = place.on("resume", "a", "--adapters", tools)
    assert said.code == Exit.OK
    assert "the source of adapter charge@1 has changed" in said.err
    lines = place.on("show", "a").out.splitlines()
    (resent,) = [line for line in lines if " resend " in line]
    assert "the adapter's source differs from the one at attempt 1" in resent


def test_a_run_of_two_processes_shows_both_writers(place: Place) -> None:
    place.killed("a", ("pay", "charge", {"do": ["die", "answer"]}))
    place.on("resume", "a", "--adapters", TOOLS)
    said = place.on("show", "a")
    assert "epoch 1: process" in said.out
    assert f"epoch 2: process {os.getpid()} on" in said.out
    assert "epoch 2 takes the run over" in said.out
    assert [w["epoch"] for w in place.on("show", "a", "--json").document["writers"]] == [1, 2]


@pytest.mark.fault("A10")
def test_a_killed_run_is_shown_as_interrupted_before_anybody_resumes_it(place: Place) -> None:
    place.killed("a", ("quote", "quote", {}), ("pay", "charge", {"do": ["die", "answer"]}))
    before = place.database.read_bytes(), Path(f"{place.database}-wal").read_bytes()
    listed = place.on("list")
    match = re.search(
        r"1  a  interrupted  step 2/2 .* pay: requested, attempt 1, key ([0-9a-f]{64})\n",
        listed.out,
    )
    assert match is not None
    assert "agent-replay doctor --db" in listed.err
    for said in (place.on("show", "a"), place.on("doctor")):
        assert "a: interrupted" in said.out
        assert "step  2 of 2, pay (idempotent): requested, attempt 1" in said.out
        assert f"key   {match[1]}" in said.out
        assert "resume sends it again with the same key" in said.out
        assert f"agent-replay resume a --db {place.database} --adapters {TOOLS}" in said.out
    found = place.on("list", "--json").document["runs"][0]
    assert found["standing"] == "interrupted"
    assert found["open"]["key"] == match[1]
    assert (place.database.read_bytes(), Path(f"{place.database}-wal").read_bytes()) == before


def test_events_that_no_writer_has_confirmed_are_told(place: Place) -> None:
    place.killed("a", ("pay", "charge", {"do": ["die", "answer"]}))
    for name, *words in (("show", "a"), ("list",), ("doctor",)):
        said = place.on(name, *words)
        assert "none has made sure of the last events" in said.out + said.err
        assert place.on(name, *words, "--json").document["unconfirmed"] is True
    place.on("resume", "a", "--adapters", TOOLS)
    assert place.on("show", "a", "--json").document["unconfirmed"] is False


# --- verify, export, spec, plan -----------------------------------------------------------------


def test_verify_compares_with_heads_that_were_written_down(place: Place) -> None:
    place.start("a", place.plan(*ORDER))
    head = re.search(r"head +(\S+)", place.on("show", "a").out)
    assert head is not None
    said = place.on("verify", "--expect-head", head[1])
    assert (said.code, said.out) == (Exit.OK, "sound: 1 runs and 6 events were looked at\n")
    run, _, link = head[1].rpartition(":")
    said = place.on("verify", "--expect-head", f"{run}:{link[::-1]}", "--json")
    assert said.code == Exit.DAMAGED
    assert said.document["findings"] == ["run a, seq 6: another hash was expected"]
    said = place.on("verify", "--expect-head", f"b=1:{link}")
    assert said.code == Exit.DAMAGED
    assert "there is no such run" in said.out


def test_export_has_every_row(place: Place) -> None:
    place.start("a", place.plan(*ORDER))
    said = place.on("export")
    assert said.code == Exit.OK
    rows = [json.loads(line) for line in said.out.splitlines()]
    tables = [row["table"] for row in rows]
    assert {name: tables.count(name) for name in set(tables)} == {
        "identity": 1,
        "writer": 1,
        "run": 1,
        "step": 3,
        "event": 6,
        "chain": 3,
    }
    assert rows[0]["spec"] == MOVES_DIGEST
    assert all(re.fullmatch("[0-9a-f]{64}", r["hash"]) for r in rows if r["table"] == "event")


@pytest.mark.fault("L05")
def test_an_export_is_for_its_owner_alone(place: Place) -> None:
    place.start("a", place.plan(*ORDER))
    output = place.folder / "out.jsonl"
    before = os.umask(0)
    try:
        assert place.on("export", "--output", output).code == Exit.OK
    finally:
        os.umask(before)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert output.read_text() == place.on("export").out


@pytest.mark.fault("L03")
@pytest.mark.fault("L05")
def test_an_export_replaces_nothing(place: Place) -> None:
    place.start("a", place.plan(*ORDER))
    there, target = place.folder / "there", place.folder / "target"
    there.write_text("mine")
    link, dangling = place.folder / "link", place.folder / "dangling"
    link.symlink_to(there)
    dangling.symlink_to(target)
    for output in (there, link, dangling, place.database, place.folder):
        said = place.on("export", "--output", output)
        assert said.code == Exit.USAGE
        assert "is there already" in said.err
    assert there.read_text() == "mine"
    assert not target.exists()
    for output in (place.folder / "runs.db-journal", place.folder / "none" / "out"):
        assert place.on("export", "--output", output).code == Exit.USAGE
        assert not output.exists()
    assert place.on("verify").code == Exit.OK


def test_spec_prints_what_the_program_runs(place: Place) -> None:
    said = place.run("spec")
    assert said.code == Exit.OK
    assert f"digest of what is enforced: {MOVES_DIGEST}" in said.out
    for name in ("step", "run"):
        assert (ROOT / "spec" / f"{name}.toml").read_text() in said.out
    told = place.run("spec", "--json").document
    files = b"\0".join(told["files"][name].encode() for name in ("step.toml", "run.toml"))
    assert told["file_digest"] == FILE_DIGEST == sha256(files).hexdigest()


def test_plan_check_says_where_a_plan_is_wrong(place: Place) -> None:
    plan = place.plan(*ORDER)
    said = place.run("plan", "check", plan)
    assert said.code == Exit.OK
    assert said.out.startswith("ok: 3 steps, digest ")
    assert place.run("plan", "check", plan, "--json").document["ok"] is True
    plan.write_text('{"plan": 1, "steps": [{"id": "a", "id": "b"}]}')
    said = place.run("plan", "check", plan)
    assert said.code == Exit.USAGE
    assert said.err.startswith("agent-replay: ")
    assert "steps[0]" in said.err
    said = place.run("plan", "check", plan, "--json")
    assert said.code == Exit.USAGE
    assert said.document["ok"] is False
    assert "steps[0]" in said.document["place"]


def test_help_and_version_are_no_errors(place: Place) -> None:
    assert "exit codes:" in place.run("--help").out
    assert place.run("--help").code == Exit.OK
    assert place.run("show", "--help").code == Exit.OK
    assert place.run("--version").out.startswith("agent-replay ")
    assert place.run().code == Exit.USAGE


def test_the_library_does_not_load_the_command() -> None:
    code = (
        "import agent_replay, sys\n"
        "print([name for name in sys.modules if name.split('.')[1:2] in (['cli'], ['report'])])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert said.stdout == "[]\n"
