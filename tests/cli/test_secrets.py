"""What is printed of what a plan holds: nothing, but where the help says so."""

from __future__ import annotations

import logging

import pytest

from agent_replay.cli.exits import Exit
from tests.cli.support import TOOLS, Place

ARGUMENT = "canary-argument-5f1c"
ENVIRONMENT = "canary-environment-90ab"


@pytest.mark.fault("L06")
def test_arguments_and_environment_are_not_printed(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOOLS_TOKEN", ENVIRONMENT)
    caplog.set_level(logging.DEBUG)
    secret = {"password": ARGUMENT}
    steps = (
        ("quote", "quote", secret),
        ("pay", "charge", {**secret, "do": ["fail", "answer"]}),
        ("send", "mail", {**secret, "do": ["lose"]}),
    )
    plan = place.plan(*steps)
    said = [
        place.start("a", plan, "--verbose"),
        place.start("a", plan, "--json", "--verbose"),
        place.on("list"),
        place.on("list", "--json"),
        place.on("show", "a"),
        place.on("show", "a", "--json"),
        place.on("doctor"),
        place.on("doctor", "--json"),
        place.on("verify"),
        place.run("plan", "check", plan),
        place.on("resume", "a", "--adapters", TOOLS, "--verbose"),
        place.on("resume", "a"),
        place.start("a", place.plan(("quote", "quote", {"other": ARGUMENT}), *steps[1:])),
    ]
    assert said[0].code == Exit.PAUSED
    assert said[-1].code == Exit.USAGE
    text = "".join(one.out + one.err for one in said) + caplog.text
    assert "request by runtime" in text
    assert ARGUMENT not in text
    assert ENVIRONMENT not in text


@pytest.mark.fault("L06")
def test_arguments_are_printed_where_the_help_says_so(place: Place) -> None:
    place.start("a", place.plan(("quote", "quote", {"password": ARGUMENT})))
    assert ARGUMENT in place.on("show", "a", "--arguments").out
    assert ARGUMENT in place.on("show", "a", "--arguments", "--json").out
    assert ARGUMENT in place.on("export").out
    assert "only with --arguments" in place.run("show", "--help").out
    assert "It holds everything: arguments" in place.run("export", "--help").out
