"""Adapters are loaded from where the command line says, or refused before there is a database."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agent_replay.cli.exits import Exit
from agent_replay.cli.loading import load_adapters
from tests.cli.support import TOOLS, Place

HEAD = "from agent_replay import adapter, read_only\n"
ONE = HEAD + "@adapter(contract=read_only())\ndef {name}(request):\n    return {result!r}\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(*given: object) -> list[str]:
    return [adapter.name for adapter in load_adapters([str(each) for each in given]).adapters]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_gives_all_of_its_adapters_or_one() -> None:
    assert names(TOOLS) == ["quote", "charge", "voucher", "book", "parcel", "mail"]
    assert names(f"{TOOLS}:book") == ["book"]


def test_a_module_gives_all_of_its_adapters_or_one(folder: Path) -> None:
    write(folder, "cli_tools_one/__init__.py", "")
    write(folder, "cli_tools_one/inner.py", ONE.format(name="pay", result=1) + "other = pay\n")
    assert names("cli_tools_one.inner") == ["pay"]
    assert names("cli_tools_one.inner:other", "cli_tools_one.inner:pay") == ["pay"]


def test_an_adapter_that_is_found_twice_counts_once(folder: Path) -> None:
    file = write(folder, "mine.py", ONE.format(name="pay", result=1) + "again = pay\n")
    assert names(file, "mine.py", "./mine.py:again", file) == ["pay"]


def test_two_files_of_one_name_are_two(folder: Path) -> None:
    write(folder, "one/mine.py", ONE.format(name="pay", result=1))
    write(folder, "two/mine.py", ONE.format(name="send", result=1))
    assert names("one/mine.py", "two/mine.py") == ["pay", "send"]


def test_a_file_finds_what_lies_beside_it(folder: Path) -> None:
    write(folder, "shop/cli_beside.py", "RATE = 3\n")
    write(folder, "shop/mine.py", "import cli_beside\n" + ONE.format(name="pay", result=1))
    assert names("shop/mine.py") == ["pay"]


def test_a_file_that_has_changed_is_run_anew(folder: Path) -> None:
    """The cache of compiled code tells files apart by size and second, which here are the same."""
    file = write(folder, "mine.py", ONE.format(name="pay", result=1))
    moment = file.stat().st_mtime
    assert names(file) == ["pay"]
    file.write_text(ONE.format(name="fee", result=1))
    os.utime(file, (moment, moment))
    assert names(file) == ["fee"]
    assert not (folder / "__pycache__").exists()


def test_where_they_came_from_is_told_for_any_folder(folder: Path) -> None:
    file = write(folder, "shop/mine.py", ONE.format(name="pay", result=1))
    loaded = load_adapters(["shop/mine.py", "shop/../shop/mine.py:pay"])
    assert loaded.sources == (str(file), f"{file}:pay")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "there are no adapters in it"),
        ("def f(:\n", "line 1: the adapters cannot be loaded: SyntaxError: "),
        ("\nimport cli_not_there\n", "line 2: the adapters cannot be loaded: ModuleNotFoundError"),
        ("x = 1\ny = x / 0\n", "line 2: the adapters cannot be loaded: ZeroDivisionError: div"),
        ("import sys\nsys.exit('go')\n", "line 2: the adapters cannot be loaded: SystemExit: go"),
        ("raise ValueError('\x1b[31m' + 'x' * 999)\n", "ValueError: \\u001b[31mxxx"),
        (HEAD + "@adapter(name='a b')\ndef f(r): ...\n", "InvalidInput: adapter name"),
        (HEAD + "@adapter\nasync def f(r): ...\n", "InvalidInput: adapter f: a coroutine"),
        ("\0", "cannot be loaded: "),
    ],
    ids=ascii,
)
def test_a_file_that_does_not_load_says_why_in_a_line(place: Place, text: str, says: str) -> None:
    file = write(place.folder, "mine.py", text)
    plan = place.plan(("quote", "quote"))
    said = place.on("run", plan, "--run-id", "a", "--adapters", file)
    assert said.code == Exit.USAGE
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.err[:-1].isprintable()
    assert str(file) in said.err
    assert not place.database.exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("missing.py", "there is no such file"),
        ("missing.py:pay", "there is no such file"),
        ("cli_missing", "there is no module cli_missing"),
        ("os.cli_missing", "there is no module os.cli_missing"),
        ("cli_missing.inner", "there is no module cli_missing"),
        ("os", "there are no adapters in it"),
        ("os:getcwd", "getcwd is no adapter"),
        ("os:missing", "missing is not there; its adapters are: none"),
        (f"{TOOLS}:missing", "its adapters are: quote, charge"),
        (f"{TOOLS}:a b", "give the name of an adapter"),
        ("os:", "give the name of an adapter"),
        ("", "neither a file"),
        ("a:b:c", "neither a file"),
        ("./tools", "neither a file"),
        ("../x.txt", "neither a file"),
        ("a..b", "neither a file"),
        (".py:", "give the name of an adapter"),
        ("./x/.py", "there is no such file"),
    ],
)
def test_a_place_without_adapters_is_refused(place: Place, given: str, says: str) -> None:
    plan = place.plan(("quote", "quote"))
    said = place.on("run", plan, "--run-id", "a", f"--adapters={given}")
    assert said.code == Exit.USAGE
    assert says in said.err
    assert not place.database.exists()


def test_two_adapters_of_one_identity_are_refused(place: Place) -> None:
    write(place.folder, "one.py", ONE.format(name="pay", result=1))
    write(place.folder, "two.py", ONE.format(name="pay", result=2))
    plan = place.plan(("quote", "quote"))
    words = ("--adapters", place.folder / "one.py", "--adapters", place.folder / "two.py")
    said = place.on("run", plan, "--run-id", "a", *words)
    assert said.code == Exit.USAGE
    assert "pay@1 is registered twice" in said.err
    assert not place.database.exists()
