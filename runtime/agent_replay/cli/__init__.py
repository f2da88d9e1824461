"""The command `agent-replay`: a person's way in.

    agent-replay run plan.json --run-id order-42 --db runs.db --adapters tools.py

It parses, opens what the command needs, and prints what `report` makes of it. It decides nothing
about runs. Nothing in the library imports this package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_replay.cli import archiving, checking, exits, inputs, reading, running, settling
from agent_replay.cli.exits import Exit
from agent_replay.cli.parsing import Parser
from agent_replay.cli.screen import Screen
from agent_replay.cli.watching import terminable
from agent_replay.errors import ReplayError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what is wrong with the input is said in a line."""
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen()
    try:
        with terminable():
            try:
                return _command(words, screen)
            finally:
                screen.flush()
    except ReplayError as error:
        screen.complain(str(error))
        return exits.of_error(error)
    except UnicodeDecodeError as error:
        # Words and files have been judged before, so this is a text out of the database.
        screen.complain(f"the database holds a text that is not UTF-8: {error}; keep a copy of it")
        return Exit.DAMAGED
    except OSError as error:
        screen.complain(f"the system refuses: {error}; did a tool close this process's files?")
        return Exit.STORAGE
    except KeyboardInterrupt:
        screen.complain("interrupted: nothing was under way, and what is on record stays")
        return Exit.INTERRUPTED


def _command(words: Sequence[str], screen: Screen) -> int:
    inputs.check_arguments(words)
    parser = _parser()
    try:
        options = parser.parse_args(words)
    except SystemExit:  # the help or the version has been printed
        return Exit.OK
    code: int = options.command(options, screen)
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="agent-replay",
        description="Durable tool calls for agents: run plans, and settle what a crash left open.",
        epilog=f"exit codes:\n{exits.table()}",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for group in (running, reading, settling, checking, archiving):
        group.add(commands)
    return parser


def _version() -> str:
    from agent_replay import __version__  # here: the package itself need not know this module

    return f"agent-replay {__version__}"
