"""Text for people, and the same as JSON objects: pure functions from values to lines.

Nothing here does I/O, reads a clock or decides anything about a run. Whatever came from a tool,
from a file or from a person is bounded and escaped before it becomes part of a line, so that it
cannot steer a terminal or pass for something else.

`words` has times, bounds and sentences, `commands` what to type next, `diagnosis` why a run has not
ended; `outcomes`, `runs`, `timeline` and `doctor` the lines of each command, and `objects` what the
same commands print with `--json`. The library never imports this.
"""
