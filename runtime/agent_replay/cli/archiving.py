"""The command `archive`, and `verify` of an archive by itself."""

from __future__ import annotations

import argparse
import os

from agent_replay import archiving
from agent_replay.archiving import Archived
from agent_replay.cli import inputs, parsing
from agent_replay.cli.exits import Exit
from agent_replay.cli.parsing import Parser
from agent_replay.cli.screen import Screen
from agent_replay.cli.watching import is_terminal
from agent_replay.errors import ArchiveError, InvalidInput
from agent_replay.report.words import safe
from agent_replay.runtime import Runtime
from agent_replay.store.archive import place
from agent_replay.store.archive.checking import ArchiveCheck
from agent_replay.store.verify import FINDINGS_MAX
from agent_replay.values import Json

_DAY_SECONDS = 86_400
_DAYS_MAX = 36_500


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of this module."""
    archive = parsing.add_command(
        commands,
        "archive",
        _archive,
        "Move runs that have ended out of the database, into compressed files beside it.",
        "All that have ended, or those that are named. Their ids stay in use, and `run`, `show`\n"
        "and `verify` read the archives. A file is durable and verified before rows are deleted.",
    )
    archive.add_argument("run_ids", metavar="RUN_ID", nargs="*", help="the ids of these runs only")
    archive.add_argument(
        "--older-than",
        metavar="DAYS",
        type=inputs.whole_number(0, _DAYS_MAX),
        help="only runs that ended so many days ago, or earlier",
    )
    archive.add_argument(
        "--to", metavar="FOLDER", help="where the files are put; by default DATABASE.archive"
    )
    parsing.add_database(archive)
    parsing.add_wait(archive)
    parsing.add_json(archive)
    archive.add_argument("--quiet", action="store_true", help="show no progress on a terminal")


def _archive(options: argparse.Namespace, screen: Screen) -> int:
    if options.run_ids and options.older_than is not None:
        raise InvalidInput("name runs, or give --older-than, but not both")
    database = inputs.database_path(options.db)
    seconds = None if options.older_than is None else options.older_than * _DAY_SECONDS
    shows = is_terminal() and not (options.quiet or options.json)
    made: list[Archived] = []
    try:
        with Runtime(database, wait=options.wait) as runtime:
            for archive in archiving.archive(
                runtime,
                options.run_ids or None,
                older_than_seconds=seconds,
                folder=options.to,
            ):
                made.append(archive)
                if shows:
                    screen.note(f"\r{_summary(made)} ...")
    finally:
        if shows and made:
            screen.note("\n")
        if made:
            _tell(made, screen, as_json=options.json)
    if not made:
        _tell(made, screen, as_json=options.json)
    return Exit.OK


def _tell(made: list[Archived], screen: Screen, *, as_json: bool) -> None:
    if as_json:
        screen.document({"archives": [_object(archive) for archive in made]})
    else:
        screen.lines(_line(archive) for archive in made)
        screen.lines([_summary(made)])


def _line(archive: Archived) -> str:
    return f"{safe(archive.file)}: {_counted(len(archive.runs), 'run')}, sha256 {archive.sha256}"


def _summary(made: list[Archived]) -> str:
    runs = sum(len(archive.runs) for archive in made)
    events = sum(archive.events for archive in made)
    counts = f"{_counted(runs, 'run')} and {_counted(events, 'event')}"
    return f"{counts} moved into {_counted(len(made), 'archive')}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _object(archive: Archived) -> dict[str, Json]:
    return {
        "file": archive.file,
        "sha256": archive.sha256,
        "runs": [*archive.runs],
        "events": archive.events,
    }


def _check_kind(path: str) -> None:
    """Raise `InvalidInput` for a database, and `ArchiveError` where there is nothing."""
    if not os.path.lexists(path):
        raise ArchiveError(f"{path}: there is no such file; check the path")
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a directory; name an archive in it")
    if place.is_database(path):
        raise InvalidInput(f"{path} is a database and no archive: use verify --db {path}")


def verify_file(path: str, screen: Screen, *, as_json: bool) -> int:
    """Verify an archive by itself, say what was found, and return the exit code."""
    _check_kind(path)
    check = ArchiveCheck(os.path.abspath(path))
    findings: list[str] = []
    for finding in check.findings():
        findings.append(finding)
        if len(findings) == FINDINGS_MAX:
            break
    if as_json:
        screen.document(
            {
                "sound": not findings,
                "runs": len(check.runs),
                "events": check.events,
                "findings": [*findings],
                "namespace": check.identity.namespace if check.identity else None,
                "sha256": check.digest.hex(),
            }
        )
    else:
        screen.lines(safe(finding) for finding in findings)
        word = "DAMAGED" if findings else "sound"
        counts = f"{_counted(len(check.runs), 'run')} and {_counted(check.events, 'event')}"
        digest = f", sha256 {check.digest.hex()}" if check.digest else ""
        screen.lines([f"{word}: {counts} were looked at{digest}"])
    if not findings:
        return Exit.OK
    screen.complain("stop, keep a copy of the file, and do not repair it")
    return Exit.DAMAGED
