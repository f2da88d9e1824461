"""The driver of a run: it carries out what the decision function owes, and decides nothing itself.

One driver works on a run at a time. It appends under the run's lock and calls tools outside of it,
so that a cancel or an operator can act while a tool works. Whatever it learns from a tool it holds
in `Known` until that is durable: after a storage error and a reopen, a reply that this process has
seen is written, not asked for again, and a request that it had not begun to send is sent.
"""

import logging
from typing import NamedTuple

from agent_replay.adapters import Absent, Adapter, Found, Registry, Request, ToolRejected
from agent_replay.clock import NANOSECONDS, Reading, bound_has_passed, window_is_open
from agent_replay.contracts import Terms
from agent_replay.errors import ReplayError
from agent_replay.events import RUN_STATES, STEP_STATES
from agent_replay.history import SENDS
from agent_replay.lifecycles.step import StepEvent, StepState
from agent_replay.live import LiveRun
from agent_replay.outcome import terms_of
from agent_replay.recovery import Act, Append, News, Situation, Why, decide
from agent_replay.values import Json, MarkedResult, canonical, decode, encode_result
from agent_replay.values.text import type_name

logger = logging.getLogger("agent_replay")

MESSAGE_LENGTH_MAX = 1000
"""Characters of an exception's message that are kept in the history."""


class Known(NamedTuple):
    """What this process knows of an open request, and the history does not say yet."""

    step: int
    attempt: int
    news: News
    body: str
    """Canonical text of what goes into the payload: a result, or a description of what was
    raised."""


class Question(NamedTuple):
    """A call or a probe that is about to be made."""

    act: Act
    step: int
    adapter: Adapter
    request: Request


_NOTHING = Known(0, 0, News.NOTHING, "")

Memory = dict[str, dict[tuple[int, int], Known]]
"""By run, then by step and attempt: what this process knows and the history may not say yet."""


