"""What `verify` finds, and what the runtime refuses to believe, after an archive or its row was
changed."""

# ruff: noqa: S608 - the statements are made of names of the schema

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent_replay import ArchiveError, DamagedHistory, Runtime
from agent_replay.store.archive.checking import ArchiveCheck
from agent_replay.store.archive.record import ArchivedRow
from agent_replay.store.verify import verify
from tests.outside import Ledger
from tests.storage.archives import archives_of, copy_with_archives, opened, rows_of_archived
from tests.storage.histories import Value, forger, reforge

pytestmark = pytest.mark.fault("H01")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return copy_with_archives(tmp_path)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def runtime(path: Path, ledger: Ledger) -> Iterator[Runtime]:
    with opened(path, ledger) as runtime:
        yield runtime
    assert ledger.calls == []


def alone(file: Path) -> list[str]:
    """Return what is found in an archive by itself."""
    return list(ArchiveCheck(str(file)).findings())


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def write(file: Path, lines: list[dict[str, Any]], *, sealed: bool = True) -> None:
    """Write an archive as the runtime does, with a digest that fits if it is sealed."""
    if sealed:
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
        lines = [*lines[:-1], {**lines[-1], "sha256": sha256(text).hexdigest()}]
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    file.write_bytes(gzip.compress(text, mtime=0))


# --- the row ------------------------------------------------------------------------------------


def others(value: Value) -> list[Value]:
    if isinstance(value, int):
        return [value + 1000, -value - 1, 2**40]
    if isinstance(value, bytes):
        return [bytes(len(value)), value[::-1]]
    return [f"{value}x", ""]


@pytest.mark.parametrize("column", ArchivedRow._fields)
def test_a_changed_column_of_a_row_is_found(path: Path, column: str) -> None:
    for row in rows_of_archived(path)[::4]:
        for value in others(getattr(row, column)):
            with forger(path) as connection:
                update = f"update archived set {column} = ? where run = ?"
                connection.execute(update, (value, row.run))
                run = value if column == "run" else row.run
                verdict = verify(path)
                assert not verdict.sound
                assert any(f"run {row.run} (" in f or "archived" in f for f in verdict.findings)
                connection.execute(update, (getattr(row, column), run))
    assert verify(path).sound


@pytest.mark.parametrize("column", ["plan", "run_state", "seq", "head", "file_digest", "run"])
def test_a_changed_row_is_found_though_every_hash_fits(path: Path, column: str) -> None:
    row = rows_of_archived(path)[0]
    with forger(path) as connection:
        value = others(getattr(row, column))[0]
        if column == "run":
            value = 16  # one that has not ended
        connection.execute(f"update archived set {column} = ? where run = 1", (value,))
        reforge(connection)
    assert not verify(path).sound


@pytest.mark.parametrize("column", ["seq", "head", "run_state", "file_digest", "plan"])
def test_a_run_whose_row_says_something_else_is_not_believed(
    path: Path, runtime: Runtime, column: str
) -> None:
    (row,) = [row for row in rows_of_archived(path) if row.run == 1]
    with forger(path) as connection:
        value = others(getattr(row, column))[0]
        connection.execute(f"update archived set {column} = ? where run = 1", (value,))
    with pytest.raises(DamagedHistory):
        runtime.resume("done")


def test_a_row_that_is_gone_is_found(path: Path, runtime: Runtime) -> None:
    for row in rows_of_archived(path)[::3]:
        with forger(path) as connection:
            connection.execute("delete from archived where run = ?", (row.run,))
            verdict = verify(path)
            assert any(f"run {row.run} (" in finding for finding in verdict.findings)
            assert any("archived" in finding for finding in verdict.findings)
            ((name,),) = connection.execute("select id from runs where run = ?", (row.run,))
            with pytest.raises(DamagedHistory):
                runtime.resume(str(name))
            marks = ", ".join("?" * len(row))
            connection.execute(f"insert into archived values ({marks})", row)
    assert verify(path).sound


def test_a_row_without_a_run_and_rows_that_are_left_are_found(path: Path) -> None:
    row = rows_of_archived(path)[-1]
    with forger(path) as connection:
        marks = ", ".join("?" * len(row))
        foreign = row._replace(run=99, number=row.number + 1)
        connection.execute(f"insert into archived values ({marks})", foreign)
        assert any("archived: a row (99" in finding for finding in verify(path).findings)
        connection.execute("delete from archived where run = 99")
        connection.execute("insert into steps values (1, 1, 'a', 'x@1', 'opaque', '{}', 'k')")
        (finding,) = verify(path).findings
        assert finding == "run 1 (done): it is archived, and 1 rows of it are left in steps"


