"""Finished runs in archives: the same answers, no second execution, and nothing lost."""

from __future__ import annotations

import gzip
import json
import os
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from agent_replay import (
    ArchiveError,
    DamagedHistory,
    Evidence,
    EvidenceRefused,
    InvalidInput,
    Json,
    NoSuchRun,
    PlanMismatch,
    Request,
    Runtime,
    adapter,
)
from agent_replay import archiving as acts
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.outcome import Outcome
from agent_replay.store.archive import leaving, place
from agent_replay.store.reader import Reader
from agent_replay.store.verify import ExpectedHead, verify
from tests.outside import Ledger, ManualClock, plan_of, tools
from tests.storage.archives import archives_of, copy_with_archives, opened, taken_away
from tests.storage.histories import PLANS, content, copy_of, every_kind, forger, open_runtime

COUNTS = ("writers", "runs", "steps", "events", "heads", "chains", "archived")


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    return copy_of(every_kind, tmp_path)


@pytest.fixture
def archived(tmp_path: Path) -> Path:
    return copy_with_archives(tmp_path)


def told(outcome: Outcome) -> tuple[object, ...]:
    """Return all that an outcome says."""
    return (*outcome[:2], dict(outcome.results), *outcome[3:])


def outcomes(path: Path) -> dict[str, tuple[object, ...]]:
    with opened(path) as runtime:
        return {run: told(runtime.outcome(run)) for run in PLANS}


# --- the same answers ---------------------------------------------------------------------------


@pytest.mark.invariant("S5")
@pytest.mark.invariant("S8")
@pytest.mark.fault("D01")
def test_an_archived_run_answers_as_before_and_calls_nothing(lived: Path) -> None:
    before = outcomes(lived)
    ledger = Ledger()
    with opened(lived, ledger) as runtime:
        made = runtime.archive()
        for run in [run for archive in made for run in archive.runs]:
            plan = PLANS[run]
            assert told(runtime.run(run, plan)) == before[run]
            assert told(runtime.resume(run)) == before[run]
            assert told(runtime.cancel(run, who="ada", why="late")) == before[run]
    assert ledger.calls == []
    assert outcomes(lived) == before
    ended = {run for run, outcome in before.items() if outcome[1] in TERMINAL}
    assert {run for archive in made for run in archive.runs} == ended
    verdict = verify(lived)
    assert verdict.sound
    assert (verdict.runs, verdict.archived, verdict.archives) == (len(PLANS), len(ended), 1)
    assert sum(archive.events for archive in made) > 20


def test_what_is_read_of_an_archived_run_is_what_was_read_before(lived: Path) -> None:
    def seen() -> object:
        with Reader(lived) as reader:
            shown = []
            for run in PLANS:
                history, events = reader.read(run, after=1, limit=3)
                writers = reader.writers_of(history)
                shown.append((history.head, history.results, events, writers, history.steps))
            return shown

    before = seen()
    with opened(lived) as runtime:
        runtime.archive()
    assert seen() == before


def test_a_list_says_where_a_run_is(archived: Path) -> None:
    with Reader(archived) as reader:
        lines = {line.id: line for line in reader.summaries()}
        assert reader.unfinished() == [
            (line.run, line.id) for line in lines.values() if line.archive is None
        ]
        assert lines["done"].run_state == "completed"
        assert str(lines["done"].archive).startswith("runs.db.archive/1-3-")
        assert (lines["open"].archive, lines["open"].run_state) == (None, "running")
        assert reader.orphans() == []
        tables = [table for table, _, _ in reader.export()]
        assert tables.count("archived") == len(lines) - len(reader.unfinished())


