"""The command line: its parser, and the options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from agent_replay.cli.inputs import DATABASE_VARIABLE
from agent_replay.cli.screen import Screen
from agent_replay.errors import InvalidInput

Run = Callable[[argparse.Namespace, Screen], int]


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors of the library, so that they end like every other."""

    def __init__(
        self, *, prog: str | None = None, description: str | None = None, epilog: str | None = None
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Raise `InvalidInput` instead of ending the process."""
        raise InvalidInput(f"{message}; see {self.prog} --help")


def add_command(
    commands: argparse._SubParsersAction[Parser],
    name: str,
    run: Run,
    says: str,
    more: str = "",
) -> Parser:
    """Return the parser of a new command; `says` is its line in the list of commands."""
    description = f"{says}\n\n{more}" if more else says
    parser = commands.add_parser(name, help=says, description=description)
    parser.set_defaults(command=run)
    return parser


def add_database(parser: Parser) -> None:
    """Add the option for the database."""
    parser.add_argument(
        "--db", metavar="FILE", help=f"the database; by default what {DATABASE_VARIABLE} names"
    )


def add_json(parser: Parser, more: str = "") -> None:
    """Add the option for JSON instead of text."""
    says = f"print one JSON object, not text{more}"
    parser.add_argument("--json", action="store_true", help=says)


def add_adapters(parser: Parser) -> None:
    """Add the option for adapters."""
    parser.add_argument(
        "--adapters",
        metavar="FILE_OR_MODULE[:NAME]",
        action="append",
        default=[],
        help="load adapters from path/to/tools.py or package.module, all of them or the one of "
        "that name; may be repeated. It runs that code",
    )


def add_wait(parser: Parser) -> None:
    """Add the option to wait for another writer."""
    parser.add_argument(
        "--wait", action="store_true", help="wait while another process holds the database"
    )


def add_messages(parser: Parser) -> None:
    """Add the options for what is told on the way."""
    parser.add_argument("--quiet", action="store_true", help="show no progress on a terminal")
    parser.add_argument(
        "--verbose", action="store_true", help="log each move and each call on standard error"
    )


def add_run_id(parser: Parser) -> None:
    """Add the run that a command is about."""
    parser.add_argument("run_id", metavar="RUN_ID", help="the id of the run, exactly")
