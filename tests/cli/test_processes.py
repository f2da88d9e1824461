"""The command as a process among others: other folders, locks, signals, pipes and terminals."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_replay.cli.exits import Exit
from tests.cli.support import (
    FILLED_IN,
    SECONDS_MAX,
    TOOLS,
    Given,
    Place,
    Process,
    ended,
    environment,
    on_a_terminal,
    printed_commands,
    wait_until,
)


@pytest.mark.fault("D07")
def test_a_pause_is_known_to_every_process_from_every_folder(place: Place) -> None:
    """Each of four processes has its own folder, and its own spelling of the same database."""
    home = place.folder / "home"
    folders = [place.folder / name for name in ("a", "b", "c", "d")]
    for folder in (home, *folders):
        folder.mkdir()
    (place.folder / "linked").symlink_to(home)
    plan = place.plan(("quote", "quote"), ("send", "mail", {"do": ["lose"]}), ("last", "quote"))

    run = ("run", plan, "--run-id", "order-42", "--adapters", os.path.relpath(TOOLS, folders[0]))
    said = place.process(*run, "--db", "../home/runs.db", cwd=folders[0])
    assert said.code == Exit.PAUSED

    said = place.process("list", "--db", home / "runs.db", cwd=folders[1])
    assert re.match(r"1  order-42  paused  step 2/3 .* send: in_doubt, attempt 1, key ", said.out)

    linked = place.folder / "linked" / "runs.db"
    said = place.process("doctor", "--db", linked, cwd=folders[2])
    (confirm,) = [line for line in said.out.splitlines() if "--confirm" in line]
    said = place.process(*words_of(confirm), cwd=folders[2])
    assert said.code == Exit.OK

    said = place.process("doctor", "--db", "runs.db", cwd=home)
    (resume,) = [line for line in said.out.splitlines() if " -m agent_replay resume " in line]
    said = place.process(*words_of(resume), cwd=folders[3])
    assert said.code == Exit.OK
    assert "order-42: completed" in said.out
    assert place.effects("mail") == 1


def words_of(line: str) -> list[str]:
    """Return the words of a printed command, filled in, behind the program's name."""
    words = shlex.split(line)
    assert words[:3] == [sys.executable, "-m", "agent_replay"]
    return [FILLED_IN.get(word, word) for word in words[3:]]


# --- another writer -----------------------------------------------------------------------------


def hanging(place: Place, *words: object) -> Process:
    """Start a run whose second tool hangs, and return when it does."""
    plan = place.plan(("quote", "quote"), ("pay", "charge", {"do": ["hang", "answer"]}))
    run = ("run", plan, "--run-id", "a", "--db", place.database, "--adapters", TOOLS)
    process = place.spawn(*run, *words)
    wait_until(lambda: process.poll() is not None or place.effects("charge"))
    assert process.poll() is None
    return process


def test_a_database_that_another_process_holds_says_by_whom(place: Place) -> None:
    with hanging(place) as process:
        plan = place.folder / "plan.json"
        for words in (
            ("run", plan, "--run-id", "b", "--adapters", TOOLS),
            ("resume", "a", "--adapters", TOOLS),
            ("cancel", "a", "--who", "ann", "--why", "late"),
        ):
            said = place.on(*words)
            assert said.code == Exit.LOCKED
            assert f"process {process.pid} (" in said.err
            assert "running since 20" in said.err
        process.kill()
        ended(process)


def test_the_reading_commands_work_beside_a_writer(place: Place) -> None:
    with hanging(place) as process:
        assert place.on("list").out.split()[2] == "running"
        said = place.on("show", "a")
        assert said.code == Exit.OK
        assert said.out.startswith("a: running\n")
        assert f"process {process.pid}" in said.out
        said = place.on("doctor")
        assert f"process {process.pid} (" in said.out
        (resume,) = printed_commands(said.out)
        assert resume[-1] == "--wait"
        assert place.on("verify").code == Exit.OK
        assert place.on("export").code == Exit.OK
        assert place.on("list", "--json").document["unconfirmed"] is False
        process.kill()
        ended(process)
    assert place.on("list").out.split()[2] == "interrupted"


def test_a_reader_sees_a_whole_history_at_every_moment(place: Place) -> None:
    """A run is read while its writer appends to it, which must never look like damage."""
    plan = place.plan(*((f"step-{number}", "quote") for number in range(150)))
    words = ("run", plan, "--run-id", "a", "--db", place.database, "--adapters", TOOLS)
    with place.spawn(*words) as process:
        wait_until(lambda: place.database.exists())
        codes = set()
        while process.poll() is None:
            codes.add(place.on("show", "a").code)
        assert ended(process).code == Exit.OK
    assert codes <= {Exit.OK, Exit.NO_RUN}
    assert Exit.OK in codes


def test_wait_waits_until_the_other_process_has_ended(place: Place) -> None:
    with hanging(place) as first:
        resume = ("resume", "a", "--db", place.database, "--adapters", TOOLS, "--wait")
        with place.spawn(*resume) as second:
            wait_until(lambda: _waits_for_a_lock(second.pid))
            assert second.poll() is None
            first.kill()
            ended(first)
            said = ended(second)
    assert said.code == Exit.OK
    assert place.effects("charge") == 1


