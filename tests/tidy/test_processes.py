"""No test ends the process that pytest runs in: what dies has a process of its own.

A worker of pytest that leaves takes its tests along, and with some options the run is green all the
same. tests/conftest.py counts what has run; here no test is written that would need to be counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.checkout import PYTHON, ROOT, name_of, tree_of

TESTS = [path for path in PYTHON if path.is_relative_to(ROOT / "tests")]

RUN_APART = {
    "tests/cli/tools.py": "the adapters of commands; those that die are given to processes only",
    "tests/crash/archiver.py": "a program, and the processes that it has killed",
    "tests/crash/worker.py": "the server and its workers",
    "tests/crash/world.py": "the tools of workers",
    "tests/crashtests/fooling.py": "workers that would fool who kills them",
    "tests/mutation/__main__.py": "the run over all mutants, a program",
    "tests/mutation/plugin.py": "in a process that judges one mutant, and is made for that",
    "tests/stateful/fuzz.py": "the nightly search, a program",
    "tests/storage/actors.py": "the actors, each a program of its own",
}
"""Files whose code runs in processes that tests have started."""

ENDING = {
    "os": {"_exit", "abort", "fork", "forkpty", "execl", "execv", "execve", "execvp", "execvpe"},
    "signal": {"raise_signal", "pthread_kill"},
    "sys": {"exit"},
}
"""Functions that end or double the process that calls them, or put another program in its place."""

OWN = {"os.getpid()", "os.getppid()", "os.getpgrp()", "os.getpgid(0)", "0", "-1"}
"""How a process names itself, its group, or whoever runs it."""


def ends_itself(tree: ast.Module) -> Iterator[str]:
    """Yield the calls that would end the process they are made in, and imports of such names."""
    for node in ast.walk(tree):
        match node:
            case ast.Call() if calls_its_end(node):
                yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.Raise() if ast.unparse(node).startswith("raise SystemExit"):
                yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.ImportFrom(module=str(module)):
                names = {alias.name for alias in node.names}
                for name in sorted(names & {*ENDING.get(module, ()), "kill", "killpg"}):
                    yield f"line {node.lineno}: from {module} import {name}"
            case _:
                pass


def calls_its_end(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="os"), attr="kill" | "killpg"):
            return bool(call.args) and ast.unparse(call.args[0]) in OWN
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name in ENDING.get(module, ())
        case ast.Name(id=name):
            return name in ("exit", "quit")
        case _:
            return False


@pytest.mark.fault("M09")
@pytest.mark.parametrize(
    "path", [path for path in TESTS if name_of(path) not in RUN_APART], ids=name_of
)
def test_no_test_ends_the_process_that_it_runs_in(path: Path) -> None:
    assert list(ends_itself(tree_of(path))) == []


@pytest.mark.parametrize("name", RUN_APART)
def test_the_list_of_files_that_run_apart_is_no_longer_than_needed(name: str) -> None:
    assert not name.rpartition("/")[2].startswith(("test_", "conftest"))
    assert list(ends_itself(tree_of(ROOT / name)))


@pytest.mark.parametrize(
    "code",
    [
        "os._exit(0)",
        "os.abort()",
        "os.fork()",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.killpg(0, signal.SIGKILL)",
        "os.killpg(os.getpgrp(), 9)",
        "signal.raise_signal(signal.SIGKILL)",
        "sys.exit(1)",
        "exit()",
        "raise SystemExit(1)",
        "raise SystemExit",
        "from os import _exit",
        "from os import kill",
    ],
)
def test_a_call_that_ends_its_own_process_is_found(code: str) -> None:
    assert len(list(ends_itself(ast.parse(f"def test_it():\n    {code}\n")))) == 1


@pytest.mark.parametrize(
    "code",
    ["os.kill(child.pid, 9)", "os.killpg(process.pid, 9)", "'os._exit(0)'", "self.exit(0)"],
)
def test_the_end_of_another_process_is_left_alone(code: str) -> None:
    assert list(ends_itself(ast.parse(code))) == []
