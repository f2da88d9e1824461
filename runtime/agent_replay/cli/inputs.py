"""What a person gives on the command line, judged before anything is opened.

A file that is read here is read to its end and closed before the database is opened: the close of a
descriptor of a database drops the locks that a process holds on it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from agent_replay.errors import InvalidInput
from agent_replay.reconcile import Evidence
from agent_replay.report.commands import is_placeholder
from agent_replay.store.verify import ExpectedHead
from agent_replay.values import RESULT_BYTES_MAX, Json, check_id, read_json, shown

DATABASE_VARIABLE = "AGENT_REPLAY_DB"
EVIDENCE_BYTES_MAX = 1 << 20
"""An evidence is written into one row, and read each time its run is resumed."""

_DIGITS_MAX = 19
_HASH_LENGTH = 64
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise `InvalidInput` unless every word of the command line is text that can be stored."""
    for number, word in enumerate(arguments, start=1):
        _check_text(f"word {number} of the command line", word)


def _check_text(place: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{place} is not UTF-8: {shown(text)}; write it anew") from None
    if "\0" in text:
        raise InvalidInput(f"{place} holds a NUL: {shown(text)}; leave it out")


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most` for argparse."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
        if not plain or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{shown(text)} is not a whole number from {least} to {most}"
            )
        return int(text)

    return read


# --- the database -----------------------------------------------------------------------------


def database_path(given: str | None, *, may_be_new: bool = False) -> str:
    """Return the absolute path of the database, or raise `InvalidInput`.

    Only `run` makes a database: elsewhere a path that leads nowhere is a mistake.
    """
    path = given if given is not None else os.environ.get(DATABASE_VARIABLE, "")
    if not path:
        raise InvalidInput(f"name the database: give --db FILE, or set {DATABASE_VARIABLE}")
    _check_text("the path of the database", path)
    path = os.path.abspath(path)
    if not may_be_new and not os.path.lexists(path):
        raise InvalidInput(f"there is no database at {path}; check the path")
    return path


def read_head(text: str) -> ExpectedHead:
    """Return the head that `RUN=SEQ:HASH` names, for argparse."""
    run, _, rest = text.rpartition("=")
    seq, _, link = rest.partition(":")
    try:
        check_id("run id", run)
        number = whole_number(1, 2**63 - 1)(seq)
    except (InvalidInput, argparse.ArgumentTypeError) as error:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not RUN=SEQ:HASH: {error}") from None
    if len(link) != _HASH_LENGTH or not _HEX_DIGITS.issuperset(link):
        raise argparse.ArgumentTypeError(f"{shown(text)}: a hash has {_HASH_LENGTH} hex digits")
    return ExpectedHead(run, number, link.lower())


# --- evidence ---------------------------------------------------------------------------------


def read_evidence(options: argparse.Namespace) -> Evidence:
    """Return the evidence that the options of a command describe, or raise `InvalidInput`."""
    content = options.content
    if content is None:
        content = read_text(options.evidence, "the evidence", EVIDENCE_BYTES_MAX)
    evidence = Evidence(
        run=check_id("run id", options.run_id),
        step=check_id("step id", options.step_id),
        attempt=options.attempt,
        key=options.key,
        kind=options.kind,
        content=content,
        who=options.who,
        why=options.why,
        no_request_can_land=getattr(options, "no_request_can_land", False),
    )
    for name, text in (
        ("--kind", evidence.kind),
        ("--content", content),
        ("--who", evidence.who),
        ("--why", evidence.why),
    ):
        check_filled_in(name, text)
    return evidence


def check_filled_in(name: str, text: str) -> None:
    """Raise `InvalidInput` if a text is still as `doctor` printed it, or empty."""
    if is_placeholder(text):
        raise InvalidInput(f"{name} is still {text}: put what you know in its place")
    if not text.strip():
        raise InvalidInput(f"{name} is empty: put what you know in its place")


def read_result(text: str) -> Json:
    """Return the result that a person gives as JSON, or as @FILE with JSON in it."""
    if text.startswith("@"):
        text = read_text(text[1:], "the result", RESULT_BYTES_MAX)
    else:
        check_filled_in("--result", text)
    return read_json(text, "--result")


def read_text(path: str, what: str, bytes_max: int) -> str:
    """Return the text of a file, or of standard input for `-`; raise `InvalidInput`."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with open(path, "rb") as file:
                content = file.read(bytes_max + 1)
    except OSError as error:
        raise InvalidInput(f"{what} cannot be read from {path}: {error.strerror}") from error
    if len(content) > bytes_max:
        raise InvalidInput(f"{what} in {path} has more than {bytes_max} bytes, which is the limit")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} in {path} is not UTF-8, from byte {error.start} on") from None
