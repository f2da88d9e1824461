"""The commands by which a person settles a step or a run: `reconcile`, `abandon` and `cancel`."""

from __future__ import annotations

import argparse

from agent_replay.cli import inputs, parsing
from agent_replay.cli.parsing import Parser
from agent_replay.cli.running import drive
from agent_replay.cli.screen import Screen
from agent_replay.errors import InvalidInput
from agent_replay.values import check_id

ATTEMPT_MAX = 2**63 - 1

_EVIDENCE = (
    "Evidence is about one attempt, with its key, as `doctor` prints them, and is recorded for\n"
    "ever with who gave it and why. It is refused if the step is not in doubt."
)


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of this module."""
    reconcile = parsing.add_command(
        commands,
        "reconcile",
        _reconcile,
        "Say what happened to a step that is in doubt; resume then goes on with the run.",
        _EVIDENCE,
    )
    _add_subject(reconcile)
    how = reconcile.add_mutually_exclusive_group(required=True)
    for name, says in (
        ("confirm", "the step happened, and this is its --result"),
        ("refute", "no attempt happened, and none can land any more (--no-request-can-land)"),
        ("resend", "send it once more with the same key, and go on with the run (--adapters)"),
    ):
        how.add_argument(f"--{name}", dest="how", action="store_const", const=name, help=says)
    reconcile.add_argument(
        "--result", metavar="JSON|@FILE", help="with --confirm: what the tool returned, as JSON"
    )
    reconcile.add_argument(
        "--no-request-can-land",
        action="store_true",
        help="with --refute: state that nothing that was sent can still have its effect",
    )
    parsing.add_adapters(reconcile)
    _add_evidence(reconcile)
    abandon = parsing.add_command(
        commands,
        "abandon",
        _abandon,
        "Close a step in doubt without knowing what happened; its run fails.",
        _EVIDENCE,
    )
    _add_subject(abandon)
    _add_evidence(abandon)
    cancel = parsing.add_command(
        commands,
        "cancel",
        _cancel,
        "Ask a run to end: nothing more is sent, and what is open must settle.",
        "A step in doubt still needs evidence. An ended run answers its outcome.",
    )
    parsing.add_run_id(cancel)
    cancel.add_argument("--who", required=True, metavar="TEXT", help="who asks")
    cancel.add_argument("--why", required=True, metavar="TEXT", help="the reason, for the record")
    _add_manners(cancel)


def _add_subject(parser: Parser) -> None:
    parsing.add_run_id(parser)
    parser.add_argument("step_id", metavar="STEP", help="the id of the step, exactly")


def _add_evidence(parser: Parser) -> None:
    parser.add_argument(
        "--attempt",
        metavar="N",
        required=True,
        type=inputs.whole_number(1, ATTEMPT_MAX),
        help="the attempt that the evidence is about; all but --confirm need the latest",
    )
    parser.add_argument("--key", required=True, metavar="KEY", help="the key of the step")
    parser.add_argument(
        "--kind", required=True, metavar="TEXT", help="what was looked at: ledger, mail log"
    )
    content = parser.add_mutually_exclusive_group(required=True)
    content.add_argument("--content", metavar="TEXT", help="what was found there")
    content.add_argument(
        "--evidence",
        metavar="FILE",
        help="a text file with what was found, or - for standard input",
    )
    parser.add_argument("--who", required=True, metavar="TEXT", help="who gives the evidence")
    parser.add_argument("--why", required=True, metavar="TEXT", help="why it settles the step")
    _add_manners(parser)


def _add_manners(parser: Parser) -> None:
    parsing.add_database(parser)
    parsing.add_wait(parser)
    parsing.add_json(parser)
    parsing.add_messages(parser)


def _reconcile(options: argparse.Namespace, screen: Screen) -> int:
    database = inputs.database_path(options.db)
    if (options.how == "confirm") != (options.result is not None):
        raise InvalidInput("--result belongs to --confirm, and --confirm needs it")
    if options.adapters and options.how != "resend":
        raise InvalidInput("--adapters belongs to --resend: nothing is called to confirm or refute")
    result = None if options.result is None else inputs.read_result(options.result)
    evidence = inputs.read_evidence(options)
    subject = f"step {evidence.step} of run {evidence.run}"
    match options.how:
        case "confirm":
            return drive(
                options,
                screen,
                database,
                lambda runtime: runtime.confirm(evidence, result=result),
                recorded=f"recorded: {subject} happened",
            )
        case "refute":
            return drive(
                options,
                screen,
                database,
                lambda runtime: runtime.refute(evidence),
                recorded=f"recorded: no attempt of {subject} happened",
            )
        case _:
            return drive(
                options,
                screen,
                database,
                lambda runtime: runtime.resend(evidence),
                recorded=f"recorded: {subject} was granted one more attempt",
            )


def _abandon(options: argparse.Namespace, screen: Screen) -> int:
    database = inputs.database_path(options.db)
    options.adapters = []
    evidence = inputs.read_evidence(options)
    return drive(
        options,
        screen,
        database,
        lambda runtime: runtime.abandon(evidence),
        recorded=f"recorded: step {evidence.step} of run {evidence.run} is closed without knowing",
    )


def _cancel(options: argparse.Namespace, screen: Screen) -> int:
    database = inputs.database_path(options.db)
    options.adapters = []
    run_id = check_id("run id", options.run_id)
    who, why = options.who, options.why
    inputs.check_filled_in("--who", who)
    inputs.check_filled_in("--why", why)
    return drive(
        options,
        screen,
        database,
        lambda runtime: runtime.cancel(run_id, who=who, why=why),
    )