class Driver:
    """Drives one run until nothing is owed."""

    def __init__(self, run: LiveRun, registry: Registry, memory: Memory) -> None:
        self._run = run
        self._registry = registry
        self._terms = terms_of(run.history.registration)
        self._memory = memory
        self._plain: dict[str, str] = {}
        self._probed_at: Reading | None = None
        """When the latest probe was begun: an absence says nothing of what landed after that."""
        self.notes: list[str] = []
        """What a person should know and the history does not say."""

    def drive(self, first: News | None = None) -> None:
        """Carry out what is owed until nothing is.

        Raises what a tool raises beyond `Exception` (the step stays requested), and storage errors.
        """
        known = self._remembered() if first is None else Known(0, 0, first, "")
        while True:
            with self._run.lock:
                act = self._append_owed(known)
                if act is None:
                    return
                question = self._prepare(act)
            known = self._ask(question)

    def settle(self) -> None:
        """Draft what is owed to an open step without calling anything: for a cancel with no live
        driver."""
        known = self._remembered()
        now = self._run.now()
        for act in decide(self._situation(known, now)):
            if isinstance(act, Append):
                self._draft(act, known, now)

    # --- appending ------------------------------------------------------------------------------

    def _remembered(self) -> Known:
        """Return what this process still knows of the open request, or that it was found open."""
        head = self._run.head
        if head.state == StepState.REQUESTED and head.epoch == self._run.store.epoch:
            known = self._memory.get(self._run.id, {}).get((head.step, head.attempt))
            if known is not None:
                return known
        return Known(head.step, head.attempt, News.FOUND_OPEN, "")

    def _append_owed(self, known: Known) -> Act | None:
        """Write what is owed, in as few transactions as may be; return what is to be done
        outside."""
        run = self._run
        if known.step and (known.step, known.attempt) != (run.head.step, run.head.attempt):
            known = _NOTHING  # somebody settled the step meanwhile
        # A row carries the time at which it was decided: read later, it could contradict it.
        now = run.now()
        while True:
            if known.news is News.READY:
                if not self._commit():
                    run.store.check_files()
                run.store.checkpoint_if_due()
                now = run.now()
            acts = decide(self._situation(known, now))
            if not acts:
                self._commit()
                return None
            for act in acts:
                if isinstance(act, Act):
                    self._commit()
                    return act
                known = self._draft(act, known, now)

    def _draft(self, act: Append, known: Known, now: Reading) -> Known:
        """Draft one row and return the news that follows from it."""
        run = self._run
        try:
            run.draft(act.event, act.actor, self._payload(act, known, now), now=now)
        except ReplayError:
            self._commit()  # what came before stands by itself
            raise
        if act.event not in SENDS:
            return _NOTHING
        return Known(run.head.step, run.head.attempt, News.READY, "")

    def _commit(self) -> bool:
        """Write the drafts, if there are any; return whether there were.

        Should that fail, this process still knows what it was about to write.
        """
        run = self._run
        head = run.head
        if head is run.history.head:
            return False
        if head.state != StepState.REQUESTED:
            run.commit()
            self._memory.pop(run.id, None)
            return True
        step = head.step, head.attempt
        ready = {step: Known(*step, News.READY, "")}
        self._memory[run.id] = {**self._memory.get(run.id, {}), **ready}
        run.commit()
        self._memory[run.id] = ready
        return True

    def _remember(self, known: Known) -> None:
        self._memory.setdefault(self._run.id, {})[known.step, known.attempt] = known

    # --- deciding -------------------------------------------------------------------------------

    def _situation(self, known: Known, now: Reading) -> Situation:
        run = self._run
        history, head, facts = run.history, run.head, run.open
        terms = self._terms[history.steps[head.step - 1].adapter]
        return Situation(
            terms.contract,
            STEP_STATES[head.state],
            RUN_STATES[head.run_state],
            known.news,
            history.registration.attempts_max + facts.grants - head.attempt > 0,
            self.window_is_open(terms, now),
            self._bound_has_passed(terms),
            facts.unresolved > 1,
        )

    def window_is_open(self, terms: Terms, now: Reading) -> bool:
        """Return whether a request of the open step that leaves now lands inside its key window."""
        first = self._run.open.first
        if first is None or terms.key_window_ns is None:
            return True
        since = self._run.store.reading_of(first)
        return window_is_open(
            since, now, window_ns=terms.key_window_ns, lands_ns=terms.lands_within_ns or 0
        )

    def _bound_has_passed(self, terms: Terms) -> bool:
        suspended = self._run.open.suspended
        if terms.settles_within_ns is None or suspended is None or self._probed_at is None:
            return False
        since = self._run.store.reading_of(suspended)
        return bound_has_passed(since, self._probed_at, bound_ns=terms.settles_within_ns)

    # --- payloads -------------------------------------------------------------------------------

    def _payload(self, act: Append, known: Known, now: Reading) -> str:
        if act.event is StepEvent.ACKNOWLEDGE:
            return known.body
        if act.event is StepEvent.CONFIRM:
            return f'{known.body[:-1]},"why":"{act.why}"}}'
        if act.event in SENDS:
            return self.sending(act.why, now)
        if known.body:
            return f'{{"detail":{known.body},"why":"{act.why}"}}'
        return f'{{"why":"{act.why}"}}'

    def sending(self, why: Why, now: Reading) -> str:
        """Return the payload of a request or resend of the open step: what is needed to judge it
        later."""
        identity = self._run.step.adapter
        if why is Why.NONE and self._terms[identity].key_window_ns is None:
            return self._plain_sending(identity)
        payload: dict[str, Json] = {"source": self._registry.get(identity).source}
        send_before_ns = self._send_before_ns(now)
        if send_before_ns is not None:
            payload["send_before_ns"] = send_before_ns
        if why is not Why.NONE:
            payload["why"] = why.value
        return canonical(payload)

    def _plain_sending(self, identity: str) -> str:
        """Return the payload of most requests, which is the same for each call of an adapter."""
        text = self._plain.get(identity)
        if text is None:
            source = self._registry.get(identity).source
            text = self._plain[identity] = canonical({"source": source})
        return text

    def joined(self, evidence: str, now: Reading) -> str:
        """Return the payload of an operator's resend: the evidence, and what every request
        carries."""
        given, sent = decode(evidence), decode(self.sending(Why.NONE, now))
        assert isinstance(given, dict) and isinstance(sent, dict), "payloads are objects"  # noqa: PT018
        return canonical({**given, **sent})

    def _send_before_ns(self, now: Reading) -> int | None:
        terms = self._terms[self._run.step.adapter]
        if terms.key_window_ns is None:
            return None
        first = self._run.open.first
        since_ns = now.wall_ns if first is None else first.wall_ns
        return since_ns + terms.key_window_ns - (terms.lands_within_ns or 0)

    # --- calling --------------------------------------------------------------------------------

    def _request(self) -> Request:
        run = self._run
        step = run.step
        send_before_ns = self._send_before_ns(run.now())
        return Request(
            run.id,
            step.id,
            step.key,
            run.head.attempt,
            decode(step.arguments),
            None if send_before_ns is None else send_before_ns / NANOSECONDS,
        )

    def _prepare(self, act: Act) -> Question:
        """Return what is to be asked. From here on a call has begun, for a cancel comes under the
        lock."""
        run = self._run
        run.store.check_working()  # the storage may have failed in somebody else's act
        question = Question(
            act, run.head.step, self._registry.get(run.step.adapter), self._request()
        )
        if act is Act.CALL:
            self._memory.pop(run.id, None)
        else:
            self._probed_at = run.now()
        return question

    def _ask(self, question: Question) -> Known:
        """Call or probe the tool, and return what became known."""
        act, step, adapter, request = question
        if act is Act.CALL:
            known = Known(step, request.attempt, *_answer(adapter, request))
            self._remember(known)
            return known
        news, body = _looked_up(adapter, request)
        if news is News.NO_ANSWER:
            self.notes.append(
                f"step {request.step!r}: the probe of {adapter.identity} did not answer"
            )
        return Known(step, request.attempt, news, body)


