"""Checks of the code itself, so that no reviewer has to make them.

Each check is a function that yields complaints about a file, and is shown to bite on a few lines of
wrong code. Layers are checked by import-linter, layout and style by ruff (`make check`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tidy.checkout import (
    LIBRARY,
    PACKAGE,
    PAGES,
    PYTHON,
    ROOT,
    SOURCES,
    name_of,
    text_of,
    tree_of,
)

FUNCTION_LINES_MAX = 50
FILE_LINES_MAX = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[ast.Module], Iterator[str]]


def check_of(check: Check, code: str) -> list[str]:
    return list(check(ast.parse(code)))


def test_there_is_something_to_check() -> None:
    assert PACKAGE / "__init__.py" in LIBRARY
    assert ROOT / "spec" / "generate.py" in SOURCES
    assert ROOT / "README.md" in PAGES


# --- size ---------------------------------------------------------------------------------------


def code_lines(function: Function) -> int:
    """Return how many lines a function has, its docstring and decorators not counted."""
    first = function.body[0]
    docstring = ast.get_docstring(function, clean=False)
    spared = 0 if docstring is None else (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - spared


def too_long(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, Function) and code_lines(node) > FUNCTION_LINES_MAX:
            yield f"line {node.lineno}: {node.name} has {code_lines(node)} lines; split it"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_fits_on_a_screen(path: Path) -> None:
    assert list(too_long(tree_of(path))) == []
    if "lifecycles" not in path.parts:  # generated: one row a move
        assert len(text_of(path).splitlines()) <= FILE_LINES_MAX


def test_a_long_function_is_found() -> None:
    body = "    pass\n" * FUNCTION_LINES_MAX
    assert check_of(too_long, "def f():\n" + body) == ["line 1: f has 51 lines; split it"]
    assert check_of(too_long, "def f():\n    '''Say\n    so.\n    '''\n" + body[9:]) == []


# --- docstrings ---------------------------------------------------------------------------------


def undocumented(node: Documented, name: str = "the module") -> Iterator[str]:
    if ast.get_docstring(node) is None:
        yield f"{name} has no docstring"
    if isinstance(node, Function):  # what is inside of a function is its own affair
        return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function | ast.ClassDef) and not spared_docstring(inner):
            yield from undocumented(inner, f"line {inner.lineno}: {inner.name}")


def spared_docstring(node: Function | ast.ClassDef) -> bool:
    """Say whether a name is private, or is one more signature of a name that has its docstring."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return node.name.startswith("_") or not decorators.isdisjoint({"overload", "setter"})


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_every_public_name_says_what_it_is(path: Path) -> None:
    assert list(undocumented(tree_of(path))) == []


def test_a_missing_docstring_is_found() -> None:
    code = '"""Module."""\nclass A:\n    """A."""\n    def f(self): ...\n    def _g(self): ...\n'
    assert check_of(undocumented, code) == ["line 4: f has no docstring"]


# --- code that runs data ------------------------------------------------------------------------


