"""Archives verified: every row of a file, by the checks that a database's rows go through, and that
it is the file which the database names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import apsw

from agent_replay.chain import identity_link, registration_link, writer_link
from agent_replay.errors import ArchiveError, DamagedHistory
from agent_replay.events import RUN_STATES, Head, Registration
from agent_replay.lifecycles.coupling import MOVES_DIGEST
from agent_replay.lifecycles.run import TERMINAL
from agent_replay.store.archive import place
from agent_replay.store.archive.content import Content
from agent_replay.store.archive.lines import Input
from agent_replay.store.archive.record import ArchivedRow, archived_by_number
from agent_replay.store.schema import Identity
from agent_replay.store.sql import QUERIES
from agent_replay.store.verify import RunCheck


class ArchiveCheck:
    """One pass over an archive, alone. Afterwards `runs` has what was in it, by number."""

    def __init__(self, path: str, *, database: str = "") -> None:
        self.path = path
        self._database = database
        self.identity: Identity | None = None
        self.runs: dict[int, tuple[Registration, Head | None]] = {}
        self.digest = b""
        """The SHA-256 of the file; empty if it was not read to its end."""
        self.events = 0
        self._head: Head | None = None

    def findings(self) -> Iterator[str]:
        """Yield what is wrong with it; raises `ArchiveError` if it is not there."""
        try:
            with place.opened(self.path, database=self._database) as descriptor:
                for finding in self._everything(Input(descriptor, self.path)):
                    yield f"archive {self.path}: {finding}"
        except DamagedHistory as damage:
            yield str(damage)
        except UnicodeEncodeError as error:
            yield f"archive {self.path}: a text in it cannot be UTF-8: {error}"

    def _everything(self, file: Input) -> Iterator[str]:
        content = Content(file.lines())
        content.check_format()
        self.identity = content.identity()
        if self.identity.spec != MOVES_DIGEST:
            raise DamagedHistory(
                f"its spec {self.identity.spec[:12]} is not the one that this program can judge "
                f"({MOVES_DIGEST[:12]})"
            )
        judge = RunCheck(content.steps, content.events, lambda run: self._ended(content, run))
        yield from self._writers(content, judge, identity_link(*self.identity))
        for registration, before in content.runs():
            yield from self._run(judge, registration, before)
            self.events = judge.events
        content.check_end()
        self.digest = file.digest

    def _writers(self, content: Content, judge: RunCheck, start: bytes) -> Iterator[str]:
        for writer, before in content.writers():
            judge.writers[writer.epoch] = writer.writer
            first = writer.epoch == 1
            if (first and before != start) or writer_link(before, writer) != writer.hash:
                yield f"writers, epoch {writer.epoch}: the row does not fit its hash"

    def _run(self, judge: RunCheck, registration: Registration, before: bytes) -> Iterator[str]:
        assert self.identity is not None, "it comes before the runs"
        name = f"run {registration.run} ({registration.id})"
        first = registration.run == 1
        if (first and before != identity_link(*self.identity)) or (
            registration_link(before, registration) != registration.hash
        ):
            yield f"{name}: the registration does not fit its hash"
        if registration.run in self.runs:
            yield f"{name}: it is there twice"
        self._head = None
        yield from judge.findings(registration, self.identity.namespace)
        self.runs[registration.run] = registration, self._head
        if self._head is not None and RUN_STATES.get(self._head.run_state) not in TERMINAL:
            yield f"{name}: it has not ended"

    def _ended(self, content: Content, run: int) -> Head | None:
        self._head = content.head(run)
        return self._head


class Archives:
    """One pass over all archives that a database names."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._database = str(connection.filename)
        self.missing: list[str] = []
        self.files = 0
        self.events = 0

    def findings(self, identity: Identity) -> Iterator[str]:
        """Yield what is wrong with them; those that are not there are in `missing`."""
        rows = archived_by_number(self._connection)
        for file, group in groupby(rows, key=lambda row: row.file):
            yield from self._one(file, list(group), identity)

    def _one(self, file: str, rows: Sequence[ArchivedRow], identity: Identity) -> Iterator[str]:
        check = ArchiveCheck(place.found(self._database, file), database=self._database)
        try:
            yield from check.findings()
        except ArchiveError as error:
            self.missing.append(f"{error} ({_in_words(rows)})")
            return
        self.files += 1
        self.events += check.events
        if not check.digest:
            return  # what is wrong was said
        if check.identity != identity:
            yield f"archive {check.path}: it is of another database"
        others = [row for row in rows if row.file_digest != check.digest]
        if others:
            yield (
                f"archive {check.path}: it is not the file that was written "
                f"({_in_words(others)}): its SHA-256 is another"
            )
        for row in rows:
            for problem in self._problems(row, check):
                yield f"archive {check.path}, run {row.run}: {problem}"

    def _problems(self, row: ArchivedRow, check: ArchiveCheck) -> Iterator[str]:
        if row.run not in check.runs:
            yield "the run is not in it"
            return
        registration, head = check.runs[row.run]
        registered = list(self._connection.execute(QUERIES["run_hash"], (row.run,)))
        if registered != [(registration.hash,)]:
            yield "it was registered otherwise"
        if head is None or (head.run_state, head.seq, head.hash) != row[3:6]:
            yield "the database says that it ended otherwise"


def _in_words(rows: Sequence[ArchivedRow]) -> str:
    numbers = [row.run for row in rows]
    if len(numbers) == 1:
        return f"run {numbers[0]}"
    return f"{len(numbers)} runs, from run {min(numbers)} to run {max(numbers)}"
