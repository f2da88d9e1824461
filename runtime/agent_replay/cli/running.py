"""The commands that drive runs: `run` and `resume`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from functools import partial
from typing import TypeVar

from agent_replay.cli import batch, exits, inputs, parsing
from agent_replay.cli.exits import Exit
from agent_replay.cli.loading import load_adapters
from agent_replay.cli.looking import caller_of, looking_at
from agent_replay.cli.parsing import Parser
from agent_replay.cli.screen import Screen
from agent_replay.cli.watching import Watch, is_terminal, logged, patient, warn
from agent_replay.errors import (
    DatabaseLocked,
    InvalidInput,
    ReplayError,
    StorageError,
    UnusableDatabase,
)
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.lifecycles.step import StepState
from agent_replay.outcome import Outcome
from agent_replay.plan import load_plan
from agent_replay.report.commands import Act, hint_of
from agent_replay.report.diagnosis import Diagnosis
from agent_replay.report.doctor import act_lines, waiting_lines
from agent_replay.report.objects import outcome_object, refused_object
from agent_replay.report.outcomes import outcome_lines
from agent_replay.runtime import ATTEMPTS_LIMIT, ATTEMPTS_MAX, WORKERS, WORKERS_LIMIT, Runtime
from agent_replay.values import Json, check_id

_Result = TypeVar("_Result")

_PRINTS = (
    "What adapters print goes to standard error. Of each result the beginning is printed,\n"
    "and all of it with --json."
)


_WORST = ", ".join(str(code.value) for code in exits.WORST_FIRST)
_MANY = (
    f"{_PRINTS}\n\n"
    "The runs of several plans, or of a directory, are called as their files without .json\n"
    "and driven at once. All plans are read before the first run is begun. The exit code is\n"
    f"that of the worst run: {_WORST}.\n"
    "Ctrl-C lets the calls under way end, and stops; the same command goes on."
)


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the commands of this module."""
    _add_run(commands)
    _add_resume(commands)


def _add_run(commands: argparse._SubParsersAction[Parser]) -> None:
    run = parsing.add_command(
        commands, "run", _run, "Run plans under ids, or resume them if the ids are known.", _MANY
    )
    run.add_argument(
        "plan",
        metavar="PLAN",
        nargs="+",
        help="a file with a plan, in JSON, or a directory: each *.json in it",
    )
    run.add_argument("--run-id", metavar="ID", help="the id of the run of one plan, used once")
    run.add_argument(
        "--run-id-prefix",
        metavar="TEXT",
        help="what is put before the names of the files, to make the ids of the runs",
    )
    run.add_argument(
        "--workers",
        metavar="N",
        type=inputs.whole_number(1, WORKERS_LIMIT),
        help=f"runs at once, if there are several plans (as many as these, up to {WORKERS})",
    )
    parsing.add_database(run)
    parsing.add_adapters(run)
    run.add_argument(
        "--attempts-max",
        metavar="N",
        type=inputs.whole_number(1, ATTEMPTS_LIMIT),
        default=ATTEMPTS_MAX,
        help="attempts of a step before a person is asked (%(default)s); fixed at the first run",
    )
    run.add_argument("--namespace", metavar="TEXT", help="a name for a new database")
    _add_manners(run, "; of several runs one on a line, as they end")


def _add_resume(commands: argparse._SubParsersAction[Parser]) -> None:
    resume = parsing.add_command(
        commands, "resume", _resume, "Do what a run is owed, and say what it came to.", _PRINTS
    )
    resume.add_argument("run_id", metavar="RUN_ID", nargs="?", help="the id of the run")
    resume.add_argument(
        "--all",
        action="store_true",
        help=f"resume every unfinished run; the exit code is that of the worst: {_WORST}",
    )
    resume.add_argument(
        "--workers",
        metavar="N",
        type=inputs.whole_number(1, WORKERS_LIMIT),
        default=1,
        help="with --all: runs at once (%(default)s)",
    )
    parsing.add_database(resume)
    parsing.add_adapters(resume)
    _add_manners(resume)


def _add_manners(parser: Parser, more: str = "") -> None:
    parsing.add_wait(parser)
    parsing.add_json(parser, more)
    parsing.add_messages(parser)