def test_no_row_is_left_and_the_registrations_stay(lived: Path, tmp_path: Path) -> None:
    before = content(lived)
    with opened(lived) as runtime:
        (made,) = runtime.archive()
    after = content(lived)
    assert after["runs"] == before["runs"]
    gone = {row[0] for row in after["archived"]}
    for table in ("events", "steps", "heads"):
        assert after[table] == [row for row in before[table] if row[0] not in gone]
    text = gzip.decompress(Path(made.file).read_bytes()).decode("ascii")
    lines = [json.loads(line) for line in text.splitlines()]
    for table, name in (("events", "event"), ("steps", "step"), ("heads", "head")):
        there = [tuple(line.values())[1:] for line in lines if line["table"] == name]
        plain = [
            tuple(value.hex() if isinstance(value, bytes) else value for value in row)
            for row in before[table]
            if row[0] in gone
        ]
        assert there == plain


def test_expected_heads_are_found_in_archives(lived: Path) -> None:
    events = [row for row in content(lived)["events"] if row[0] == 1]
    with opened(lived) as runtime:
        runtime.archive()
    for row in events:
        assert isinstance(row[1], int)
        assert isinstance(row[-1], bytes)
        right = ExpectedHead("done", row[1], row[-1].hex())
        assert verify(lived, expected=[right]).sound
        assert not verify(lived, expected=[right._replace(hash="0" * 64)]).sound
    assert not verify(lived, expected=[ExpectedHead("done", len(events) + 1, "0" * 64)]).sound


# --- which runs ---------------------------------------------------------------------------------


def test_a_run_that_has_not_ended_is_refused_and_nothing_is_archived(lived: Path) -> None:
    before = content(lived)
    with opened(lived) as runtime:
        for run in ("open", "paused"):
            with pytest.raises(InvalidInput, match=f"run {run} is"):
                runtime.archive(["done", run])
        with pytest.raises(NoSuchRun):
            runtime.archive(["done", "nobody"])
        with pytest.raises(InvalidInput, match="brackets"):
            runtime.archive("done")
        with pytest.raises(InvalidInput, match="not both"):
            runtime.archive(["done"], older_than_seconds=1)
        for wrong in (-1, float("nan"), True):
            with pytest.raises(InvalidInput, match="older_than_seconds"):
                runtime.archive(older_than_seconds=wrong)
        assert runtime.archive([]) == []
    assert content(lived) == before
    assert archives_of(lived) == []


def test_a_run_is_archived_once(lived: Path) -> None:
    with opened(lived) as runtime:
        (first,) = runtime.archive(["done", "done", "refused"])
        assert first.runs == ("done", "refused")
        assert runtime.archive(["done"]) == []
        (rest,) = runtime.archive()
        assert not {"done", "refused"} & {*rest.runs}
        assert runtime.archive() == []
    assert archives_of(lived) == sorted(map(Path, (first.file, rest.file)))
    assert verify(lived).archives == 2


def test_only_runs_that_ended_long_enough_ago_are_archived(tmp_path: Path) -> None:
    clock = ManualClock()
    plan = plan_of(("a", "look"))
    with open_runtime(tmp_path / "runs.db", Ledger(), clock) as runtime:
        runtime.run("old", plan)
        clock.pass_by(100)
        runtime.run("new", plan)
        clock.pass_by(10)
        assert runtime.archive(older_than_seconds=200) == []
        (made,) = runtime.archive(older_than_seconds=50)
        assert made.runs == ("old",)
        (made,) = runtime.archive(older_than_seconds=10)
        assert made.runs == ("new",)


def test_many_runs_go_into_several_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "RUNS_MAX", 3)
    monkeypatch.setattr(acts, "EVENTS_MAX", 7)
    short, long = plan_of(("a", "look")), plan_of(*((f"s{n}", "look") for n in range(5)))
    with opened(tmp_path / "runs.db") as runtime:
        for number in range(10):
            runtime.run(f"run-{number}", long if number == 4 else short)
        made = runtime.archive()
        assert [len(archive.runs) for archive in made] == [3, 1, 1, 3, 2]
        assert [run for archive in made for run in archive.runs] == [
            f"run-{number}" for number in range(10)
        ]
        assert runtime.outcome("run-4").completed
    assert verify(tmp_path / "runs.db").sound


