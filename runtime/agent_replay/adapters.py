"""Adapters: the code that talks to a tool, and what it promises about repeating a call.

    @adapter(contract=idempotent())
    def charge(request: Request) -> Json: ...

A contract is a promise of the tool that nothing here can verify. The default, `opaque`, promises
nothing. An adapter gets a `Request` and returns a JSON value. It raises `ToolRejected` to say that
the tool had no effect; every other exception means that the outcome is unknown.
"""

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from types import CodeType
from typing import NamedTuple, overload

from agent_replay.contracts import Terms, opaque
from agent_replay.errors import AdapterMismatch, InvalidInput
from agent_replay.lifecycles.step import Contract
from agent_replay.values import Json

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}\Z")

_UNFINISHED = {0x20: "generator", 0x80: "coroutine", 0x200: "asynchronous generator"}
"""By the flag of a code object, as `inspect` documents them: importing that costs as much as all
else.
"""
_WRAPPINGS_MAX = 100


class ToolRejected(Exception):
    """The tool refused this call and had no effect.

    It speaks of this call alone, unless `covers_key` says that no call with this key had an effect,
    and that none that is still under way can have one.
    """

    def __init__(self, reason: str = "", *, covers_key: bool = False) -> None:
        super().__init__(reason)
        self.covers_key = covers_key


class Request(NamedTuple):
    """One call of a tool, as its adapter receives it.

    `key` is the same for every attempt. `send_before` is in seconds since the epoch (UTC): a
    request must leave before it; None means that there is no limit.
    """

    run: str
    step: str
    key: str
    attempt: int
    arguments: Json
    send_before: float | None


class Found(NamedTuple):
    """A probe's answer: the key is known, and this was the result."""

    result: Json


class Absent(NamedTuple):
    """A probe's answer: the key is not known to the tool."""


Call = Callable[[Request], Json]
Probe = Callable[[Request], Found | Absent]


class Adapter:
    """A tool call with its identity (`name@version`) and its contract.

    Raises `InvalidInput` for a name or version that is not plain, for a coroutine or generator
    function, and for a probe that is missing or has no use.
    """

    __slots__ = ("call", "name", "probe", "source", "terms", "version")

    def __init__(
        self, call: Call, *, name: str, version: str, terms: Terms, probe: Probe | None
    ) -> None:
        if not isinstance(terms, Terms):
            raise InvalidInput(
                f"adapter {name}: {terms!a} is not a contract; give one with its parentheses, "
                "as in contract=idempotent()"
            )
        if not isinstance(version, str):
            raise InvalidInput(f"adapter {name}: a version is a string, not {version!a}")
        if type(name) is not str or not _NAME.match(name):
            raise InvalidInput(
                f"adapter name {name!a}: use letters, digits, '_', '.' or '-', from a letter on"
            )
        if not _VERSION.match(version):
            raise InvalidInput(
                f"adapter {name}: version {version!a}: use letters, digits, '.', '_', '+' or '-'"
            )
        _refuse_unfinished(name, call)
        if terms.contract is Contract.QUERYABLE and probe is None:
            raise InvalidInput(f"adapter {name}: a queryable adapter needs a probe; give probe=")
        if terms.contract is not Contract.QUERYABLE and probe is not None:
            raise InvalidInput(
                f"adapter {name}: a probe has no use for the contract {terms.contract}; drop it"
            )
        if probe is not None:
            _refuse_unfinished(name, probe)
        self.call = call
        self.name = name
        self.version = version
        self.terms = terms
        self.probe = probe
        self.source = _source_digest(call)

    @property
    def identity(self) -> str:
        """Return `name@version`."""
        return f"{self.name}@{self.version}"

    def __call__(self, request: Request) -> Json:
        """Call the tool, as the runtime does."""
        return self.call(request)

    def __repr__(self) -> str:
        return f"<adapter {self.identity}, {self.terms.contract}>"


@overload
def adapter(function: Call, /) -> Adapter: ...
@overload
def adapter(
    *,
    name: str | None = None,
    version: str = "1",
    contract: Terms | None = None,
    probe: Probe | None = None,
) -> Callable[[Call], Adapter]: ...
def adapter(
    function: Call | None = None,
    /,
    *,
    name: str | None = None,
    version: str = "1",
    contract: Terms | None = None,
    probe: Probe | None = None,
) -> Adapter | Callable[[Call], Adapter]:
    """Make an adapter of a plain function; `opaque` unless a contract is given."""

    def decorate(call: Call) -> Adapter:
        named = name if name is not None else getattr(call, "__name__", "")
        return Adapter(call, name=named, version=version, terms=contract or opaque(), probe=probe)

    return decorate if function is None else decorate(function)


def _refuse_unfinished(name: str, function: Callable[[Request], object]) -> None:
    """Refuse what returns before it has done its work: its call would be taken for a result."""
    if not callable(function):
        raise InvalidInput(f"adapter {name}: {function!a} is not callable")
    flags = getattr(_code_of(function), "co_flags", 0)
    for flag, word in _UNFINISHED.items():
        if flags & flag:
            raise InvalidInput(
                f"adapter {name}: a {word} function does its work after it returned; make it a "
                "plain one"
            )


def _code_of(function: object) -> CodeType | None:
    """Return the code that a call of this runs, if it is written in Python."""
    for _ in range(_WRAPPINGS_MAX):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        inner = inner or getattr(function, "__func__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004
    return code if isinstance(code, CodeType) else None


def _source_digest(function: Call) -> str:
    """Return 32 hex digits that change when the adapter's source does.

    It is empty if there is no source to be had.
    """
    import linecache  # here, since it costs a tenth of the package's import

    code = _code_of(function)
    if code is None:
        return ""
    last = max((line for _, _, line in code.co_lines() if line is not None), default=0)
    source = "".join(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last])
    return sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:32] if source else ""


class Registry:
    """The adapters of one runtime, by identity."""

    def __init__(self, adapters: Iterable[Adapter]) -> None:
        self._adapters: dict[str, Adapter] = {}
        for one in adapters:
            if not isinstance(one, Adapter):
                raise InvalidInput(
                    f"{one!a} is not an adapter; decorate the function with @adapter"
                )
            if one.identity in self._adapters:
                raise InvalidInput(
                    f"adapter {one.identity} is registered twice; give one another name or version"
                )
            self._adapters[one.identity] = one

    def __iter__(self) -> Iterable[str]:
        return iter(self._adapters)

    def get(self, identity: str) -> Adapter:
        """Return the adapter, or raise `AdapterMismatch` saying what is registered instead."""
        found = self._adapters.get(identity)
        if found is None:
            name = identity.partition("@")[0]
            others = sorted(other for other in self._adapters if other.partition("@")[0] == name)
            known = (
                f"registered is {', '.join(others)}"
                if others
                else f"registered: {', '.join(sorted(self._adapters)) or 'none'}"
            )
            raise AdapterMismatch(f"adapter {identity} is missing; {known}; register it and resume")
        return found

    def has(self, identity: str) -> bool:
        """Return whether the adapter is registered."""
        return identity in self._adapters
