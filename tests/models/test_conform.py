"""A history that the runtime wrote conforms, and one with a row that it never writes does not."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from agent_replay.clock import NANOSECONDS, Reading
from agent_replay.clock import bound_has_passed as shipped_bound
from agent_replay.clock import window_is_open as shipped_window
from agent_replay.lifecycles.coupling import PERMITTED
from models.conform import findings, findings_in, main
from models.conform.clock import bound_has_passed, window_is_open
from models.conform.path import key_of
from models.conform.rows import Finding, Histories, Row, RunOf, Stamp, StepOf, read
from models.graph.plans import TERMS
from tests.storage.archives import copy_with_archives, rows_of_archived
from tests.storage.histories import KINDS, copy_of, every_head, every_kind, forger, reforge

WRITERS = {1: b"\x01" * 16, 2: b"\x02" * 16}


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """Give a database that the runtime made: runs in all states, and every kind of event."""
    return copy_of(every_kind, tmp_path)


# --- what the runtime wrote ---------------------------------------------------------------------


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S7")
@pytest.mark.invariant("S9")
@pytest.mark.invariant("S15")
def test_every_kind_of_row_that_the_runtime_writes_conforms(lived: Path) -> None:
    assert findings(lived) == []
    kinds = {(row.event, row.actor) for run in read(lived).runs for row in run.rows}
    assert kinds == set(KINDS)


def test_a_row_at_every_place_is_a_path_of_the_spec(tmp_path: Path) -> None:
    """Rows that nobody decided on are still rows of the product."""
    path = copy_of(every_head, tmp_path)
    assert findings(path, decisions=False) == []
    assert len(findings(path)) > 0


def test_a_file_is_read_and_left_as_it_is(lived: Path) -> None:
    before = lived.read_bytes()
    findings(lived)
    assert lived.read_bytes() == before


def test_a_history_is_judged_in_a_few_milliseconds(lived: Path) -> None:
    began = time.process_time()
    for _ in range(10):
        findings(lived)
    runs = len(read(lived).runs)
    assert (time.process_time() - began) / 10 / runs < 0.010


def test_rows_of_a_run_that_was_taken_away_are_a_finding(lived: Path) -> None:
    whole = read(lived)
    without = whole._replace(runs=whole.runs[1:], strays=(whole.runs[0].number,))
    (finding,) = findings_in(without)
    assert "a run that is not there" in finding.text()
    assert read(lived).strays == ()


# --- every wrong column of every row ------------------------------------------------------------


OTHERS: dict[str, Sequence[object]] = {
    "seq": (0, 1, 2, 3, 100),
    "event": sorted({kind[0] for kind in KINDS} | {"start", "approve"}),
    "coupled": ("", "pause", "resume", "complete", "fail", "cancel", "resume complete"),
    "actor": ("runtime", "recovery", "probe", "operator", "nobody"),
    "step": (None, 0, 1, 2, 3),
    "attempt": (None, 0, 1, 2, 3, 4),
    "state": (None, "planned", "requested", "in_doubt", "succeeded", "failed", "abandoned"),
    "run_state": ("running", "paused", "cancelling", "completed", "failed", "cancelled"),
    "epoch": (0, 1, 2, 3, 4, 5, 9),
    "writer": (bytes(16), b""),
}


def with_other_values(run: RunOf, number: int) -> Iterator[RunOf]:
    row = run.rows[number]
    for column, values in OTHERS.items():
        for value in values:
            if value != getattr(row, column):
                other = Row._make({**row._asdict(), column: value}.values())
                rows = (*run.rows[:number], other, *run.rows[number + 1 :])
                yield run._replace(rows=rows)


@pytest.mark.invariant("S6")
@pytest.mark.invariant("S7")
def test_one_wrong_value_in_any_row_is_found_at_that_row(lived: Path) -> None:
    """Only where the runtime and recovery do the same for the same reason can they be exchanged:
    either may have come to a step whose attempts are used up, or whose run is to end."""
    histories = read(lived)
    tried, passed = 0, set()
    for run in histories.runs:
        for number, row in enumerate(run.rows):
            for changed in with_other_values(run, number):
                tried += 1
                other = changed.rows[number]
                found = findings_in(histories._replace(runs=(changed,)))
                if found:
                    assert (found[0].run, found[0].seq in (row.seq, other.seq)) == (run.id, True)
                else:
                    passed.add((row.event, other.event, row.actor, other.actor))
    assert tried > sum(len(run.rows) for run in histories.runs) * len(OTHERS)
    assert passed == {
        ("exhaust", "exhaust", "runtime", "recovery"),
        ("exhaust", "exhaust", "recovery", "runtime"),
        ("suspend", "suspend", "runtime", "recovery"),
    }


@pytest.mark.invariant("S11")
def test_a_key_that_is_another_step_s_is_found(lived: Path) -> None:
    histories = read(lived)
    run = histories.runs[0]
    steps = (run.steps[0]._replace(key=run.steps[1].key), *run.steps[1:])
    (finding,) = findings_in(histories._replace(runs=(run._replace(steps=steps),)))
    assert finding.legal == f"the key {run.steps[0].key}"


# --- what nobody can have decided ---------------------------------------------------------------


class Story:
    """A history of one step, told row by row; every row is a row of the spec's product."""

    def __init__(self, contract: str, attempts_max: int = 2) -> None:
        terms = next(terms for terms in TERMS.values() if terms.contract == contract)
        self.terms = terms.pinned()
        self.contract = contract
        self.attempts_max = attempts_max
        self.rows: list[Row] = []
        self.first_ns: int | None = None

    def then(
        self,
        event: str,
        actor: str,
        leads_to: str,
        *,
        at: float = 0,
        epoch: int = 1,
        why: str = "",
        **payload: object,
    ) -> Story:
        """Add a row; `leads_to` is the state of the step, that of the run, and what rides."""
        state, run_state, *coupled = leads_to.split()
        sends = event in ("request", "resend")
        of_step = event not in ("adopt", "ask_cancel")
        wall_ns = round(at * NANOSECONDS) + 10**18
        known = self._sent(wall_ns, sends) | ({"why": why} if why else {}) | payload
        attempts = sum(row.event in ("request", "resend") for row in self.rows) + sends
        row = Row(
            seq=len(self.rows) + 1,
            event=event,
            coupled=" ".join(coupled),
            actor=actor,
            step=1 if of_step else None,
            attempt=attempts if of_step else None,
            state=state if of_step else None,
            run_state=run_state,
            epoch=epoch,
            writer=WRITERS[epoch],
            stamp=Stamp(wall_ns, wall_ns - 10**18 + NANOSECONDS, "boot"),
            payload=known,
        )
        self.rows.append(row)
        if event == "refute":
            self.first_ns = None
        return self

    def _sent(self, wall_ns: int, sends: bool) -> dict[str, object]:
        if not sends:
            return {}
        self.first_ns = self.first_ns or wall_ns
        if "key_window_ns" not in self.terms:
            return {}
        return {"send_before_ns": self.first_ns + 50 * NANOSECONDS}

    def evidence(self, attempt: int, **more: object) -> dict[str, object]:
        return {"run": "r", "step": "s", "attempt": attempt, "key": KEY, **more}

    def findings(self) -> list[Finding]:
        step = StepOf(1, "s", "tool@1", self.contract, "{}", KEY, dict(self.terms))
        run = RunOf(1, "r", (step,), 1, self.attempts_max, 1, WRITERS[1], tuple(self.rows))
        return findings_in(Histories("here", WRITERS, (run,)))


