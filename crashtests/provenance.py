"""What a report says about how it was made, judged against the checkout. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crashtests import sources
from crashtests.independent.history import Impossible
from crashtests.independent.lifecycle import SPEC_FOLDER, Lifecycle, file_digest
from crashtests.judgement import digest_of

ABOUT_FIELDS = {
    *("created", "revision", "clean", "python", "sqlite", "platform", "file_system"),
    *("spec", "sources", "digest"),
}
FORMS = {
    "created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "revision": r"[0-9a-f]{40}|unknown",
    "python": r"3\.\d+\.\d+\S*",
    "sqlite": r"3\.\d+\.\d+",
    "platform": r"\S+ \S+ \S+",
    "file_system": r"\S+",
}
_DIGEST = r"[0-9a-f]{64}"
_SOURCE = r"(spec|runtime/agent_replay|crashtests)/[a-z0-9_/]+\.(py|sql|toml)"


def findings(about: Any, *, recorded: bool) -> list[str]:
    """Return what is wrong with a report's `about`, each with its place.

    Unless the report was `recorded` earlier, each source that differs from the checkout is wrong.
    """
    found = [f"about: {problem}" for problem in guarded(_about, about)]
    if not recorded:
        found += [f"sources: {said}" for said in drift(about)]
    return found


def guarded(judge: Any, *given: Any) -> Iterator[str]:
    """Yield what `judge` yields; what it stumbles over is a malformed report, and named."""
    try:
        yield from judge(*given)
    except (KeyError, IndexError) as error:
        yield f"malformed: {error} is missing"
    except (TypeError, ValueError, AttributeError, RecursionError, Impossible) as error:
        yield f"malformed: {error}"


def _about(about: Mapping[str, Any]) -> Iterator[str]:
    for field in sorted(about.keys() ^ ABOUT_FIELDS):
        yield f"the field {field!r} is {'missing' if field in ABOUT_FIELDS else 'foreign'}"
    for field, form in FORMS.items():
        if not re.fullmatch(form, about[field]):
            yield f"{field}: {about[field]!r} is not of the form {form}"
    if type(about["clean"]) is not bool:
        yield "clean: it is true or false"
    if about["digest"] != digest_of(about):
        yield "digest: something about the report was changed"
    yield from _spec(about["spec"], about["sources"])


def _spec(spec: Mapping[str, Any], recorded: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with what a report says of its spec."""
    if spec.keys() != {"version", "moves", "files"}:
        yield "spec: it has version, moves and files"
    if type(spec["version"]) is not int or spec["version"] != Lifecycle().version:
        yield f"spec.version: {spec['version']}, the checkout has {Lifecycle().version}"
    digests = {**recorded, "spec.moves": spec["moves"], "spec.files": spec["files"]}
    for name, digest in digests.items():
        if not re.fullmatch(_DIGEST, digest):
            yield f"{name}: {digest!r} is no SHA-256"
    for name in recorded:
        if not re.fullmatch(_SOURCE, name):
            yield f"sources: {name!r} is not one of the files that a result can depend on"
    here = sources.hashes()
    names = ("spec/step.toml", "spec/run.toml")
    unchanged = all(recorded[name] == here[name] for name in names)
    if unchanged and spec["files"] != file_digest(SPEC_FOLDER):
        yield "spec.files: it is not the digest of the files whose hashes stand beside it"


def drift(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield each source that differs from the one that the report was made with."""

    def compare() -> Iterator[str]:
        yield from sources.drift(about["sources"])

    yield from guarded(compare)
