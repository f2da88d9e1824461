"""JSON values: their type and limits, their one canonical text, and the checks at each way in.

Plans, arguments and results are JSON. What comes from outside is judged here before anything is
written, so that whatever is stored can be read back, tomorrow and under another Python. Nothing
here does I/O, reads a clock, or knows what a run is.

`limits` has the numbers, `text` the canonical text and its digest, `names` the rules for ids,
`walk` the judgement of a value, and above it `reading` (text from outside), `arguments` (values
that a caller made in Python) and `results` (values that a tool returned).
"""

from agent_replay.values.arguments import check_arguments
from agent_replay.values.limits import (
    ADAPTER_NAME_LENGTH_MAX,
    ADAPTER_VERSION_LENGTH_MAX,
    ARGUMENTS_BYTES_MAX,
    ID_LENGTH_MAX,
    INTEGER_BITS,
    INTEGER_MAX,
    INTEGER_MIN,
    PLAN_BYTES_MAX,
    RESULT_BYTES_MAX,
    RESULT_INTEGER_DIGITS_MAX,
    STEPS_MAX,
    VALUE_DEPTH_MAX,
)
from agent_replay.values.names import (
    check_adapter,
    check_adapter_name,
    check_adapter_version,
    check_id,
)
from agent_replay.values.reading import read_json
from agent_replay.values.results import MarkedResult, encode_result, unstorable
from agent_replay.values.text import Json, canonical, decode, digest, shown

__all__ = [
    "ADAPTER_NAME_LENGTH_MAX",
    "ADAPTER_VERSION_LENGTH_MAX",
    "ARGUMENTS_BYTES_MAX",
    "ID_LENGTH_MAX",
    "INTEGER_BITS",
    "INTEGER_MAX",
    "INTEGER_MIN",
    "PLAN_BYTES_MAX",
    "RESULT_BYTES_MAX",
    "RESULT_INTEGER_DIGITS_MAX",
    "STEPS_MAX",
    "VALUE_DEPTH_MAX",
    "Json",
    "MarkedResult",
    "canonical",
    "check_adapter",
    "check_adapter_name",
    "check_adapter_version",
    "check_arguments",
    "check_id",
    "decode",
    "digest",
    "encode_result",
    "read_json",
    "shown",
    "unstorable",
]
