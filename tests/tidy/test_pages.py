"""Checks of the text: pages point at what is there, and nothing is left unfinished."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.checkout import FILES, PACKAGE, PAGES, ROOT, name_of, text_of

UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")


def test_what_is_unfinished_names_an_issue() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    assert found == []


SYSTEM = ("/dev/", "/etc/", "/proc/", "/sys/", "/tmp/", "/usr/", "/var/")
"""Absolute paths that a page may name: they mean the same on every machine."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\s]+)`")
ABSOLUTE = re.compile(r"(?<![\w./:~*)\]>-])/[a-z][\w.-]*/[\w./-]*")
NAMED_FILE = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*\.(?:md|py|toml|sql|json|txt|pml|sh)")


def dead_references(page: Path, text: str) -> Iterator[str]:
    """Yield what a page points at and the checkout does not have."""
    for target in LINK.findall(text):
        path, _, _anchor = target.partition("#")
        if path and "://" not in target and not target.startswith("mailto:"):
            place = (page.parent / path).resolve()
            if not (place.is_relative_to(ROOT) and place.exists()):
                yield f"the link {target}"
    for span in SPAN.findall(text):
        if NAMED_FILE.fullmatch(span) and not names_a_file(page, span):
            yield f"the file {span}"
    for path in ABSOLUTE.findall(text):
        if not path.startswith(SYSTEM):
            yield f"the path {path}"


def names_a_file(page: Path, name: str) -> bool:
    """Say whether a path is one of the checkout, the page's folder, or the installed package."""
    if name.startswith("agent_replay/spec/"):  # where the wheel puts it
        name = name.removeprefix("agent_replay/")
    return any(any(base.glob(name)) for base in (ROOT, page.parent, PACKAGE.parent, PACKAGE))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_nothing_outside_of_the_checkout(page: Path) -> None:
    assert list(dead_references(page, text_of(page))) == []


def test_a_dead_reference_is_found() -> None:
    page = ROOT / "docs" / "page.md"
    wrong = "[a](../../else.md) `other/notes.md` and /opt/secret/notes"
    assert list(dead_references(page, wrong)) == [
        "the link ../../else.md",
        "the file other/notes.md",
        "the path /opt/secret/notes",
    ]
    right = (
        "[a](../LICENSE) [b](https://example.org/a/b) `tests/conftest.py` `and/or` /proc/self/fd"
    )
    assert list(dead_references(page, right)) == []
