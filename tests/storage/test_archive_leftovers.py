"""Archives to which no row refers: each is told for what it is, and none is called superfluous that
may be the only copy of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_replay import ArchiveError, Runtime, archiving
from agent_replay.store.archive import leaving
from agent_replay.store.archive.making import Made
from agent_replay.store.reader import Reader
from agent_replay.store.verify import verify
from tests.outside import Ledger, plan_of
from tests.storage.archives import archives_of, copy_with_archives, opened
from tests.storage.histories import copy_of, every_kind


def told(path: Path) -> dict[str, str]:
    """Return what is said of each file, by its name."""
    with Reader(path) as reader:
        found = reader.leftovers()
        assert [one.file for one in found] == reader.orphans()
    return {Path(one.file).name: one.says for one in found}


def test_of_runs_that_have_not_left_it_is_said_so(tmp_path: Path) -> None:
    path = copy_of(every_kind, tmp_path)
    before = path.read_bytes()
    with opened(path) as runtime:
        runtime.archive(["done"])
    shutil.rmtree(tmp_path / "before", ignore_errors=True)
    (file,) = archives_of(path)
    kept = file.read_bytes()
    other = tmp_path / "again"
    other.mkdir()
    again = other / path.name
    again.write_bytes(before)
    place = Path(f"{again}.archive")
    place.mkdir()
    (place / file.name).write_bytes(kept)
    assert told(again)[file.name].startswith("its runs are still in the database")
    with opened(again) as runtime:
        assert "A process holds the database" in told(again)[file.name]
        (made,) = runtime.archive(["done"])
        assert Path(made.file).name == file.name
    assert told(again) == {}


def test_the_only_copy_of_a_run_is_to_be_kept(tmp_path: Path) -> None:
    """The database was put back from a copy that is older than the run."""
    path = copy_of(every_kind, tmp_path)
    before = path.read_bytes()
    with opened(path) as runtime:
        runtime.run("later", plan_of(("a", "look")))
        runtime.archive(["later"])
    path.write_bytes(before)
    Path(f"{path}-wal").write_bytes(b"")
    (says,) = told(path).values()
    assert says.startswith("it holds 1 runs that the database does not have, as later: keep it")


def test_the_archive_of_another_database_is_left_to_it(tmp_path: Path) -> None:
    path = copy_with_archives(tmp_path)
    other = tmp_path / "other.db"
    with Runtime(other, log_bytes=0):
        pass
    shutil.copytree(f"{path}.archive", f"{other}.archive")
    assert set(told(other).values()) == {
        "it is an archive of another database: keep it for that one"
    }


def test_what_is_not_whole_is_not_called_superfluous(tmp_path: Path) -> None:
    path = copy_with_archives(tmp_path)
    file = archives_of(path)[0]
    broken = file.with_name(f"9-{file.name}")
    broken.write_bytes(file.read_bytes()[:-20])
    foreign = file.with_name("notes.jsonl.gz")
    foreign.write_bytes(b"hello")
    copy = file.with_name(f"8-{file.name}")
    copy.write_bytes(file.read_bytes())
    found = told(path)
    assert found.keys() == {broken.name, foreign.name, copy.name}
    for name in (broken.name, foreign.name):
        assert found[name].startswith("it is not a whole archive")
        assert "keep it unless each of its runs is in the database" in found[name]
    assert found[copy.name].startswith("its runs are in the database or in archives that it names")


def test_a_link_in_the_place_of_an_archive_is_no_leftover(tmp_path: Path) -> None:
    path = copy_with_archives(tmp_path)
    file = archives_of(path)[0]
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert told(path) == {}
    assert not verify(path).sound


def test_a_file_that_is_taken_away_too_early_leaves_its_runs_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy_of(every_kind, tmp_path)
    check = leaving._check_place

    def taken_away(made: Made) -> None:
        Path(made.path).unlink()
        check(made)

    monkeypatch.setattr(leaving, "_check_place", taken_away)
    ledger = Ledger()
    with opened(path, ledger) as runtime:
        with pytest.raises(ArchiveError, match="was taken away before its runs had left"):
            runtime.archive(["done"])
        assert runtime.resume("done").completed
        assert runtime.run("new", plan_of(("a", "look"))).completed
    assert verify(path).sound
    assert verify(path).archived == 0
    assert len(ledger.calls) == 1


def test_runs_that_another_thread_has_archived_meanwhile_are_left_out(tmp_path: Path) -> None:
    path = copy_of(every_kind, tmp_path)
    with opened(path) as runtime:
        listed = archiving.archive(runtime, ["done", "refused"])
        every = archiving.archive(runtime)
        assert len(runtime.archive(["done"])) == 1
        assert [archive.runs for archive in listed] == [("refused",)]
        (rest,) = every
        assert not {"done", "refused"} & {*rest.runs}
    assert verify(path).sound
