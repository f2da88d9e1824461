"""The commands that check and hand out: `verify`, `export`, `spec` and `plan check`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
from collections.abc import Generator, Iterable
from hashlib import sha256

from agent_replay.cli import archiving, inputs, parsing
from agent_replay.cli.exits import Exit
from agent_replay.cli.parsing import Parser
from agent_replay.cli.screen import Screen
from agent_replay.errors import InvalidInput, InvalidPlan, StorageError
from agent_replay.lifecycles.coupling import FILE_DIGEST, MOVES_DIGEST, SPEC_VERSION
from agent_replay.plan import load_plan
from agent_replay.report.words import safe
from agent_replay.store.reader import Reader
from agent_replay.store.verify import Verdict, verify

SPEC_FILES = ("step.toml", "run.toml")
_BESIDE = ("-wal", "-shm", "-journal")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of this module."""
    check = parsing.add_command(
        commands,
        "verify",
        _verify,
        "Check every row of the database, and say which is not what the runtime writes.",
        "It shows accidents. Whoever may write the file can forge all of it; against that, write\n"
        "down heads elsewhere (`show` prints them) and give them here. The archives of the\n"
        "database are checked, too; one of them alone if it is named.",
    )
    check.add_argument(
        "archive", metavar="ARCHIVE", nargs="?", help="check this archive, and no database"
    )
    check.add_argument(
        "--no-archives", action="store_true", help="do not look into the archives of the database"
    )
    check.add_argument(
        "--expect-head",
        metavar="RUN=SEQ:HASH",
        type=inputs.read_head,
        action="append",
        default=[],
        help="the event SEQ of this run has this hash; may be repeated",
    )
    parsing.add_database(check)
    parsing.add_json(check)
    export = parsing.add_command(
        commands,
        "export",
        _export,
        "Write every row of the database as JSON Lines.",
        "It holds everything: arguments, results and evidence. Blobs are hex digits; the texts\n"
        "that are hashed are given as they are stored, as strings.",
    )
    export.add_argument(
        "--output", metavar="FILE", help="a new file, for you alone (0600); else standard output"
    )
    parsing.add_database(export)
    spec = parsing.add_command(
        commands, "spec", _spec, "Print the spec of the lifecycles that this program runs."
    )
    parsing.add_json(spec)
    plan = commands.add_parser("plan", help="Check a plan.", description="Check a plan.")
    plan_commands = plan.add_subparsers(metavar="COMMAND", required=True)
    check_plan = parsing.add_command(
        plan_commands, "check", _check_plan, "Say whether a plan is acceptable, or where it is not."
    )
    check_plan.add_argument("plan", metavar="FILE", help="a file with the plan, in JSON")
    parsing.add_json(check_plan)


# --- verify -------------------------------------------------------------------------------------


def _verify(options: argparse.Namespace, screen: Screen) -> int:
    if options.archive is not None:
        return _verify_archive(options, screen)
    database = inputs.database_path(options.db)
    with Reader(database) as reader:
        reader.check_spec()
        unconfirmed = reader.unconfirmed
        leftovers = [] if options.no_archives else reader.leftovers()
    verdict = verify(database, expected=options.expect_head, archives=not options.no_archives)
    if options.json:
        screen.document(
            {
                "sound": verdict.sound,
                "complete": verdict.complete,
                "runs": verdict.runs,
                "events": verdict.events,
                "findings": list(verdict.findings),
                "unconfirmed": unconfirmed,
                "archived": verdict.archived,
                "archives": verdict.archives,
                "missing": list(verdict.missing),
                "orphans": [one._asdict() for one in leftovers],
            }
        )
    else:
        screen.lines(safe(finding) for finding in (*verdict.findings, *verdict.missing))
        screen.lines([_in_words(verdict)])
        for file, says in leftovers:
            screen.complain(f"note: {file} belongs to no archived run: {says}")
        if unconfirmed:
            screen.complain("no writer has confirmed the last events; the next one to open does")
    if verdict.sound:
        return Exit.OK
    if verdict.missing and not verdict.findings:
        return Exit.STORAGE
    screen.complain("stop, keep a copy of the database and of its -wal, and do not repair it")
    return Exit.DAMAGED


