"""The link of an event is written out for speed, and says what the documented layout says."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from agent_replay.chain import ZERO, event_link, link
from agent_replay.events import Event

NUMBERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

EVENTS = st.builds(
    Event,
    run=NUMBERS,
    seq=NUMBERS,
    event=TEXTS,
    coupled=TEXTS,
    actor=TEXTS,
    step=st.none() | NUMBERS,
    attempt=st.none() | NUMBERS,
    state=st.none() | TEXTS,
    run_state=TEXTS,
    epoch=NUMBERS,
    writer=st.binary(max_size=20),
    wall_ns=NUMBERS,
    boot_ns=NUMBERS,
    payload=TEXTS,
    hash=st.binary(max_size=32),
)


@given(EVENTS, st.binary(min_size=32, max_size=32))
def test_the_link_of_an_event_is_the_link_of_its_columns(event: Event, previous: bytes) -> None:
    assert event_link(previous, event) == link(previous, "event", event[:-1])


def test_the_layout_is_the_documented_one() -> None:
    event = Event(
        7, 2, "acknowledge", "complete", "runtime", 1, 3, "succeeded", "completed",
        4, bytes(range(16)), 1_764_550_000, -5, '{"result":"é"}', b"",
    )  # fmt: skip
    layout = (
        b"t5:eventi7;i2;t11:acknowledget8:completet7:runtimei1;i3;t9:succeededt9:completed"
        b"i4;b16:" + bytes(range(16)) + b'i1764550000;i-5;t15:{"result":"\xc3\xa9"}'
    )
    assert event_link(ZERO, event) == hashlib.sha256(ZERO + layout).digest()
    of_the_run = event._replace(event="adopt", coupled="", step=None, attempt=None, state=None)
    layout = (
        b"t5:eventi7;i2;t5:adoptt0:t7:runtimen;n;n;t9:completed"
        b"i4;b16:" + bytes(range(16)) + b'i1764550000;i-5;t15:{"result":"\xc3\xa9"}'
    )
    assert event_link(ZERO, of_the_run) == hashlib.sha256(ZERO + layout).digest()