def _waits_for_a_lock(pid: int) -> bool:
    """Return whether a process is inside of the call of the kernel that waits for a lock."""
    fields = Path(f"/proc/{pid}/syscall").read_text().split()
    return fields[0] == str({"x86_64": 72}.get(os.uname().machine, 25)) and fields[2] in (
        "0x26",  # F_OFD_SETLKW
        "0x7",
    )


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_the_step_requested_and_says_so(
    place: Place, number: signal.Signals
) -> None:
    with hanging(place) as process:
        process.send_signal(number)
        said = ended(process)
    assert said.code == Exit.INTERRUPTED
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(
        "agent-replay: interrupted: attempt 1 of step pay of run a stays requested"
    )
    command = said.err.rpartition(": ")[2]
    assert place.on("list").out.split()[2] == "interrupted"
    assert place.run(*words_of(command)).code == Exit.OK
    assert place.effects("charge") == 1


def test_an_interruption_while_it_waits_has_written_nothing(place: Place) -> None:
    with hanging(place) as first:
        resume = ("resume", "a", "--db", place.database, "--adapters", TOOLS, "--wait")
        with place.spawn(*resume) as second:
            wait_until(lambda: _waits_for_a_lock(second.pid))
            second.send_signal(signal.SIGTERM)
            said = ended(second)
        first.kill()
        ended(first)
    assert said.code == Exit.INTERRUPTED
    assert said.err == (
        "agent-replay: interrupted: what is on record stays as it is, "
        "and nothing else was written\n"
    )


# --- the standard streams -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["export", "list", "doctor", "show"])
def test_a_reader_that_goes_away_is_no_error(place: Place, name: str) -> None:
    plan = place.plan(("send", "mail", {"do": ["lose"]}))
    place.start("a", plan)
    reader, writer = os.pipe()
    os.close(reader)
    words = (name, "a") if name == "show" else (name,)
    said = place.process(*words, "--db", place.database, stdout=writer)
    os.close(writer)
    assert said.code == Exit.OK
    assert "Broken" not in said.err
    assert "Traceback" not in said.err


def test_a_run_whose_reader_goes_away_keeps_its_code(place: Place) -> None:
    plan = place.plan(("send", "mail", {"do": ["lose"]}))
    reader, writer = os.pipe()
    os.close(reader)
    run = ("run", plan, "--run-id", "a", "--db", place.database, "--adapters", TOOLS)
    said = place.process(*run, stdout=writer)
    os.close(writer)
    assert said.code == Exit.PAUSED
    assert "Broken" not in said.err


def test_a_closed_output_is_no_error(place: Place) -> None:
    place.start("a", place.plan(("quote", "quote")))
    command = f"{sys.executable} -m agent_replay list --db {place.database} >&- 2>&-"
    said = subprocess.run(
        ["/bin/sh", "-c", command], env=environment(), timeout=SECONDS_MAX, check=False
    )
    assert said.returncode == Exit.OK


def test_progress_is_shown_on_a_terminal_for_a_long_plan(place: Place) -> None:
    steps = [(f"step-{number}", "quote") for number in range(1, 11)]
    run = ("--db", place.database, "--adapters", TOOLS)
    plan = place.plan(*steps)
    seen = on_a_terminal(place, "run", plan, "--run-id", "a", *run)
    assert "\rstep 10/10 step-10: acknowledge" in seen
    assert seen.endswith("\r")
    assert "\n" not in seen
    assert on_a_terminal(place, "run", plan, "--run-id", "b", *run, "--quiet") == ""
    assert on_a_terminal(place, "run", plan, "--run-id", "c", *run, "--json") == ""
    assert on_a_terminal(place, "run", place.plan(*steps[:2]), "--run-id", "d", *run) == ""


def test_progress_is_shown_of_a_resume_too(place: Place) -> None:
    steps: list[Given] = [(f"step-{number}", "quote", {}) for number in range(1, 6)]
    place.killed("a", *steps, ("pay", "charge", {"do": ["die", "answer"]}))
    words = ("resume", "a", "--db", place.database, "--adapters", TOOLS)
    assert "\rstep 6/6 pay: acknowledge" in on_a_terminal(place, *words)


def test_there_is_no_progress_without_a_terminal(place: Place) -> None:
    plan = place.plan(*((f"step-{number}", "quote") for number in range(10)))
    assert place.start("a", plan).err == ""


# --- as it is installed -------------------------------------------------------------------------


def test_the_function_behind_the_command_takes_the_words_of_the_process(place: Place) -> None:
    code = "import sys; from agent_replay.cli import main; sys.exit(main())"
    said = subprocess.run(
        [sys.executable, "-c", code, "spec", "--json"],
        env=environment(),
        cwd="/",
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert said.returncode == Exit.OK
    assert said.stdout.startswith(b'{"version": ')
