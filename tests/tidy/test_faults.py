"""The list of known faults is whole, and each that counts as tested is cited by a test."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.checkout import PYTHON, ROOT, name_of, tree_of

FAULTS_EXACTLY = 88
TESTS = [path for path in PYTHON if path.is_relative_to(ROOT / "tests")]
FAULTS = tomllib.loads((ROOT / "tests" / "faults.toml").read_text(encoding="utf-8"))["fault"]
TESTED = {fault["id"] for fault in FAULTS if fault["status"] == "tested"}


def cited(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, id) for each `pytest.mark.fault("ID")`; the id is "" where it is no text."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault"):
            continue
        for argument in node.args or [ast.Constant("")]:
            value = argument.value if isinstance(argument, ast.Constant) else None
            yield node.lineno, value if isinstance(value, str) else ""


def bare(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that name the marker without calling it, which would cite nothing."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="fault") if id(node) not in called:
                if ast.unparse(node) == "pytest.mark.fault":
                    yield node.lineno
            case _:
                pass


def test_every_fault_has_a_row() -> None:
    ids = [fault["id"] for fault in FAULTS]
    assert len(ids) == FAULTS_EXACTLY
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["id"])
def test_a_row_is_well_formed(fault: dict[str, str]) -> None:
    assert re.fullmatch(r"[A-N]\d\d", fault["id"])
    assert len(fault["title"].split()) >= 3
    assert fault["status"] in {"tested", "later", "not-applicable"}
    wanted = {"id", "title", "status"} | (set() if fault["status"] == "tested" else {"why"})
    assert set(fault) == wanted
    assert all(text.strip() for text in fault.values())


@pytest.mark.parametrize("fault", sorted(TESTED))
def test_a_tested_fault_is_cited(fault: str) -> None:
    assert fault in cited_anywhere()


@cache
def cited_anywhere() -> set[str]:
    files = [path for path in TESTS if path.name.startswith("test_")]
    return {id_ for path in files for _line, id_ in cited(tree_of(path))}


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_only_tested_faults_are_cited(path: Path) -> None:
    tree = tree_of(path)
    assert [(line, id_) for line, id_ in cited(tree) if id_ not in TESTED] == []
    assert list(bare(tree)) == []


def test_a_citation_is_found_wherever_it_stands() -> None:
    code = (
        "pytestmark = pytest.mark.fault('A01')\n"
        "@pytest.mark.fault('A02', 'A04')\n"
        "def test_it(): pytest.param(1, marks=pytest.mark.fault('A06'))\n"
        "pytest.mark.fault(name)\n"
        "pytest.mark.fault\n"
    )
    found = sorted(cited(ast.parse(code)))
    assert found == [(1, "A01"), (2, "A02"), (2, "A04"), (3, "A06"), (4, "")]
    assert list(bare(ast.parse(code))) == [5]
