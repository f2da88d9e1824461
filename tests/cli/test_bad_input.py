"""Bad input ends in one line and a code, never in a traceback, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_replay.cli.exits import Exit
from tests.cli.support import TOOLS, Place, environment

STRANGE_IDS = [
    "",
    " ",
    "%",
    "_",
    "a%",
    "a'",
    'a"',
    "a;--",
    "a; drop table runs;--",
    "a]",
    "a\n",
    "a b",
    "../x",
    "..",
    ".",
    "/etc/x",
    "a/b",
    "C:\\x",
    "a\0b",
    "-x",
    "a ",
    "A\u0301",
    "\u0430",
    "x" * 129,
    "\udcff",
]


@pytest.fixture
def filled(place: Place) -> Place:
    """A place with a finished run and a paused one."""
    place.start("a", place.plan(("quote", "quote")))
    place.start("ab", place.plan(("mail", "mail", {"do": ["lose"]})))
    return place


@pytest.mark.fault("A09")
@pytest.mark.fault("L01")
@pytest.mark.fault("L03")
@pytest.mark.parametrize("strange", STRANGE_IDS, ids=ascii)
def test_a_strange_id_names_no_run(filled: Place, strange: str) -> None:
    before = filled.on("export").out, sorted(os.listdir(filled.folder))
    plan = filled.folder / "plan.json"
    given = ("--attempt", 1, "--key", "k", "--kind", "k", "--content", "c", "--who", "w")
    for words in (
        ("run", plan, f"--run-id={strange}", "--adapters", TOOLS),
        ("resume", "--", strange),
        ("show", "--", strange),
        ("cancel", "--who", "w", "--why", "y", "--", strange),
        ("abandon", *given, "--why", "y", "--", strange, "mail"),
        ("abandon", *given, "--why", "y", "--", "ab", strange),
    ):
        said = filled.run(*words[:1], "--db", filled.database, *words[1:])
        assert said.code == Exit.USAGE, words
        assert said.out == ""
        assert said.err.startswith("agent-replay: ")
        assert said.err.count("\n") == 1
        assert said.err[:-1].isprintable()
    assert (filled.on("export").out, sorted(os.listdir(filled.folder))) == before


@pytest.mark.fault("L01")
def test_an_id_is_compared_exactly(filled: Place) -> None:
    for other in ("A", "aB", "a.", "a_", "b"):
        assert filled.on("show", other).code == Exit.NO_RUN
    assert filled.on("show", "a").code == Exit.OK


@pytest.mark.fault("G11")
@pytest.mark.parametrize(
    "number", ["99999999999999999999", "9" * 5000, "-1", "1.5", "1e3", "0x10", "", "\u0661", "nan"]
)
def test_a_strange_number_is_refused(filled: Place, number: str) -> None:
    plan = filled.folder / "plan.json"
    for words in (
        ("list", f"--after={number}"),
        ("list", f"--limit={number}"),
        ("run", plan, "--run-id", "n", "--adapters", TOOLS, f"--attempts-max={number}"),
        ("verify", f"--expect-head=a={number}:{'0' * 64}"),
    ):
        said = filled.on(*words)
        assert said.code == Exit.USAGE
        assert "number" in said.err
        assert len(said.err) < 400
    assert filled.on("show", "n").code == Exit.NO_RUN


def test_the_limit_of_attempts_has_a_limit(place: Place) -> None:
    plan = place.plan(("quote", "quote"))
    for number in (0, 1001):
        assert place.start("a", plan, "--attempts-max", number).code == Exit.USAGE
    assert not place.database.exists()


@pytest.mark.parametrize("head", ["a", "a=1", "a=1:xyz", "=1:" + "0" * 64, "a=1:" + "0" * 63])
def test_a_strange_head_is_refused(filled: Place, head: str) -> None:
    assert filled.on("verify", "--expect-head", head).code == Exit.USAGE


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("unknown",),
        ("run",),
        ("resume",),
        ("resume", "a", "--all"),
        ("list", "--unknown"),
        ("list", "--af", "1"),
        ("list", "\x1b[31m"),
        ("plan",),
        ("plan", "check"),
        ("plan", "check", "missing.json"),
        ("plan", "check", "."),
        ("show",),
        ("cancel", "a"),
        ("cancel", "a", "--who", "<who you are>", "--why", "x"),
    ],
    ids=ascii,
)
def test_a_wrong_command_line_is_told_in_a_line(place: Place, words: tuple[str, ...]) -> None:
    place.start("a", place.plan(("quote", "quote")))
    said = place.run(*words, *(() if words[:1] in ((), ("unknown",)) else ("--db", place.database)))
    assert said.code == Exit.USAGE
    assert said.err.startswith("agent-replay: ")
    assert said.err.count("\n") == 1
    assert "\x1b" not in said.err


def test_a_database_that_is_not_there_is_not_made(place: Place) -> None:
    given = ("--attempt", 1, "--key", "k", "--kind", "k", "--content", "c", "--who", "w")
    for words in (
        ("list",),
        ("show", "a"),
        ("doctor",),
        ("verify",),
        ("export",),
        ("resume", "a"),
        ("resume", "--all"),
        ("cancel", "a", "--who", "w", "--why", "y"),
        ("abandon", "a", "s", *given, "--why", "y"),
        ("reconcile", "a", "s", "--refute", *given, "--why", "y"),
    ):
        said = place.on(*words)
        assert said.code == Exit.USAGE
        assert f"there is no database at {place.database}" in said.err
        assert place.run(*words).err == (
            "agent-replay: name the database: give --db FILE, or set AGENT_REPLAY_DB\n"
        )
    assert os.listdir(place.folder) == []


def test_a_file_that_is_no_database_is_left_as_it_is(place: Place) -> None:
    text = place.folder / "text.db"
    text.write_text("not a database, but long enough to be taken for the header of one, perhaps")
    link = place.folder / "link.db"
    link.symlink_to(text)
    empty = place.folder / "empty.db"
    empty.touch()
    for path in (text, link, empty, place.folder):
        for words in (("list",), ("doctor",), ("resume", "a"), ("verify",)):
            said = place.run(*words, "--db", path)
            assert said.code == Exit.USAGE
            assert said.err.count("\n") == 1
    assert text.read_text().startswith("not a database")
    assert sorted(os.listdir(place.folder)) == ["empty.db", "link.db", "text.db"]


def test_a_folder_that_is_not_there_is_told(place: Place) -> None:
    plan = place.plan(("quote", "quote"))
    place.database = place.folder / "none" / "runs.db"
    said = place.start("a", plan)
    assert said.code == Exit.USAGE
    assert "does not exist" in said.err


def test_words_that_are_no_text_are_refused(place: Place) -> None:
    """The system hands a process bytes; those that are no UTF-8 arrive as lone surrogates."""
    for words in (
        ("list", "--db", b"\xff.db"),
        ("show", b"\xff", "--db", "runs.db"),
        ("run", b"\xff.json", "--run-id", "a", "--db", "runs.db"),
    ):
        said = place.process(*[os.fsdecode(word) for word in words])
        assert said.code == Exit.USAGE
        assert "is not UTF-8: '\\udcff" in said.err
        assert "Traceback" not in said.err


def test_a_path_of_the_environment_that_is_no_text_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_REPLAY_DB", os.fsdecode(b"\xff.db"))
    assert "PATH" in environment()
    said = place.run("list")
    assert said.code == Exit.USAGE
    assert "is not UTF-8" in said.err


def test_a_terminal_that_knows_only_ascii_gets_escapes(place: Place) -> None:
    folder = place.folder / "f\u00fcr"
    folder.mkdir()
    place.database = folder / "runs.db"
    said = place.start("a", place.plan(("quote", "quote")))
    assert said.code == Exit.OK
    os.environ["PYTHONIOENCODING"] = "ascii"
    try:
        said = place.process("doctor", "--db", place.database)
    finally:
        del os.environ["PYTHONIOENCODING"]
    assert said.code == Exit.OK
    assert "f\\xfcr" in said.out


def test_another_plan_under_a_known_id_is_refused_with_the_difference(filled: Place) -> None:
    said = filled.start("a", filled.plan(("quote", "quote", {"secret": "canary"})))
    assert said.code == Exit.USAGE
    assert "arguments differ" in said.err
    assert "canary" not in said.err


def test_a_plan_that_is_wrong_leaves_no_database(place: Place) -> None:
    plan = place.plan(("quote", "quote"))
    plan.write_text("{")
    assert place.start("a", plan).code == Exit.USAGE
    assert not place.database.exists()


def test_a_namespace_that_is_not_the_databases_is_refused(place: Place) -> None:
    plan = place.plan(("quote", "quote"))
    assert place.start("a", plan, "--namespace", "shop").code == Exit.OK
    assert place.start("a", plan, "--namespace", "shop").code == Exit.OK
    assert place.start("a", plan, "--namespace", "other").code == Exit.USAGE
    assert "namespace shop" in place.on("doctor").out
    for strange in ("", "\n", "x" * 300):
        place.database = Path(f"{place.database}-2")
        assert place.start("a", plan, f"--namespace={strange}").code == Exit.USAGE
