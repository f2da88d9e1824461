"""Plan files and command lines that nobody would write: a documented exit, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_replay import Adapter, Json, Runtime
from agent_replay.cli import main
from agent_replay.cli.exits import Exit
from tests.cli import tools
from tests.cli.support import TOOLS
from tests.stateful.lab import memory_folder
from tests.stateful.search import quiet

SECONDS_MAX = 20.0
TEMPLATE = "STATEFUL_TEMPLATE"
RUNS = ("a", "b", "c")
QUICK = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
MANY = settings(QUICK, max_examples=1000, derandomize=False)

# --- running ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def template() -> Iterator[None]:
    """Make a folder with a database: one run completed, one in doubt, one failed."""
    folder = Path(tempfile.mkdtemp(dir=memory_folder()))
    with pytest.MonkeyPatch.context() as monkeypatch, quiet():
        monkeypatch.setenv(tools.WORLD, str(folder / "world.jsonl"))
        monkeypatch.setenv(TEMPLATE, str(folder))
        monkeypatch.setattr(sys, "path", list(sys.path))  # loading adapters adds to it
        with Runtime(folder / "runs.db", adapters=_adapters(), log_bytes=0) as runtime:
            for name, deed in zip(RUNS, ("answer", "lose", "refuse"), strict=True):
                runtime.run(name, _plan("mail", {"do": [deed]}))
        yield
    shutil.rmtree(folder)


def _adapters() -> list[Adapter]:
    return [one for one in vars(tools).values() if isinstance(one, Adapter)]


def _plan(tool: str, arguments: Json) -> Json:
    step: Json = {"id": "s", "adapter": f"{tool}@1", "contract": "opaque", "arguments": arguments}
    return {"plan": 1, "steps": [step]}


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """Give a folder of its own, with a copy of the database, and be in it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        shutil.copytree(os.environ[TEMPLATE], Path(name) / "there")
        folder = Path(name) / "there"
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise AssertionError(f"it took more than {SECONDS_MAX} s")


def run(words: Sequence[str]) -> tuple[int, str]:
    """Run a command line in this process; return its exit and all that it printed."""
    out, error = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(2))
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), quiet():
            code = main(list(words))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0  # --help and --version
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for stream in (out, error):
        stream.flush()
    return code, b"".join(s.buffer.getvalue() for s in (out, error)).decode("utf-8", "replace")


def judge(words: Sequence[str]) -> int:
    """Run a command line: its exit is a documented one, and no traceback is shown."""
    try:
        code, text = run(words)
    except Exception as error:
        error.add_note(f"agent-replay {' '.join(map(repr, words))}")
        raise
    assert code in set(Exit), (words, code)
    assert "Traceback" not in text, (words, text)
    assert code in (Exit.OK, Exit.PAUSED, Exit.FAILED, Exit.CANCELLED) or text.strip(), words
    return code


# --- plans --------------------------------------------------------------------------------------

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mail@1", "opaque", "queryable", "s", "", "\ud800", "1", "plan", "mail"])
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
)
_near_steps = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["s", "t", "", "a b", "x" * 129]) | _values,
        "adapter": st.sampled_from(["mail@1", "mail", "quote@1", "mail@2", "@"]) | _values,
        "contract": st.sampled_from(["opaque", "read_only", "idempotent", "none"]) | _values,
        "arguments": _values,
        "more": _values,
    },
)
_near_plans = st.fixed_dictionaries(
    {},
    optional={"plan": st.just(1) | _values, "steps": st.lists(_near_steps, max_size=3) | _values},
)
_texts = st.builds(lambda value: json.dumps(value).encode(), _near_plans | _values)
_cuts = st.tuples(st.integers(0, 400), st.binary(max_size=4))


def _spoil(text: bytes, cuts: list[tuple[int, bytes]]) -> bytes:
    for at, put in cuts:
        place_ = at % (len(text) + 1)
        text = text[:place_] + put + text[place_ + len(put) // 2 + 1 :]
    return text


_plan_files = _texts | st.builds(_spoil, _texts, st.lists(_cuts, min_size=1, max_size=3))


def _judge_plan(content: bytes) -> None:
    with place() as folder:
        (folder / "plan.json").write_bytes(content)
        checked = judge(["plan", "check", "plan.json"])
        assert checked in (Exit.OK, Exit.USAGE)
        words = ["run", "plan.json", "--run-id", "n", "--db", "new.db", "--adapters", str(TOOLS)]
        ran = judge(words)
        if checked == Exit.USAGE:
            assert ran == Exit.USAGE


@QUICK
@given(content=_plan_files)
def test_a_plan_file_is_taken_or_refused_in_a_line(content: bytes) -> None:
    _judge_plan(content)


@pytest.mark.slow
@MANY
@given(content=_plan_files)
def test_a_thousand_plan_files(content: bytes) -> None:
    _judge_plan(content)


# --- command lines --------------------------------------------------------------------------------

_COMMANDS = (
    *("run", "resume", "list", "show", "doctor", "reconcile", "abandon", "cancel", "verify"),
    *("export", "spec", "plan", "check", "confirm", "refute", "resend"),
)
_OPTIONS = (
    *("--db", "--json", "--adapters", "--run-id", "--attempt", "--key", "--kind", "--content"),
    *("--who", "--why", "--result", "--evidence", "--no-request-can-land", "--limit", "--after"),
    *("--all", "--attempts-max", "--namespace", "--quiet", "--verbose", "--output"),
    *("--expect-head", "--arguments", "--help", "--version", "-h", "--", "-", "--db=", "--nothing"),
)
_WORDS = (
    *RUNS,
    *("s", "mail", "0", "1", "-1", "99999999999999999999", "", " ", "%", "runs.db", "plan.json"),
    *(
        "gone.db",
        ".",
        "..",
        "{}",
        "null",
        '{"receipt": 1}',
        "ann",
        "\u00e9",
        "\udcff",
        "a\n",
        "\x1b[",
    ),
    str(TOOLS),
    f"{TOOLS}:mail",
)
_lines = st.builds(
    lambda command, words: [command, *words],
    st.sampled_from(_COMMANDS),
    st.lists(st.sampled_from([*_OPTIONS, *_WORDS, "--db", "runs.db"]), max_size=9),
)
_likely = st.builds(
    lambda command, run_id, words: [command, run_id, "--db", "runs.db", *words],
    st.sampled_from(_COMMANDS),
    st.sampled_from(_WORDS),
    st.lists(st.sampled_from([*_OPTIONS, *_WORDS]), max_size=8),
)


def _judge_line(words: list[str]) -> None:
    with place() as folder:
        (folder / "plan.json").write_text(json.dumps(_plan("mail", {"do": ["answer"]})))
        judge(words)
        assert judge(["verify", "--db", str(folder / "runs.db")]) == Exit.OK


@QUICK
@given(words=_lines | _likely)
def test_a_command_line_ends_in_a_documented_exit(words: list[str]) -> None:
    _judge_line(words)


@pytest.mark.slow
@MANY
@given(words=_lines | _likely)
def test_a_thousand_command_lines(words: list[str]) -> None:
    _judge_line(words)


def test_the_judge_is_not_fooled(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_words: Sequence[str]) -> int:
        print("Traceback (most recent call last):")
        return 2

    monkeypatch.setitem(globals(), "main", broken)
    with pytest.raises(AssertionError, match="Traceback"):
        judge(["list"])
    monkeypatch.setitem(globals(), "main", lambda _words: 77)
    with pytest.raises(AssertionError, match="77"):
        judge(["list"])
