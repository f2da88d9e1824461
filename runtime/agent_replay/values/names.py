"""The rules for ids and for the names and versions of adapters.

They are plain ASCII and compared exactly: upper and lower case differ, nothing is trimmed, and no
two of them look alike. They hold no separators, so that none can lead out of a folder, and none
begins with a hyphen, so that none is taken for an option.
"""

from __future__ import annotations

import string
from functools import lru_cache
from typing import Final, NamedTuple

from agent_replay.errors import InvalidInput
from agent_replay.values.limits import (
    ADAPTER_NAME_LENGTH_MAX,
    ADAPTER_VERSION_LENGTH_MAX,
    ID_LENGTH_MAX,
)
from agent_replay.values.text import shown


class _Rule(NamedTuple):
    """Which texts are acceptable as a name of some kind."""

    first: str
    others: str
    length_max: int
    says: str


_WORD: Final = string.ascii_letters + string.digits
_ID: Final = _Rule(
    _WORD,
    _WORD + "._:-",
    ID_LENGTH_MAX,
    f"1 to {ID_LENGTH_MAX} of A-Z a-z 0-9 . _ : - and begins with a letter or digit",
)
_ADAPTER_NAME: Final = _Rule(
    string.ascii_letters,
    _WORD + "._-",
    ADAPTER_NAME_LENGTH_MAX,
    f"1 to {ADAPTER_NAME_LENGTH_MAX} of A-Z a-z 0-9 . _ - and begins with a letter",
)
_ADAPTER_VERSION: Final = _Rule(
    _WORD,
    _WORD + "._+-",
    ADAPTER_VERSION_LENGTH_MAX,
    f"1 to {ADAPTER_VERSION_LENGTH_MAX} of A-Z a-z 0-9 . _ + - and begins with a letter or digit",
)


def check_id(kind: str, value: object) -> str:
    """Return the id of a run or a step, or raise `InvalidInput`; `kind` names it in the message."""
    return _check(kind, value, _ID)


def check_adapter_name(value: object) -> str:
    """Return the name of an adapter, or raise `InvalidInput`."""
    return _check("adapter name", value, _ADAPTER_NAME)


def check_adapter_version(value: object) -> str:
    """Return the version of an adapter, or raise `InvalidInput`."""
    return _check("adapter version", value, _ADAPTER_VERSION)


def check_adapter(value: object) -> tuple[str, str]:
    """Return name and version of an adapter written `name@version`, or raise `InvalidInput`."""
    if type(value) is not str or "@" not in value:
        raise InvalidInput(f"adapter {shown(value)}: an adapter is written name@version: charge@1")
    return _parts_of_adapter(value)


@lru_cache(maxsize=128)  # a plan names few adapters, and each of them many times
def _parts_of_adapter(text: str) -> tuple[str, str]:
    name, _, version = text.partition("@")
    return check_adapter_name(name), check_adapter_version(version)


def _check(kind: str, value: object, rule: _Rule) -> str:
    # A subclass of str may compare or print as something else than what would be stored.
    if type(value) is not str or not _fits(value, rule):
        raise InvalidInput(f"{kind} {shown(value)}: the {kind} is a string of {rule.says}")
    return value


def _fits(text: str, rule: _Rule) -> bool:
    if not 0 < len(text) <= rule.length_max:
        return False
    return text[0] in rule.first and not text.strip(rule.others)  # strips all only if all fit