def runs_data(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                imported = [module]
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" | "__import__" as called)):
                yield f"line {node.lineno}: {called}()"
                continue
            case _:
                continue
        for module in imported:
            if module.split(".")[0] in {"pickle", "marshal", "shelve", "dill", "cloudpickle"}:
                yield f"line {node.lineno}: {module}"


MAKES_CODE = ROOT / "models" / "language" / "python.py"
"""It compiles a model, which is code of this checkout, to Python; what it runs it has written."""


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_data_is_run_as_code(path: Path) -> None:
    found = [what.partition(": ")[2] for what in runs_data(tree_of(path))]
    assert found == (["exec()"] if path == MAKES_CODE else [])


def test_code_that_runs_data_is_found() -> None:
    code = "import pickle\nfrom marshal import loads\neval('1')\nre.compile('a')\n"
    assert check_of(runs_data, code) == ["line 1: pickle", "line 2: marshal", "line 3: eval()"]


# --- files --------------------------------------------------------------------------------------
#
# Closing any descriptor of the database drops the locks that SQLite holds on it for the process. So
# no code may open, read or copy a file, but in the places that know this and those listed below.
# This is half of the check of fault E04; the other half runs the store, and cites it.

MAY_OPEN = {"store/files.py", "store/holder.py"}

OPENS_ANOTHER_FILE: dict[tuple[str, str], str] = {
    ("clock.py", "_boot_id"): "a file of /proc, under a fixed name",
    ("cli/checking.py", "_spec_file"): "a file of the spec, beside the package",
    ("cli/checking.py", "_write_new"): "a new file for an export; it must not be there yet",
    ("cli/inputs.py", "read_text"): "evidence or a result that a person wrote",
    ("cli/screen.py", "_lead_to_nowhere"): "the null device",
    ("effects/store.py", "_create"): "a new file of the stand-in tool; it must not be there yet",
    ("plan.py", "load_plan"): "a plan that a person wrote",
    ("store/archive/place.py", "create"): "a new archive; it must not be there yet",
    ("store/sql.py", "text_of"): "a file of this package, beside the module",
}
"""(file, function): what it opens, which can't be a database."""

OPENERS = {
    "open",
    "open_code",
    "fdopen",
    "copy2",
    "copy_file_range",
    "copyfile",
    "copyfileobj",
    "copytree",
    "file_digest",
    "sendfile",
}
"""Functions that open, read, copy or hash a file, called by their bare name or as a module's."""

METHODS = {"read_bytes", "read_text", "write_bytes", "write_text"}
"""Methods of a path that open its file."""

OWNERS = {"os", "io", "codecs", "shutil", "gzip", "bz2", "lzma", "zipfile", "tarfile", "hashlib"}


def opened(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield (function it is in, line, what is called) for each call that opens a file."""

    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, int, str]]:
        if isinstance(node, Function):
            function = node.name
        if isinstance(node, ast.Call) and opens(node.func):
            yield function, node.lineno, ast.unparse(node.func)
        for inner in ast.iter_child_nodes(node):
            yield from visit(inner, function)

    yield from visit(tree, "")


def opens(called: ast.expr) -> bool:
    """Say whether a call opens a file; `Store.open(...)` does not, `path.open()` does."""
    match called:
        case ast.Name(id=name):
            return name in OPENERS
        case ast.Attribute(value=ast.Name(id=owner), attr="copy" | "move"):
            return owner == "shutil"
        case ast.Attribute(value=owner, attr="open"):
            text = ast.unparse(owner)
            return text in OWNERS or "path" in text.lower() or "file" in text.lower()
        case ast.Attribute(attr=name):
            return name in OPENERS | METHODS
        case _:
            return False


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_only_two_modules_open_files(path: Path) -> None:
    place = str(path.relative_to(PACKAGE))
    if place in MAY_OPEN:
        return
    tree = tree_of(path)
    assert [
        f"line {line}: {call}() in {function or 'the module'}"
        for function, line, call in opened(tree)
        if (place, function) not in OPENS_ANOTHER_FILE
    ] == []


def test_the_list_of_other_files_is_no_longer_than_needed() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), function)
        for path in LIBRARY
        for function, _line, _call in opened(tree_of(path))
    }
    assert set(OPENS_ANOTHER_FILE) <= found


@pytest.mark.parametrize(
    "code",
    [
        "open(p)",
        "os.open(p, 0)",
        "io.open(p)",
        "Path(p).open()",
        "self.path.open()",
        "p.read_bytes()",
        "shutil.copy(a, b)",
        "hashlib.file_digest(f, 'sha256')",
    ],
)
def test_a_call_that_opens_a_file_is_found(code: str) -> None:
    tree = ast.parse(f"def f():\n    {code}\n")
    assert [(function, line) for function, line, _call in opened(tree)] == [("f", 2)]


@pytest.mark.parametrize("code", ["Store.open(p)", "copy.copy(a)", "lock.open()", "a.copy()"])
def test_a_call_that_opens_no_file_is_left_alone(code: str) -> None:
    assert list(opened(ast.parse(code))) == []


# --- SQL ----------------------------------------------------------------------------------------

SQL = re.compile(
    r"""\s*(
        select\s+([\d:?(*]|.*\bfrom\b|\w+\() | with\s+\w+.*\bas\s*\( | values\s*\( | explain\s
        | insert\s+(or\s+\w+\s+)?into\b | replace\s+into\b | update\s.*\bset\b | delete\s+from\b
        | create\s+(temp\w*\s+|unique\s+|virtual\s+)?(table|index|trigger|view)\b
        | (drop|alter)\s+(table|index|trigger|view)\b | (attach|detach)\s+(database\b|['"?:])
        | (begin|commit|rollback|end)(\s+(immediate|exclusive|deferred|transaction))*\s*;?\s*$
        | (savepoint|release|rollback\s+to)\s+\w+\s*;?\s*$ | vacuum\b | reindex\b | analyze\b
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
PRAGMA = re.compile(r"\s*pragma\b", re.IGNORECASE)


def strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield every string constant that is neither a docstring nor the name of a query."""
    spared: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                spared.add(id(docstring))
            case ast.Subscript(value=ast.Name(id="QUERIES"), slice=key):
                spared.add(id(key))
            case _:
                pass
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in spared
        ):
            yield node


def sql(tree: ast.Module, pattern: re.Pattern[str] = SQL) -> Iterator[str]:
    for constant in strings(tree):
        if pattern.match(str(constant.value)):
            yield f"line {constant.lineno}: {str(constant.value)[:60]!r}"


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_sql_lives_in_sql_files(path: Path) -> None:
    tree = tree_of(path)
    assert list(sql(tree)) == []
    if path != PACKAGE / "store" / "connection.py":
        assert list(sql(tree, PRAGMA)) == []


@pytest.mark.parametrize(
    "code",
    [
        "'select 1'",
        "f'select * from {table}'",
        "'begin immediate'",
        "'COMMIT'",
        "'insert or replace into a values (1)'",
        "'update heads set seq = 1'",
        "'''\n  create unique index a on b (c)'''",
    ],
)
def test_sql_is_found(code: str) -> None:
    assert len(check_of(sql, f"x = {code}")) == 1


@pytest.mark.parametrize(
    "text", ["begin with a letter", "select a run", "update the plan", "values", "commit failed"]
)
def test_a_sentence_is_no_sql(text: str) -> None:
    assert check_of(sql, f"x = {text!r}") == []


# --- the checks themselves ----------------------------------------------------------------------


def test_every_folder_with_code_is_type_checked_and_packed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    folders = {path.relative_to(ROOT).parts[0] for path in PYTHON}
    assert folders == set(settings["mypy"]["files"])
    assert folders <= set(settings["hatch"]["build"]["targets"]["sdist"]["only-include"])
