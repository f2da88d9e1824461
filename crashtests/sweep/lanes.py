"""Scenarios side by side: one process each, as many at a time as there are processors."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from crashtests.child import WAIT_SECONDS_MAX, Child, Fooled, Line, fork
from crashtests.subjects import Subject
from crashtests.sweep.bench import Bench
from crashtests.sweep.explore import Explorer
from crashtests.sweep.scenarios import Scenario

_TELLS_SECONDS = 0.5


class Job(NamedTuple):
    """A scenario that is to be explored, with the adapter that it is about."""

    scenario: Scenario
    subject: Subject


class Progress(Protocol):
    """Told the name of a scenario and its number of kills so far, and when it has ended."""

    def __call__(self, name: str, kills_so_far: int, *, ended: bool = False) -> None:
        """Take it in."""


def explore(
    jobs: Sequence[Job], form: str, scratch: Path, lanes: int, progress: Progress
) -> list[dict[str, Any]]:
    """Return the report of each job, in their order; raise `Fooled` if one shows nothing."""
    reports: dict[str, dict[str, Any]] = {}
    waiting, running = list(jobs), dict[Child, Job]()
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                job = waiting.pop(0)
                running[_start(job, form, scratch, running)] = job
            ready = select.select(list(running), [], [], WAIT_SECONDS_MAX)[0]
            if not ready:
                raise Fooled(f"nothing was said for {WAIT_SECONDS_MAX} seconds")
            for lane in ready:
                name = running[lane].scenario.name
                report = _listen(lane, name, progress)
                if report is not None:
                    reports[name] = report
                    del running[lane]
    finally:
        for lane in running:
            lane.close()
    return [reports[job.scenario.name] for job in jobs]


def _start(job: Job, form: str, scratch: Path, running: dict[Child, Job]) -> Child:
    folder = scratch / job.scenario.name
    folder.mkdir()
    closes = [descriptor for lane in running for descriptor in lane.descriptors]
    return fork(lambda line: _explore_one(job, form, folder, line), closes)


def _explore_one(job: Job, form: str, folder: Path, line: Line) -> None:
    """Be the process of a job."""
    told = 0.0

    def progress(kills: int) -> None:
        nonlocal told
        if time.monotonic() - told > _TELLS_SECONDS:
            told = time.monotonic()
            line.say(kills=kills)

    bench = Bench(job.scenario, job.subject, folder, closes=line.descriptors)
    try:
        report = Explorer(bench, form, progress).explore()
    except Fooled as problem:
        line.say(fooled=str(problem))
    else:
        line.say(report=report)


def _listen(lane: Child, name: str, progress: Progress) -> dict[str, Any] | None:
    """Take in what a lane says; return its report once it has one."""
    said = lane.hear()
    if said is None:
        raise Fooled(f"{name}: its process ended with {lane.reap()}, and no report")
    if "fooled" in said:
        raise Fooled(f"{name}: {said['fooled']}")
    if "kills" in said:
        progress(name, said["kills"])
        return None
    if lane.reap() != 0:
        raise Fooled(f"{name}: its process did not end well")
    report: dict[str, Any] = said["report"]
    progress(name, sum(report["terminations"].values()), ended=True)
    return report