def test_a_run_that_is_under_way_is_left_out(tmp_path: Path) -> None:
    """It has ended by its rows, and its driver has not returned yet."""
    inside, go_on = threading.Event(), threading.Event()

    def told_by_the_hook(run: str, event: object) -> None:
        if run == "busy" and getattr(event, "run_state", "") == "completed":
            inside.set()
            assert go_on.wait(30)

    path = tmp_path / "runs.db"
    with Runtime(path, adapters=tools(Ledger()), on_event=told_by_the_hook, log_bytes=0) as runtime:
        runtime.run("done", plan_of(("a", "look")))
        thread = threading.Thread(target=runtime.run, args=("busy", plan_of(("a", "look"))))
        thread.start()
        try:
            assert inside.wait(30)
            with pytest.raises(InvalidInput, match="run busy is under way"):
                runtime.archive(["busy"])
            (made,) = runtime.archive()
            assert made.runs == ("done",)
        finally:
            go_on.set()
            thread.join(30)
        (made,) = runtime.archive()
        assert made.runs == ("busy",)
    assert verify(path).sound


def test_other_runs_go_on_while_archives_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "RUNS_MAX", 5)
    path = tmp_path / "runs.db"
    ledger = Ledger()
    with opened(path, ledger) as runtime:
        for number in range(40):
            runtime.run(f"old-{number}", plan_of(("a", "look")))
        thread = threading.Thread(target=runtime.archive)
        thread.start()
        for number in range(40):
            assert runtime.run(f"new-{number}", plan_of(("a", "keyed"))).completed
            assert runtime.run(f"old-{number}", plan_of(("a", "look"))).completed
        thread.join(60)
        assert not thread.is_alive()
        assert ledger.called("a") == 80
    assert verify(path).sound


# --- the id stays in use ------------------------------------------------------------------------


@pytest.mark.invariant("S2")
@pytest.mark.fault("D01")
def test_without_its_archive_a_run_is_never_run_again(archived: Path) -> None:
    there = archives_of(archived)
    elsewhere = taken_away(archived)
    before = content(archived)
    ledger = Ledger()
    with opened(archived, ledger) as runtime:
        asked: tuple[Callable[[], object], ...] = (
            lambda: runtime.run("done", PLANS["done"]),
            lambda: runtime.resume("done"),
            lambda: runtime.outcome("done"),
            lambda: runtime.cancel("done", who="ada", why="late"),
        )
        for ask in asked:
            with pytest.raises(ArchiveError, match="is not there") as caught:
                ask()
            assert str(there[0].parent) in str(caught.value)
        with pytest.raises(PlanMismatch, match="run done has another plan"):
            runtime.run("done", PLANS["open"])
        ended = list(runtime.run_many([("done", PLANS["done"]), ("fresh", plan_of(("x", "look")))]))
        assert {run: type(error) for run, _, error in ended} == {
            "done": ArchiveError,
            "fresh": type(None),
        }
    assert ledger.calls == [("x", 1)]
    after = content(archived)
    assert after["archived"] == before["archived"]
    verdict = verify(archived)
    assert (verdict.findings, verdict.complete, len(verdict.missing)) == ((), False, 2)
    assert str(there[0]) in verdict.missing[0] + verdict.missing[1]
    assert verify(archived, archives=False).sound
    elsewhere.rename(there[0].parent)
    assert verify(archived).sound


def test_another_plan_is_refused_for_an_archived_run(archived: Path) -> None:
    with opened(archived) as runtime, pytest.raises(PlanMismatch, match="arguments differ"):
        runtime.run("done", PLANS["open"])


