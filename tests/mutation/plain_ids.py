"""A plugin of pytest: parametrised tests are called by plain words, for mutmut runs them by name.

pytest does not find a test again by a name that it has escaped.
"""

from __future__ import annotations

from tests.outside import plain


def pytest_make_parametrize_id(val: object) -> str | None:
    if isinstance(val, (str, bytes)):
        return plain(val)
    return None
