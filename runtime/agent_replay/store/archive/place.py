"""Where archives are: their folder and names, and how such a file is made, opened and found.

By default they are in a folder beside the database that is called after it. A file is called after
what is in it, so that an archive whose runs did not leave after all, since the process died, is
found again. Nothing here overwrites or removes a file that it did not make.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

from agent_replay.errors import ArchiveError, DamagedHistory, InvalidInput
from agent_replay.store import files, holder

FOLDER = ".archive"
ENDING = ".jsonl.gz"
NAMES_MAX = 100
"""Files of one name that are not whole, before it is given up: each is left by a death."""

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_BESIDE = ("", "-wal", "-shm", "-journal")


def folder_for(database: str, given: str | None) -> str:
    """Return the folder for new archives, made if it is not there; durable when it returns."""
    if given == "":
        raise InvalidInput("the folder for archives has no name; leave it out, or name one")
    folder = holder.located(database) + FOLDER if given is None else os.path.realpath(given)
    _check_text(folder)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, _FOLDER_MODE)
        if not os.path.isdir(folder):
            raise InvalidInput(f"{folder} is there and is no directory; name another")
        sync_folder(os.path.dirname(folder))
    except OSError as error:
        raise ArchiveError(
            f"{folder}: the folder for archives cannot be made by user {os.geteuid()}: "
            f"{error.strerror}; make it, or name another"
        ) from error
    return folder


def _check_text(folder: str) -> None:
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{folder!a} is not UTF-8, and is to be kept as text") from None
    if "\0" in folder:
        raise InvalidInput(f"{folder!a} holds a NUL; name another folder")


def recorded(database: str, path: str) -> str:
    """Return a path as the database keeps it: from its folder, if the file is inside of that."""
    beside = os.path.join(os.path.dirname(holder.located(database)), "")
    return path.removeprefix(beside)


def found(database: str, file: str) -> str:
    """Return where a file that the database names is, or would have to be.

    A database that was moved or renamed with its folder of archives finds them there.
    """
    database = holder.located(database)
    path = os.path.join(os.path.dirname(database), file)
    other = os.path.join(database + FOLDER, os.path.basename(file))
    return other if not os.path.lexists(path) and os.path.lexists(other) else path


def names(folder: str, name: str) -> Iterator[str]:
    """Yield the paths that an archive may have, the first of them if nothing is in its way."""
    yield os.path.join(folder, f"{name}{ENDING}")
    for number in range(2, NAMES_MAX + 1):
        yield os.path.join(folder, f"{name}.{number}{ENDING}")


def create(path: str) -> int:
    """Return a descriptor of a new file, for its owner alone; raises `FileExistsError`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, _FILE_MODE)
    os.fchmod(descriptor, _FILE_MODE)  # whatever the umask takes away
    return descriptor


@contextlib.contextmanager
def opened(path: str, *, database: str = "") -> Iterator[int]:
    """Open an archive for reading; raises `ArchiveError` if it is not there.

    It may be the database itself under no circumstances: a close of that would drop the locks that
    SQLite holds on it.
    """
    try:
        status = os.lstat(path)
        _check_plain(path, status, database)
        descriptor = holder.open_shielded(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise ArchiveError(
            f"{path}: the archive is not there, and runs of this database are in it; put it back "
            "at that place, or into the folder of archives beside the database"
        ) from error
    except OSError as error:
        raise ArchiveError(
            f"{path}: the archive cannot be read by user {os.geteuid()}: {error.strerror}; check "
            "who may read it"
        ) from error
    try:
        yield descriptor
    except DamagedHistory as error:
        raise DamagedHistory(f"archive {path}: {error}") from error
    finally:
        holder.close_shielded(descriptor)


def is_database(path: str) -> bool:
    """Return whether a file begins as those of SQLite do; to be asked of no database that this
    process has open."""
    with opened(path) as descriptor:
        return os.pread(descriptor, len(files.MAGIC), 0) == files.MAGIC


def _check_plain(path: str, status: os.stat_result, database: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DamagedHistory(f"archive {path}: it is not a plain file; put the archive there")
    for end in _BESIDE if database else ():
        with contextlib.suppress(OSError):
            if os.path.samestat(status, os.lstat(holder.located(database) + end)):
                raise DamagedHistory(f"archive {path}: it is a file of the database itself")


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable; raises `OSError`."""
    descriptor = holder.open_shielded(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files.sync(descriptor)
    finally:
        holder.close_shielded(descriptor)


def orphans(database: str, referred: Iterable[str]) -> list[str]:
    """Return the archives in the folder beside a database that it does not refer to."""
    folder = os.path.realpath(holder.located(database) + FOLDER)
    try:
        there = {os.path.join(folder, name) for name in os.listdir(folder)}
    except OSError:
        return []
    named = [found(database, file) for file in referred]
    known = {os.path.realpath(path) for path in named}
    known |= {
        os.path.join(folder, os.path.basename(path)) for path in named if _is_in(folder, path)
    }
    return sorted(path for path in there - known if path.endswith(ENDING))


def _is_in(folder: str, path: str) -> bool:
    """Return whether a path leads into a folder, whatever is there by that name."""
    return os.path.realpath(os.path.dirname(path)) == folder
