"""A tool is found by its import path in a child that was not forked, or nothing is written.

What only a forked child knows: lambdas, nested functions, what was defined in a program that is not
a module. The start methods spawn and forkserver begin with an empty interpreter, and the program
that starts it may be a module, a script without a suffix, text on standard input, or a zip.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS_MAX = 60.0

SHOP = """
import os, signal
from agent_replay import Runtime, adapter, idempotent, read_only
from agent_replay.cli.loading import load_adapters

@adapter(contract=idempotent())
def charge(request):
    with open(os.environ["WORLD"], "a+") as world:
        world.seek(0)
        if request.key not in world.read().split():
            world.write(request.key + "\\n")
    if "DIES" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"charged": True}

@adapter(contract=read_only())
def look(request):
    return None

STEP = {"id": "pay", "adapter": "charge@1", "contract": "idempotent", "arguments": {}}

def work(database, path):
    loaded = load_adapters([path]).adapters
    with Runtime(database, adapters=loaded) as runtime:
        outcome = runtime.run("order", {"plan": 1, "steps": [STEP]})
    print(outcome.state, outcome.results["pay"], flush=True)

def call(given):
    raise SystemExit("it was called")
"""
START = """
import multiprocessing, sys
import shop
from agent_replay import adapter

def main():
    method, database, path = sys.argv[1:]
    if method == "directly":
        return shop.work(database, path)
    # What is sent to the child must be found there by its name, too.
    sends = {"adapter": (shop.call, (shop.charge,)), "lambda": (lambda: None, ())}
    target, arguments = sends.get(path, (shop.work, (database, path)))
    context = multiprocessing.get_context(method)
    child = context.Process(target=target, args=arguments)
    child.start()
    child.join()
    sys.exit(child.exitcode % 256)

if __name__ == "__main__":

    @adapter
    def only_here(request):
        return None

    main()
"""


class Said(NamedTuple):
    """How a program ended, and what it wrote."""

    status: int
    out: str
    errors: str


class Shop:
    """A folder with a tool, a program that starts a child for it, and a database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.database = folder / "runs.db"
        self._world = folder / "world"
        (folder / "code").mkdir()
        (folder / "code" / "shop.py").write_text(SHOP, encoding="utf-8")
        for name in ("start.py", "start"):
            (folder / "code" / name).write_text(START, encoding="utf-8")
        with zipfile.ZipFile(folder / "start.zip", "w") as archive:
            archive.writestr("shop.py", SHOP)
            archive.writestr("__main__.py", START)

    def start(self, program: str, method: str, path: str = "shop:charge", **more: str) -> Said:
        """Run the program to its end, and leave nothing of it behind."""
        words = {
            "module": ["-m", "start"],
            "script": [str(self._folder / "code" / "start")],
            "stdin": ["-"],
            "zip": [str(self._folder / "start.zip")],
        }[program]
        found = [str(ROOT / "runtime")] + ([] if program == "zip" else [str(self._folder / "code")])
        environment = {"PYTHONPATH": os.pathsep.join(found), "WORLD": str(self._world), **more}
        process = subprocess.Popen(
            [sys.executable, *words, method, str(self.database), path],
            cwd=self._folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        try:
            text = START if program == "stdin" else ""
            out, errors = process.communicate(text, timeout=WAIT_SECONDS_MAX)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(WAIT_SECONDS_MAX)
        return Said(process.returncode, out, errors)

    def effects(self) -> int:
        return len(self._world.read_text().split()) if self._world.exists() else 0

    def events(self) -> list[str]:
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return [event for (event,) in connection.execute("select event from events")]

    def is_untouched(self) -> None:
        """Find nothing that was requested or done."""
        assert not self.database.exists() or self.events() == []
        assert self.effects() == 0


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


SLOW = pytest.mark.slow


@pytest.mark.fault("M12")
@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        ("module spawn", "script forkserver"),
        ("zip forkserver", "stdin directly"),
        pytest.param("script forkserver", "zip spawn", marks=SLOW),
        pytest.param("module forkserver", "script spawn", marks=SLOW),
        pytest.param("stdin directly", "zip forkserver", marks=SLOW),
        pytest.param("script spawn", "module spawn", marks=SLOW),
        pytest.param("zip spawn", "module forkserver", marks=SLOW),
    ],
)
def test_a_tool_is_found_by_its_import_path_in_a_child_that_was_not_forked(
    shop: Shop, begins: str, goes_on: str
) -> None:
    """The child is killed in its call; one that was started in another way goes on with its run."""
    died = shop.start(*begins.split(), DIES="1")
    assert died.status in (-signal.SIGKILL, -signal.SIGKILL % 256), died
    assert shop.events() == ["request"]
    assert shop.effects() == 1
    done = shop.start(*goes_on.split())
    assert done == (0, "completed {'charged': True}\n", "")
    assert shop.events() == ["request", "adopt", "resend", "acknowledge"]
    assert shop.effects() == 1


@pytest.mark.fault("M12")
@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=SLOW)])
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("__main__:only_here", "__main__: only_here is not there"),
        ("start", "start: there are no adapters in it"),
        ("elsewhere:charge", "elsewhere: there is no module elsewhere"),
        ("shop:look", "adapter charge@1 is missing; registered: look@1"),
        ("adapter", "it's not the same object as shop.charge"),
        ("lambda", "main.<locals>.<lambda>"),
    ],
)
def test_a_tool_that_only_the_parent_knows_is_refused_before_a_request(
    shop: Shop, method: str, path: str, says: str
) -> None:
    """The last two are refused by Python, when the parent would send them to the child."""
    said = shop.start("script" if path.startswith("__main__") else "module", method, path)
    assert said.status == 1
    assert says in said.errors
    shop.is_untouched()


@pytest.mark.fault("M12")
@pytest.mark.parametrize("method", ["spawn", pytest.param("forkserver", marks=SLOW)])
def test_a_program_on_standard_input_has_a_child_that_works_or_does_nothing(
    shop: Shop, method: str
) -> None:
    """There are versions of Python whose child looks for a file that is called <stdin>."""
    said = shop.start("stdin", method)
    if said.status == 0:
        assert (said.out, shop.effects()) == ("completed {'charged': True}\n", 1)
    else:
        assert "<stdin>" in said.errors
        shop.is_untouched()
