"""What is mutated, and which tests judge the mutants."""

from __future__ import annotations

from typing import Final

GROUPS: Final = {
    "machine": ("machine.py",),
    "history": ("history.py", "follow.py", "chain.py"),
    "recovery": ("recovery.py",),
    "reconcile": ("reconcile.py",),
    "store": (
        *("store/commits.py", "store/connection.py", "store/database.py", "store/log.py"),
        *("store/reader.py", "store/rows.py", "store/schema.py", "store/sql.py"),
        *("store/verify.py", "store/writer.py"),
    ),
}
"""Each group with its modules. `store/files.py`, `store/lock.py` and `store/holder.py` are left
out: they are about other processes, users and file systems, and a test of them takes seconds."""

BAR: Final = 0.90
"""Of each group, how many mutants must be found."""

TESTS: Final = (
    *("tests/core", "tests/runtime", "tests/storage"),
    *("-m", "not slow"),
    *("--ignore=tests/runtime/test_start_methods.py", "--ignore=tests/runtime/test_cost.py"),
    *("--ignore=tests/storage/test_files.py", "--ignore=tests/storage/test_lock.py"),
    "--deselect=tests/core/test_plan.py::"
    "test_there_is_a_first_difference_exactly_if_the_digests_differ",
)
"""The short tests, but for those that start many processes or take seconds each."""


def settings() -> str:
    """Return the table of pyproject.toml that mutmut reads."""
    modules = [f"src/agent_replay/{name}" for group in GROUPS.values() for name in group]
    folders = ["benchmarks", "crashtests", "docs", "examples", "models", "results", "spec"]
    files = ["CHANGELOG.md", "LICENSE", "Makefile", "README.md"]
    lines: dict[str, list[str] | bool] = {
        "source_paths": ["src"],
        "only_mutate": modules,
        "also_copy": [*folders, *files],
        "pytest_add_cli_args": ["-p", "no:xdist", "-p", "tests.mutation.plain_ids"],
        "pytest_add_cli_args_test_selection": list(TESTS),
        "debug": True,
        "use_git_change_detection": False,
        "use_setproctitle": False,
    }
    return "[tool.mutmut]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in lines.items())


def _toml(value: list[str] | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(f'"{one}"' for one in value) + "]"
