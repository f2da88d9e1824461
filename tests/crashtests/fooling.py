"""Processes that would fool the sweep if they could, and an adapter that it has never seen.

Prints, as JSON, what the sweep says of each.

    python -m tests.crashtests.fooling FOLDER

It is a process of its own, since what the sweep watches stays watched.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from crashtests import subjects
from crashtests.child import Fooled, Line
from crashtests.independent.lifecycle import Lifecycle
from crashtests.subjects import Subject
from crashtests.sweep import judge, passage, worker
from crashtests.sweep.bench import Bench, Work
from crashtests.sweep.explore import Explorer
from crashtests.sweep.scenarios import QUICK, SCENARIOS
from crashtests.sweep.worker import Order
from crashtests.vfs import Operation

OPAQUE = next(scenario for scenario in SCENARIOS if scenario.name == "opaque")
FOREIGN = Subject(
    "tests.crashtests.foreign:fax", "tests.crashtests.foreign:count_sheets", {"to": "all"}
)
REPLY = Operation("reply", "tool")


class Late(Line):
    """A line on which the announcement comes when all has been done."""

    def __init__(self, line: Line) -> None:
        super().__init__(*line.descriptors)
        self._first: dict[str, object] = {}

    def say(self, **said: object) -> None:
        self._first = self._first or said

    def wait(self) -> None:
        """Go on."""

    def say_at_last(self) -> None:
        super().say(**self._first)
        super().wait()


def honest(order: Order, line: Line) -> None:
    worker.work(order, line)


def exits(order: Order, line: Line) -> None:
    if order.stop is not None:
        os._exit(0)
    worker.work(order, line)


def kills_itself(order: Order, line: Line) -> None:
    if order.stop is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    worker.work(order, line)


def never_stops(order: Order, line: Line) -> None:
    worker.work(order._replace(stop=None), line)


def stops_elsewhere(order: Order, line: Line) -> None:
    worker.work(order if order.stop is None else order._replace(stop=order.stop + 1), line)


def goes_on(order: Order, line: Line) -> None:
    late = Late(line)
    worker.work(order, late)
    if order.stop is not None:
        late.say_at_last()
    else:
        line.say(**late._first)


def does_nothing(order: Order, line: Line) -> None:
    """Recover by saying that all is well."""
    if order.stage < 2:
        worker.work(order, line)
    else:
        line.say(finished={"state": "completed"}, passed=[], told=[])


def deletes_the_ledger(order: Order, line: Line) -> None:
    if order.stage == 2:
        os.unlink(Path(order.folder) / subjects.LEDGER)
    worker.work(order, line)


def has_no_effect(order: Order, line: Line) -> None:
    """Answer, and have no effect to show for it."""
    reach = passage.PASSAGE.watch

    def watch(operation: Operation) -> None:
        if operation == REPLY:
            os.unlink(Path(order.folder) / subjects.LEDGER)
        reach(operation)

    passage.PASSAGE.watch = watch  # type: ignore[method-assign]
    worker.work(order, line)


def tells_of_no_row(order: Order, line: Line) -> None:
    """Tell of a row as durable that was never written."""
    passage.PASSAGE._told.append((1, "00" * 32))
    worker.work(order, line)


FOOLS: dict[str, Work] = {
    work.__name__: work
    for work in (
        *(honest, exits, kills_itself, never_stops, stops_elsewhere, goes_on, does_nothing),
        *(deletes_the_ledger, has_no_effect, tells_of_no_row),
    )
}


def said_of(work: Work, folder: Path) -> str:
    """Kill one process after its effect, recover, and return what the sweep says of it."""
    folder.mkdir()
    bench = Bench(OPAQUE, subjects.SUBJECTS[OPAQUE.subject], folder, work=work)
    try:
        begun = bench.begin()
        operations = bench.finish(begun).operations
        left = bench.kill(begun, operations.index(REPLY) + 1)
        finished = bench.finish(left)
    except Fooled as problem:
        return str(problem)
    looked = bench.look(finished.end)
    end = {"database": looked.database, "effects": looked.effects, "said": finished.outcome}
    word = judge.came(OPAQUE, end, Lifecycle()).word
    return "; ".join([word, *judge.complaints(OPAQUE, end, Lifecycle())])


def swept(subject: Subject, folder: Path) -> str:
    """Kill the first run of an adapter before each operation; return the words for the ends."""
    folder.mkdir()
    bench = Bench(OPAQUE, subject, folder)
    told = Explorer(bench, QUICK, lambda kills: None).explore()
    words = {judge.came(OPAQUE, end, Lifecycle()).word for end in told["ends"]}
    return " and ".join(sorted(words))


def main(folder: str) -> None:
    """Try each of them."""
    worker.prepare()
    said = {name: said_of(work, Path(folder) / name) for name, work in FOOLS.items()}
    print(json.dumps({**said, "foreign": swept(FOREIGN, Path(folder) / "foreign")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
