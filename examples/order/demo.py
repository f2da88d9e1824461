"""Kill an order twice, and see it completed with one charge and one notification.

    python examples/order/demo.py [--directory FOLDER] [--json]

Everything is real: each command is a process of its own, and SIGKILL ends two of them between the
effect of a tool and its acknowledgement. What the tools did is counted in their own files, not in
the history. The demo checks what it shows, and ends with an error where something does not hold.
Only the standard library is used here, and the command `agent-replay`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import select
import shlex
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SCRIPTS = sysconfig.get_path("scripts")
RUN = "order-42"
DATABASE = ("--db", "runs.db")
WAIT_SECONDS_MAX = 60.0
WIDTH = 100
PAUSED = 3  # the exit code of a command whose run waits for evidence


class Broken(Exception):
    """Something that the demo is about does not hold."""


def hold(fact: bool, otherwise: str) -> None:
    """Raise `Broken` with a sentence unless the fact holds."""
    if not fact:
        raise Broken(otherwise)


# --- processes ------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """A process that has ended and was waited for."""

    pid: int
    status: int
    output: str

    @property
    def in_words(self) -> str:
        """Return how it ended, for a person."""
        how = f"killed by signal {-self.status}" if self.status < 0 else f"exit code {self.status}"
        return f"process {self.pid}: {how}"


def program() -> list[str]:
    """Return how to start `agent-replay`: the script beside this Python, or the module it calls."""
    script = Path(SCRIPTS) / "agent-replay"
    return [str(script)] if script.exists() else [sys.executable, "-m", "agent_replay"]


@contextlib.contextmanager
def started(
    words: Sequence[str], folder: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the command as the leader of a process group, which is gone when this ends."""
    environment = {**os.environ, "ORDER_FOLDER": ".", **variables}
    environment["PATH"] = os.pathsep.join([SCRIPTS, os.environ.get("PATH", os.defpath)])
    process = subprocess.Popen(
        [*program(), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,  # should the demo die, a stopped tool sees its end and goes on
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:  # else its number may be another's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(WAIT_SECONDS_MAX)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None, "both were asked for"
            pipe.close()


def run_to_its_end(words: Sequence[str], folder: Path) -> Ended:
    """Run the command, and return how it ended and what it printed."""
    with started(words, folder) as process:
        try:
            output, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Broken(f"'{words[0]}' did not end in {WAIT_SECONDS_MAX:g} seconds") from None
        return Ended(process.pid, process.returncode, output.decode(errors="replace"))


def kill_after(tool: str, words: Sequence[str], folder: Path) -> Ended:
    """Run the command until this tool has had its effect, and kill it before it can return."""
    with started(words, folder, STOP_AFTER=tool) as process:
        output = read_until(f"stopped after {tool}", process)
        os.killpg(process.pid, signal.SIGKILL)
        return Ended(process.pid, process.wait(WAIT_SECONDS_MAX), output)


def read_until(announced: str, process: subprocess.Popen[bytes]) -> str:
    """Return what the process printed up to an announcement, or raise `Broken`."""
    assert process.stdout is not None, "it was asked for"
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    output = b""
    while f"{announced}\n".encode() not in output:
        left_seconds = max(deadline - time.monotonic(), 0)
        ready, _, _ = select.select([process.stdout], [], [], left_seconds)
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        hold(chunk != b"", f"the process never said {announced!r}, but: {output.decode()}")
        output += chunk
    return output.decode()


# --- what the tools did, from their own files -----------------------------------------------------


class Tools(NamedTuple):
    """What has really happened; the runtime writes none of these files."""

    charges: int
    requests: int
    notifications: list[str]

    @property
    def in_words(self) -> str:
        """Return the counts, for a person."""
        return (
            f"effects.db: {self.charges} charge(s), for {self.requests} request(s); "
            f"notifications.txt: {len(self.notifications)} line(s)"
        )


def look_at_tools(folder: Path) -> Tools:
    """Count the effects of the tools."""
    address = f"{(folder / 'effects.db').as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as provider:
        charges = provider.execute("select count(*) from effects").fetchone()[0]
        requests = provider.execute("select sum(arrivals) from receipts").fetchone()[0]
    sent = folder / "notifications.txt"
    lines = sent.read_text(encoding="utf-8").splitlines() if sent.exists() else []
    return Tools(charges, requests, lines)


# --- telling --------------------------------------------------------------------------------------


class Story:
    """Runs commands in the folder, and tells what was typed and what came of it."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.example = min(os.path.relpath(HERE, folder), str(HERE), key=len)
        self.tell = tell
        self.processes: list[Ended] = []

    def say(self, text: str) -> None:
        """Tell a paragraph after an empty line."""
        self.tell("")
        self._fold(text, "", "   ")

    def command(
        self, *words: str, stop_after: str = "", begin: str = "", end: str = "", fold: bool = True
    ) -> Ended:
        """Show a command as a person would type it, run it, and show what it printed.

        Of the output, it shows what stands from the line that begins with `begin` to before the one
        that begins with `end`; long lines are folded, or else cut. With `stop_after` the command is
        killed there.
        """
        self._type([*([f"STOP_AFTER={stop_after}"] if stop_after else []), "agent-replay", *words])
        if stop_after:
            ended = kill_after(stop_after, words, self.folder)
        else:
            ended = run_to_its_end(words, self.folder)
        self.processes.append(ended)
        for line in excerpt(ended.output.splitlines(), begin, end):
            margin = " " * (len(line) - len(line.lstrip()) + 2)
            if fold:
                self._fold(line.strip(), margin, f"{margin}    ")
            else:
                self.tell(line[:WIDTH].rstrip())
        self.tell(f"  [{ended.in_words}]")
        return ended

    def ask(self, *words: str) -> dict[str, Any]:
        """Run a command that only reads, without showing it, and return its JSON."""
        ended = run_to_its_end([*words, "--json"], self.folder)
        try:
            answer: dict[str, Any] = json.loads(ended.output)
        except ValueError:
            raise Broken(f"'{words[0]} --json' printed no JSON: {ended.output}") from None
        return answer

    def tools(self, *, charges: int, requests: int, notifications: int) -> Tools:
        """Show what the tools did, and raise `Broken` if it is anything else."""
        tools = look_at_tools(self.folder)
        self.tell(f"  {tools.in_words}")
        expected = Tools(charges, requests, [""] * notifications).in_words
        hold(tools.in_words == expected, f"expected was {expected}, found {tools.in_words}")
        return tools

    def _type(self, words: Sequence[str]) -> None:
        """Tell a command; where it is folded, a shell would still read it as one."""
        typed = "$"
        for before, word in itertools.pairwise(("", *words)):
            kept_together = before.startswith("--") and not word.startswith("--")
            typed += ("\0" if kept_together else " ") + shlex.quote(word).replace(" ", "\0")
        *lines, last = wrapped(typed, "", "    ", width=WIDTH - 2)
        for line in lines:
            self.tell(f"{line} \\".replace("\0", " "))
        self.tell(last.replace("\0", " "))

    def _fold(self, text: str, first: str, others: str) -> None:
        for line in wrapped(text, first, others, width=WIDTH):
            self.tell(line)


def wrapped(text: str, first: str, others: str, *, width: int) -> list[str]:
    """Return the text in lines that fit, broken at spaces only."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def excerpt(lines: Sequence[str], begin: str, end: str) -> Iterator[str]:
    """Yield some of the lines, and an ellipsis for those left out."""
    first = next((number for number, line in enumerate(lines) if line.startswith(begin)), 0)
    ends = (number for number, line in enumerate(lines) if end and line.startswith(end))
    last = next((number for number in ends if number > first), len(lines))
    yield from ["..."] if first else []
    yield from lines[first:last]
    yield from ["..."] if last < len(lines) else []


# --- the story ------------------------------------------------------------------------------------


def tell_the_story(story: Story) -> dict[str, Any]:
    """Go through the whole order, and return the facts."""
    die_after_the_charge(story)
    die_after_the_notification(story)
    give_evidence(story, stop_in_doubt(story))
    return finish(story)


def die_after_the_charge(story: Story) -> None:
    """Kill the first process between the charge and its acknowledgement."""
    story.say(
        "1. Start the order, and kill the process when the charge has happened, unacknowledged."
    )
    plan = f"{story.example}/plan.json"
    tools = ("--adapters", f"{story.example}/checkpoints.py")
    killed = story.command("run", plan, "--run-id", RUN, *DATABASE, *tools, stop_after="charge")
    hold(killed.status == -signal.SIGKILL, f"{killed.in_words}, and not by SIGKILL")
    story.tools(charges=1, requests=1, notifications=0)
    story.say("   The history knows of the request, and not whether it was carried out:")
    story.command("doctor", *DATABASE, begin=RUN, end="  next")
    last = story.ask("show", RUN, *DATABASE)["events"][-1]
    hold(
        (last["step"], last["state"], last["run_state"]) == ("charge", "requested", "running"),
        f"the last event should be the request of the charge, and it is {last}",
    )


def die_after_the_notification(story: Story) -> None:
    """Resume: the charge is sent again with its key. Kill the process after the notification."""
    story.say(
        "2. Resume it. The charge is sent again with the same key, and the provider answers with "
        "its first receipt. Kill the process when the notification is written, unacknowledged."
    )
    tools = ("--adapters", f"{story.example}/checkpoints.py")
    killed = story.command("resume", RUN, *DATABASE, *tools, stop_after="notify")
    hold(killed.status == -signal.SIGKILL, f"{killed.in_words}, and not by SIGKILL")
    story.tools(charges=1, requests=2, notifications=1)


def stop_in_doubt(story: Story) -> dict[str, Any]:
    """Resume with the plain tools, which ends in doubt, and return what `doctor` knows of it."""
    story.say("3. Resume it. Of the notification nothing is promised, so it is not sent again.")
    tools = ("--adapters", f"{story.example}/tools.py")
    paused = story.command("resume", RUN, *DATABASE, *tools, end="  quote")
    hold(paused.status == PAUSED, f"{paused.in_words}, and a paused run has exit code {PAUSED}")
    story.tools(charges=1, requests=2, notifications=1)
    story.say("   What is not known, and what a person can do:")
    story.command("doctor", *DATABASE, begin=RUN, end="  - no attempt")
    doubt: dict[str, Any] = story.ask("doctor", *DATABASE)["runs"][0]
    hold(
        (doubt["step"], doubt["state"], doubt["run_state"]) == ("notify", "in_doubt", "paused"),
        f"doctor should find notify in doubt, and it finds {doubt}",
    )
    return doubt


def give_evidence(story: Story, doubt: dict[str, Any]) -> None:
    """Find the line that the tool wrote, and confirm the step with it."""
    story.say("4. Find the key in notifications.txt. This line of it is the evidence:")
    lines = [line for line in look_at_tools(story.folder).notifications if doubt["key"] in line]
    hold(len(lines) == 1, f"one line of notifications.txt should have the key, not {len(lines)}")
    (story.folder / "evidence.txt").write_text(f"{lines[0]}\n", encoding="utf-8")
    story.tell(f"  {lines[0][: WIDTH - 6]} ...")
    subject = ("--attempt", str(doubt["attempt"]), "--key", doubt["key"])
    found = ("--kind", "mail log", "--evidence", "evidence.txt", "--result", '{"notified": true}')
    person = ("--who", "ada", "--why", "the log has a line with this key")
    words = ("reconcile", RUN, "notify", *DATABASE, "--confirm")
    confirmed = story.command(*words, *subject, *found, *person, end=RUN)
    hold(confirmed.status == 0, f"{confirmed.in_words}, and the evidence should be accepted")


def finish(story: Story) -> dict[str, Any]:
    """Resume what is completed, and check everything once more."""
    story.say("5. Resume it. The results are those on record, and nothing is called.")
    tools = ("--adapters", f"{story.example}/tools.py")
    completed = story.command("resume", RUN, *DATABASE, *tools)
    hold(completed.status == 0, f"{completed.in_words}, and a completed run has exit code 0")
    happened = story.tools(charges=1, requests=2, notifications=1)
    story.say(f"6. The history, its lines cut at {WIDTH} columns, and a check of the database:")
    story.command("show", RUN, *DATABASE, begin="  1 ", fold=False)
    told = story.ask("show", RUN, *DATABASE)
    hold(told["run_state"] == "completed", f"the run should be completed: {told['run_state']}")
    verified = story.command("verify", *DATABASE)
    hold(verified.status == 0, f"{verified.in_words}, and a sound database has exit code 0")
    story.say("Two processes were killed. One charge, one notification, and nothing was guessed.")
    return {
        "folder": str(story.folder),
        "run_state": told["run_state"],
        "charges": happened.charges,
        "requests": happened.requests,
        "notifications": len(happened.notifications),
        "events": [[event["step"], event["event"]] for event in told["events"]],
        "processes": [{"pid": ended.pid, "status": ended.status} for ended in story.processes],
    }


# --- the program ----------------------------------------------------------------------------------


def fresh_folder(given: str | None) -> Path:
    """Make the folder for the files of this demo."""
    folder = Path(given or HERE.parents[1] / "work" / f"demo-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise Broken(f"{folder} must be a new folder: {error.strerror}") from error
    return folder.absolute()


def main(arguments: Sequence[str]) -> int:
    """Tell the story; return 0 if everything in it holds, else 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--directory", metavar="FOLDER", help="a new folder for the files")
    parser.add_argument("--json", action="store_true", help="print the facts; the story on stderr")
    options = parser.parse_args(arguments)
    try:
        folder = fresh_folder(options.directory)
        stream = sys.stderr if options.json else sys.stdout
        story = Story(folder, functools.partial(print, file=stream, flush=True))
        story.tell(
            "An order of three steps: quote (read_only), charge (idempotent), notify (opaque)."
        )
        story.tell(f"$ cd {shlex.quote(min(os.path.relpath(folder), str(folder), key=len))}")
        facts = tell_the_story(story)
    except Broken as broken:
        print(f"\ndemo: {broken}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
