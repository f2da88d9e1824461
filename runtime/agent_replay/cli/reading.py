"""The commands that only look: `list`, `show` and `doctor`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from agent_replay.cli import inputs, parsing
from agent_replay.cli.exits import Exit
from agent_replay.cli.looking import View, looking_at, unread
from agent_replay.cli.parsing import Parser
from agent_replay.cli.screen import Screen
from agent_replay.errors import DamagedHistory
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.report import commands as next_commands
from agent_replay.report.diagnosis import Diagnosis, Standing
from agent_replay.report.doctor import act_lines, diagnosis_lines, waiting_lines
from agent_replay.report.objects import acts_list, diagnosis_object, history_object, listed_object
from agent_replay.report.runs import Listed, list_lines
from agent_replay.report.timeline import argument_lines, event_lines, header_lines
from agent_replay.report.words import safe, utc
from agent_replay.values import Json, check_id

LIMIT = 100
LIMIT_MAX = 1_000

UNCONFIRMED = (
    "no writer is at work, and none has made sure of the last events: a power loss could still "
    "take them away; the next command that writes confirms them"
)


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of this module."""
    listing = parsing.add_command(
        commands,
        "list",
        _list,
        "List the runs, one a line, in the order in which they were registered.",
        "A line has number, id, how the run stands, its step and when it was registered; and of\n"
        "an unfinished run the open step with its key. `interrupted` is a run whose request is\n"
        "open and that no process is at work on; `ready` one that a resume goes on with.",
    )
    _add_paging(listing, "runs", "run of this number, which is the first column")
    _add_manners(listing)
    show = parsing.add_command(
        commands,
        "show",
        _show,
        "Show a run from its registration to its last event.",
        "Of results, errors and evidence the beginning is printed (with --json all of it).\n"
        "Arguments are printed only with --arguments, since they may hold secrets.",
    )
    parsing.add_run_id(show)
    show.add_argument(
        "--arguments", action="store_true", help="print the arguments of each step, too"
    )
    _add_paging(show, "events", "event of this number, which is the first column", LIMIT_MAX)
    _add_manners(show)
    doctor = parsing.add_command(
        commands,
        "doctor",
        _doctor,
        "Say of every unfinished run why it has not ended, and the command that goes on with it.",
        "What only you know stands between < and > in a command; nothing else needs to be changed.",
    )
    _add_paging(doctor, "runs", "run of this number")
    _add_manners(doctor)


def _add_paging(parser: Parser, what: str, which: str, limit: int = LIMIT) -> None:
    parser.add_argument(
        "--after",
        metavar="NUMBER",
        type=inputs.whole_number(0, 2**63 - 1),
        default=0,
        help=f"begin after the {which}",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=inputs.whole_number(1, LIMIT_MAX),
        default=limit,
        help=f"at most so many {what} (%(default)s, at most {LIMIT_MAX})",
    )


def _add_manners(parser: Parser) -> None:
    parsing.add_database(parser)
    parsing.add_json(parser)


# --- list ---------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, screen: Screen) -> int:
    with looking_at(inputs.database_path(options.db)) as view:
        # One more than is shown tells whether there are more.
        found = view.reader.summaries(after=options.after, limit=options.limit + 1)
        runs = []
        for summary in found[: options.limit]:
            try:
                runs.append(view.listed(summary))
            except DamagedHistory as error:
                screen.complain(str(error))
                runs.append(unread(summary, Standing.DAMAGED))
        more = runs[-1].run if len(found) > options.limit else None
        if options.json:
            listed: list[Json] = [listed_object(run) for run in runs]
            unconfirmed = view.reader.unconfirmed
            screen.document({"runs": listed, "next_after": more, "unconfirmed": unconfirmed})
        else:
            screen.lines(list_lines(runs))
            _notes(view, runs, more, screen)
    return Exit.DAMAGED if any(run.standing is Standing.DAMAGED for run in runs) else Exit.OK


def _notes(view: View, runs: list[Listed], more: int | None, screen: Screen) -> None:
    """Say on standard error what concerns the list as a whole, so that the list stands alone."""
    if not runs:
        screen.complain("there are no runs here")
    if more is not None:
        _say_more(view, screen, "list", "--after", str(more))
    if any(run.step is not None for run in runs):
        doctor = next_commands.Act("", view.caller.argv("doctor"))
        screen.complain(f"what to do about unfinished runs: {doctor.command}")
    if view.reader.unconfirmed:
        screen.complain(UNCONFIRMED)


