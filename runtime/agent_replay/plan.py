"""Plans: a finite list of tool calls, written as JSON and pinned when a run starts.

    {"plan": 1, "steps": [
      {"id": "pay", "adapter": "charge@1", "contract": "idempotent", "arguments": {"cents": 1200}}
    ]}

Every plan is judged here before anything is written, whether it comes from a file or from Python:
a `Plan` that exists is acceptable. The same rules stand in `plan.schema.json`, as far as a schema
can say them. Apart from `load_plan`, nothing here does I/O.

Ids are compared exactly: `Charge` and `charge` are two steps, and nothing is trimmed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from agent_replay.errors import InvalidInput, InvalidPlan
from agent_replay.events import CONTRACTS
from agent_replay.lifecycles.step import Contract
from agent_replay.values import (
    PLAN_BYTES_MAX,
    STEPS_MAX,
    VALUE_DEPTH_MAX,
    Json,
    check_adapter,
    check_arguments,
    check_id,
    decode,
    read_json,
    shown,
)

FORMAT: Final = 1
"""The number under `plan` in the file."""

_PLAN_FIELDS: Final = {"plan": 0, "steps": 0}.keys()  # in the order in which messages name them
_STEP_FIELDS: Final = {"id": 0, "adapter": 0, "contract": 0, "arguments": 0}.keys()
_STEPS_AT_ONCE: Final = 500
_DEPTH_MAX: Final = 2 * VALUE_DEPTH_MAX  # so that arguments that are a little too deep have a place


class Step(NamedTuple):
    """One tool call of a plan. It checks nothing by itself; `Plan` does.

    `adapter` is the name without the version, `arguments_text` the canonical text.
    """

    id: str
    adapter: str
    version: str
    contract: Contract
    arguments_text: str

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments, decoded anew at each use."""
        return cast("dict[str, Json]", decode(self.arguments_text, f"arguments of step {self.id}"))


class Plan:
    """A checked plan that never changes; two plans are equal if their digests are.

    `Plan(steps)` takes steps as `Step` or as dicts with the fields of the file, and raises
    `InvalidPlan` at the first fault, with its place.
    """

    __slots__ = ("digest", "steps")

    digest: str
    steps: tuple[Step, ...]

    def __init__(self, steps: Sequence[Step | Mapping[str, object]]) -> None:
        self._fix(tuple(_checked_steps(steps, parsed=False)))

    @classmethod
    def _of_parsed(cls, steps: object) -> Plan:
        plan = object.__new__(cls)
        plan._fix(tuple(_checked_steps(steps, parsed=True)))
        return plan

    def _fix(self, checked: tuple[Step, ...]) -> None:
        digest, size = _digest_and_size(checked)
        if size > PLAN_BYTES_MAX:
            raise _too_large()
        object.__setattr__(self, "steps", checked)
        object.__setattr__(self, "digest", digest)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a plan never changes; make a new Plan instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a plan never changes, so {name} stays")

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Plan of {_steps(len(self.steps))}, {self.digest[:12]}>"

    def __reduce__(self) -> tuple[type[Plan], tuple[tuple[Step, ...]]]:
        return Plan, (self.steps,)


# --- ways in ----------------------------------------------------------------------------------


def read_plan(text: str | bytes) -> Plan:
    """Return the plan that a JSON text holds, or raise `InvalidPlan` with its place."""
    document = read_json(text, refuse=InvalidPlan, bytes_max=PLAN_BYTES_MAX, depth_max=_DEPTH_MAX)
    return Plan._of_parsed(_steps_in(document))


def plan_of(document: object) -> Plan:
    """Return the plan that a document in the form of the file is, or raise `InvalidPlan`."""
    return Plan(cast("list[Mapping[str, object]]", _steps_in(document)))


