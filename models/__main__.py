"""`python -m models check | graph | conform | page`: each command has a module of its own.

check     search the model within named bounds, with every engine that is installed
graph     compare the graph of the shipped store with the product of the spec
conform   say whether a history is a path of the model
page      write the parts of docs/models.md anew that are made by running the models
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence

COMMANDS = {
    "check": "models.command",
    "graph": "models.graph.command",
    "conform": "models.conform",
    "page": "models.page",
}
"""The module of each command; its `main` takes the arguments and returns the exit status."""
USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names."""
    if list(arguments) in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return USAGE
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # to clear away
    module = importlib.import_module(COMMANDS[arguments[0]])
    try:
        status: int = module.main(arguments[1:])
    except KeyboardInterrupt:
        print("interrupted: nothing is known", file=sys.stderr)
        return 128 + signal.SIGINT
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