def describe_error(error: Exception) -> str:
    """Return the canonical text that describes what a tool raised: its type and its message,
    bounded."""
    try:
        message = str(error)[:MESSAGE_LENGTH_MAX]
    except Exception:  # noqa: BLE001 - the adapter boundary: `__str__` may do as it likes
        message = "(its text cannot be had)"
    readable = message.encode("utf-8", "backslashreplace").decode("utf-8")
    return canonical({"message": readable, "type": type_name(type(error))})


def _answer(adapter: Adapter, request: Request) -> tuple[News, str]:
    """Return the news of a call and the text that goes into the payload."""
    try:
        result = adapter.call(request)
    except ToolRejected as refusal:
        news = News.REFUSAL_OF_KEY if refusal.covers_key else News.REFUSAL
        return news, describe_error(refusal)
    except MemoryError:
        raise  # nothing can be written safely now; recovery decides later
    except Exception as error:  # noqa: BLE001 - the adapter boundary: whatever it raises, the outcome is unknown
        logger.warning(
            "run %s step %s attempt %d: the adapter raised %s",
            request.run,
            request.step,
            request.attempt,
            type(error).__name__,
        )
        return News.FAILURE, describe_error(error)
    return News.REPLY, _settling(result, request)


def _looked_up(adapter: Adapter, request: Request) -> tuple[News, str]:
    """Return the news of a probe; one that raises, or answers something else, has not answered."""
    assert adapter.probe is not None, "a queryable adapter is not registered without a probe"
    try:
        answer = adapter.probe(request)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the adapter boundary: a probe that raises has not answered
        logger.warning(
            "run %s step %s: the probe raised %s", request.run, request.step, type(error).__name__
        )
        return News.NO_ANSWER, ""
    if isinstance(answer, Found):
        return News.PRESENT, _settling(answer.result, request)
    if isinstance(answer, Absent):
        return News.ABSENT, ""
    logger.warning(
        "run %s step %s: the probe returned neither Found nor Absent", request.run, request.step
    )
    return News.NO_ANSWER, ""


def _settling(result: Json, request: Request) -> str:
    """Return the payload that settles a step with this result.

    The tool did run: a result that cannot be stored is recorded by a description, and never asked
    for again.
    """
    try:
        return f'{{"result":{encode_result(result)}}}'
    except MarkedResult as error:
        logger.warning(
            "run %s step %s attempt %d: the result cannot be stored",
            request.run,
            request.step,
            request.attempt,
        )
        return canonical({"unstorable": error.marker})
