"""The walk by images: every edge in a fresh copy of the database, with transactions as they ship.

A walk by savepoints is fast, but its store never commits for good. Here each edge is tried on a
connection of its own that takes the state as an image, and the holder's store is reopened there as
after a storage error. An edge costs a reading of the whole schema, so this is for small bounds: it
shows that savepoints in the place of transactions change nothing.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from agent_replay.store.connection import connect_memory
from agent_replay.store.writer import Store
from models.graph.states import Edges, Label, State, describe, in_words
from models.graph.walk import draft_of
from models.graph.ways import WriterWay
from models.graph.worlds import Alteration, Seen, World, first_world, keep


class Image(NamedTuple):
    """A state with the database that is in it."""

    content: bytes
    seen: Seen
    stores: tuple[Store, ...]


class Imaged(NamedTuple):
    """What a walk by images came to; `other` says which edges are missing or lead elsewhere."""

    states: set[State]
    edges: int
    other: list[str]


def walk_by_images(
    contracts: tuple[str, ...],
    graph: dict[State, Edges],
    initial: State,
    alter: Alteration = keep,
) -> Imaged:
    """Walk the graph of a plan breadth first, and compare each edge with the one expected."""
    world = first_world(contracts, alter, nested=False)
    way = WriterWay(world)
    images = {initial: _image(world, way, world.start())}
    todo = deque([initial])
    edges, other = 0, []
    while todo:
        state = todo.popleft()
        for label, target in graph[state].items():
            found, seen = _follow(world, way, images[state], state, label, target)
            if found != target:
                reached = "nowhere" if found is None else describe(found)
                other.append(f"{in_words(label)} leads to {reached}, from: {describe(state)}")
                continue
            edges += 1
            if target not in images:
                images[target] = _image(world, way, seen)
                todo.append(target)
    return Imaged(set(images), edges, other)


def _image(world: World, way: WriterWay, seen: Seen) -> Image:
    return Image(world.connection.serialize("main"), seen, way.stores())


def _follow(
    world: World, way: WriterWay, image: Image, state: State, label: Label, target: State
) -> tuple[State | None, Seen]:
    connection = connect_memory()
    connection.deserialize("main", image.content)
    world.restore(connection)
    way.restore(image.stores)
    draft = draft_of(state, label, target)
    if way.offer(image.seen, draft, label.writer, label.reading):
        return None, image.seen
    seen = world.look(image.seen)
    return world.project(seen), seen
