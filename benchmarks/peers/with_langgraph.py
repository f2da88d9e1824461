"""LangGraph with SqliteSaver: a graph of one node that loops, one tool call each time.

Only the last result is in the state, which is its best case: a state that grows is written anew
with each step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from benchmarks.peers.contender import Work, in_threads


class _State(TypedDict):
    at: int
    steps: int
    last: Any


class LangGraph:
    """A graph whose state is saved after each node."""

    durability = "sync"

    def __init__(self, folder: Path, work: Work) -> None:
        self._connection = sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False)
        saver = SqliteSaver(self._connection)
        saver.setup()

        def call(state: _State) -> dict[str, Any]:
            work.arguments(state["at"])
            return {"at": state["at"] + 1, "last": work.tool(state["at"])}

        def further(state: _State) -> str:
            return "tool" if state["at"] < state["steps"] else END

        graph = StateGraph(_State)
        graph.add_node("tool", call)
        graph.add_edge(START, "tool")
        graph.add_conditional_edges("tool", further, ["tool", END])
        self._graph = graph.compile(checkpointer=saver)

    def run(self, run: str, steps: int) -> None:
        """Invoke the graph."""
        settings = {"configurable": {"thread_id": run}, "recursion_limit": steps + 10}
        start = {"at": 0, "steps": steps, "last": {}}
        self._graph.invoke(start, settings, durability=self.durability)

    def run_many(self, runs: Sequence[str], steps: int) -> None:
        """Invoke it in threads."""
        in_threads(self.run, runs, steps)

    def pragma(self, name: str) -> Any:
        """Return a setting of the saver's connection."""
        return self._connection.execute(f"pragma {name}").fetchone()[0]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class LangGraphAsync(LangGraph):
    """The same with LangGraph's default, which saves behind the next step."""

    durability = "async"
