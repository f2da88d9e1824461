"""The nightly search runs, says how far it is, and keeps what fails as a script."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.stateful import fuzz
from tests.stateful.lab import Lab
from tests.stateful.search import nightly, search
from tests.stateful.test_guards import without_pending


def test_a_failure_is_kept_as_a_program(tmp_path: Path) -> None:
    failure = AssertionError("no")
    failure.add_note("--- a script ---\nfrom tests.stateful.lab import Lab\n")
    path = fuzz.keep(failure, 7, tmp_path)
    assert path.read_text() == "from tests.stateful.lab import Lab\n"
    assert fuzz.keep(failure, 8, tmp_path) == path


def test_a_failure_without_a_script_names_its_seed(tmp_path: Path) -> None:
    assert "7" in fuzz.keep(ValueError("no"), 7, tmp_path).read_text()


def test_what_failed_is_replayed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the database of examples, whatever the seed of the next search is."""
    without_pending(monkeypatch)
    database = DirectoryBasedExampleDatabase(tmp_path)
    profile = settings(nightly(database, 300), phases=[Phase.reuse, Phase.generate])
    made: list[str] = []
    make = Lab.__init__

    def counted(lab: Lab) -> None:
        made.append("lab")
        make(lab)

    monkeypatch.setattr(Lab, "__init__", counted)
    for seed, labs_max in ((1, 300), (2, 3)):
        made.clear()
        with pytest.raises(AssertionError):
            search(profile, seed)
        assert len(made) <= labs_max


@pytest.mark.slow
def test_it_searches_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seconds", "1", "--workers", "1", "--folder", str(tmp_path)]
    assert fuzz.main(words) == 0, (tmp_path / "stateful.err").read_text()
    assert "100 examples" in capsys.readouterr().out
