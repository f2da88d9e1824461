"""The command `archive`, and how the others tell of archived runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_replay.cli.exits import Exit
from tests.cli.support import TOOLS, Place, on_a_terminal
from tests.cli.tools import effects

ORDER = (("quote", "quote"), ("charge", "charge"))


@pytest.fixture
def ordered(place: Place) -> Place:
    """Give a place with two finished runs and one that waits."""
    for run in ("a", "b"):
        assert place.start(run, place.plan(*ORDER)).code == Exit.OK
    waits = place.plan(("mail", "mail", {"do": ["lose"]}))
    place.start("waits", waits)
    return place


def archives(place: Place) -> list[Path]:
    return sorted(Path(f"{place.database}.archive").glob("*"))


def test_what_has_ended_is_archived_and_told(ordered: Place) -> None:
    said = ordered.on("archive")
    (file,) = archives(ordered)
    assert said.code == Exit.OK
    first, last = said.out.splitlines()
    assert first.startswith(f"{file}: 2 runs, sha256 ")
    assert last == "2 runs and 8 events moved into 1 archive"
    assert ordered.on("archive").out == "0 runs and 0 events moved into 0 archives\n"
    document = ordered.on("archive", "a", "--json").document
    assert document == {"archives": []}


def test_named_runs_and_another_folder(ordered: Place) -> None:
    folder = ordered.folder / "cold"
    document = ordered.on("archive", "b", "--to", folder, "--json").document
    (archive,) = document["archives"]
    assert (archive["runs"], archive["events"]) == (["b"], 4)
    assert Path(archive["file"]).parent == folder
    assert archives(ordered) == []
    assert ordered.on("archive", "--older-than", "1", "--json").document == {"archives": []}
    assert len(ordered.on("archive", "--older-than", "0", "--json").document["archives"]) == 1


def test_what_is_not_acceptable_is_refused(ordered: Place) -> None:
    assert ordered.on("archive", "a", "--older-than", "1").code == Exit.USAGE
    assert ordered.on("archive", "--older-than", "x").code == Exit.USAGE
    said = ordered.on("archive", "nobody")
    assert said.code == Exit.NO_RUN
    assert ordered.on("archive", "a", "b", "--to", ordered.database).code == Exit.USAGE
    assert ordered.run("archive", "--db", ordered.folder / "no.db").code == Exit.USAGE
    assert archives(ordered) == []


def test_the_others_answer_from_the_archive(ordered: Place) -> None:
    shown = ordered.on("show", "a", "--json").document
    calls = len(effects())
    ordered.on("archive")
    (file,) = archives(ordered)
    again = ordered.on("show", "a", "--json").document
    assert again == {**shown, "archive": str(file)}
    assert f"archived in {file}" in ordered.on("show", "a").out
    lines = ordered.on("list").out.splitlines()
    assert "completed" in lines[0]
    assert f"archived in runs.db.archive/{file.name}" in lines[0]
    assert "archived" not in lines[2]
    listed = ordered.on("list", "--json").document["runs"]
    assert [run["archive"] for run in listed[:2]] == [f"runs.db.archive/{file.name}"] * 2
    assert listed[2]["archive"] is None
    said = ordered.start("a", ordered.plan(*ORDER), "--json")
    assert said.code == Exit.OK
    assert said.document["state"] == "completed"
    assert ordered.on("resume", "a", "--adapters", TOOLS).code == Exit.OK
    assert len(effects()) == calls
    assert "waits" in ordered.on("doctor").out
    tables = [json.loads(line)["table"] for line in ordered.on("export").out.splitlines()]
    assert tables.count("archived") == 2


def test_verify_reads_the_archives(ordered: Place) -> None:
    ordered.on("archive")
    (file,) = archives(ordered)
    said = ordered.on("verify")
    assert said.code == Exit.OK
    assert "2 of the runs are archived, 1 archives read" in said.out
    alone = ordered.run("verify", file)
    assert alone.code == Exit.OK
    assert alone.out.startswith("sound: 2 runs and 8 events were looked at, sha256 ")
    document = ordered.run("verify", file, "--json").document
    assert (document["sound"], document["runs"]) == (True, 2)
    data = file.read_bytes()
    file.write_bytes(data[:-9])
    assert ordered.run("verify", file).code == Exit.DAMAGED
    assert ordered.run("verify", file, "--json").document["sound"] is False
    assert ordered.on("verify").code == Exit.DAMAGED
    assert ordered.on("show", "a").code == Exit.DAMAGED
    assert ordered.on("verify", "--no-archives").code == Exit.OK
    assert ordered.run("verify", file, "--db", ordered.database).code == Exit.USAGE
    said = ordered.run("verify", ordered.database)
    assert said.code == Exit.USAGE
    assert f"is a database and no archive: use verify --db {ordered.database}" in said.err
    assert ordered.run("verify", ordered.folder).code == Exit.USAGE


def test_an_archive_that_is_missing_is_named(ordered: Place) -> None:
    ordered.on("archive")
    (file,) = archives(ordered)
    calls = len(effects())
    file.rename(ordered.folder / "away")
    said = ordered.on("verify")
    assert said.code == Exit.STORAGE
    assert str(file) in said.out
    assert "not complete" in said.out
    assert ordered.on("verify", "--json").document["missing"] != []
    for words in (("show", "a"), ("resume", "a", "--adapters", TOOLS)):
        said = ordered.on(*words)
        assert said.code == Exit.STORAGE
        assert str(file) in said.err
    assert ordered.start("a", ordered.plan(*ORDER)).code == Exit.STORAGE
    assert ordered.start("a", ordered.plan(("x", "quote"))).code == Exit.USAGE
    assert ordered.on("list").code == Exit.OK
    assert ordered.run("verify", file).code == Exit.STORAGE
    assert len(effects()) == calls


def test_a_file_that_nobody_refers_to_is_named_kindly(ordered: Place) -> None:
    ordered.on("archive", "a")
    (file,) = archives(ordered)
    orphan = file.with_name("1-1-0000.jsonl.gz")
    orphan.write_bytes(file.read_bytes())
    said = ordered.on("verify")
    assert said.code == Exit.OK
    assert f"note: {orphan} belongs to no archived run" in said.err
    assert f"{orphan} belongs to no archived run" in ordered.on("doctor").out
    (told,) = ordered.on("verify", "--json").document["orphans"]
    assert told["file"] == str(orphan)
    assert "in archives that it names" in told["says"]


def test_an_export_says_what_is_not_in_it(ordered: Place) -> None:
    assert "archived" not in ordered.on("export").err
    ordered.on("archive", "a")
    assert "note: 1 of the runs are archived" in ordered.on("export").err


def test_nothing_is_said_to_have_moved_where_an_error_came_first(ordered: Place) -> None:
    said = ordered.on("archive", "waits")
    assert said.code == Exit.USAGE
    assert said.out == ""
    assert ordered.on("archive", "a").code == Exit.OK
    assert ordered.on("archive", "a").out == "0 runs and 0 events moved into 0 archives\n"


def test_progress_is_for_a_terminal(ordered: Place) -> None:
    seen = on_a_terminal(ordered, "archive", "--db", ordered.database)
    assert "2 runs and 8 events moved into 1 archive ..." in seen
