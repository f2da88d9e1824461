"""The key: bound to what is asked, and to nothing that a retry changes."""

from __future__ import annotations

import inspect
import itertools

import pytest

from agent_replay.keys import idempotency_key

PARTS = {
    "namespace": "n",
    "run": "r",
    "step": "s",
    "adapter": "a",
    "arguments": '{"cents":1}',
}


@pytest.mark.fault("C01")
@pytest.mark.parametrize("part", PARTS)
def test_another_part_gives_another_key(part: str) -> None:
    assert idempotency_key(**PARTS) != idempotency_key(**{**PARTS, part: PARTS[part] + "x"})


@pytest.mark.invariant("S11")
def test_a_key_has_no_other_parts() -> None:
    """No attempt, epoch, writer or clock: it could not enter."""
    assert list(inspect.signature(idempotency_key).parameters) == list(PARTS)


def test_no_text_moves_from_one_part_to_the_next_unseen() -> None:
    parts = list(PARTS)
    for one, other in itertools.pairwise(parts):
        moved = {**PARTS, one: PARTS[one] + PARTS[other][0], other: PARTS[other][1:]}
        assert idempotency_key(**moved) != idempotency_key(**PARTS)


def test_a_key_is_pinned_for_ever() -> None:
    """Another key for the same request would do it twice in every database there is."""
    assert (
        idempotency_key(**PARTS)
        == "3d86b86b4d6b881d8bb62f522c09f0809cdc647baea3e0c40857796bac220aa2"
    )
