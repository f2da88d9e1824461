"""Adapters from where the command line says: a file of Python, or a module.

    path/to/tools.py      every adapter at the top level of the file
    path/to/tools.py:pay  the one under that name
    package.module        every adapter at the top level of the module
    package.module:pay    the one under that name

Loading runs the code that is named, as `python` would, with its folder on the module path. Only
what the person at the terminal has named is loaded, never what a database says. It takes place
before a database is opened, so that code which does not load leaves nothing behind.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from types import ModuleType
from typing import NamedTuple

from agent_replay.adapters import Adapter
from agent_replay.errors import InvalidInput, ReplayError
from agent_replay.report.words import bounded

_SUFFIX = ".py"
_PRIVATE_NAME = "agent_replay_adapters"


class Loaded(NamedTuple):
    """The adapters of a command, each once, and where they came from, for a run to keep."""

    adapters: tuple[Adapter, ...]
    sources: tuple[str, ...]


class _Source(NamedTuple):
    """One place to load from; exactly one of `file` and `module` is not empty."""

    file: str
    module: str
    name: str

    @property
    def place(self) -> str:
        return self.file or self.module

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" if self.name else self.place


def load_adapters(given: Sequence[str]) -> Loaded:
    """Return the adapters that are found in these places, or raise `InvalidInput`.

    An object that is found twice counts once.
    """
    sources = [_source(text) for text in given]
    modules: dict[str, ModuleType] = {}
    found: dict[int, Adapter] = {}
    for source in sources:
        if source.place not in modules:
            modules[source.place] = _loaded(source)
        for adapter in _adapters_in(modules[source.place], source):
            found.setdefault(id(adapter), adapter)
    return Loaded(tuple(found.values()), tuple(str(source) for source in sources))


def _source(text: str) -> _Source:
    """Return the place that a text names; files are told from modules by their suffix."""
    place, separator, name = text.rpartition(":")
    if not separator or text.endswith(_SUFFIX):
        place, name = text, ""
    elif not name.isidentifier():
        raise InvalidInput(f"adapters {text!r}: give the name of an adapter after the colon")
    if place.endswith(_SUFFIX):
        return _Source(os.path.abspath(place), "", name)
    module = place
    if not all(part.isidentifier() for part in module.split(".")):
        raise InvalidInput(
            f"adapters {text!r}: neither a file that ends in .py nor a module; "
            "give path/to/tools.py or package.module, with :NAME for one adapter of it"
        )
    return _Source("", module, name)


def _adapters_in(module: ModuleType, source: _Source) -> list[Adapter]:
    if source.name:
        one = getattr(module, source.name, None)
        if isinstance(one, Adapter):
            return [one]
        there = ", ".join(_names_of_adapters(module)) or "none"
        problem = "is no adapter" if hasattr(module, source.name) else "is not there"
        raise InvalidInput(f"{source.place}: {source.name} {problem}; its adapters are: {there}")
    found = [value for value in vars(module).values() if isinstance(value, Adapter)]
    if not found:
        raise InvalidInput(
            f"{source.place}: there are no adapters in it; decorate a function with @adapter"
        )
    return found


def _names_of_adapters(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, Adapter)]


# --- running the code -------------------------------------------------------------------------


def _loaded(source: _Source) -> ModuleType:
    if source.file:
        if not os.path.isfile(source.file):
            raise InvalidInput(f"{source.file}: there is no such file of adapters; check the path")
        _add_to_path(os.path.dirname(source.file), first=True)
    else:
        _add_to_path(os.getcwd(), first=False)  # behind what is installed, which it can't replace
    try:
        return _of_file(source.file) if source.file else importlib.import_module(source.module)
    except (ReplayError, SystemExit) as error:
        raise _unloadable(source, error) from error
    except ModuleNotFoundError as error:
        if error.name and f"{source.module}.".startswith(f"{error.name}."):
            raise InvalidInput(
                f"{source.module}: there is no module {error.name}; check the name, "
                "or give the path of a file"
            ) from error
        raise _unloadable(source, error) from error
    except Exception as error:  # the adapter boundary: the code may raise anything
        raise _unloadable(source, error) from error


def _add_to_path(folder: str, *, first: bool) -> None:
    if folder not in sys.path:
        sys.path.insert(0 if first else len(sys.path), folder)


class _UncachedLoader(importlib.machinery.SourceFileLoader):
    """Loads the file as it is now: the cache of compiled code compares times to the second only."""

    def path_stats(self, path: object) -> dict[str, float]:
        raise OSError("no cached code is used or written")


def _of_file(file: str) -> ModuleType:
    """Run a file as a module under a private name, so that it hides no module of that name."""
    name = f"{_PRIVATE_NAME}_{sha256(file.encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_UncachedLoader(name, file))
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{file}: Python cannot load it as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _unloadable(source: _Source, error: BaseException) -> InvalidInput:
    """Return what is wrong with the code in its own words, with the line in it."""
    line = _line(source, error)
    place = f"{source.place}, line {line}" if line else source.place
    return InvalidInput(
        f"{place}: the adapters cannot be loaded: {type(error).__name__}: {bounded(str(error))}"
    )


def _line(source: _Source, error: BaseException) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno if error.filename in (source.file, None) or source.module else None
    file = source.file or _origin(source.module)
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _origin(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return ""
    return "" if spec is None or spec.origin is None else spec.origin
