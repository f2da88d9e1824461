"""How events come into the database: the rows of one run, and those of several in one transaction.

Nothing here begins or commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import apsw

from agent_replay.errors import IllegalMove
from agent_replay.events import Event
from agent_replay.store.commits import Write
from agent_replay.store.sql import QUERIES

_ADD = QUERIES["add_event"]
_AT_ONCE = 16
"""Rows of several runs that go into one statement."""
_ADD_SEVERAL = _ADD + f", ({', '.join('?' * len(Event._fields))})" * (_AT_ONCE - 1)


class Rows:
    """The rows of one run that are to be inserted."""

    __slots__ = ("_connection", "events")

    def __init__(self, connection: apsw.Connection, events: Sequence[Event]) -> None:
        self._connection = connection
        self.events = events

    def __call__(self) -> None:
        """Insert them."""
        insert(self._connection, self.events)


def insert(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Insert rows one by one, or raise `IllegalMove` for one that was not taken."""
    for event in events:
        connection.execute(_ADD, event)
        if connection.changes() != 1:
            # A trigger that is none of ours can swallow a row without an error.
            raise IllegalMove(
                f"the database did not take run {event.run}, seq {event.seq}; "
                "run verify on it, which names what was added to its schema"
            )


def carry_out(connection: apsw.Connection, writes: Sequence[Write]) -> None:
    """Carry out what several threads want written; their rows go in with few statements.

    A thread that calls SQLite lets the others run, and then has to wait until it may go on.
    """
    if len(writes) == 1:
        writes[0]()
        return
    for write in writes:
        if not isinstance(write, Rows):
            write()
    events = [event for write in writes if isinstance(write, Rows) for event in write.events]
    while len(events) >= _AT_ONCE:
        several, events = events[:_AT_ONCE], events[_AT_ONCE:]
        connection.execute(_ADD_SEVERAL, tuple(chain.from_iterable(several)))
        if connection.changes() != _AT_ONCE:
            raise IllegalMove("the database did not take all rows of several runs")
    insert(connection, events)
