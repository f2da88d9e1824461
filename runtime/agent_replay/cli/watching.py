"""What is seen of a run while it is driven: progress on a terminal, the log, interruptions."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from agent_replay.cli.exits import Exit
from agent_replay.cli.screen import Screen
from agent_replay.events import Event
from agent_replay.report.words import safe

STEPS_MIN = 4
"""A plan with fewer steps is done before a line of progress can be read."""

_LOGGER = "agent_replay"


class Watch:
    """The hook for each event that a command has made durable; it keeps the run of the last one.

    `steps` are the ids of the plan's steps, for the progress; without them none is shown.
    """

    def __init__(self, screen: Screen, steps: Sequence[str], *, quiet: bool) -> None:
        self._screen = screen
        self._steps = steps
        self._shows = not quiet and len(steps) >= STEPS_MIN and is_terminal()
        self._length = 0
        self.lock = threading.RLock()
        """Held while something is printed: the log is that of several threads."""
        self.last_run: str | None = None

    def on_event(self, run: str, event: Event) -> None:
        """Take an event in, and show how far the run is."""
        self.last_run = run
        if self._shows and event.step is not None:
            name, total = self._steps[event.step - 1], len(self._steps)
            self._rewrite(f"step {event.step}/{total} {name}: {event.event}")

    def clear(self) -> None:
        """Take the line of progress away, before something else is printed."""
        with self.lock:
            if self._length:
                self._rewrite("")
                self._length = 0

    def _rewrite(self, text: str) -> None:
        # A line that wraps could not be rewritten from its beginning.
        text = safe(text)[: max(shutil.get_terminal_size().columns - 1, 1)]
        with self.lock:
            self._screen.note(f"\r{text:<{self._length}}" + ("" if text else "\r"))
            self._length = len(text)


def is_terminal() -> bool:
    """Return whether a person watches standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


class _Lines(logging.Handler):
    """Prints the library's log on standard error, one escaped line a record."""

    def __init__(self, screen: Screen, watch: Watch) -> None:
        super().__init__()
        self._screen = screen
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        with self._watch.lock:
            self._watch.clear()
            self._screen.complain(record.getMessage())


@contextlib.contextmanager
def logged(screen: Screen, watch: Watch, *, verbose: bool) -> Iterator[None]:
    """Print what the library logs: warnings, and with `verbose` everything."""
    logger = logging.getLogger(_LOGGER)
    handler, level = _Lines(screen, watch), logger.level
    handler.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logger.addHandler(handler)
    if verbose:
        logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        watch.clear()


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, in the order in which things must be closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt) or signal.SIG_DFL
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def patient(screen: Screen) -> Iterator[Callable[[], None]]:
    """Let a first Ctrl-C or SIGTERM stop what is under way, and a second one end the process.

    What it yields says so, and is to be called when nothing more is begun. The second is as a kill:
    what is on record stays, and an open request stays open.
    """
    asked = False

    def say() -> None:
        if asked:
            screen.note(
                "agent-replay: interrupted: nothing more is begun, and the calls under way are "
                "waited for; once more ends the process\n"
            )

    if threading.current_thread() is not threading.main_thread():
        yield say
        return

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(Exit.INTERRUPTED)
        asked = True
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN  # as a shell starts things behind
    }
    try:
        yield say
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