def _run(options: argparse.Namespace, screen: Screen) -> int:
    if _names_runs_by_files(options):
        return _run_many(options, screen)
    run_id = check_id("run id", options.run_id)
    database = inputs.database_path(options.db, may_be_new=True)
    plan = load_plan(options.plan[0])
    steps = [step.id for step in plan.steps]
    return drive(options, screen, database, lambda runtime: runtime.run(run_id, plan), steps=steps)


def _names_runs_by_files(options: argparse.Namespace) -> bool:
    """Return whether the runs are called as their files, or raise `InvalidInput`."""
    several = batch.are_several(options.plan)
    if options.run_id is None:
        if not several and options.run_id_prefix is None:
            raise InvalidInput(
                "name the run: give --run-id ID, or --run-id-prefix TEXT to call it as its file"
            )
        return True
    if several or options.run_id_prefix is not None:
        raise InvalidInput(
            "--run-id is for one plan: several are called as their files, behind --run-id-prefix"
        )
    return False


def _run_many(options: argparse.Namespace, screen: Screen) -> int:
    database = inputs.database_path(options.db, may_be_new=True)
    plans = batch.read_plans(options.plan, options.run_id_prefix or "", screen)
    tally = batch.Tally(screen, len(plans), quiet=options.quiet or options.json)
    workers = options.workers or min(WORKERS, len(plans))

    def work(runtime: Runtime) -> bool:
        runs = ((run, plan) for run, _, plan in plans)
        with (
            patient(screen) as say,
            closing(runtime.run_many(runs, workers=workers, on_stop=say)) as ended,
        ):
            tally.show()
            for finished in ended:
                code = tally.take(finished)
                with tally.lock:
                    tally.clear()
                    batch.tell(finished, code, screen, as_json=options.json)
                    tally.show()
        return True

    if _with_runtime(options, screen, database, work, tally, tally.left_open) is None:
        return Exit.INTERRUPTED
    if not options.json:
        screen.lines([tally.summary()])
        if tally.code is not Exit.OK:
            _point_at_help(screen, database, tally.code)
    return tally.code


def _resume(options: argparse.Namespace, screen: Screen) -> int:
    if (options.run_id is None) != options.all:
        raise InvalidInput("name one run, or give --all; see agent-replay resume --help")
    database = inputs.database_path(options.db)
    if options.all:
        return _resume_all(options, screen, database)
    run_id = check_id("run id", options.run_id)
    steps: Sequence[str] = ()
    if is_terminal() and not (options.quiet or options.json):
        with looking_at(database) as view:
            steps = [step.id for step in view.reader.steps(run_id)]  # for the progress only
    return drive(options, screen, database, lambda runtime: runtime.resume(run_id), steps=steps)


def _resume_all(options: argparse.Namespace, screen: Screen, database: str) -> int:
    watch = _watch(options, screen, ())
    left_open = partial(_left_open, screen, database, watch)

    def work(runtime: Runtime) -> tuple[list[Outcome], list[tuple[str, ReplayError]]]:
        with patient(screen) if options.workers > 1 else nullcontext() as say:
            return runtime.resume_all(workers=options.workers, on_stop=say)

    done = _with_runtime(options, screen, database, work, watch, left_open)
    if done is None:
        return Exit.INTERRUPTED
    outcomes, refused = done
    codes = [exits.OF_STATES[outcome.state] for outcome in outcomes]
    code = exits.worst([*codes, *(exits.of_error(error) for _, error in refused)])
    if options.json:
        runs: list[Json] = [
            outcome_object(outcome, (), each) for outcome, each in zip(outcomes, codes, strict=True)
        ]
        not_resumed: list[Json] = [
            refused_object(run, error, exits.of_error(error)) for run, error in refused
        ]
        screen.document({"runs": runs, "refused": not_resumed, "exit": code})
        return code
    for outcome in outcomes:
        warn(outcome, screen)
        screen.lines(outcome_lines(outcome))
    for run, error in refused:
        screen.complain(f"run {run} could not be resumed: {error}")
        screen.lines([f"{run}: not resumed, {type(error).__name__}"])
    if not outcomes and not refused:
        screen.lines(["no run is unfinished"])
    elif code is not Exit.OK:
        _point_at_help(screen, database, code)
    return code


