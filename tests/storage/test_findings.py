"""What verify finds and what a reader says of damage, word for word.

Each statement is what a forger does to a small history; `{spec}` stands for the shipped spec.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_replay import ReplayError, Runtime
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.store.reader import Reader
from agent_replay.store.verify import ExpectedHead, verify
from tests.outside import Ledger, ManualClock, plan_of, tools
from tests.storage.histories import copy_of, forger, reforge

FOUND: dict[str, tuple[int, int, bool, list[str]]] = {
    "update identity set spec = 'another-spec-of-moves'": (
        2,
        8,
        True,
        [
            ("identity: the spec another-spec is not the one that this program can judge ({spec})"),
            "writers, epoch 1: the row does not fit its hash",
            "run 1 (one): the registration does not fit its hash",
            "chains, archived: 0 rows are there, 0 were written (or the last one differs)",
        ],
    ),
    "delete from identity": (
        0,
        0,
        False,
        [("the database has 0 identities instead of one; keep a copy and do not write to it")],
    ),
    "update identity set one = 2": (
        0,
        0,
        False,
        ["identity: its number is 2 instead of 1; keep a copy"],
    ),
    "delete from writers where epoch = 1": (
        2,
        5,
        True,
        [
            "writers: epoch 1 is missing before epoch 2",
            "writers, epoch 2: the row does not fit its hash",
            "run 1 (one): registered by a writer that epoch 1 does not name",
            "run 1 (one), seq 1: written by a writer that epoch 1 does not name",
        ],
    ),
    "update writers set spec = 'another-spec-of-moves' where epoch = 2": (
        2,
        8,
        True,
        [
            "writers, epoch 2: the row does not fit its hash",
            "writers, epoch 2: it wrote under the unknown spec another-spec",
        ],
    ),
    "update writers set pid = 1 where epoch = 2": (
        2,
        8,
        True,
        ["writers, epoch 2: the row does not fit its hash"],
    ),
    "delete from chains where name = 'runs'": (2, 8, True, ["chains, runs: the row is missing"]),
    "insert into chains values ('mine', 0, zeroblob(32))": (
        2,
        8,
        True,
        ["chains: there is a foreign one, 'mine'"],
    ),
    "update chains set count = 7 where name = 'writers'": (
        2,
        8,
        True,
        [("chains, writers: 2 rows are there, 7 were written (or the last one differs)")],
    ),
    "delete from runs where run = 1": (
        1,
        4,
        True,
        [
            "runs: 1 missing before run 2, from run 1 on",
            "run 2 (two): the registration does not fit its hash",
            "steps: a row (1, 1) belongs to no run",
            "events: a row (1, 1) belongs to no run",
            "heads: a row (1,) belongs to no run",
        ],
    ),
    "update runs set hint = 'x' where run = 2": (
        2,
        8,
        True,
        ["run 2 (two): the registration does not fit its hash"],
    ),
    "update runs set epoch = 2 where run = 1": (
        2,
        5,
        True,
        [
            "run 1 (one): the registration does not fit its hash",
            "run 1 (one): registered by a writer that epoch 2 does not name",
            "run 1 (one), seq 1: 'request' of epoch 1 after epoch 2",
        ],
    ),
    "update heads set seq = 2 where run = 1": (
        2,
        8,
        True,
        [
            (
                "run 1 (one): the history ends at seq 4, completed; its head says "
                "otherwise (rows are cut off, or the head was changed)"
            )
        ],
    ),
    "delete from heads where run = 1": (
        2,
        8,
        True,
        [
            (
                "run 1 (one): the history ends at seq 4, completed; its head says "
                "otherwise (rows are cut off, or the head was changed)"
            )
        ],
    ),
    "update steps set step = 3 where run = 1 and step = 2": (
        2,
        4,
        False,
        ["run 1 (one): step 3 stands where step 2 was to be"],
    ),
    "update steps set contract = 'none' where run = 1 and step = 2": (
        2,
        4,
        False,
        ["run 1 (one), step 2: unknown contract 'none'"],
    ),
    "update steps set arguments = '{\"x\":1}' where run = 1 and step = 2": (
        2,
        4,
        False,
        ["run 1 (one): the stored steps are not the plan that was registered"],
    ),
    "update steps set key = 'k' where run = 1 and step = 2": (
        2,
        8,
        True,
        ["run 1 (one), step 2: the key does not belong to the step"],
    ),
    "delete from steps where run = 1 and step = 2": (
        2,
        4,
        False,
        ["run 1 (one): 1 steps are stored, 2 were registered"],
    ),
    ('update runs set adapters = \'{"dark@1":{"contract":"opaque"}}\' where run = 1'): (
        2,
        8,
        True,
        [
            "run 1 (one): the registration does not fit its hash",
            ("run 1 (one), step 2: the run pinned no adapter keyed@1 that is idempotent"),
        ],
    ),
    "delete from events where run = 1": (
        2,
        4,
        True,
        [
            ("run 1 (one): it has no events, and a run is registered with its first"),
            (
                "run 1 (one): the history ends at seq 0, running; its head says "
                "otherwise (rows are cut off, or the head was changed)"
            ),
        ],
    ),
    "delete from events where run = 1 and seq = 2": (
        2,
        6,
        True,
        ["run 1 (one), seq 3: the row does not fit its hash (expected seq 2)"],
    ),
    "update events set payload = '{}' where run = 1 and seq = 2": (
        2,
        6,
        True,
        ["run 1 (one), seq 2: the row does not fit its hash (expected seq 2)"],
    ),
    "update events set writer = zeroblob(16) where run = 1 and seq = 2": (
        2,
        6,
        True,
        ["run 1 (one), seq 2: the row does not fit its hash (expected seq 2)"],
    ),
    "update events set run = 9 where run = 1 and seq = 3": (
        2,
        7,
        True,
        [
            "run 1 (one), seq 4: the row does not fit its hash (expected seq 3)",
            "events: a row (9, 3) belongs to no run",
        ],
    ),
    "update steps set run = 9 where run = 1 and step = 2": (
        2,
        4,
        False,
        [
            "run 1 (one): 1 steps are stored, 2 were registered",
            "steps: a row (9, 2) belongs to no run",
        ],
    ),
    "update heads set run = 9 where run = 1": (
        2,
        8,
        True,
        [
            (
                "run 1 (one): the history ends at seq 4, completed; its head says "
                "otherwise (rows are cut off, or the head was changed)"
            ),
            "heads: a row (9,) belongs to no run",
        ],
    ),
    (
        "delete from permitted where contract = 'opaque' and source = "
        "'in_doubt' and event = 'confirm'"
    ): (
        2,
        8,
        True,
        [
            ("permitted: the move opaque in_doubt confirm operator cancelling is missing"),
            ("permitted: the move opaque in_doubt confirm operator cancelling is missing"),
            ("permitted: the move opaque in_doubt confirm operator paused is missing"),
            ("permitted: the move opaque in_doubt confirm operator paused is missing"),
        ],
    ),
    (
        "update permitted set target = 'failed' where contract = 'opaque' "
        "and source = 'planned' and last = 1"
    ): (
        2,
        8,
        True,
        [
            ("permitted: the move opaque planned request runtime running is foreign"),
            ("permitted: the move opaque planned request runtime running is missing"),
        ],
    ),
    (
        "insert into permitted values ('another-spec-of-moves', '', 'a', "
        "'b', 'c', 'd', 0, 'e', 'f', 'g')"
    ): (2, 8, True, ["permitted: there are moves of the unknown spec another-spec"]),
    "delete from permitted where contract = 'opaque'": (
        2,
        8,
        True,
        [
            ("permitted: the move opaque in_doubt abandon operator cancelling is missing"),
            ("permitted: the move opaque in_doubt abandon operator cancelling is missing"),
            ("permitted: the move opaque in_doubt abandon operator paused is missing"),
            ("permitted: the move opaque in_doubt abandon operator paused is missing"),
            ("permitted: the move opaque in_doubt confirm operator cancelling is missing"),
            ("permitted: the move opaque in_doubt confirm operator cancelling is missing"),
            ("permitted: the move opaque in_doubt confirm operator paused is missing"),
            ("permitted: the move opaque in_doubt confirm operator paused is missing"),
            ("permitted: the move opaque in_doubt refute operator cancelling is missing"),
            ("permitted: the move opaque in_doubt refute operator cancelling is missing"),
            "permitted: 20 more moves are foreign or missing",
        ],
    ),
}
"""For each statement: how many runs and events were looked at, whether all were, the findings."""

READ: dict[tuple[str, str], str] = {
    ("update identity set spec = 'another-spec-of-moves'", "one"): (
        "SpecMismatch: the database holds histories of the spec "
        "another-spec, this program has version 1, {spec}: use the "
        "release that wrote it, or upgrade the database"
    ),
    ("delete from identity", "one"): (
        "DamagedHistory: the database has 0 identities instead of one; "
        "keep a copy and do not write to it"
    ),
    ("update identity set one = 2", "one"): (
        "DamagedHistory: identity: its number is 2 instead of 1; keep a copy"
    ),
    ("delete from runs where run = 1", "one"): (
        "NoSuchRun: there is no run 'one' in this database; `agent-replay "
        "list` shows those there are"
    ),
    ("delete from runs where run = 1", "two"): (
        "DamagedHistory: run 1 is missing before run 2; keep a copy of the "
        "file and do not write to it"
    ),
    ("update runs set hint = 'x' where run = 2", "two"): (
        "DamagedHistory: run 2 (two): the registration does not fit its hash"
    ),
    ("update runs set epoch = 2 where run = 1", "one"): (
        "DamagedHistory: run 1 (one): the registration does not fit its hash"
    ),
    ("update heads set seq = 2 where run = 1", "one"): (
        "DamagedHistory: run 1 (one): the history ends at seq 4, "
        "completed; its head says otherwise (rows are cut off, or the head "
        "was changed); keep a copy of the file and run verify on it"
    ),
    ("delete from heads where run = 1", "one"): (
        "DamagedHistory: run 1 (one): the history ends at seq 4, "
        "completed; its head says otherwise (rows are cut off, or the head "
        "was changed); keep a copy of the file and run verify on it"
    ),
    (
        "update steps set step = 3 where run = 1 and step = 2",
        "one",
    ): "DamagedHistory: run 1 (one): step 3 stands where step 2 was to be",
    (
        "update steps set contract = 'none' where run = 1 and step = 2",
        "one",
    ): "DamagedHistory: run 1 (one), step 2: unknown contract 'none'",
    ("update steps set arguments = '{\"x\":1}' where run = 1 and step = 2", "one"): (
        "DamagedHistory: run 1 (one): the stored steps are not the plan that was registered"
    ),
    ("update steps set key = 'k' where run = 1 and step = 2", "one"): (
        "DamagedHistory: run 1 (one), step 2: the key does not belong to the step"
    ),
    (
        "delete from steps where run = 1 and step = 2",
        "one",
    ): "DamagedHistory: run 1 (one): 1 steps are stored, 2 were registered",
    (('update runs set adapters = \'{"dark@1":{"contract":"opaque"}}\' where run = 1'), "one"): (
        "DamagedHistory: run 1 (one): the registration does not fit its hash"
    ),
    ("delete from events where run = 1", "one"): (
        "DamagedHistory: run 1 (one): the history ends at seq 0, running; "
        "its head says otherwise (rows are cut off, or the head was "
        "changed); keep a copy of the file and run verify on it"
    ),
    (
        "delete from events where run = 1 and seq = 2",
        "one",
    ): "DamagedHistory: run 1 (one), seq 3: the row does not fit its hash",
    (
        "update events set payload = '{}' where run = 1 and seq = 2",
        "one",
    ): "DamagedHistory: run 1 (one), seq 2: the row does not fit its hash",
    (
        "update events set writer = zeroblob(16) where run = 1 and seq = 2",
        "one",
    ): "DamagedHistory: run 1 (one), seq 2: the row does not fit its hash",
    (
        "update events set run = 9 where run = 1 and seq = 3",
        "one",
    ): "DamagedHistory: run 1 (one), seq 4: the row does not fit its hash",
    (
        "update steps set run = 9 where run = 1 and step = 2",
        "one",
    ): "DamagedHistory: run 1 (one): 1 steps are stored, 2 were registered",
    ("update heads set run = 9 where run = 1", "one"): (
        "DamagedHistory: run 1 (one): the history ends at seq 4, "
        "completed; its head says otherwise (rows are cut off, or the head "
        "was changed); keep a copy of the file and run verify on it"
    ),
}
"""For each statement and run: the error that reading it raises. Of others there is none."""


def two_runs(path: Path) -> None:
    """Make a database with two runs of two steps, each by a writer of its own."""
    ledger, clock = Ledger(), ManualClock()
    for name in ("one", "two"):
        adapters = tools(ledger)
        with Runtime(path, adapters=adapters, clock=clock, namespace="n", log_bytes=0) as runtime:
            runtime.run(name, plan_of((f"a-{name}", "dark"), (f"b-{name}", "keyed")))


def forged(folder: Path, statement: str) -> Path:
    path = copy_of(two_runs, folder)
    with forger(path) as connection:
        connection.execute(statement)
    return path


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_each_finding_names_the_place_and_what_is_wrong(tmp_path: Path, number: int) -> None:
    statement, (runs, events, complete, findings) = list(FOUND.items())[number]
    verdict = verify(forged(tmp_path, statement))
    told = [finding.replace(MOVES_DIGEST[:12], "{spec}") for finding in verdict.findings]
    assert told == findings
    assert (verdict.runs, verdict.events, verdict.complete) == (runs, events, complete)
    assert not verdict.sound


@pytest.mark.parametrize("number", range(len(READ)))
def test_each_error_of_a_read_names_the_place_and_what_to_do(tmp_path: Path, number: int) -> None:
    (statement, run), said = list(READ.items())[number]
    path = forged(tmp_path, statement)
    with pytest.raises(ReplayError) as caught, Reader(path) as reader:
        reader.read(run)
    told = f"{type(caught.value).__name__}: {caught.value}"
    assert told.replace(MOVES_DIGEST[:12], "{spec}") == said


@pytest.mark.parametrize(
    ("head", "finding"),
    [
        (ExpectedHead("one", 4, "00"), "run one, seq 4: another hash was expected"),
        (
            ExpectedHead("three", 1, "00"),
            "run three: a head was expected, but there is no such run",
        ),
        (
            ExpectedHead("one", 40, "00"),
            "run one, seq 40: it was expected, and the history does not reach it",
        ),
    ],
)
def test_what_was_expected_and_is_not_there_is_named(
    tmp_path: Path, head: ExpectedHead, finding: str
) -> None:
    verdict = verify(copy_of(two_runs, tmp_path), expected=[head])
    assert verdict.findings == (finding,)
    assert verdict.complete
    assert not verdict.sound


def test_a_head_that_was_written_down_is_found_in_capitals_too(tmp_path: Path) -> None:
    path = copy_of(two_runs, tmp_path)
    with Reader(path) as reader:
        events = reader.read("two")[1]
    expected = [ExpectedHead("two", row.seq, row.hash.hex().upper()) for row in events]
    verdict = verify(path, expected=expected)
    assert verdict.sound
    assert (verdict.runs, verdict.events) == (2, 8)


@pytest.mark.parametrize(
    ("payload", "findings"),
    [
        (' {"result":1}', []),
        (' {"unstorable":1}', []),
        (" {}", ["run 1 (one), seq 2: a step succeeded without a result"]),
        ("{}", ["run 1 (one), seq 2: a step succeeded without a result"]),
        ('{"found":1}', ["run 1 (one), seq 2: a step succeeded without a result"]),
    ],
)
def test_a_payload_is_judged_by_what_it_says_and_not_by_how_it_is_written(
    tmp_path: Path, payload: str, findings: list[str]
) -> None:
    """Though every hash fits: the quick way leaves what it does not know to the rules."""
    path = copy_of(two_runs, tmp_path)
    with forger(path) as connection:
        statement = "update events set payload = ? where run = 1 and seq = 2"
        connection.execute(statement, (payload,))
        reforge(connection)
    assert list(verify(path).findings) == findings
