"""The work of a commit, and what it asks the catalog first: one statement, inside its lock.

The changes are folded into what happens to each schema and table, without I/O.

Each kind of change names its questions. They are about what no earlier part of the same commit can
change; `Opening` says of what its answers are still true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar

import sqlalchemy as sa

from shelduck.catalog.commit.own_rows import ASK_LAYOUTS, layouts_of
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
    AlterTable,
    AppendFiles,
    Change,
    CreateTable,
    DeleteRows,
    Entry,
    FlushInlined,
    RewriteFiles,
)
from shelduck.model.changes.job import JobStep, NewJob
from shelduck.model.tables.options import SKIPPED, Scope, column_ids
from shelduck.model.tables.schema import Schema, SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.view import PINNED, SPARK_SQL

C = TypeVar("C")


@dataclass(kw_only=True)
class _Changes:
    """Changes that are written one by one, in order."""

    changes: list[Change] = field(default_factory=list)

    def of(self, kind: type[C]) -> list[C]:
        """Return the changes of one class."""
        return [change for change in self.changes if isinstance(change, kind)]


@dataclass
class TableWork(_Changes):
    """Everything that a commit does to one table.

    ``seen`` is a version that a change names, for messages. ``old`` is the version before the first
    change of its columns or name, None for a new table and if only rows change. ``made`` says what
    describes the table from now on, None if that stays; ``changes`` are those of its rows, in
    order.
    """

    id: TableId
    seen: TableVersion | None = None
    old: TableVersion | None = None
    made: CreateTable | AlterTable | None = None
    dropped: bool = False
    new_name: str | None = None

    @property
    def created(self) -> CreateTable | None:
        """How the commit makes the table, None if it exists."""
        return self.made if isinstance(self.made, CreateTable) else None

    @property
    def altered(self) -> AlterTable | None:
        """How the commit alters a table that exists."""
        return self.made if isinstance(self.made, AlterTable) else None

    @property
    def columns(self) -> Schema | None:
        """The columns from now on, None if they stay."""
        return None if self.made is None else self.made.columns

    def alter(self, change: AlterTable) -> None:
        """Set the change of the table; staging joins several into one."""
        if self.made is not None:
            raise InvalidRequest(f"table {self.name} is changed twice in one commit")
        self.made = change

    def drop(self) -> None:
        """End the table; it then has no columns or rows to write."""
        self.dropped, self.new_name, self.changes = True, None, []
        if self.altered is not None:
            self.made = None

    @property
    def is_idle(self) -> bool:
        """True if rows were read and nothing is written."""
        is_same = self.made is None and self.new_name is None
        return is_same and not (self.dropped or self.changes)

    @property
    def name(self) -> str:
        """Return the table's name for messages, the new one of a new table."""
        if self.created is not None:
            return f"{self.created.schema.text}.{self.new_name or self.created.name}"
        known = self.old or self.seen
        return known.full_name if known else f"with id {self.id}"


@dataclass
class Work(_Changes):
    """Everything that a commit does: to tables, and the ``changes`` that belong to none."""

    tables: dict[TableId, TableWork] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True if no snapshot is needed."""
        return not self.changes and all(table.is_idle for table in self.tables.values())

    def keep(self, change: Change) -> None:
        """Keep a change that belongs to no table."""
        self.changes.append(change)

    def keep_of_rows(self, change: FlushInlined | RewriteFiles) -> None:
        """Keep a change of a table's rows."""
        self.table_of(change.table).changes.append(change)

    def existing(self) -> Iterator[TableWork]:
        """Yield the work on tables that the catalog already knows."""
        return (t for t in self.tables.values() if t.created is None)

    def table(self, table_id: TableId) -> TableWork:
        """Return the work on a table; InvalidRequest for a new one that no earlier change makes."""
        if table_id < 0 and table_id not in self.tables:
            raise InvalidRequest(
                f"table {table_id} is provisional, and no change before creates it"
            )
        return self.tables.setdefault(table_id, TableWork(table_id))

    def table_of(self, version: TableVersion) -> TableWork:
        """Return the work on a table, given a version that a change names."""
        table = self.table(version.id)
        table.seen = table.seen or version
        return table

    def changed(self, version: TableVersion) -> TableWork:
        """Return the work on a table whose columns or name change."""
        table = self.table_of(version)
        if table.dropped:
            raise InvalidRequest(f"table {table.name} is changed after it was dropped")
        if table.created is None and table.old is None:
            table.old = version
        return table


def versions(changes: Iterable[Change]) -> Iterator[TableVersion]:
    """Yield the table versions on which the changes were made, without new tables."""
    for change in changes:
        table = getattr(change, "table", None)
        if isinstance(table, TableVersion) and table.id >= 0:
            yield table


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


def all_views(of: Format) -> sa.Select[Any]:
    """Ask for what views say, their texts for Spark too, and what they are pinned to."""
    view, pin, spark = of.table(tables.view), tables.tag.alias("pin"), tables.tag.alias("spark")
    c = view.c
    own = (c.view_id, c.schema_id, c.view_name, c.dialect, c.sql, c.column_aliases)
    found: sa.FromClause = view
    for tag, key in ((pin, PINNED), (spark, SPARK_SQL)):
        mine = (tag.c.object_id == view.c.view_id, tag.c.key == key, queries.live(tag))
        found = found.outerjoin(tag, sa.and_(*mine))
    texts = (pin.c.value.label("pin"), spark.c.value.label("spark"))
    asked = sa.select(*own, c.begin_snapshot, *texts).select_from(found)
    return asked.where(queries.live(view))


def _macro_texts(_of: Format) -> sa.Select[Any]:
    """Ask for what macros say, to DuckDB and to Spark."""
    macro, body, tag = tables.macro, tables.macro_impl, tables.tag
    mine = (tag.c.object_id == macro.c.macro_id, tag.c.key.startswith(SPARK_SQL), queries.live(tag))
    asked = sa.select(body.c.sql, tag.c.value.label("spark"))
    found = asked.join_from(macro, body, body.c.macro_id == macro.c.macro_id)
    return found.outerjoin(tag, sa.and_(*mine)).where(queries.live(macro))


def views_now(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return what views say now, as `all_views` asks for it; one statement."""
    asked = all_views(format_of(connection))
    return [dict(row) for row in connection.execute(asked).mappings()]


ASK_VIEWS: Questions = (("views", all_views), ("macros", _macro_texts))