KEY = key_of("here", "r", StepOf(1, "s", "tool@1", "", "{}", "", {}))

REQUESTED = "requested running"
IN_DOUBT = "in_doubt paused pause"


def requested(contract: str, attempts_max: int = 2) -> Story:
    return Story(contract, attempts_max).then("request", "runtime", REQUESTED)


@pytest.mark.invariant("S2")
def test_a_resend_past_the_window_is_found() -> None:
    """The window of the plan is 60 s, and a request is under way for up to 10."""
    story = requested("idempotent", attempts_max=3)
    story.then("resend", "runtime", REQUESTED, at=50, why="raised")
    assert story.findings() == []
    story.then("resend", "recovery", REQUESTED, at=50.5, why="died")
    (finding,) = story.findings()
    assert finding.seq == 3
    assert "the key window lapsed" in finding.found
    assert "suspend by recovery (window_lapsed)" in finding.legal
    assert "resend" not in finding.legal


@pytest.mark.invariant("S2")
def test_a_resend_under_a_clock_that_went_back_is_found() -> None:
    story = requested("idempotent").then("resend", "runtime", REQUESTED, at=-1, why="raised")
    (finding,) = story.findings()
    assert "the key window lapsed" in finding.found


@pytest.mark.invariant("S2")
def test_a_window_that_starts_anew_with_a_resend_is_found() -> None:
    story = requested("idempotent")
    story.then("resend", "runtime", REQUESTED, at=40, why="raised")
    late = {**story.rows[-1].payload, "send_before_ns": 10**18 + 90 * NANOSECONDS}
    story.rows[-1] = story.rows[-1]._replace(payload=late)
    (finding,) = story.findings()
    assert finding.found == f"resend to be sent before {10**18 + 90 * NANOSECONDS}"


