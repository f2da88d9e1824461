"""The effect store: effects, and the receipts by which a tool knows a key again.

What may live here is what a tool could do. Nothing here knows runs, steps or attempts: a key comes
in, as over a wire, and a receipt goes out.

The SQLite here is the one that Python brings along (`sqlite3`), and often one whose WAL mode can
lose commits. So the rollback journal is used, which that bug does not touch, with
`synchronous=EXTRA`: under FULL the deletion of the journal, which is the commit, is not synced, and
power loss could take the commit back. Every transaction is begun and ended explicitly; the module's
own habit of opening them is off.
"""

from __future__ import annotations

import os
import pkgutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final, NamedTuple

from agent_replay.errors import ReplayError, UnusableDatabase
from agent_replay.values import Json, canonical, decode

WAIT_SECONDS: Final = 60.0
"""How long to wait for other processes that write."""

_EXTRA: Final = 3
"""What `pragma synchronous` answers for EXTRA."""

_MARK: Final = int.from_bytes(b"EffR")
"""The application id in the file's header."""


def _statements() -> dict[str, str]:
    text = pkgutil.get_data(__name__, "statements.sql")
    assert text is not None, "the package is loaded from files"
    blocks = {}
    for block in text.decode().split("-- name: ")[1:]:
        name, _, statement = block.partition("\n")
        blocks[name] = statement
    return blocks


QUERIES: Final = _statements()


class KeyReused(ReplayError):
    """The key is known with another kind or content. Nothing was done."""


class Receipt(NamedTuple):
    """The tool's word that an effect happened: which one of all it was, and what."""

    number: int
    key: str
    kind: str
    content: Json


class EffectStore:
    """One connection to a store; a missing file is made, for its owner alone (0600).

    Any number of processes may have the file open. An object is for the thread and process that
    made it. Raises `UnusableDatabase` for a file of something else. What SQLite raises comes
    through: of a call that raised, the effect may have happened or not, as with any tool.
    """

    def __init__(self, path: str | os.PathLike[str], *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path = os.path.abspath(path)
        _create(self.path)
        self._connection = sqlite3.connect(self.path, timeout=wait_seconds, isolation_level=None)
        try:
            self._take_up()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> EffectStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was applied is durable already."""
        self._connection.close()

    # --- what a tool does ------------------------------------------------------------------------

    def apply(self, key: str, kind: str, content: Json) -> Receipt:
        """Have the effect unless the key is known, and return the key's receipt.

        Durable when it returns. Raises `KeyReused` if the key is known with another kind or other
        content.
        """
        text = canonical(content)
        with self._transaction():
            receipt = self.look_up(key)
            if receipt is None:
                return self._add_effect(key, kind, text)
            if (receipt.kind, canonical(receipt.content)) != (kind, text):
                raise KeyReused(
                    f"key {key!r} came with a {kind} that is not the {receipt.kind} it is known "
                    f"for (effect {receipt.number}); give another request another key"
                )
            # Written also to sync what a process did that died before it had synced its commit.
            self._add_arrival(receipt)
            return receipt

    def apply_blindly(self, key: str, kind: str, content: Json) -> Receipt:
        """Have the effect, whether the key is known or not, and return its own receipt.

        The baseline: a tool that ignores keys. `look_up` finds the first effect of a key. Durable
        when it returns.
        """
        with self._transaction():
            return self._add_effect(key, kind, canonical(content))

    def look_up(self, key: str) -> Receipt | None:
        """Return the receipt of a key, or None if it never arrived."""
        row = self._connection.execute(QUERIES["known"], (key,)).fetchone()
        return None if row is None else _receipt(row)

    # --- what is counted -------------------------------------------------------------------------

    def effects(self, key: str | None = None) -> list[Receipt]:
        """Return what has happened, of one key or of all, in order."""
        return [_receipt(row) for row in self._connection.execute(QUERIES["effects"], {"key": key})]

    def count(self, key: str | None = None) -> int:
        """Return how many effects there are, of one key or of all."""
        return int(self._connection.execute(QUERIES["count"], {"key": key}).fetchone()[0])

    def arrivals(self, key: str) -> int:
        """Return how many requests with this key have arrived and were not refused."""
        row = self._connection.execute(QUERIES["arrivals"], (key,)).fetchone()
        return 0 if row is None else int(row[0])

    # --- storage ---------------------------------------------------------------------------------

    def _add_effect(self, key: str, kind: str, text: str) -> Receipt:
        number = self._connection.execute(QUERIES["add_effect"], (key, kind, text)).lastrowid
        assert number is not None, "an insert gives its row a number"
        receipt = Receipt(number, key, kind, decode(text))
        self._add_arrival(receipt)
        return receipt

    def _add_arrival(self, receipt: Receipt) -> None:
        self._connection.execute(QUERIES["add_arrival"], (receipt.key, receipt.number))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(QUERIES["begin"])
        try:
            yield
            self._connection.execute(QUERIES["commit"])
        except BaseException:
            with suppress(sqlite3.Error):  # else it would cover the error that matters
                self._connection.execute(QUERIES["rollback"])
            raise

    def _take_up(self) -> None:
        """Make sure that the file is an effect store, or becomes one, and is written durably."""
        try:
            ours = self._is_ours()
        except sqlite3.OperationalError:
            raise  # locked, or unreadable: not a word about what it holds
        except sqlite3.DatabaseError as error:
            raise _foreign(self.path, str(error)) from error
        self._set_durability()
        if not ours:
            with self._transaction():
                if not self._is_ours():  # another process may have been faster
                    for name in ("create_effects", "create_receipts", "mark_as_ours"):
                        self._connection.execute(QUERIES[name])

    def _is_ours(self) -> bool:
        """Tell an effect store from an empty file; raise `UnusableDatabase` for all else."""
        mark, objects = self._connection.execute(QUERIES["identity"]).fetchone()
        if mark == _MARK:
            return True
        if mark or objects:
            raise _foreign(self.path, f"application id {mark}, {objects} tables and indexes")
        return False

    def _set_durability(self) -> None:
        mode = self._value("use_rollback_journal")
        self._connection.execute(QUERIES["sync_drive_cache"])
        self._connection.execute(QUERIES["sync_folder_too"])
        synchronous = self._value("synchronous")
        if (mode, synchronous) != ("delete", _EXTRA):
            raise UnusableDatabase(
                f"effect store {self.path!r}: SQLite kept journal_mode={mode} and "
                f"synchronous={synchronous} where delete and {_EXTRA} were asked for"
            )

    def _value(self, query: str) -> object:
        return self._connection.execute(QUERIES[query]).fetchone()[0]


def _create(path: str) -> None:
    """Make the file if it is missing; SQLite would make it for everybody to read.

    The descriptor that is closed here is of a file that did not exist before, so that no connection
    of this process can lose its locks by it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _receipt(row: tuple[int, str, str, str]) -> Receipt:
    number, key, kind, text = row
    return Receipt(number, key, kind, decode(text, f"effect {number}"))


def _foreign(path: str, found: str) -> UnusableDatabase:
    return UnusableDatabase(
        f"{path!r} is not an effect store ({found}); nothing was changed: give another path"
    )
