"""What is mutated, and which tests judge the mutants."""

from __future__ import annotations

from typing import Final

GROUPS: Final = {
    "machine": ("machine.py",),
    "history": ("history.py", "follow.py", "chain.py"),
    "recovery": ("recovery.py",),
    "reconcile": ("reconcile.py",),
    "store": (
        *("store/commits.py", "store/connection.py", "store/database.py", "store/files.py"),
        *("store/holder.py", "store/inserts.py", "store/lock.py", "store/log.py"),
        *("store/reader.py", "store/rows.py", "store/schema.py", "store/sql.py"),
        *("store/verify.py", "store/writer.py"),
    ),
}
"""Each group with its modules."""

MODULES: Final = tuple(module for group in GROUPS.values() for module in group)

BAR: Final = 0.90
"""Of each group, how many mutants must be found."""

QUICK_SECONDS: Final = 6.0
"""Of the tests that reach a mutant, the quickest are run first, so long all together."""

THOROUGH_SECONDS: Final = 20.0
"""For those that survive these, it is so long."""

FOLDERS: Final = ("tests/cli", "tests/core", "tests/runtime", "tests/storage")

TESTS: Final = (
    *FOLDERS,
    *("-m", "not slow"),
    # They start many processes, count statements, or take seconds each.
    *("--ignore=tests/cli/test_processes.py", "--ignore=tests/cli/test_running_many.py"),
    *("--ignore=tests/runtime/test_start_methods.py", "--ignore=tests/runtime/test_cost.py"),
    "--deselect=tests/core/test_plan.py::"
    "test_there_is_a_first_difference_exactly_if_the_digests_differ",
)
"""The short tests of the modules."""

HOW: Final = (
    *("-p", "no:xdist", "-p", "tests.mutation.plugin", "--hypothesis-seed=0"),
    *("-o", "tmp_path_retention_policy=failed"),  # the files lie in memory
)
"""What pytest is told besides."""


def settings() -> str:
    """Return the table of pyproject.toml that mutmut reads."""
    folders = ["benchmarks", "crashtests", "docs", "examples", "models", "results", "spec"]
    files = ["CHANGELOG.md", "LICENSE", "Makefile", "README.md"]
    lines: dict[str, list[str] | bool | str] = {
        "source_paths": ["src"],
        "only_mutate": [f"src/agent_replay/{name}" for name in MODULES],
        "also_copy": [*folders, *files],
        "debug": True,  # else a failure before the first mutant would leave no trace
        "pytest_add_cli_args": list(HOW),
        "pytest_add_cli_args_test_selection": list(TESTS),
        # A process that has run the tests remembers decisions and verdicts; mutants begin without.
        "process_isolation": "forkserver",
        "on_dependency_change": "ignore",
        "use_git_change_detection": False,
        "use_setproctitle": False,
    }
    return "[tool.mutmut]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in lines.items())


def pattern(module: str) -> str:
    """Return the names that mutmut gives to the mutants of a module, as store/chain.py."""
    return f"agent_replay.{module.removesuffix('.py').replace('/', '.')}.*"


def _toml(value: list[str] | bool | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return "[" + ", ".join(f'"{one}"' for one in value) + "]"