def _in_words(verdict: Verdict) -> str:
    word = "sound" if verdict.sound else "DAMAGED" if verdict.findings else "not complete"
    told = f"{word}: {verdict.runs} runs and {verdict.events} events were looked at"
    if not verdict.archived:
        return told
    return f"{told}; {verdict.archived} of the runs are archived, {verdict.archives} archives read"


def _verify_archive(options: argparse.Namespace, screen: Screen) -> int:
    if options.db is not None or options.expect_head or options.no_archives:
        raise InvalidInput("an archive is checked by itself: give its path, and only --json")
    return archiving.verify_file(options.archive, screen, as_json=options.json)


# --- export -------------------------------------------------------------------------------------


def _export(options: argparse.Namespace, screen: Screen) -> int:
    database = inputs.database_path(options.db)
    with Reader(database) as reader, contextlib.closing(_exported(reader)) as lines:
        archived = reader.archived_count()
        if options.output is None:
            _print(lines, screen)
        else:
            count = _write_new(options.output, database, lines)
            screen.complain(f"{count} rows are in {options.output}")
    if archived:
        screen.complain(
            f"note: {archived} of the runs are archived: their steps and events are in the files "
            "that the rows of `archived` name, and not here"
        )
    return Exit.OK


def _exported(reader: Reader) -> Generator[str, None, None]:
    """Yield a line for each row; to be closed before the reader is."""
    for table, row, columns in reader.export():
        values = [value.hex() if isinstance(value, bytes) else value for value in row]
        yield json.dumps({"table": table, **dict(zip(columns, values, strict=True))}) + "\n"


def _print(lines: Iterable[str], screen: Screen) -> None:
    for line in lines:
        screen.write(line)
        if screen.reader_is_gone:
            return


def _write_new(path: str, database: str, lines: Iterable[str]) -> int:
    """Write lines to a new file, durable when it returns, and return how many; all or nothing."""
    if os.path.realpath(path) in [os.path.realpath(database) + end for end in _BESIDE]:
        raise InvalidInput(f"{path}: SQLite keeps a file of that name; name another")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already and is left alone; name a new file") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be made: {error.strerror}; name another file") from error
    count = 0
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            for line in lines:
                file.write(line)
                count += 1
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise StorageError(f"{path} cannot be written: {error.strerror}") from error
        raise
    return count


# --- spec ---------------------------------------------------------------------------------------


def _spec(options: argparse.Namespace, screen: Screen) -> int:
    texts = [_spec_file(name) for name in SPEC_FILES]
    if sha256(b"\0".join(texts)).hexdigest() != FILE_DIGEST:
        raise StorageError(
            "the spec's files are not those that this program was made from; install it anew"
        )
    files = {name: text.decode() for name, text in zip(SPEC_FILES, texts, strict=True)}
    if options.json:
        screen.document(
            {
                "version": SPEC_VERSION,
                "moves_digest": MOVES_DIGEST,
                "file_digest": FILE_DIGEST,
                "files": {**files},
            }
        )
        return Exit.OK
    screen.lines(
        (
            f"# version {SPEC_VERSION}",
            f"# digest of what is enforced: {MOVES_DIGEST}",
            f"# digest of the files: {FILE_DIGEST}",
        )
    )
    for name, text in files.items():
        screen.write(f"\n# --- {name} ---\n\n{text}")
    return Exit.OK


def _spec_file(name: str) -> bytes:
    """Return a file of the spec: beside the package's modules, or in the checkout it runs from."""
    checkout = os.path.dirname(os.path.dirname(_PACKAGE))
    for folder in (os.path.join(_PACKAGE, "spec"), os.path.join(checkout, "spec")):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), "rb") as file:
            return file.read()
    raise StorageError(f"the file {name} of the spec is missing; install the program anew")


# --- plan check ---------------------------------------------------------------------------------


def _check_plan(options: argparse.Namespace, screen: Screen) -> int:
    try:
        plan = load_plan(options.plan)
    except InvalidPlan as error:
        if options.json:
            screen.document({"ok": False, "place": error.place, "problem": error.problem})
        raise
    if options.json:
        screen.document({"ok": True, "steps": len(plan.steps), "digest": plan.digest})
    else:
        steps = "1 step" if len(plan.steps) == 1 else f"{len(plan.steps)} steps"
        screen.lines([f"ok: {steps}, digest {plan.digest}"])
    return Exit.OK
