"""The tools of the example work from any folder, and are the same with and without a checkpoint."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from agent_replay import Adapter, Contract, Request, Runtime, ToolRejected, load_plan
from agent_replay.effects import EffectStore

ORDER = Path(__file__).resolve().parents[2] / "examples" / "order"


def adapters_of(name: str) -> dict[str, Adapter]:
    found = runpy.run_path(str(ORDER / name))
    return {one.identity: one for one in found.values() if isinstance(one, Adapter)}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Adapter]:
    monkeypatch.setenv("ORDER_FOLDER", str(tmp_path))
    return adapters_of("tools.py")


def test_the_order_is_done_in_the_folder_that_is_named(
    tools: dict[str, Adapter], tmp_path: Path
) -> None:
    with Runtime(tmp_path / "runs.db", adapters=tools.values()) as runtime:
        outcome = runtime.run("order-42", load_plan(ORDER / "plan.json"))
    assert outcome.completed
    assert dict(outcome.results) == {
        "quote": {"total_cents": 8400},
        "charge": {"receipt": 1},
        "notify": {"notified": True},
    }
    with EffectStore(tmp_path / "effects.db") as provider:
        (charged,) = provider.effects()
    (line,) = (tmp_path / "notifications.txt").read_text(encoding="utf-8").splitlines()
    run, key, arguments = line.split(" ", 2)
    assert (run, len(key), charged.kind) == ("order-42", 64, "charge")
    assert json.loads(arguments)["to"] == "ada@example.com"


def test_each_tool_promises_what_the_plan_says(tools: dict[str, Adapter]) -> None:
    for step in load_plan(ORDER / "plan.json").steps:
        assert tools[f"{step.adapter}@{step.version}"].terms.contract is step.contract
    contracts = {tool.terms.contract for tool in tools.values()}
    assert contracts == {Contract.READ_ONLY, Contract.IDEMPOTENT, Contract.OPAQUE}


def test_a_repeated_charge_is_one_charge_and_a_repeated_notification_two(
    tools: dict[str, Adapter], tmp_path: Path
) -> None:
    request = Request("order-42", "any", "0" * 64, 1, {"to": "ada@example.com"}, None)
    first = tools["charge@1"](request)
    assert tools["charge@1"](request._replace(attempt=2)) == first
    for attempt in (1, 2):
        tools["notify@1"](request._replace(attempt=attempt))
    with EffectStore(tmp_path / "effects.db") as provider:
        assert provider.count() == 1
    lines = (tmp_path / "notifications.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2


def test_a_quote_without_a_price_is_refused(tools: dict[str, Adapter]) -> None:
    with pytest.raises(ToolRejected, match="price_cents"):
        tools["quote@1"](Request("order-42", "quote", "0" * 64, 1, {"count": 2}, None))


def test_a_checkpoint_changes_neither_the_identity_nor_the_terms_nor_the_source() -> None:
    plain, stopping = adapters_of("tools.py"), adapters_of("checkpoints.py")
    assert {name: (one.terms, one.source) for name, one in plain.items()} == {
        name: (one.terms, one.source) for name, one in stopping.items()
    }
    assert all(one.source for one in plain.values())