@pytest.mark.invariant("S4")
def test_an_absence_before_the_bound_has_passed_is_found() -> None:
    """The bound counts from the suspend, and must have passed by more than nothing."""
    for at, wrong in ((100.5, False), (100, True), (61, True)):
        story = requested("queryable").then("suspend", "runtime", IN_DOUBT, at=40, why="raised")
        story.then("refute", "probe", "planned running resume", at=at, why="probe_absent")
        assert bool(story.findings()) == wrong, at
        if wrong:
            (finding,) = story.findings()
            assert "the settle bound not passed" in finding.found
            assert "confirm by probe (probe_present)" in finding.legal


@pytest.mark.invariant("S7")
def test_a_reply_in_an_epoch_that_has_not_called_is_found() -> None:
    story = requested("opaque").then("adopt", "recovery", REQUESTED, epoch=2)
    story.then("acknowledge", "runtime", "succeeded completed complete", epoch=2, result=1)
    (finding,) = story.findings()
    assert finding.legal == "suspend by recovery (died)"


@pytest.mark.invariant("S7")
def test_an_epoch_that_has_not_adopted_the_run_is_found() -> None:
    story = requested("opaque").then("suspend", "recovery", IN_DOUBT, epoch=2, why="died")
    (finding,) = story.findings()
    assert finding.legal == "any other event in epoch 1, or adopt in a later one"
    twice = requested("opaque").then("adopt", "recovery", REQUESTED, epoch=1)
    (finding,) = twice.findings()
    assert finding.found == "adopt in epoch 1 of a run in epoch 1"


def test_a_refute_lets_window_and_refusals_begin_anew() -> None:
    """The refusal after it speaks of all that is open, and the window starts with its request."""
    story = requested("idempotent").then(
        "suspend", "recovery", IN_DOUBT, at=70, why="window_lapsed"
    )
    evidence = story.evidence(1, no_request_can_land=True)
    story.then("refute", "operator", "planned running resume", at=80, evidence=evidence)
    story.then("request", "runtime", REQUESTED, at=90)
    story.then("resend", "runtime", REQUESTED, at=130, why="raised")
    assert story.findings() == []
    story.rows.pop()
    story.then("reject", "runtime", "failed failed fail", at=130, why="refused")
    assert story.findings() == []


def test_more_attempts_than_the_limit_and_the_grants_are_found() -> None:
    story = requested("read_only").then("resend", "runtime", REQUESTED, why="raised")
    assert story.findings() == []
    story.then("resend", "runtime", REQUESTED, why="raised")
    (finding,) = story.findings()
    assert "attempt 2, none left" in finding.found
    assert "reject by runtime (attempts_used_up)" in finding.legal


def test_a_refusal_that_settles_an_earlier_request_too_is_found() -> None:
    """a1 charged, its reply was lost, a2 is refused: not failed, unless the refusal covers both."""
    story = requested("idempotent").then("resend", "runtime", REQUESTED, why="raised")
    story.then("reject", "runtime", "failed failed fail", why="not_sent")
    (finding,) = story.findings()
    assert "an earlier request unresolved" in finding.found
    assert "suspend by runtime (refused_after_unresolved)" in finding.legal