# --- the file -----------------------------------------------------------------------------------


def test_an_archive_is_sound_by_itself(path: Path) -> None:
    for file in archives_of(path):
        assert alone(file) == []


def test_each_changed_byte_of_an_archive_is_found(path: Path, runtime: Runtime) -> None:
    (file,) = [file for file in archives_of(path) if file.name.startswith("1-3-")]
    data = file.read_bytes()
    for place in {*range(0, len(data), 97), len(data) - 1, len(data) - 9}:
        file.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        assert not verify(path).sound, place
        with pytest.raises(DamagedHistory):
            runtime.resume("done")
    file.write_bytes(data)
    assert runtime.resume("done").completed


def test_an_archive_that_is_cut_off_or_goes_on_is_found(path: Path, runtime: Runtime) -> None:
    (file,) = [file for file in archives_of(path) if file.name.startswith("1-3-")]
    data = file.read_bytes()
    for changed in (b"", data[:1], data[:-1], data[:-20], data[: len(data) // 2], data + b"x"):
        file.write_bytes(changed)
        assert alone(file)
        assert not verify(path).sound
        with pytest.raises(DamagedHistory, match="archive"):
            runtime.resume("done")


def test_an_archive_in_the_place_of_another_is_found(path: Path, runtime: Runtime) -> None:
    one, two = archives_of(path)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert alone(one) == alone(two) == []
    assert not verify(path).sound
    with pytest.raises(DamagedHistory):
        runtime.resume("done")


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("table", ["archive", "identity", "writer", "run", "step", "event", "head"])
def test_each_changed_value_in_an_archive_is_found(path: Path, table: str, sealed: bool) -> None:
    (file,) = [file for file in archives_of(path) if file.name.startswith("1-3-")]
    lines = lines_of(file)
    number = next(n for n, line in enumerate(lines) if line["table"] == table)
    for name, value in lines[number].items():
        wrong: tuple[object, ...] = (f"{value}0", 7.5, [], None, True, "\ud800")
        for other in wrong:
            if other == value or (name == "table" and not isinstance(other, str)):
                continue
            changed = [*lines[:number], {**lines[number], name: other}, *lines[number + 1 :]]
            write(file, changed, sealed=sealed)
            try:
                found = alone(file)
            except ArchiveError as error:  # another format
                found = [str(error)]
            assert found, (name, other)
        assert not verify(path).sound, name
    write(file, lines)
    assert alone(file) == []


def test_lines_that_are_missing_doubled_or_elsewhere_are_found(path: Path) -> None:
    (file,) = [file for file in archives_of(path) if file.name.startswith("1-3-")]
    lines = lines_of(file)
    for number in range(len(lines)):
        one = lines[number]
        for changed in (
            lines[:number] + lines[number + 1 :],
            [*lines[:number], one, *lines[number:]],
            [one, *lines[:number], *lines[number + 1 :]] if number else lines[1:],
        ):
            if one["table"] == "writer" and lines.count(one) != changed.count(one):
                continue  # a writer who wrote nothing here says nothing wrong
            write(file, changed, sealed=changed[-1]["table"] == "digest")
            assert alone(file), (number, one["table"])


def test_an_archive_of_another_format_says_so(path: Path, runtime: Runtime) -> None:
    file = archives_of(path)[0]
    lines = lines_of(file)
    write(file, [{**lines[0], "format": 2}, *lines[1:]])
    with pytest.raises(ArchiveError, match="format 2, and this program reads 1"):
        alone(file)


def test_a_run_that_has_not_ended_is_no_archive(path: Path) -> None:
    (file,) = [file for file in archives_of(path) if file.name.startswith("1-3-")]
    lines = lines_of(file)
    last = max(n for n, line in enumerate(lines) if line["table"] == "event")
    write(file, [*lines[:last], *lines[last + 1 :]])
    assert alone(file)


@pytest.mark.parametrize(
    "text",
    [
        b"\n",
        b"[]\n",
        b"{}\n",
        b"{" * 5000 + b"\n",
        b'{"table":"run"}\n',
        b"\xff\xfe\n",
        b"1" * 5000,
    ],
)
def test_lines_that_are_none_of_ours_are_found(path: Path, text: bytes) -> None:
    file = archives_of(path)[0]
    file.write_bytes(gzip.compress(text))
    assert alone(file)
    whole = gzip.compress(b'{"table": "archive", "format": 1}\n' + text)
    file.write_bytes(whole)
    assert alone(file)