def _say_more(view: View, screen: Screen, *words: str) -> None:
    again = next_commands.Act("", view.caller.argv(*words))
    screen.complain(f"there are more: {again.command}")


# --- show ---------------------------------------------------------------------------------------


def _show(options: argparse.Namespace, screen: Screen) -> int:
    run_id = check_id("run id", options.run_id)
    with looking_at(inputs.database_path(options.db)) as view:
        history, before, events, more = view.page(run_id, after=options.after, limit=options.limit)
        found = None if history.ended else view.diagnose(history)
        standing = found.standing if found else Standing(history.run_state.value)
        writers = view.reader.writers_of(history)
        archived = view.reader.archived(history.registration)
        unconfirmed = view.reader.unconfirmed
        if options.json:
            shown = history_object(
                history, events, writers, standing=standing, arguments=options.arguments
            )
            diagnosis = None if found is None else diagnosis_object(found)
            about = {"next_after": more, "diagnosis": diagnosis, "unconfirmed": unconfirmed}
            archive = None if archived is None else archived.path
            screen.document({**shown, **about, "archive": archive})
            return Exit.OK
        screen.lines(header_lines(history, writers, standing=standing))
        if archived is not None:
            screen.lines([f"  archived in {safe(archived.path)}, {utc(archived.row.archived_ns)}"])
        if options.arguments:
            screen.lines(argument_lines(history))
        screen.lines(["", *event_lines(history, events, before), ""])
        if found is not None:
            screen.lines(waiting_lines(found))
        if unconfirmed:
            screen.lines([f"note: {UNCONFIRMED}"])
        if more is not None:
            _say_more(view, screen, "show", run_id, "--after", str(more))
    return Exit.OK


# --- doctor -------------------------------------------------------------------------------------


def _doctor(options: argparse.Namespace, screen: Screen) -> int:
    with looking_at(inputs.database_path(options.db)) as view:
        found = view.reader.unfinished(after=options.after, limit=options.limit + 1)
        page = found[: options.limit]
        more = page[-1][0] if len(found) > len(page) else None
        if options.json:
            return _doctor_as_json(view, page, more, screen)
        screen.lines(_about(view))
        code, count = Exit.OK, 0
        for run, found_out in _diagnosed(view, page):
            count += 1
            screen.lines([""])
            if isinstance(found_out, Diagnosis):
                screen.lines(diagnosis_lines(found_out))
            else:
                code = Exit.DAMAGED
                screen.lines([f"{run}: damaged", f"  why   {safe(str(found_out))}"])
                screen.lines(act_lines((next_commands.verify(view.caller),)))
        if not count:
            screen.lines(
                ["no run is unfinished" if not options.after else "no more are unfinished"]
            )
        if more is not None:
            _say_more(view, screen, "doctor", "--after", str(more))
    return code


def _doctor_as_json(
    view: View, page: list[tuple[int, str]], more: int | None, screen: Screen
) -> int:
    runs: list[Json] = []
    code = Exit.OK
    for run, found in _diagnosed(view, page):
        if isinstance(found, Diagnosis):
            runs.append(diagnosis_object(found))
            continue
        code = Exit.DAMAGED
        acts = acts_list((next_commands.verify(view.caller),))
        runs.append({"run": run, "standing": "damaged", "why": [str(found)], "next": acts})
    screen.document(
        {
            "database": view.caller.database,
            "namespace": view.reader.identity.namespace,
            "spec": MOVES_DIGEST,
            "writer_at_work": view.writing.at_work,
            "unconfirmed": view.reader.unconfirmed,
            "orphans": [*view.reader.orphans()],
            "runs": runs,
            "next_after": more,
        }
    )
    return code


def _about(view: View) -> Iterator[str]:
    yield f"database {safe(view.caller.database)}, namespace {safe(view.reader.identity.namespace)}"
    if view.writing.at_work:
        holder = safe(view.writing.holder) or "a process that can't be seen from here"
        yield f"{holder} holds it: commands that write need --wait until that has ended"
    if view.reader.unconfirmed:
        yield UNCONFIRMED
    for orphan in view.reader.orphans():
        yield f"note: {safe(orphan)} belongs to no archived run; verify says what it is"


def _diagnosed(
    view: View, page: list[tuple[int, str]]
) -> Iterator[tuple[str, Diagnosis | DamagedHistory]]:
    """Yield each run of a page, with why it has not ended or what is wrong with it."""
    for _, run in page:
        try:
            history = view.history(run)
        except DamagedHistory as error:
            yield run, error
            continue
        if not history.ended:  # it may have ended since the page was read
            yield run, view.diagnose(history)
