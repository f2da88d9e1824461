"""How values look: escaped, bounded, and never with a negative length of time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_replay import Json, Request, Runtime, adapter, read_plan
from agent_replay.clock import NANOSECONDS, Reading
from agent_replay.contracts import Terms
from agent_replay.lifecycles.step import Contract
from agent_replay.recovery import Why
from agent_replay.report import commands, words
from agent_replay.report.commands import Caller, Subject
from agent_replay.report.diagnosis import Standing, standing_of
from agent_replay.report.timeline import event_lines, header_lines
from agent_replay.store.reader import Reader


@given(st.text())
def test_whatever_is_printed_prints_as_itself(text: str) -> None:
    assert words.safe(text).isprintable()
    assert words.bounded(text, 10).isprintable()


@given(st.text(st.characters(codec="utf-8")))
def test_json_stays_json_when_it_is_escaped(text: str) -> None:
    assert json.loads(words.shown_json(text, 10_000)) == text


def test_plain_text_is_left_alone() -> None:
    assert (
        words.safe("Gr\u00fc\u00dfe, \u4f60\u597d \U0001f44b")
        == "Gr\u00fc\u00dfe, \u4f60\u597d \U0001f44b"
    )
    assert words.safe("a\x1b[2J\u202eb\x7f\u2028") == "a\\u001b[2J\\u202eb\\u007f\\u2028"
    assert words.bounded("x" * 5, 4) == "xxxx... (5 characters)"


@pytest.mark.parametrize("why", list(Why))
def test_each_reason_has_a_sentence(why: Why) -> None:
    assert why in words.WHY
    assert bool(words.WHY[why]) == bool(why.value)


def test_a_reason_of_another_release_is_shown_as_it_is() -> None:
    assert words.why_in_words("new\x1breason") == "new\\u001breason"


def test_each_contract_has_its_recovery() -> None:
    assert set(words.RECOVERY) == set(Contract)


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (2**63 - 1, "2262-04-11T23:47:16.854775Z"),
        (-(2**63), "1677-09-21T00:12:43.145224Z"),
        (10**30, f"{10**30} ns"),
    ],
)
def test_a_moment_is_utc(wall_ns: int, text: str) -> None:
    assert words.utc(wall_ns) == text


@given(st.integers(), st.integers())
def test_no_length_of_time_is_negative(since: int, now: int) -> None:
    assert "-" not in words.elapsed(since, now)


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (Terms(Contract.OPAQUE), "opaque"),
        (Terms(Contract.IDEMPOTENT), "idempotent, key window without end"),
        (
            Terms(Contract.IDEMPOTENT, 86_400 * NANOSECONDS, 90 * NANOSECONDS),
            "idempotent, key window 1 d, lands within 90 s",
        ),
        (
            Terms(Contract.QUERYABLE, settles_within_ns=NANOSECONDS // 1000),
            "queryable, settles within 0.001 s",
        ),
    ],
)
def test_terms_are_read_in_words(terms: Terms, text: str) -> None:
    assert words.terms_in_words(terms) == text


# --- commands -----------------------------------------------------------------------------------

CALLER = Caller(("agent-replay",), "/a/runs.db")


@pytest.mark.parametrize(
    ("hint", "sources"),
    [
        ("", ()),
        (" ", ()),
        ('["a.py", "b:c"]', ("a.py", "b:c")),
        ("my_app.adapters", ("my_app.adapters",)),
        ("[1, null]", ()),
        ("{}", ("{}",)),
        ("[" * 100_000, ("[" * 100_000,)),
    ],
)
def test_a_hint_may_be_anything(hint: str, sources: tuple[str, ...]) -> None:
    assert commands.sources_of(hint) == sources


def test_a_hint_is_not_taken_for_an_option() -> None:
    act = commands.resume(CALLER, "a", commands.hint_of(["--all", "x; y"]), "")
    assert act.argv[-3:] == ("--adapters=--all", "--adapters", "x; y")
    assert act.command.endswith("--adapters=--all --adapters 'x; y'")


def test_what_only_a_person_knows_is_marked() -> None:
    subject = Subject("a", "s", 1, "k")
    for act in (commands.confirm(CALLER, subject), commands.abandon(CALLER, subject)):
        marked = [word for word in act.argv if commands.is_placeholder(word)]
        assert {commands.KIND, commands.CONTENT, commands.WHO, commands.REASON} <= set(marked)


# --- how a run stands ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "step", "in_hand", "standing"),
    [
        ("running", "requested", False, Standing.INTERRUPTED),
        ("running", "requested", True, Standing.RUNNING),
        ("running", "planned", False, Standing.READY),
        ("paused", "in_doubt", False, Standing.PAUSED),
        ("paused", "in_doubt", True, Standing.PAUSED),
        ("cancelling", "in_doubt", False, Standing.CANCELLING),
        ("cancelling", "requested", False, Standing.INTERRUPTED),
        ("completed", "succeeded", False, Standing.COMPLETED),
        ("failed", "failed", True, Standing.FAILED),
        ("cancelled", "planned", False, Standing.CANCELLED),
        (None, None, False, Standing.DAMAGED),
        ("running", "strange", False, Standing.DAMAGED),
    ],
)
def test_a_run_stands_as_its_head_says(
    run: str | None, step: str | None, *, in_hand: bool, standing: Standing
) -> None:
    assert standing_of(run, step, in_hand=in_hand) is standing


# --- the timeline -------------------------------------------------------------------------------


class Backwards:
    """A clock that goes back by a second at each reading."""

    def __init__(self) -> None:
        self._wall_ns = 1_700_000_000 * NANOSECONDS

    def read(self) -> Reading:
        self._wall_ns -= NANOSECONDS
        return Reading(self._wall_ns, 1, "boot")


@adapter
def mail(request: Request) -> Json:
    return {"said": "\x1b]0;title\x07" + "x" * 1000}


def test_a_timeline_survives_clocks_and_tools_of_any_kind(tmp_path: Path) -> None:
    step = {"id": "s", "adapter": "mail@1", "contract": "opaque", "arguments": {}}
    plan = read_plan(json.dumps({"plan": 1, "steps": [step]}))
    path = tmp_path / "runs.db"
    with Runtime(path, adapters=[mail], clock=Backwards(), hint="\x1b[31m") as runtime:
        runtime.run("a", plan)
    with Reader(path) as reader:
        history, events = reader.read("a")
    lines = event_lines(history, events)
    assert len(lines) == 2
    assert "clock went back" in lines[1]
    assert "... (1032 characters)" in lines[1]
    header = list(header_lines(history, [], standing="completed"))
    assert "  loaded from  \\u001b[31m" in header
    assert all(line.isprintable() for line in [*lines, *header])