def test_evidence_about_an_archived_run_is_refused(archived: Path) -> None:
    evidence = Evidence("done", "a", 1, "x", "log", {}, "ada", "why", no_request_can_land=True)
    with opened(archived) as runtime:
        for act in (runtime.refute, runtime.abandon, runtime.resend):
            with pytest.raises(EvidenceRefused):
                act(evidence)


def test_archives_move_with_the_database(archived: Path, tmp_path: Path) -> None:
    target = tmp_path / "moved"
    target.mkdir()
    for file in sorted(tmp_path.glob("runs.db*")):
        file.rename(target / file.name.replace("runs.db", "other.db"))
    with opened(target / "other.db") as runtime:
        assert runtime.outcome("done").completed
    assert verify(target / "other.db").sound


# --- the file -----------------------------------------------------------------------------------


@pytest.mark.fault("L05")
def test_an_archive_is_for_its_owner_alone(lived: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with opened(lived) as runtime:
            (one,) = runtime.archive(["done"])
            (other,) = runtime.archive(["refused"], folder=tmp_path / "cold")
    finally:
        os.umask(before)
    for file in (one.file, other.file):
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(Path(file).parent).st_mode) == 0o700
    assert [row[6] for row in content(lived)["archived"]] == [
        f"runs.db.archive/{Path(one.file).name}",
        f"cold/{Path(other.file).name}",
    ]


def test_an_archive_elsewhere_is_named_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = copy_of(every_kind, tmp_path / "a")
    with opened(path) as runtime:
        (made,) = runtime.archive(["done"], folder=tmp_path / "b")
        assert content(path)["archived"][0][6] == made.file == str(tmp_path / "b" / made.file)
        assert runtime.outcome("done").completed
    assert verify(path).sound


def test_an_archive_whose_runs_did_not_leave_is_taken_the_next_time(lived: Path) -> None:
    with opened(lived) as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaving, "leave", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            runtime.archive(["done"])
        (left,) = archives_of(lived)
    with Reader(lived) as reader:
        assert reader.orphans() == [str(left)]
    data = left.read_bytes()
    with opened(lived) as runtime:
        (made,) = runtime.archive(["done"])
    assert (made.file, left.read_bytes()) == (str(left), data)
    with Reader(lived) as reader:
        assert reader.orphans() == []


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_file_that_is_not_whole_is_left_alone(lived: Path, keep: int) -> None:
    copy = lived.with_name("copy.db")
    copy.write_bytes(lived.read_bytes())
    with opened(copy) as runtime:
        (made,) = runtime.archive(["done"])
    folder = Path(f"{lived}.archive")
    folder.mkdir()
    broken = folder / Path(made.file).name
    broken.write_bytes(Path(made.file).read_bytes()[:keep])
    with opened(lived) as runtime:
        (again,) = runtime.archive(["done"])
    assert again.file == str(broken).replace(place.ENDING, f".2{place.ENDING}")
    assert broken.read_bytes() == Path(made.file).read_bytes()[:keep]
    assert Path(again.file).read_bytes() == Path(made.file).read_bytes()
    with Reader(lived) as reader:
        assert reader.orphans() == [str(broken)]
    assert verify(lived).sound


@pytest.mark.fault("E04")
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_a_row_that_names_a_file_of_the_database_opens_nothing(archived: Path, end: str) -> None:
    with opened(archived) as runtime:
        with forger(archived) as connection:
            connection.execute("update archived set file = ?", (f"runs.db{end}",))
        with pytest.raises(DamagedHistory, match="a file of the database itself"):
            runtime.outcome("done")


def test_something_else_in_the_place_of_an_archive_is_no_archive(archived: Path) -> None:
    file = archives_of(archived)[0]
    data = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    assert not verify(archived).sound
    file.unlink()
    file.with_name("x").write_bytes(data)
    file.symlink_to("x")
    assert not verify(archived).sound


