"""What a commit asks the catalog first, inside its lock: one statement for everything.

Each kind of change names its questions. They are about what no earlier part of the same commit can
change; `Opening` says of what its answers are still true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.own_rows import ASK_LAYOUTS, layouts_of
from shelduck.catalog.commit.work import Work
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import queries, read
from shelduck.catalog.read.together import OF_TABLES, Answers, Questions, Together
from shelduck.catalog.running.job_rows import ASK_BEFORE
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.own_tables import ensure_own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.format import Format, format_of
from shelduck.errors import InvalidRequest
from shelduck.model.changes.change import (
    AppendFiles,
    Change,
    DeleteRows,
    Entry,
    FlushInlined,
    RewriteFiles,
)
from shelduck.model.changes.job import JobStep, NewJob
from shelduck.model.tables.options import SKIPPED, Scope, column_ids
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.tables.view import PINNED

# More files than that are asked for in parts.
_MOST_FILES = 5_000
_option = tables.metadata.c
_OPTIONS = sa.select(_option.scope_id.label("table_id"), _option.key, _option.value).where(
    sa.or_(
        sa.and_(_option.scope.is_(None), _option.key.in_(["version", "require_commit_message"])),
        sa.and_(
            *(_option.scope == Scope.TABLE.value, _option.scope_id.in_(OF_TABLES)),
            _option.key == SKIPPED,
        ),
    )
)
_WITH_FILES = (AppendFiles, RewriteFiles, FlushInlined)
_OWN = frozenset(own_tables.OWN.tables)


@dataclass
class Opening:
    """The answers, as of the moment in which the commit got its lock."""

    head: Snapshot
    options: Mapping[str, str]
    skipped: Mapping[int, Sequence[int]]
    """The columns of tables of which files get no bounds."""
    present: set[str]
    """Names of tables of Shelduck, and for positions of deleted rows, that the database has."""
    answers: Answers
    files: frozenset[int]
    """Data files of which the answers are still true."""
    base: int
    """The snapshot on which the changes were made."""
    needs_log: bool
    """False if snapshots since then may have expired."""
    altered: set[int] = field(default_factory=set)
    """Tables of which the answers are no longer true: this commit has written their columns."""

    @cached_property
    def others(self) -> Sequence[tuple[SnapshotId, Entry]]:
        """What other commits did since the changes were made; Conflict if nobody knows any more."""
        log = self.answers["log"]
        return read.entries_between(log, self.base, self.head.id, needs_all=self.needs_log)

    @property
    def layouts(self) -> Answers | None:
        """The answers about the layouts of new files, None if nobody asked."""
        return self.answers if "known_layouts" in self.answers else None

    @property
    def jobs(self) -> Answers | None:
        """The answers that a new job needs, None if nobody asked."""
        return self.answers if "newest_job" in self.answers else None

    def rows(self, question: str, table: int) -> list[Any] | None:
        """Return the rows about a table, None if they are no longer true or nobody asked."""
        if table in self.altered or question not in self.answers:
            return None
        return [row for row in self.answers[question] if row.table_id == table]

    def take_files(self, ids: Collection[int]) -> bool:
        """Return whether the answers are true of data files, which the caller then changes."""
        is_true = self.files.issuperset(ids)
        self.files = self.files.difference(ids)
        return is_true

    def ensure_own_tables(self, store: Store, connection: sa.Connection) -> None:
        """Create the tables of Shelduck that are missing; no statement if there are none."""
        if not self.present >= _OWN:
            ensure_own_tables(store, connection)
            self.present |= _OWN


@dataclass(frozen=True, slots=True)
class OpeningQuestions:
    """The statement of one commit, which every attempt asks again."""

    questions: Questions
    parameters: Mapping[str, Any]
    needs_log: bool = True
    """False if snapshots since then may have expired: what they did is seen in the catalog."""

    def about_own_tables(
        self, changes: Sequence[Change], job: NewJob | JobStep | None
    ) -> OpeningQuestions:
        """Return the statement that also asks about Shelduck's own tables, all of which exist."""
        questions = list(self.questions)
        given: dict[str, Any] = {}
        if any(isinstance(change, _WITH_FILES) for change in changes):
            questions += ASK_LAYOUTS
            given["digests"] = layouts_of(changes)
        if isinstance(job, NewJob):
            questions += ASK_BEFORE
            given["of_table"] = job.table_id
        return replace(self, questions=tuple(questions), parameters={**self.parameters, **given})

    def ask(self, connection: sa.Connection) -> Opening:
        """Return what a commit needs to know of the catalog that it has locked; one statement.

        Raises InvalidRequest for changes of a snapshot that the catalog does not have.
        """
        together = _together(self.questions, connection.dialect.name, format_of(connection))
        answers = together.ask(connection, self.parameters)
        head = read.newest(answers["head"])
        base = self.parameters["base"]
        if head.id < base:
            raise InvalidRequest(
                f"the changes were made on snapshot {base}, the newest is {head.id}"
            )
        return Opening(
            head,
            {row.key: row.value for row in answers["options"] if row.table_id is None},
            {
                row.table_id: column_ids(row.value)
                for row in answers["options"]
                if row.table_id is not None
            },
            {row.name for row in answers["present"]},
            answers,
            frozenset(self.parameters["of_files"]),
            base,
            self.needs_log,
        )


def opening_of(
    asks: Iterable[Questions], work: Work, changes: Sequence[Change], base: int, *, needs_log: bool
) -> OpeningQuestions:
    """Return what a commit asks first."""
    tables_of = [table.id for table in work.existing()]
    altered = [(table.id, table.altered) for table in work.existing()]
    files = _files_of(changes)
    wanted = dict(question for questions in asks for question in questions)
    given: dict[str, Any] = {
        "base": base,
        "of_tables": tables_of,
        "of_converted": [n for n, made in altered if made and made.only_files is not None],
        "of_files": sorted(files) if len(files) <= _MOST_FILES else [],
        "names": [*sorted(_OWN), *map(queries.inlined_delete_table, tables_of)],
    }
    return OpeningQuestions(tuple(wanted.items()), given, needs_log)


@cache
def _together(questions: Questions, dialect: str, of: Format) -> Together:
    return Together(
        {
            "head": queries.newest_snapshot(),
            "options": _OPTIONS,
            "log": queries.changes_after(),
            "present": queries.present_of(dialect),
            "tables": _live_tables(of),
            **{name: of.asked(query) for name, query in questions},
        }
    )


def _live_tables(of: Format) -> sa.Select[Any]:
    """Ask for whole rows: a rename writes each column again that the version has."""
    source = of.table(tables.table)
    return sa.select(source).where(source.c.table_id.in_(OF_TABLES), queries.live(source))


def _files_of(changes: Iterable[Change]) -> frozenset[int]:
    """Return the data files whose deletes the changes replace."""
    found: set[int] = set()
    for change in changes:
        if isinstance(change, DeleteRows):
            found.update(f.data_file_id for f in change.files)
        elif isinstance(change, RewriteFiles):
            found.update(s.data_file_id for s in change.sources)
    return frozenset(found)


def pinned_views(of: Format) -> sa.Select[Any]:
    """Ask for the pinned views as whole rows, and what they are pinned to."""
    view, tag = of.table(tables.view), tables.tag
    return (
        sa.select(view, tag.c.value.label("pin"))
        .join(tag, tag.c.object_id == view.c.view_id)
        .where(tag.c.key == PINNED, queries.live(tag), queries.live(view))
    )


ASK_PINS: Questions = (("pins", pinned_views),)
