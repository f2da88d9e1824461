"""A fresh matrix holds, and differs from the recorded one only in what must differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crashtests import verify
from crashtests.cases import CASES
from tests.crashtests.modules import ROOT, run
from tests.crashtests.paths import no_paths

RECORDED = ROOT / "results" / "crash-matrix.json"

DIFFERS = {"pid", "wall_ns", "boot_ns", "opened_ns", "created_ns", "boot_id", "host"}
"""Processes, times and places; and what is drawn, or a hash of these."""
DRAWN = {"writer", "hash", "digest"}


def stable(value: Any) -> Any:
    """Return what of a report must be the same each time."""
    if isinstance(value, dict):
        kept = {name: stable(inner) for name, inner in value.items() if name not in DIFFERS | DRAWN}
        if "payload" in kept:
            kept["payload"] = without_times(json.loads(kept["payload"]))
        return kept
    return [stable(inner) for inner in value] if isinstance(value, list) else value


def without_times(payload: Any) -> Any:
    """Return what a row says, without the times and the digest of the adapter's source."""
    return {name: value for name, value in payload.items() if name not in ("source", "evidence")}


@pytest.mark.invariant("S1")
@pytest.mark.invariant("S2")
@pytest.mark.invariant("S3")
def test_a_fresh_matrix_holds_and_is_the_recorded_one(tmp_path: Path) -> None:
    output = tmp_path / "crash-matrix.json"
    done = run("crashtests.reproduce", "--quiet", "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    fresh = json.loads(output.read_text(encoding="utf-8"))
    assert verify.findings(fresh) == []
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert [row["case"] for row in fresh["cases"]] == [case.name for case in CASES]
    for one, other in zip(fresh["cases"], recorded["cases"], strict=True):
        assert stable(one) == stable(other), one["case"]
        assert one["database"] is None or no_paths(one["database"]) == [], one["case"]
    assert output.with_suffix(".md").exists()
    assert output.with_suffix(".svg").exists()