def _point_at_help(screen: Screen, database: str, code: Exit) -> None:
    caller = caller_of(database)
    acts = [Act("see what to do next", caller.argv("doctor"))]
    if code in (Exit.DAMAGED, Exit.STORAGE):  # doctor is about runs that have not ended
        acts.append(Act("see what is damaged or missing", caller.argv("verify")))
    screen.lines(act_lines(tuple(acts)))


# --- shared with the commands that take evidence ------------------------------------------------


def drive(
    options: argparse.Namespace,
    screen: Screen,
    database: str,
    work: Callable[[Runtime], Outcome],
    *,
    steps: Sequence[str] = (),
    recorded: str = "",
) -> int:
    """Let a command do its work on a database, print what came of it, and return the exit code.

    `steps` are the ids of the run's steps, if they are known; `recorded` says what was recorded.
    """
    watch = _watch(options, screen, steps)
    left_open = partial(_left_open, screen, database, watch)
    outcome = _with_runtime(options, screen, database, work, watch, left_open)
    if outcome is None:
        return Exit.INTERRUPTED
    code = exits.OF_STATES[outcome.state]
    warn(outcome, screen)
    found = None if outcome.state in TERMINAL else _diagnosed(screen, database, outcome.run)
    if options.json:
        screen.document(outcome_object(outcome, found.acts if found else (), code))
        return code
    screen.lines([recorded] if recorded else [])
    screen.lines(outcome_lines(outcome))
    if found is not None:
        screen.lines(waiting_lines(found))
    return code


def _with_runtime(
    options: argparse.Namespace,
    screen: Screen,
    database: str,
    work: Callable[[Runtime], _Result],
    watch: Watch,
    left_open: Callable[[str], str],
) -> _Result | None:
    """Return what the work returns, or None if it was interrupted, which has been told then.

    `left_open` says for a cause what it has left open.
    """
    with screen.away():
        loaded = load_adapters(options.adapters)
        try:
            with (
                logged(screen, watch, verbose=options.verbose),
                Runtime(
                    database,
                    adapters=loaded.adapters,
                    attempts_max=getattr(options, "attempts_max", ATTEMPTS_MAX),
                    wait=options.wait,
                    namespace=getattr(options, "namespace", None),
                    hint=hint_of(loaded.sources),
                    on_event=watch.on_event,
                ) as runtime,
            ):
                return work(runtime)
        except (KeyboardInterrupt, SystemExit, MemoryError) as error:
            screen.complain(left_open(_cause(error)))
            return None
        except (StorageError, DatabaseLocked, UnusableDatabase):
            if watch.last_run:
                screen.complain(left_open("stopped at the error below"))
            raise


def _watch(options: argparse.Namespace, screen: Screen, steps: Sequence[str]) -> Watch:
    return Watch(screen, steps, quiet=options.quiet or options.json)


def _cause(error: BaseException) -> str:
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    if isinstance(error, KeyboardInterrupt) and not notes:
        return "interrupted"
    return f"interrupted by a {type(error).__name__} of an adapter{notes}"


def _left_open(screen: Screen, database: str, watch: Watch, cause: str) -> str:
    """Return in one sentence what was left open, and the command that goes on with it."""
    found = watch.last_run and _diagnosed(screen, database, watch.last_run)
    if not found:
        return f"{cause}: what is on record stays as it is, and nothing else was written"
    if found.state is not StepState.REQUESTED:
        return f"{cause}: run {found.run} stays as it is, and goes on with: {found.acts[0].command}"
    return (
        f"{cause}: attempt {found.attempt} of step {found.step} of run {found.run} stays "
        f"requested, and is settled when the run is resumed: {found.acts[0].command}"
    )


def _diagnosed(screen: Screen, database: str, run: str) -> Diagnosis | None:
    """Return why a run has not ended; None if it has by now, or if that can't be read."""
    try:
        with looking_at(database) as view:
            history = view.history(run)
            return None if history.ended else view.diagnose(history)
    except ReplayError as error:
        screen.complain(str(error))
        return None
