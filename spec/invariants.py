"""The invariants and the assumptions they rest on: loading, lint, and where each is cited.

A citation is the id as a whole word in a Python file of a checker's folder (`models`, `tests`,
`crashtests`). A checker that is named under `later` is still owed: as soon as it does cite the id,
`later` is out of date and that is a complaint too, so the list can only shrink.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from spec.model import SpecError, Table, parse, wrong_keys, wrong_sentence

CHECKERS = ("models", "tests", "crashtests")
_INVARIANT_ID = re.compile(r"[SL][1-9][0-9]?")
_ASSUMPTION_ID = re.compile(r"A[1-9][0-9]?")
_MARKED = re.compile(r"\binvariant\(([^()]*)\)")
_QUOTED = re.compile(r"""["']([^"']+)["']""")
_LISTS = ("assumes", "checked_by", "later")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """One promise: what it rests on, and who must check it."""

    id: str
    says: str
    assumes: tuple[str, ...]
    checked_by: tuple[str, ...]
    later: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """The content of invariants.toml."""

    invariants: tuple[Invariant, ...]
    assumptions: dict[str, str]


Citations = dict[tuple[str, str], tuple[str, ...]]
"""Files, relative to the root, by invariant id and checker."""


def load(folder: Path) -> Promises:
    """Return the invariants in `folder`, or raise `SpecError` with every complaint about them."""
    table = parse(folder / "invariants.toml")
    found = tuple(complaints(table))
    if found:
        raise SpecError(*found)
    return build(table)


def complaints(table: Table) -> Iterator[str]:
    """Yield what is wrong with the tables of invariants.toml; sound ones yield nothing."""
    for complaint in _complaints(table):
        yield f"invariants.toml: {complaint}"


def _complaints(table: Table) -> Iterator[str]:
    for key in ("invariant", "assumption"):
        if not isinstance(table.get(key), list):
            yield f"there must be tables [[{key}]]"
            return
    for key in table:
        if key not in ("invariant", "assumption"):
            yield f"the file has the unknown key {key!r}"
    invariants = cast("list[Table]", table["invariant"])
    assumptions = cast("list[Table]", table["assumption"])
    yield from _rows(invariants, _INVARIANT_ID, ("id", "says", *_LISTS[:2]), ("later",))
    yield from _rows(assumptions, _ASSUMPTION_ID, ("id", "says"), ())
    known = {str(row.get("id")) for row in assumptions}
    for row in invariants:
        yield from _lists(row, known)
    assumed = {name for row in invariants for name in _strings(row, "assumes")}
    for name in sorted(known - assumed):
        yield f"{name}: nothing rests on this assumption"


def _rows(
    rows: list[Table], pattern: re.Pattern[str], keys: tuple[str, ...], optional: tuple[str, ...]
) -> Iterator[str]:
    seen: set[object] = set()
    for number, row in enumerate(rows, start=1):
        name = row.get("id")
        where = f"row {number} ({name or '?'})"
        if not isinstance(name, str) or not pattern.fullmatch(name):
            yield f"{where}: the id must look like {pattern.pattern}"
        if name in seen:
            yield f"{where}: the id is there twice"
        seen.add(name)
        yield from wrong_keys(where, row, keys, optional=optional)
        yield from wrong_sentence(f"{where}: says", row.get("says", "x"))


def _lists(row: Table, assumptions: set[str]) -> Iterator[str]:
    name = row.get("id", "?")
    for key in _LISTS:
        if not isinstance(row.get(key, []), list):
            yield f"{name}: {key} must be a list"
            return
    checked_by = _strings(row, "checked_by")
    if not checked_by:
        yield f"{name}: checked_by is empty, so nobody would notice if it broke"
    yield from _unknown(f"{name}: assumes", _strings(row, "assumes"), sorted(assumptions))
    yield from _unknown(f"{name}: checked_by", checked_by, CHECKERS)
    yield from _unknown(f"{name}: later", _strings(row, "later"), checked_by)


def _strings(row: Table, key: str) -> tuple[str, ...]:
    value = row.get(key, [])
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _unknown(where: str, names: Iterable[str], known: Iterable[str]) -> Iterator[str]:
    known = tuple(known)
    for name in names:
        if name not in known:
            yield f"{where} names {name!r}; possible are {', '.join(known)}"


def build(table: Table) -> Promises:
    """Return the promises that well-formed tables hold."""
    return Promises(
        invariants=tuple(
            Invariant(
                id=str(row["id"]),
                says=str(row["says"]),
                assumes=_strings(row, "assumes"),
                checked_by=_strings(row, "checked_by"),
                later=_strings(row, "later"),
            )
            for row in cast("list[Table]", table["invariant"])
        ),
        assumptions={
            str(row["id"]): str(row["says"]) for row in cast("list[Table]", table["assumption"])
        },
    )


def citations(root: Path, promises: Promises) -> Citations:
    """Return where each invariant is cited, for each checker."""
    found: dict[tuple[str, str], list[str]] = {}
    ids = {invariant.id for invariant in promises.invariants}
    for checker in CHECKERS:
        for path in _python_files(root / checker):
            words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
            for name in ids & words:
                found.setdefault((name, checker), []).append(path.relative_to(root).as_posix())
    return {key: tuple(files) for key, files in found.items()}


def uncited(root: Path, promises: Promises) -> Iterator[str]:
    """Yield each citation that is owed, is no longer `later`, or is of an unknown id."""
    cited = citations(root, promises)
    for checker in CHECKERS:
        files = _python_files(root / checker)
        for one in promises.invariants:
            here = cited.get((one.id, checker))
            if here and checker in one.later:
                yield (
                    f"spec/invariants.toml: {one.id} is cited in {here[0]} by now; "
                    f"take {checker!r} out of its later"
                )
            owed = checker in one.checked_by and checker not in one.later
            if files and owed and not here:
                yield (
                    f"{one.id} is cited by no file under {checker}/, "
                    "though spec/invariants.toml has it checked there"
                )
        yield from _unknown_citations(root, files, promises)


def _unknown_citations(root: Path, files: list[Path], promises: Promises) -> Iterator[str]:
    known = {invariant.id for invariant in promises.invariants}
    for path in files:
        for arguments in _MARKED.findall(path.read_text(encoding="utf-8")):
            for name in _QUOTED.findall(arguments):
                if name not in known:
                    yield f"{path.relative_to(root).as_posix()} cites the unknown invariant {name}"


def _python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))
