"""The verifier of the matrix: every leaf that is damaged is named, or stands on a short list."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crashtests import judgement, provenance, sources, verify
from crashtests.cases import CASES, HEADLINE
from crashtests.independent.lifecycle import Lifecycle

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDED = ROOT / "results" / "crash-matrix.json"
LIFECYCLE = Lifecycle()

FREE = {"pid", "created", "revision", "clean", "python", "sqlite", "platform", "file_system"}
"""Fields that a forger may change, if the digests are computed anew: time, place and process."""

QUICK = (HEADLINE[1], HEADLINE[4], HEADLINE[6])
"""The cases whose every leaf is damaged in `make test`; all of them are in `make test-all`."""

Path_ = tuple[str | int, ...]


@pytest.fixture(scope="module")
def report() -> Any:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path


def parent_of(value: Any, path: Path_) -> Any:
    for part in path[:-1]:
        value = value[part]
    return value


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        last = value[-1:]
        return value[:-1] + ("0" if last != "0" else "1") if value else "x"
    return 0


def change(record: Any, path: Path_) -> bool:
    holder = parent_of(record, path)
    holder[path[-1]] = changed(holder[path[-1]])
    return True


def remove(record: Any, path: Path_) -> bool:
    del parent_of(record, path)[path[-1]]
    return True


def swap(record: Any, path: Path_) -> bool:
    """Swap a leaf with its neighbour, if the two differ."""
    holder = parent_of(record, path)
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    at = names.index(path[-1])
    if at + 1 == len(names):
        return False
    here, there = names[at], names[at + 1]
    if holder[here] == holder[there]:
        return False
    holder[here], holder[there] = holder[there], holder[here]
    return True


DAMAGES: dict[str, Callable[[Any, Path_], bool]] = {
    "changed": change,
    "removed": remove,
    "swapped": swap,
}


def judged(record: Any, name: str) -> list[str]:
    case = next(case for case in CASES if case.name == name)
    return list(provenance.guarded(judgement.complaints, record, case, LIFECYCLE))


@pytest.mark.fault("M04")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(case.name, marks=() if case in QUICK else (pytest.mark.slow,), id=case.name)
        for case in CASES
    ],
)
def test_every_damaged_leaf_of_a_case_is_refused(report: Any, name: str, damage: str) -> None:
    """Also with the case's own digest computed anew, which stops nobody but an accident."""
    record = next(row for row in report["cases"] if row["case"] == name)
    assert judged(record, name) == []
    damaged = 0
    for path in leaves(record):
        again = copy.deepcopy(record)
        if not DAMAGES[damage](again, path):
            continue
        damaged += 1
        assert judged(again, name), f"{path} was {damage}"
        if path != ("digest",) and "digest" in again:
            again["digest"] = judgement.digest_of(again)
            if not judged(again, name):
                assert path[-1] in FREE, f"{path} was {damage}, and the digest with it"
    assert damaged > 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_leaf_about_the_report_is_refused(report: Any, damage: str) -> None:
    for path in leaves(report["about"]):
        again = {**report, "about": copy.deepcopy(report["about"]), "cases": report["cases"][:0]}
        if DAMAGES[damage](again["about"], path):
            found = verify.findings(again, recorded=True)
            assert any(one.startswith("about:") for one in found), f"{path} was {damage}"


def _without(report: Any, number: int) -> Any:
    return [row for at, row in enumerate(report["cases"]) if at != number]


@pytest.mark.fault("M04")
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda r: r["cases"].clear(), "holds no case"),
        (lambda r: r["cases"].pop(3), "is missing"),
        (lambda r: r["cases"].append(r["cases"][0]), "stands there 2 times"),
        (lambda r: r["cases"][2].update(case="renamed"), "not one of the matrix"),
        (lambda r: r["cases"].reverse(), "in its order"),
        (lambda r: r["cases"][1].update(kills=[]), "kills"),
        (lambda r: [row.update(kills=[], finishes=[]) for row in r["cases"]], "kills"),
        (lambda r: r["cases"].__setitem__(0, None), "not one of the matrix"),
        (lambda r: r["cases"].__setitem__(0, r["cases"][1] | {"case": CASES[0].name}), "kills"),
        (lambda r: r.update(format=2), "format"),
        (lambda r: r.pop("about"), "not an object"),
        (lambda r: r.update(about=None), "malformed"),
        (lambda r: r.update(cases={}), "holds no case"),
        (lambda r: r["cases"][4]["finishes"].pop(), "finishes"),
        (lambda r: r["cases"][0].update(database=None), "history"),
        (lambda r: r["cases"][0]["database"]["events"].clear(), "no events"),
    ],
)
def test_a_report_that_is_not_the_matrix_is_refused(
    report: Any, spoil: Callable[[Any], object], says: str
) -> None:
    again = copy.deepcopy(report)
    spoil(again)
    assert any(says in finding for finding in verify.findings(again, recorded=True))


@pytest.mark.parametrize("value", [None, [], {}, 3, "x", {"format": 1, "about": {}, "cases": [7]}])
def test_what_is_no_report_is_refused(value: Any) -> None:
    assert verify.findings(value)


@pytest.mark.fault("M04")
@pytest.mark.parametrize("part", [0, 1, 1000, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, part: int) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(RECORDED.read_bytes()[: part if part >= 0 else -2])
    assert verify.main([str(path)]) == 2


def test_the_recorded_report_holds_but_for_sources_that_went_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify.main([str(RECORDED), "--recorded"]) == 0
    assert "hold" in capsys.readouterr().out


def test_a_source_that_differs_is_named(report: Any) -> None:
    again = copy.deepcopy(report)
    again["about"]["sources"] = {**sources.hashes(), "crashtests/cases.py": "0" * 64}
    assert "sources: crashtests/cases.py has changed" in verify.findings(again)
    assert not [f for f in verify.findings(again, recorded=True) if f.startswith("sources")]


def test_a_report_about_another_spec_than_that_of_its_histories_is_refused(report: Any) -> None:
    about = {**report["about"], "spec": {**report["about"]["spec"], "moves": "0" * 64}}
    about["digest"] = judgement.digest_of(about)
    found = verify.findings({**report, "about": about}, recorded=True)
    assert len(found) == len([row for row in report["cases"] if row["database"]])
    assert all("its history is of another spec" in finding for finding in found)


def test_the_verifier_runs_on_a_bare_checkout(tmp_path: Path) -> None:
    """Isolated from everything that is installed, with only the checkout on its path."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from crashtests.verify import main; "
        f"code = main([{str(RECORDED)!r}, '--recorded']); "
        "assert not {'agent_replay', 'apsw', 'transitions'} & sys.modules.keys(); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
