"""What is printed, and where: the outcome on standard output, everything else on standard error.

A reader that has gone away ends the output and not the command. A standard output that cannot be
written is an error; of a standard error that cannot be written there is nowhere left to tell.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from agent_replay.errors import StorageError
from agent_replay.report.words import safe
from agent_replay.values import Json


class Screen:
    """The two standard streams, as they were when the command began."""

    def __init__(self) -> None:
        self._gone = False
        # A process that was started with a stream closed has none.
        self._output: TextIO | None = sys.stdout
        self._messages: TextIO | None = sys.stderr
        for stream in (self._output, self._messages):
            # A terminal that cannot show a letter gets its escape, not a traceback.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    @property
    def reader_is_gone(self) -> bool:
        """Return whether nobody reads the output any more."""
        return self._gone

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines of the outcome."""
        for line in lines:
            self.write(f"{line}\n")

    def document(self, value: Mapping[str, Json]) -> None:
        """Print a JSON object on one line, in ASCII."""
        self.write(f"{json.dumps(value)}\n")

    def write(self, text: str) -> None:
        """Print text of the outcome."""
        with self._guarded() as output:
            if output is not None:
                output.write(text)

    def flush(self) -> None:
        """Hand everything printed so far to the system."""
        with self._guarded() as output:
            if output is not None:
                output.flush()

    def complain(self, message: str) -> None:
        """Print a message, escaped, on one line of standard error."""
        self.note(f"agent-replay: {safe(message)}\n")

    def note(self, text: str) -> None:
        """Print text on standard error as it is."""
        if self._messages is not None:
            with contextlib.suppress(OSError, ValueError):
                self._messages.write(text)
                self._messages.flush()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Let what adapters print go to standard error, so that the outcome stands alone."""
        with contextlib.redirect_stdout(self._messages):
            yield

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[TextIO | None]:
        """Yield the output, or None if there is none any more, and judge what comes of its use."""
        try:
            yield None if self._gone else self._output
        except BrokenPipeError:
            self._give_up()
        except OSError as error:
            self._give_up()
            raise StorageError(
                f"standard output cannot be written: {error.strerror}; what the command did stands"
            ) from error

    def _give_up(self) -> None:
        self._gone = True
        if self._output is not None:
            _lead_to_nowhere(self._output)


def _lead_to_nowhere(stream: TextIO) -> None:
    """Let a stream lead nowhere, so that Python's last flush of it does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
