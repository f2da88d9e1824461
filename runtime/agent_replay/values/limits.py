"""The limits of plans, values and names, each with its reason.

Only numbers: nothing here is computed from a value. `plan.schema.json` repeats some of them, and a
test compares.
"""

from typing import Final

VALUE_DEPTH_MAX: Final = 100
"""Arrays and objects inside one another: far below what exhausts the stack of any JSON coder."""

INTEGER_BITS: Final = 64
INTEGER_MAX: Final = 2 ** (INTEGER_BITS - 1) - 1
INTEGER_MIN: Final = -INTEGER_MAX - 1
"""Signed integers of plans and arguments: databases and other languages change larger ones."""

RESULT_INTEGER_DIGITS_MAX: Final = 640
"""Integers of results: no setting of Python's `int_max_str_digits` can make these unreadable."""

ARGUMENTS_BYTES_MAX: Final = 1 << 20
"""The arguments of one step, as canonical text."""

RESULT_BYTES_MAX: Final = 4 << 20
"""One result, as canonical text: it is written in the transaction that records the step."""

PLAN_BYTES_MAX: Final = 64 << 20
"""A whole plan, as its file and as canonical text: all of it is in memory at once."""

STEPS_MAX: Final = 100_000
"""The steps of a plan: its registration is one transaction."""

ID_LENGTH_MAX: Final = 128
ADAPTER_NAME_LENGTH_MAX: Final = 64
ADAPTER_VERSION_LENGTH_MAX: Final = 32
"""Characters, which are also bytes: names are ASCII, and fit on a line of a report."""

DESCRIBED_BYTES_MAX: Final = 4 * RESULT_BYTES_MAX
"""What an unstorable result may take for its digest to be made: seconds at worst."""

MARKER_TEXT_LENGTH_MAX: Final = 200
SHOWN_LENGTH_MAX: Final = 60
"""Characters of a value that a marker and a message show."""
