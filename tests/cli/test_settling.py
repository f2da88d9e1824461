"""The commands by which a person settles a step, and the doctor that says which."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from agent_replay import Runtime, load_plan
from agent_replay.cli import looking
from agent_replay.cli.exits import Exit
from agent_replay.clock import NANOSECONDS, Reading, SystemClock
from agent_replay.report import commands
from tests.cli import tools
from tests.cli.support import TOOLS, Place, changed, printed_commands

LOST: Mapping[str, object] = {"do": ["lose", "answer"]}


def paused(
    place: Place, *, tool: str = "mail", more: Mapping[str, object] = LOST
) -> dict[str, Any]:
    """Leave a run paused at its second of three steps, and return what is in doubt."""
    plan = place.plan(("quote", "quote"), ("send", tool, more), ("last", "quote"))
    said = place.start("a", plan, "--attempts-max", 1, "--json")
    assert said.code == Exit.PAUSED
    (doubt,) = said.document["in_doubt"]
    return dict(doubt)


def evidence(doubt: Mapping[str, Any], **changed: object) -> list[object]:
    given = {
        "attempt": doubt["attempt"],
        "key": doubt["key"],
        "kind": "mail log",
        "content": "two lines",
        "who": "ann",
        "why": "I looked",
        **changed,
    }
    words: list[object] = []
    for name, value in given.items():
        words += [f"--{name}", value]
    return words


# --- what is recorded ---------------------------------------------------------------------------


def test_confirm_records_the_result_and_names_the_next_command(place: Place) -> None:
    doubt = paused(place)
    said = place.on(
        "reconcile", "a", "send", "--confirm", "--result", '{"id": 7}', *evidence(doubt)
    )
    assert said.code == Exit.OK
    assert said.out.startswith("recorded: step send of run a happened\na: running, and waits")
    (resume,) = printed_commands(said.out)
    said = place.follow(resume)
    assert said.code == Exit.OK
    assert '{"id": 7}' in said.out
    assert place.effects("mail") == 1
    shown = place.on("show", "a").out
    assert "mail log: " in shown
    assert "by ann: I looked" in shown


@pytest.mark.parametrize("result", ["false", "0", '""', "null", "[]", '{"status": "failed"}'])
def test_a_result_is_kept_as_it_was_given(place: Place, result: str) -> None:
    doubt = paused(place)
    place.on("reconcile", "a", "send", "--confirm", "--result", result, *evidence(doubt))
    said = place.on("resume", "a", "--adapters", TOOLS, "--json")
    assert said.document["results"]["send"] == json.loads(result)


def test_a_result_and_an_evidence_may_come_from_files(place: Place) -> None:
    doubt = paused(place)
    result, found = place.folder / "result.json", place.folder / "found.txt"
    result.write_text('{"id": 8}')
    found.write_text("line 1\n\u00fcber\n")
    words = evidence(doubt)
    at = words.index("--content")
    words[at : at + 2] = ["--evidence", found]
    said = place.on("reconcile", "a", "send", "--confirm", "--result", f"@{result}", *words)
    assert said.code == Exit.OK
    events = place.on("show", "a", "--json").document["events"]
    (confirmed,) = [event for event in events if event["event"] == "confirm"]
    assert confirmed["payload"]["result"] == {"id": 8}
    assert confirmed["payload"]["evidence"]["content"] == "line 1\n\u00fcber\n"


def test_evidence_may_come_from_standard_input(place: Place) -> None:
    doubt = paused(place)
    found = place.folder / "found.txt"
    found.write_text("from a pipe")
    words = evidence(doubt)
    at = words.index("--content")
    words[at : at + 2] = ["--evidence", "-"]
    with found.open() as stdin:
        said = place.process(
            *("reconcile", "a", "send", "--confirm", "--result", "1", "--db", place.database),
            *words,
            stdin=stdin,
        )
    assert said.code == Exit.OK
    assert "from a pipe" in place.on("show", "a").out


def test_refute_lets_the_step_be_sent_anew(place: Place) -> None:
    doubt = paused(place, more={"do": ["fail", "answer"]})
    said = place.on("reconcile", "a", "send", "--refute", "--no-request-can-land", *evidence(doubt))
    assert said.code == Exit.OK
    assert "no attempt of step send of run a happened" in said.out
    assert "ready" not in said.err
    assert place.on("list").out.split()[2] == "ready"
    assert place.on("resume", "a", "--adapters", TOOLS).code == Exit.OK
    assert place.effects("mail") == 1


def test_refute_needs_the_statement_that_nothing_can_land(place: Place) -> None:
    doubt = paused(place)
    said = place.on("reconcile", "a", "send", "--refute", *evidence(doubt))
    assert said.code == Exit.USAGE
    assert "no_request_can_land" in said.err


def test_resend_sends_the_same_key_and_goes_on(place: Place) -> None:
    doubt = paused(place, tool="charge")
    assert doubt["why"] == "attempts_used_up"
    said = place.on("reconcile", "a", "send", "--resend", "--adapters", TOOLS, *evidence(doubt))
    assert said.code == Exit.OK
    assert "a: completed" in said.out
    assert place.effects("charge") == 1


def test_resend_needs_the_adapters(place: Place) -> None:
    doubt = paused(place, tool="charge")
    said = place.on("reconcile", "a", "send", "--resend", *evidence(doubt))
    assert said.code == Exit.ADAPTER
    assert place.on("show", "a", "--json").document["run_state"] == "paused"


def test_resend_is_refused_for_a_tool_that_promises_nothing(place: Place) -> None:
    doubt = paused(place)
    said = place.on("reconcile", "a", "send", "--resend", "--adapters", TOOLS, *evidence(doubt))
    assert said.code == Exit.USAGE
    assert "may do it twice" in said.err
    assert place.effects("mail") == 1


def test_abandon_fails_the_run_and_says_so_for_ever(place: Place) -> None:
    doubt = paused(place)
    said = place.on("abandon", "a", "send", *evidence(doubt))
    assert said.code == Exit.FAILED
    assert "closed without knowing" in said.out
    assert "send: abandoned" in said.out
    assert place.on("resume", "a").code == Exit.FAILED
    assert place.on("abandon", "a", "send", *evidence(doubt)).code == Exit.USAGE


def test_cancel_waits_for_a_step_in_doubt(place: Place) -> None:
    doubt = paused(place)
    said = place.on("cancel", "a", "--who", "ann", "--why", "no longer wanted")
    assert said.code == Exit.PAUSED
    assert "cancelling, and waits for evidence" in said.out
    assert "the run ends as soon as the step is settled" in said.out
    assert "--resend" not in said.out
    words = ("--confirm", "--result", "1", *evidence(doubt))
    assert place.on("reconcile", "a", "send", *words).code == Exit.CANCELLED
    assert place.on("resume", "a").code == Exit.CANCELLED
    assert "asked by ann: no longer wanted" in place.on("show", "a").out


def test_cancel_of_a_killed_run_sends_nothing(place: Place) -> None:
    place.killed("a", ("ask", "quote", {"do": ["die"]}))
    said = place.on("cancel", "a", "--who", "ann", "--why", "no longer wanted")
    assert said.code == Exit.CANCELLED
    assert place.effects("quote") == 1


def test_cancel_of_an_ended_run_answers_its_outcome(place: Place) -> None:
    place.start("a", place.plan(("quote", "quote")))
    assert place.on("cancel", "a", "--who", "ann", "--why", "too late").code == Exit.OK


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"key": "0" * 64}, "key"),
        ({"attempt": 2}, "attempt"),
        ({"attempt": 0}, "whole number"),
        ({"attempt": "99999999999999999999"}, "whole number"),
        ({"attempt": "1_0"}, "whole number"),
        ({"attempt": "\u0661"}, "whole number"),
        ({"attempt": "9" * 5000}, "whole number"),
        ({"who": ""}, "--who is empty"),
        ({"why": " "}, "--why is empty"),
        ({"kind": "<what you looked at>"}, "put what you know"),
        ({"content": "<what you found there>"}, "put what you know"),
        ({"who": "<who you are>"}, "put what you know"),
        ({"why": "<why this settles it>"}, "put what you know"),
        ({"who": "a\0b"}, "NUL"),
        ({"why": "x" * 2001}, "1 to 2000 characters"),
    ],
    ids=str,
)
@pytest.mark.fault("G11")
def test_evidence_about_something_else_is_refused(
    place: Place, changed: Mapping[str, object], says: str
) -> None:
    doubt = paused(place)
    before = place.on("export").out
    words = ("--confirm", "--result", "1", *evidence(doubt, **changed))
    said = place.on("reconcile", "a", "send", *words)
    assert said.code == Exit.USAGE
    assert says in said.err
    assert place.on("export").out == before


@pytest.mark.parametrize(
    "words",
    [
        ("--confirm",),
        ("--refute", "--result", "1"),
        ("--refute", "--adapters", "tools.py"),
        ("--confirm", "--refute"),
        (),
        ("--confirm", "--result", "{"),
        ("--confirm", "--result", ""),
        ("--confirm", "--result", "NaN"),
        ("--confirm", "--result", '{"a": 1, "a": 2}'),
        ("--confirm", "--result", "99999999999999999999"),
        ("--confirm", "--result", "@missing.json"),
        ("--confirm", "--result", "<what the tool returned, as JSON>"),
    ],
    ids=" ".join,
)
def test_a_wrong_way_of_reconciling_is_refused(place: Place, words: tuple[str, ...]) -> None:
    doubt = paused(place)
    said = place.on("reconcile", "a", "send", *words, *evidence(doubt))
    assert said.code == Exit.USAGE
    assert said.err.startswith("agent-replay: ")
    assert place.on("show", "a", "--json").document["run_state"] == "paused"


def test_a_step_that_is_not_in_doubt_takes_no_evidence(place: Place) -> None:
    doubt = paused(place)
    words = ("--confirm", "--result", "1", *evidence(doubt))
    for step in ("quote", "last", "none"):
        assert place.on("reconcile", "a", step, *words).code == Exit.USAGE
    assert place.on("reconcile", "b", "send", *words).code == Exit.NO_RUN


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * ((1 << 20) + 1)], ids=["bytes", "large"])
def test_a_file_that_is_no_evidence_is_refused(place: Place, content: bytes) -> None:
    doubt = paused(place)
    found = place.folder / "found"
    found.write_bytes(content)
    words = evidence(doubt)
    at = words.index("--content")
    for file in (found, place.folder, place.folder / "missing"):
        words[at : at + 2] = ["--evidence", file]
        said = place.on("reconcile", "a", "send", "--confirm", "--result", "1", *words)
        assert said.code == Exit.USAGE


# --- what the doctor prints leads to the end ----------------------------------------------------


def leave(place: Place, tool: str, how: str) -> None:
    """Leave a run unfinished: killed inside of its tool, or paused after a lost reply."""
    script: dict[str, object] = {"do": [how, "answer"]}
    if how == "die":
        place.killed("a", ("send", tool, script))
    else:
        place.start("a", place.plan(("send", tool, script)), "--attempts-max", 1)


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        ("quote", "die"),
        ("charge", "die"),
        ("charge", "lose"),
        ("voucher", "lose"),
        ("book", "die"),
        ("parcel", "die"),
        ("mail", "die"),
        ("mail", "lose"),
    ],
)
def test_the_first_command_of_the_doctor_leads_to_the_end(
    place: Place, tool: str, how: str
) -> None:
    leave(place, tool, how)
    for _ in range(4):
        argv = printed_commands(place.on("doctor").out)
        if not argv:
            break
        assert place.follow(argv[0]).code in (Exit.OK, Exit.PAUSED)
    assert place.on("list").out.split()[2] == "completed"
    assert place.effects(tool) == (2 if tool == "quote" else 1)


HOW = ("--resend", "--confirm", "--refute")


@pytest.mark.parametrize("number", range(4))
def test_each_command_of_the_doctor_leads_to_the_end(place: Place, number: int) -> None:
    leave(place, "charge", "lose")
    argv = printed_commands(place.on("doctor").out)
    assert [" ".join(words[1:2] + [w for w in words if w in HOW]) for words in argv] == [
        "reconcile --resend",
        "reconcile --confirm",
        "reconcile --refute",
        "abandon",
    ]
    said = place.follow(argv[number])
    assert said.code == (Exit.FAILED if number == 3 else Exit.OK)
    for words in printed_commands(place.on("doctor").out):
        assert place.follow(words).code == Exit.OK
    assert place.on("doctor").out.endswith("no run is unfinished\n")
    assert place.effects("charge") == 1


def test_a_command_that_was_pasted_as_it_is_records_nothing(place: Place) -> None:
    leave(place, "mail", "lose")
    before = place.on("export").out
    for words in printed_commands(place.on("doctor").out):
        said = place.run(*words[1:])
        assert said.code == Exit.USAGE
        assert "put what you know in its place" in said.err
    assert place.on("export").out == before


def test_the_doctor_quotes_for_a_shell(place: Place) -> None:
    place.folder = place.folder / "it's; rm -rf $HOME"
    place.folder.mkdir()
    place.database = place.folder / "my runs.db"
    mine = place.folder / "my tools.py"
    mine.write_text(TOOLS.read_text())
    plan = place.plan(("send", "mail", {"do": ["lose", "answer"]}))
    place.on("run", plan, "--run-id", "a", "--adapters", mine)
    refute = printed_commands(place.on("doctor").out)[1]
    assert place.follow(refute).code == Exit.OK
    (resume,) = printed_commands(place.on("doctor").out)
    assert place.follow(resume).code == Exit.OK


def test_a_probe_that_must_wait_is_told_with_its_time(place: Place) -> None:
    place.start("a", place.plan(("send", "parcel", {"do": ["fail", "answer"]})))
    said = place.on("doctor")
    assert re.search(r"says nothing before \d{4}-\d\d-\d\dT", said.out)
    assert printed_commands(said.out)[0][1] == "resume"
    found = place.on("doctor", "--json").document["runs"][0]
    assert found["not_before"] is not None


def test_a_lapsed_key_window_offers_no_resend(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(place, "voucher", "lose")
    assert "--resend" in place.on("doctor").out

    class Tomorrow(SystemClock):
        def read(self) -> Reading:
            now = super().read()
            day = 86_400 * NANOSECONDS
            return now._replace(wall_ns=now.wall_ns + day, boot_ns=now.boot_ns + day)

    monkeypatch.setattr(looking, "SystemClock", Tomorrow)
    said = place.on("doctor")
    assert "--resend" not in said.out
    assert "its key window has lapsed" in said.out


def test_a_hint_is_printed_and_never_loaded(place: Place) -> None:
    trap = place.folder / "trap.py"
    trap.write_text(TOOLS.read_text())
    place.on(
        "run", place.plan(("send", "mail", {"do": ["lose"]})), "--run-id", "a", "--adapters", trap
    )
    trap.write_text("raise SystemExit('it was loaded')")
    assert place.on("doctor").code == Exit.OK
    assert str(trap) in place.on("show", "a").out
    said = place.on("resume", "a")
    assert said.code == Exit.ADAPTER
    assert "loaded" not in said.err


def test_a_run_without_a_hint_asks_where_its_adapters_are(place: Place) -> None:
    plan = place.plan(("send", "mail", {"do": ["lose", "answer"]}))
    with Runtime(place.database, adapters=[tools.mail]) as runtime:
        runtime.run("a", load_plan(plan))
    (found,) = place.on("doctor", "--json").document["runs"]
    refute = found["next"][1]["argv"]
    assert place.follow(refute).code == Exit.OK
    (found,) = place.on("doctor", "--json").document["runs"]
    (resume,) = found["next"]
    assert commands.ADAPTERS in resume["argv"]
    assert place.run(*resume["argv"][1:]).code == Exit.USAGE
    assert place.follow(resume["argv"]).code == Exit.OK


def test_the_doctor_names_a_damaged_run_and_goes_on(place: Place) -> None:
    plan = place.plan(("send", "mail", {"do": ["lose"]}))
    for run in ("a", "b"):
        place.start(run, plan)
    changed(place.database, "update events set payload = '{}' where run = 1 and seq = 1")
    said = place.on("doctor")
    assert said.code == Exit.DAMAGED
    assert "a: damaged" in said.out
    assert "b: paused" in said.out
    assert printed_commands(said.out)[0][1] == "verify"
    said = place.on("doctor", "--json")
    assert said.code == Exit.DAMAGED
    assert [run["standing"] for run in said.document["runs"]] == ["damaged", "paused"]
    said = place.on("list")
    assert said.code == Exit.DAMAGED
    assert [line.split()[2] for line in said.out.splitlines()] == ["damaged", "paused"]


def test_the_doctor_goes_on_where_a_page_ends(place: Place) -> None:
    plan = place.plan(("send", "mail", {"do": ["lose"]}))
    for run in ("a", "b", "c"):
        place.start(run, plan)
    said = place.on("doctor", "--limit", 2)
    assert [line for line in said.out.splitlines() if line.endswith(": paused")] == [
        "a: paused",
        "b: paused",
    ]
    assert "there are more: agent-replay doctor --after 2 --db" in said.err
    told = place.on("doctor", "--json", "--limit", 2).document
    assert ([run["run"] for run in told["runs"]], told["next_after"]) == (["a", "b"], 2)
    told = place.on("doctor", "--json", "--limit", 2, "--after", 2).document
    assert ([run["run"] for run in told["runs"]], told["next_after"]) == (["c"], None)
    assert "no more are unfinished" in place.on("doctor", "--after", 3).out


def test_show_goes_on_where_a_page_ends(place: Place) -> None:
    plan = place.plan(("ask", "quote"), ("send", "mail", {"do": ["lose"]}))
    place.start("a", plan)
    whole = place.on("show", "a", "--json").document
    assert (len(whole["events"]), whole["next_after"]) == (4, None)
    pages = [place.on("show", "a", "--limit", 2, "--after", after) for after in (0, 2)]
    assert "there are more: agent-replay show a --after 2 --db" in pages[0].err
    assert "there are more" not in pages[1].err
    printed = [line.split() for page in pages for line in page.out.splitlines()]
    lines = [line for line in printed if line and line[0].isdecimal()]
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]
    in_one = [line.split() for line in place.on("show", "a").out.splitlines()]
    assert lines == [line for line in in_one if line and line[0].isdecimal()]
    told = place.on("show", "a", "--json", "--limit", 3).document
    assert (told["events"], told["next_after"]) == (whole["events"][:3], 3)