def test_evidence_about_something_else_is_found() -> None:
    refuted = "planned running resume"
    right = requested("opaque").then("suspend", "runtime", IN_DOUBT, why="raised")
    evidence = right.evidence(1, no_request_can_land=True)
    right.then("refute", "operator", refuted, evidence=evidence)
    assert right.findings() == []
    for name, value in (("key", "k"), ("run", "x"), ("attempt", 2), ("no_request_can_land", False)):
        story = requested("opaque").then("suspend", "runtime", IN_DOUBT, why="raised")
        story.then("refute", "operator", refuted, evidence={**evidence, name: value})
        (finding,) = story.findings()
        assert name in finding.found


def test_a_person_s_resend_past_the_window_is_found() -> None:
    story = requested("idempotent").then(
        "suspend", "recovery", IN_DOUBT, at=60, why="window_lapsed"
    )
    evidence = story.evidence(1)
    story.then("resend", "operator", "requested running resume", at=61, evidence=evidence)
    (finding,) = story.findings()
    assert finding.found == "resend by operator past the key window"


def test_an_adopt_that_is_the_last_row_is_found() -> None:
    story = requested("opaque").then("adopt", "recovery", REQUESTED, epoch=2)
    (finding,) = story.findings()
    assert finding.found == "an adopt as the last row"


def test_the_clock_rules_are_the_shipped_ones() -> None:
    """Written twice from the same page of the design, and compared here."""
    answers = set()
    for since, now, boot_now, boot in itertools.product(
        (0, 5), range(-2, 12), (0, 3, 5, 12), ("same", "other")
    ):
        before, after = (since, 2, "same"), (now, boot_now, boot)
        is_open = window_is_open(Stamp(*before), Stamp(*after), 6, 1)
        passed = bound_has_passed(Stamp(*before), Stamp(*after), 3)
        shipped = Reading(*before), Reading(*after)
        assert is_open == shipped_window(*shipped, window_ns=6, lands_ns=1)
        assert passed == shipped_bound(*shipped, bound_ns=3)
        answers.add((is_open, passed))
    assert len(answers) == 4


# --- the command --------------------------------------------------------------------------------


def test_the_command_answers_by_its_exit_code(
    lived: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(lived)]) == 0
    assert "every history conforms" in capsys.readouterr().out
    with forger(lived) as connection:
        connection.execute("update events set attempt = 7 where run = 1 and seq = 1")
        reforge(connection)
    assert main([str(lived)]) == 1
    assert "run done, seq 1: request of attempt 7; legal was: attempt 1" in capsys.readouterr().out
    assert main([str(lived), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["conforms"]
    assert said["findings"][0]["seq"] == 1
    nothing = tmp_path / "nothing.db"
    nothing.write_bytes(b"no database at all, but long enough to be looked at")
    assert main([str(nothing)]) == 2
    assert main([str(tmp_path / "missing.db")]) == 2
    assert str(nothing) in capsys.readouterr().err


def test_a_damaged_file_is_judged_or_refused_and_never_a_traceback(lived: Path) -> None:
    sound = lived.read_bytes()
    random = Random(7)
    judged = 0
    for _ in range(60):
        damaged = bytearray(sound)
        for _ in range(3):
            damaged[random.randrange(100, len(damaged))] ^= 1 << random.randrange(8)
        lived.write_bytes(damaged)
        judged += main([str(lived)]) != 2
    assert judged > 0


def test_every_contract_of_a_permitted_row_can_be_judged() -> None:
    contracts = {key[0].value for key in PERMITTED if key[0] is not None}
    assert contracts == {terms.contract.value for terms in TERMS.values()}


def test_archived_runs_are_said_to_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy_with_archives(tmp_path)
    assert main([str(path)]) == 0
    told = capsys.readouterr().out
    left = len(rows_of_archived(path))
    assert f"{left} more runs are archived, and were not looked at" in told
