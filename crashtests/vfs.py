"""Every input or output of the history's files as an operation that can be watched before it
happens.

The methods of SQLite's own VFS, in the library that the runtime really uses, are wrapped in place:
the connection is the production one, with its locks and its shared memory. The file operations that
the runtime makes itself are wrapped in `os`. This changes the process for good, so it is for one
that is made to be killed, and for its parent.

SQLite hands its VFS out through `SQLITE_FCNTL_VFS_POINTER`; the layout of the two structures is
that of `sqlite3.h`, which SQLite keeps stable.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import apsw

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_OPEN = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER)
_DELETE = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT)
_RANDOMNESS = ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _POINTER)
_METHOD_TYPES = {
    "xWrite": ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT, ctypes.c_int64),
    "xTruncate": ctypes.CFUNCTYPE(_INT, _POINTER, ctypes.c_int64),
    "xSync": ctypes.CFUNCTYPE(_INT, _POINTER, _INT),
    "xShmLock": ctypes.CFUNCTYPE(_INT, _POINTER, _INT, _INT, _INT),
}
_OPERATIONS = {"xWrite": "write", "xTruncate": "truncate", "xSync": "sync", "xShmLock": "lock"}
_OS_OPERATIONS = {
    "write": "write",
    "pwrite": "write",
    "fsync": "sync",
    "fdatasync": "sync",
    "rename": "rename",
    "replace": "rename",
    "unlink": "delete",
    "ftruncate": "truncate",
}


class _Methods(ctypes.Structure):
    """`sqlite3_io_methods`, version 3."""

    _fields_ = [("iVersion", _INT)] + [
        (name, _POINTER)
        for name in (
            *("xClose", "xRead", "xWrite", "xTruncate", "xSync", "xFileSize", "xLock", "xUnlock"),
            *("xCheckReservedLock", "xFileControl", "xSectorSize", "xDeviceCharacteristics"),
            *("xShmMap", "xShmLock", "xShmBarrier", "xShmUnmap", "xFetch", "xUnfetch"),
        )
    ]


class _Vfs(ctypes.Structure):
    """The beginning of `sqlite3_vfs`."""

    _fields_ = [
        ("iVersion", _INT),
        ("szOsFile", _INT),
        ("mxPathname", _INT),
        ("pNext", _POINTER),
        ("zName", ctypes.c_char_p),
        ("pAppData", _POINTER),
        *((name, _POINTER) for name in ("xOpen", "xDelete", "xAccess", "xFullPathname")),
        *((name, _POINTER) for name in ("xDlOpen", "xDlError", "xDlSym", "xDlClose")),
        ("xRandomness", _POINTER),
    ]


class Operation(NamedTuple):
    """What is about to be done, and to which kind of file."""

    name: str
    file: str


Watch = Callable[[Operation], None]
"""Called before an operation is carried out."""


class _Wrapped:
    """The wrapped methods; they must live as long as the process."""

    def __init__(self, vfs: _Vfs, watch: Watch, seed: Callable[[], int] | None) -> None:
        self._watch = watch
        self._seed = seed
        self._tables: dict[int, _Methods] = {}
        self._kinds: dict[int, str] = {}
        self._kept: list[Any] = []
        self._open = _OPEN(vfs.xOpen)
        self._delete = _DELETE(vfs.xDelete)
        vfs.xOpen = self._keep(_OPEN(self._on_open))
        vfs.xDelete = self._keep(_DELETE(self._on_delete))
        if seed is not None:
            vfs.xRandomness = self._keep(_RANDOMNESS(self._on_randomness))

    def _keep(self, callback: Any) -> int:
        self._kept.append(callback)
        address = ctypes.cast(callback, _POINTER).value
        assert address is not None, "a callback has an address"
        return address

    def _on_open(self, vfs: int, name: int, file: int, flags: int, out: int) -> int:
        result = int(self._open(vfs, name, file, flags, out))
        slot = _POINTER.from_address(file)
        if result == apsw.SQLITE_OK and slot.value:
            self._kinds[file] = kind_of(ctypes.string_at(name) if name else b"")
            if slot.value not in self._tables:
                self._tables[slot.value] = self._wrap(slot.value)
            slot.value = ctypes.addressof(self._tables[slot.value])
        return result

    def _on_delete(self, vfs: int, name: int, sync_directory: int) -> int:
        self._watch(Operation("delete", kind_of(ctypes.string_at(name))))
        return int(self._delete(vfs, name, sync_directory))

    def _on_randomness(self, _vfs: int, size: int, out: int) -> int:
        assert self._seed is not None, "else it is not wrapped"
        ctypes.memset(out, self._seed() % 256, size)
        return size

    def _wrap(self, address: int) -> _Methods:
        table = _Methods.from_buffer_copy(_Methods.from_address(address))
        for name, kind in _METHOD_TYPES.items():
            if getattr(table, name) and (name != "xShmLock" or table.iVersion > 1):
                setattr(table, name, self._keep(self._method(name, kind, getattr(table, name))))
        return table

    def _method(self, name: str, kind: Any, address: int) -> Any:
        original, operation = kind(address), _OPERATIONS[name]

        def method(file: int, *rest: Any) -> int:
            kind = self._kinds.get(file, "other")
            self._watch(Operation(operation, "index" if operation == "lock" else kind))
            return int(original(file, *rest))

        return kind(method)


_installed: list[_Wrapped] = []


def install(watch: Watch, seed: Callable[[], int] | None = None) -> None:
    """Have `watch` called before every operation from now on, for good.

    With `seed`, SQLite draws its random numbers from that, so that two processes that do the same
    write the same bytes; it draws anew in each process.
    """
    if _installed:
        raise RuntimeError("the operations of this process are watched already")
    with tempfile.TemporaryDirectory() as folder:
        connection = apsw.Connection(os.path.join(folder, "x.db"))
        pointer = _POINTER(0)
        found = connection.file_control(
            "main", apsw.SQLITE_FCNTL_VFS_POINTER, ctypes.addressof(pointer)
        )
        connection.close()
    if not found or pointer.value is None:
        raise RuntimeError("SQLite does not say where its VFS is")
    _installed.append(_Wrapped(_Vfs.from_address(pointer.value), watch, seed))
    for name, operation in _OS_OPERATIONS.items():
        setattr(os, name, _watched(getattr(os, name), operation, watch))


def _watched(original: Any, operation: str, watch: Watch) -> Any:
    """Return a function of `os` that is watched; `Any`, since their signatures differ."""

    def call(*given: Any, **named: Any) -> Any:
        kind = _kind_of_argument(given[0])
        if kind:
            watch(Operation(operation, kind))
        return original(*given, **named)

    return call


def _kind_of_argument(argument: object) -> str:
    """Return the kind of file that a path or a descriptor names; "" if it is none of a history."""
    if isinstance(argument, int):
        with contextlib.suppress(OSError):
            name = os.readlink(f"/proc/self/fd/{argument}")
            return kind_of(os.fsencode(name)) if name.startswith("/") else ""
        return ""
    return kind_of(os.fsencode(argument))  # type: ignore[arg-type]


def kind_of(name: bytes) -> str:
    """Return which of a history's files a path names; the directory is "folder"."""
    base = os.path.basename(name)
    if b".new-" in base:
        return "new database"
    for suffix, kind in ((b"-wal", "log"), (b"-journal", "journal"), (b"-shm", "index")):
        if base.endswith(suffix):
            return kind
    return "database" if base.endswith(b".db") else "folder"