def _steps_in(document: object) -> object:
    if type(document) is not dict:
        raise InvalidPlan("the plan", f"a plan is an object, not {shown(document)}")
    _check_fields(document, _PLAN_FIELDS, "the plan")
    number = document["plan"]
    if type(number) is not int or number != FORMAT:
        raise InvalidPlan("plan", f"the number of the format is {FORMAT}, not {shown(number)}")
    return document["steps"]


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file, or raise `InvalidPlan` with the file and the place of its fault.

    A file that is too large is refused unread, and a pipe as soon as it has given too much.
    """
    place = ascii(os.fspath(path))
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            text = file.read(PLAN_BYTES_MAX + 1) if size <= PLAN_BYTES_MAX else b""
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidPlan(place, f"the plan cannot be read: {reason}") from error
    if max(size, len(text)) > PLAN_BYTES_MAX:
        raise InvalidPlan(place, f"a plan has at most {PLAN_BYTES_MAX} bytes; split it into runs")
    try:
        return read_plan(text)
    except InvalidPlan as error:
        raise InvalidPlan(f"{place}, {error.place}", error.problem) from None


def _checked_steps(steps: object, *, parsed: bool) -> Iterator[Step]:
    if type(steps) is not list and type(steps) is not tuple:
        raise InvalidPlan("steps", f"the steps are a list, not {shown(steps)}")
    if not 1 <= len(steps) <= STEPS_MAX:
        raise InvalidPlan("steps", f"a plan has 1 to {STEPS_MAX} steps, and this has {len(steps)}")
    numbers: dict[str, int] = {}
    size = 0
    for number, entry in enumerate(steps):
        place = f"steps[{number}]"
        if type(entry) is Step:
            step = _rechecked(entry, place)
        else:
            step = _checked(entry, place, parsed=parsed)
        earlier = numbers.setdefault(step.id, number)
        if earlier != number:
            raise InvalidPlan(
                f"{place}.id", f"{step.id!r} is also the id of steps[{earlier}]; ids are unique"
            )
        size += len(step.arguments_text)
        if size > PLAN_BYTES_MAX:  # early, since one large value may be the arguments of each step
            raise _too_large()
        yield step


def _checked(entry: object, place: str, *, parsed: bool) -> Step:
    if type(entry) is not dict:
        raise InvalidPlan(place, f"a step is an object, not {shown(entry)}")
    _check_fields(entry, _STEP_FIELDS, place)
    field = "id"
    try:
        step_id = check_id("step id", entry["id"])
        field = "adapter"
        name, version = check_adapter(entry["adapter"])
    except InvalidInput as error:
        raise InvalidPlan(f"{place}.{field}", str(error)) from None
    contract = _contract(entry["contract"], place)
    arguments = check_arguments(
        entry["arguments"], f"{place}.arguments", refuse=InvalidPlan, parsed=parsed
    )
    return Step(step_id, name, version, contract, arguments)


def _rechecked(step: Step, place: str) -> Step:
    """Return a step that somebody made, if it is what would be made of its own fields."""
    if type(step.arguments_text) is not str:
        raise InvalidPlan(f"{place}.arguments_text", f"a text, not {shown(step.arguments_text)}")
    made = _checked(
        {
            "id": step.id,
            "adapter": f"{step.adapter}@{step.version}",
            "contract": step.contract,
            "arguments": read_json(
                step.arguments_text, f"{place}.arguments_text", refuse=InvalidPlan
            ),
        },
        place,
        parsed=True,
    )
    if made.arguments_text != step.arguments_text:
        raise InvalidPlan(f"{place}.arguments_text", "not canonical; give the step as a dict")
    if made != step:
        raise InvalidPlan(place, "adapter and version are two strings, or give the step as a dict")
    return made


def _contract(value: object, place: str) -> Contract:
    if type(value) is Contract:
        return value
    if type(value) is not str or value not in CONTRACTS:
        one_of = ", ".join(CONTRACTS)
        raise InvalidPlan(f"{place}.contract", f"{shown(value)} is not one of {one_of}")
    return CONTRACTS[value]


def _check_fields(found: Mapping[Any, object], fields: KeysView[str], place: str) -> None:
    if found.keys() == fields:
        return
    for key in found:
        if key not in fields:
            nearest = _nearest(key, fields)
            raise InvalidPlan(
                place, f"unknown field {shown(key)}; the nearest known one is {nearest!r}"
            )
    missing = next(field for field in fields if field not in found)
    raise InvalidPlan(place, f"the field {missing!r} is missing; needed are {', '.join(fields)}")


def _nearest(key: object, fields: KeysView[str]) -> str:
    import difflib  # here, because it is slow to import and seldom needed

    return difflib.get_close_matches(str(key)[:64], list(fields), n=1, cutoff=0.0)[0]


def _too_large() -> InvalidPlan:
    return InvalidPlan(
        "the plan", f"its canonical text has more than {PLAN_BYTES_MAX} bytes; split it into runs"
    )


# --- text and digest --------------------------------------------------------------------------


def plan_text(plan: Plan) -> str:
    """Return the canonical text of a plan, which reads as the same plan again."""
    return b"".join(_pieces(plan.steps)).decode()


def plan_digest(steps: Iterable[Step]) -> str:
    """Return the digest of a plan from its steps, one after the other, in hex digits.

    It is the SHA-256 of the plan's canonical text in UTF-8, which is, without the line breaks,

        {"plan":1,"steps":[
        {"adapter":"NAME@VERSION","arguments":ARGUMENTS_TEXT,"contract":"CONTRACT","id":"ID"}
        ,
        ...
        ]}

    with the steps separated by commas. So key order and white space of a file do not matter. Names
    and ids need no escapes, as long as the steps are those of a `Plan`.
    """
    return _digest_and_size(steps)[0]


def digest_of_columns(
    ids: Iterable[str], adapters: Iterable[str], contracts: Iterable[str], arguments: Iterable[str]
) -> str:
    """Return the digest of a plan whose steps are given by the texts of their columns; an adapter
    with its version."""
    hashed = hashlib.sha256()
    texts = map(_text_of, ids, adapters, contracts, arguments)
    for piece in _joined(iter(lambda: ",".join(islice(texts, _STEPS_AT_ONCE)), "")):
        hashed.update(piece)
    return hashed.hexdigest()


def _pieces(steps: Iterable[Step]) -> Iterator[bytes]:
    return _joined(
        _text_of(step_id, f"{adapter}@{version}", contract.value, arguments)
        for step_id, adapter, version, contract, arguments in steps
    )


def _text_of(step_id: str, identity: str, contract: str, arguments: str) -> str:
    return (
        f'{{"adapter":"{identity}","arguments":{arguments},'
        f'"contract":"{contract}","id":"{step_id}"}}'
    )


def _joined(texts: Iterable[str]) -> Iterator[bytes]:
    yield b'{"plan":%d,"steps":[' % FORMAT
    separator = ""
    for text in texts:
        yield f"{separator}{text}".encode()
        separator = ","
    yield b"]}"


def _digest_and_size(steps: Iterable[Step]) -> tuple[str, int]:
    hashed = hashlib.sha256()
    size = 0
    for piece in _pieces(steps):
        hashed.update(piece)
        size += len(piece)
    return hashed.hexdigest(), size


# --- comparison -------------------------------------------------------------------------------


def first_difference(recorded: Sequence[Step], planned: Sequence[Step]) -> str | None:
    """Return in words the first difference between the steps of a run and of a plan, if any."""
    for number, (old, new) in enumerate(zip(recorded, planned, strict=False), start=1):
        if old != new:
            return _difference(number, old, new)
    if len(recorded) != len(planned):
        return f"the plan has {_steps(len(planned))}, the run has {len(recorded)}"
    return None


def _difference(number: int, old: Step, new: Step) -> str:
    if old.id != new.id:
        return f"step {number}: history has {old.id!r}, the plan has {new.id!r}"
    place = f"step {number} {old.id!r}"
    adapters = [f"{step.adapter}@{step.version}" for step in (old, new)]
    if adapters[0] != adapters[1]:
        return f"{place}: history has adapter {adapters[0]}, the plan has {adapters[1]}"
    if old.contract is not new.contract:
        return f"{place}: history has contract {old.contract}, the plan has {new.contract}"
    return f"{place}: arguments differ"


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"