def test_a_folder_that_cannot_be_one_is_named(lived: Path, tmp_path: Path) -> None:
    before = content(lived)
    with opened(lived) as runtime:
        with pytest.raises(InvalidInput, match="no directory"):
            runtime.archive(["done"], folder=lived)
        with pytest.raises(ArchiveError, match="cannot be made"):
            runtime.archive(["done"], folder=tmp_path / "no" / "such")
    after = content(lived)
    assert {t: after[t] for t in COUNTS} == {t: before[t] for t in COUNTS}


# --- the storage fails --------------------------------------------------------------------------


@pytest.mark.fault("E01")
@pytest.mark.parametrize("name", ["write", "fsync", "close"])
@pytest.mark.parametrize("code", [28, 5])
def test_an_archive_that_cannot_be_written_leaves_the_runs_where_they_are(
    lived: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    before = content(lived)
    original = getattr(os, name)

    def failing(descriptor: int, *rest: object) -> object:
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        if ".archive" in target and target.endswith(place.ENDING):
            if name == "close":
                original(descriptor)
            raise OSError(code, os.strerror(code))
        return original(descriptor, *rest)

    with opened(lived) as runtime:
        monkeypatch.setattr(os, name, failing)
        with pytest.raises(ArchiveError, match="Its runs stay in the database"):
            runtime.archive(["done"])
        monkeypatch.undo()
        assert content(lived) == before
        assert archives_of(lived) == []
        assert runtime.outcome("done").completed
        (made,) = runtime.archive(["done"])
        assert made.runs == ("done",)
    assert verify(lived).sound


def test_what_is_read_back_is_not_believed_blindly(
    lived: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that stores something else than was written."""
    before = content(lived)
    original = os.write

    def lying(descriptor: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(place.ENDING) and len(data) > 40:
            data = bytes(data[:30]) + bytes([data[30] ^ 1]) + bytes(data[31:])
        return original(descriptor, data)

    with opened(lived) as runtime:
        monkeypatch.setattr(os, "write", lying)
        with pytest.raises(DamagedHistory, match="archive"):
            runtime.archive(["done"])
        monkeypatch.undo()
        assert content(lived) == before
        assert archives_of(lived) == []


def test_the_space_is_used_again(tmp_path: Path) -> None:
    """There is no vacuum: the file keeps its size, and what comes next has its place in it."""
    path = tmp_path / "runs.db"
    arguments: Json = {"result": "x" * 3000}
    big = plan_of(*((f"s{n}", "look", arguments) for n in range(30)))
    with opened(path) as runtime:
        runtime.run("one", big)
        runtime.archive()
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("freelist_count") > 20
        pages = connection.pragma("page_count")
    for name in ("two", "three"):
        with opened(path) as runtime:
            runtime.run(name, big)
            runtime.archive()
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("page_count") <= pages + 5


def test_a_result_is_returned_from_an_archive_as_it_was(tmp_path: Path) -> None:
    values: list[Json] = [
        None,
        0,
        "",
        [],
        {},
        "\U0001f600 é \x00 \u2028",
        2**70,
        1.5,
        {"ü": ["\n"]},
    ]

    @adapter(name="say")
    def say(request: Request) -> Json:
        return values[int(request.step[1:])]

    steps: list[Json] = [
        {"id": f"s{n}", "adapter": "say@1", "contract": "opaque", "arguments": {}}
        for n in range(len(values))
    ]
    with Runtime(tmp_path / "runs.db", adapters=[say], log_bytes=0) as runtime:
        before = dict(runtime.run("all", {"plan": 1, "steps": steps}).results)
        runtime.archive()
        assert dict(runtime.run("all", {"plan": 1, "steps": steps}).results) == before
    assert list(before.values()) == values


def test_verify_looks_into_archives_unless_it_is_told_not_to(tmp_path: Path) -> None:
    path = copy_with_archives(tmp_path)
    assert verify(path).archives == 2
    without = verify(path, archives=False)
    assert without.sound
    assert (without.archives, without.archived) == (0, verify(path).archived)
