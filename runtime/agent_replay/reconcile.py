"""An operator's evidence: what it must name, and when it is refused.

Evidence is about one attempt of one step of one run, with its key. It is refused, and nothing is
written, when it is about anything else or when the step is not in doubt. Nothing here does I/O, and
nothing here can tell whether evidence is true: who gives it stands beside it in the history for
ever.
"""

from typing import NamedTuple

from agent_replay.errors import EvidenceRefused, InvalidInput
from agent_replay.history import RunHistory
from agent_replay.lifecycles.step import Contract, StepEvent, StepState
from agent_replay.values import Json, MarkedResult, decode, digest, encode_result

TEXT_LENGTH_MAX = 2000
"""Characters of `kind`, `who` and `why`."""


class Evidence(NamedTuple):
    """What an operator knows of an attempt, who says so and why.

    `kind` is a word for what was looked at ("ledger", "mail log"), `content` what was found there.
    `no_request_can_land` states that no request of this step can still have its effect.
    """

    run: str
    step: str
    attempt: int
    key: str
    kind: str
    content: Json
    who: str
    why: str
    no_request_can_land: bool = False


def operators_payload(event: StepEvent, evidence: Evidence, history: RunHistory) -> str:
    """Return the payload of an operator's move without a result, or raise `EvidenceRefused`."""
    _check(event, evidence, history)
    return f'{{"evidence":{_recorded(evidence)},"why":"evidence"}}'


def confirming_payload(evidence: Evidence, result: Json, history: RunHistory) -> str:
    """Return the payload that confirms a step with a result, or raise `EvidenceRefused`."""
    _check(StepEvent.CONFIRM, evidence, history)
    encoded = _stored(result, f"the result of step {evidence.step!r}")
    contradicts = ',"contradicts_refute":true' if evidence.attempt <= history.open.refuted else ""
    return f'{{"evidence":{_recorded(evidence)}{contradicts},"result":{encoded},"why":"evidence"}}'


def _recorded(evidence: Evidence) -> str:
    content = _stored(evidence.content, "the content of the evidence")
    recorded: dict[str, Json] = {
        "attempt": evidence.attempt,
        "content": decode(content),
        "digest": digest(content),
        "key": evidence.key,
        "kind": evidence.kind,
        "run": evidence.run,
        "step": evidence.step,
        "who": evidence.who,
        "why": evidence.why,
    }
    if evidence.no_request_can_land:
        recorded["no_request_can_land"] = True
    return _stored(recorded, "the evidence")


def _stored(value: Json, what: str) -> str:
    """Return the text to store for what a person gave, or raise `InvalidInput`."""
    try:
        return encode_result(value)
    except MarkedResult as error:
        raise InvalidInput(f"{what} cannot be stored: {error.marker['why']}") from error


def _check(event: StepEvent, evidence: Evidence, history: RunHistory) -> None:
    for name in ("kind", "who", "why"):
        text = getattr(evidence, name)
        if not isinstance(text, str) or not text.strip() or len(text) > TEXT_LENGTH_MAX:
            raise InvalidInput(
                f"evidence needs {name!r}: a text of 1 to {TEXT_LENGTH_MAX} characters"
            )
    _check_subject(evidence, history)
    _check_attempt(event, evidence, history)
    if event is StepEvent.REFUTE and evidence.no_request_can_land is not True:
        raise EvidenceRefused(
            f"step {evidence.step!r}: to refute it, state that no request of it can still land "
            "(no_request_can_land); "
            "if one can, wait, or confirm when it has landed"
        )
    contract = Contract(history.open_step.contract)
    if event is StepEvent.RESEND and contract is not Contract.IDEMPOTENT:
        raise EvidenceRefused(
            f"step {evidence.step!r} is {contract}: sending it again may do it twice; confirm, "
            "refute or abandon it"
        )


def _check_subject(evidence: Evidence, history: RunHistory) -> None:
    """Refuse evidence about another run, step or key, or about a step that is not in doubt."""
    if evidence.run != history.registration.id:
        raise EvidenceRefused(
            f"the evidence is about run {evidence.run!r}, not {history.registration.id!r}"
        )
    step = history.open_step
    if not any(evidence.step == row.id for row in history.steps):
        raise EvidenceRefused(f"run {evidence.run!r} has no step {evidence.step!r}")
    if evidence.step != step.id or history.head.state != StepState.IN_DOUBT:
        open_now = (
            f"{step.id!r} is {history.head.state}"
            if not history.ended
            else f"the run is {history.run_state}"
        )
        is_open = evidence.step == step.id and history.head.state == StepState.REQUESTED
        act = "; resume the run first, which settles it or puts it in doubt" if is_open else ""
        raise EvidenceRefused(
            f"step {evidence.step!r} of run {evidence.run!r} is not in doubt: {open_now}{act}"
        )
    if evidence.key != step.key:
        raise EvidenceRefused(
            f"step {step.id!r}: the evidence names the key {evidence.key!r}, the step's is "
            f"{step.key!r}"
        )


def _check_attempt(event: StepEvent, evidence: Evidence, history: RunHistory) -> None:
    """Refuse an attempt that the evidence cannot rest on: a confirm on any, all else on the
    latest."""
    latest = history.head.attempt
    given = evidence.attempt
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidInput(f"attempt is a number, not {given!r}")
    if event is StepEvent.CONFIRM:
        if not 1 <= given <= latest:
            raise EvidenceRefused(
                f"step {evidence.step!r} has attempts 1 to {latest}, the evidence names {given}"
            )
    elif given != latest:
        raise EvidenceRefused(
            f"step {evidence.step!r}: {event} must cover every attempt so far, so name the latest, "
            f"{latest}, not {given}"
        )
