"""What the commands that make a report have in common: how they end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from crashtests.child import Fooled

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


def ended(make: Callable[[], int]) -> int:
    """Return the exit code of a command: its own, 1 if it was `Fooled`, or that of a signal.

    SIGTERM ends it as an error would, so that its processes and its folders are cleared away.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        return make()
    except Fooled as problem:
        print(f"no report was made: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("no report was made: interrupted", file=sys.stderr)
        return INTERRUPTED
