"""The process that kills is not fooled: what was not killed where it was to be is no evidence."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from crashtests import cases
from crashtests.child import Fooled
from crashtests.evidence import database_of, ledger_of
from crashtests.parent import Worker
from crashtests.reproduce import run_case


def test_a_worker_is_killed_where_it_announced_itself(tmp_path: Path) -> None:
    with Worker(tmp_path, "idempotent", "run", cases.AFTER_EFFECT) as worker:
        killed = worker.killed_at(cases.AFTER_EFFECT)
    assert killed.termination == -signal.SIGKILL
    assert killed.handshake["pid"] == killed.pid
    assert len(ledger_of(tmp_path)["effects"]) == 1


def test_a_worker_that_finishes_was_not_killed(tmp_path: Path) -> None:
    with Worker(tmp_path, "idempotent", "run") as worker, pytest.raises(Fooled, match="finished"):
        worker.killed_at(cases.AFTER_EFFECT)


def test_a_worker_at_another_checkpoint_was_not_killed_there(tmp_path: Path) -> None:
    with (
        Worker(tmp_path, "idempotent", "run", cases.AFTER_REQUEST) as worker,
        pytest.raises(Fooled, match="was to reach 'after effect'"),
    ):
        worker.killed_at(cases.AFTER_EFFECT)


def test_a_worker_that_fails_says_why(tmp_path: Path) -> None:
    with (
        Worker(tmp_path, "nothing", "run") as worker,
        pytest.raises(Fooled, match="invalid choice"),
    ):
        worker.killed_at(cases.AFTER_EFFECT)


def test_a_worker_that_dies_by_itself_was_not_killed(tmp_path: Path) -> None:
    with Worker(tmp_path, "idempotent", "run", cases.AFTER_EFFECT) as worker:
        os.kill(worker.pid, signal.SIGTERM)
        with pytest.raises(Fooled):
            worker.killed_at(cases.AFTER_EFFECT)


def test_a_worker_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    with Worker(tmp_path, "idempotent", "run", cases.AFTER_EFFECT) as worker:
        assert worker.hear() is not None
        with pytest.raises(Fooled, match="said nothing"):
            worker.hear(seconds=0.05)


def test_a_worker_that_waits_has_not_finished(tmp_path: Path) -> None:
    with (
        Worker(tmp_path, "idempotent", "run", cases.AFTER_EFFECT) as worker,
        pytest.raises(Fooled, match="was to finish"),
    ):
        worker.finished()


def test_a_case_in_a_folder_that_was_used_is_no_case(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        run_case(cases.CASES[0], tmp_path)


def test_where_nothing_ran_there_is_no_history(tmp_path: Path) -> None:
    assert database_of(tmp_path) is None
    assert ledger_of(tmp_path) == {"effects": [], "receipts": []}
