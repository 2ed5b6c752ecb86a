"""The snapshot that a commit is making, and what the commit asks of every kind of change for it.

A draft has the snapshot's id, the ids that it assigns, and its work so far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any

import sqlalchemy as sa

from shelduck import clock
from shelduck.catalog.commit.opening import Opening, Work
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.queries import OF_TABLE, live
from shelduck.catalog.read.together import Questions
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import Row
from shelduck.ducklake.format import Asked, Format, format_of
from shelduck.model.changes.change import Change, CommitInfo, Entry, format_entries
from shelduck.model.files.data_file import Layout
from shelduck.model.tables.schema import SchemaId, SnapshotId, TableId
from shelduck.model.tables.table_version import Snapshot

_column = tables.column.c
_PARENTS = sa.select(_column.column_id, _column.parent_column).where(
    _column.table_id == OF_TABLE, _column.parent_column.is_not(None)
)


@dataclass
class Draft:
    """One snapshot that is being made, over one locked connection."""

    store: Store
    lake: LakeInfo
    connection: sa.Connection
    opening: Opening
    found: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Live rows of tables and views by id, which a check has read and which are needed for writing.
    """
    entries: list[Entry] = field(default_factory=list)
    new_table_versions: list[TableId] = field(default_factory=list)
    """Tables whose columns, name or schema changed: ``ducklake_schema_versions``."""
    schema_ids: dict[SchemaId, SchemaId] = field(default_factory=dict)
    """Ids of new schemas by their provisional ids; the next two are similar."""
    table_ids: dict[TableId, TableId] = field(default_factory=dict)
    partition_ids: dict[int, int] = field(default_factory=dict)
    layouts: dict[int, Layout] = field(default_factory=dict)
    """Layouts of new files by the ids of the files."""
    has_schema_change: bool = False
    has_stats_change: bool = False

    @cached_property
    def format(self) -> Format:
        """The version of DuckLake that the lake has."""
        return format_of(self.connection)

    @property
    def head(self) -> Snapshot:
        """The newest snapshot, on which this one is made."""
        return self.opening.head

    def rows_about(self, question: str, query: Asked, tables_asked: Iterable[int]) -> list[Any]:
        """Return the rows of a question of the opening about tables; ``query`` asks the same.

        One statement if this commit makes some of the tables, or has changed their columns.
        """
        found: list[Any] = []
        again: list[int] = []
        for table in tables_asked:
            rows = self.opening.rows(question, table)
            if rows is None or table >= self.head.next_catalog_id:
                again.append(table)
            else:
                found += rows
        if again:
            statement = self.format.asked(query)
            found += self.connection.execute(statement, {"of_tables": again}).all()
        return found

    def skipped_columns(self, table: TableId) -> Collection[int]:
        """Return the columns of a table of which files get no bounds, with those below them.

        One statement if the table has such columns.
        """
        tops = self.opening.skipped.get(table)
        if not tops:
            return ()
        if table not in self._skipped:
            found: set[int] = set()
            below = set(tops)
            rows = self.connection.execute(_PARENTS, {"of_table": table}).all()
            while below:
                found |= below
                below = {number for number, parent in rows if parent in below} - found
            self._skipped[table] = found
        return self._skipped[table]

    def __post_init__(self) -> None:
        self.id = SnapshotId(self.head.id + 1)
        self.time = max(clock.now(), self.head.time)
        self._skipped: dict[TableId, set[int]] = {}
        self._next_catalog_id = self.head.next_catalog_id
        self._next_file_id = self.head.next_file_id

    @property
    def next_schema_version(self) -> int:
        """Return the schema version that this snapshot gets if it changes any schema."""
        return self.head.schema_version + 1

    def insert(self, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with the columns that any version has; at most one statement."""
        if rows:
            statement = self.format.insertion(table)
            self.connection.execute(statement, self.format.fitting(table, rows))

    def end(self, source: sa.Table, **of: Collection[Any]) -> int:
        """End the live rows whose columns have some of these values, and return how many.

        One statement, none if a column has no values.
        """
        if not all(of.values()):
            return 0
        given = {f"in_{name}": list(values) for name, values in of.items()}
        return self.connection.execute(_ending(source, *of), {**given, "ended": self.id}).rowcount

    def begin(self, rows: Iterable[tuple[sa.Table, Row]]) -> None:
        """Insert rows that begin in this snapshot, if they have one; one statement a table."""
        found: dict[sa.Table, list[Row]] = {}
        begun = {"begin_snapshot": self.id, "end_snapshot": None}
        for table, row in rows:
            whole = {**row, **begun} if "end_snapshot" in table.c else row
            found.setdefault(table, []).append(whole)
        for table, some in found.items():
            self.insert(table, some)

    def renew(self, source: sa.Table, by: str, rows: Iterable[tuple[Row, Row]]) -> None:
        """End live rows, and begin the same with other values; two statements.

        Each is a row with all columns of ``source`` in the lake's version, and its new values.
        ``by`` is the column that tells rows apart.
        """
        known = self.format.table(source).c.keys()
        new = [{name: row[name] for name in known} | {**values} for row, values in rows]
        self.end(source, **{by: [row[by] for row in new]})
        self.begin((source, row) for row in new)

    def catalog_id(self) -> int:
        """Assign the id of a new schema, table, partitioning or sort order."""
        self._next_catalog_id += 1
        return self._next_catalog_id - 1

    def schema_id(self, known: SchemaId) -> SchemaId:
        """Return the id of a schema, which this commit may have made under a provisional one."""
        return self.schema_ids.get(known, known)

    def skip_ids(self, *, catalog: int = 0, file: int = 0) -> None:
        """Give no id below these from now on."""
        self._next_catalog_id = max(self._next_catalog_id, catalog)
        self._next_file_id = max(self._next_file_id, file)

    def note_version(self, table: TableId) -> None:
        """Note that the columns, the name or the schema of a table changed."""
        if table not in self.new_table_versions:
            self.new_table_versions.append(table)

    def partition_id(self, written_under: int | None) -> int | None:
        """Return the id of the partitioning of a file; None if it is not part of the commit."""
        if written_under is None or written_under >= 0:
            return written_under
        return self.partition_ids.get(written_under)

    def file_ids(self, count: int) -> range:
        """Assign ids to new files."""
        first = self._next_file_id
        self._next_file_id += count
        return range(first, first + count)

    def finish(self, info: CommitInfo) -> Snapshot:
        """Write the snapshot's own rows and return it."""
        next_file_id = self._next_file_id
        if self.has_stats_change and next_file_id == self.head.next_file_id:
            # DuckDB caches the statistics of a table until this number grows.
            next_file_id += 1
        made = Snapshot(
            self.id,
            self.time,
            self.next_schema_version if self.has_schema_change else self.head.schema_version,
            self._next_catalog_id,
            next_file_id,
            format_entries(self.entries),
            info.author,
            info.message,
            info.extra_info,
        )
        with self.store.pipelined(self.connection):
            self._write(made)
        return made

    def _write(self, made: Snapshot) -> None:
        version = {"begin_snapshot": made.id, "schema_version": made.schema_version}
        versions = [version | {"table_id": table} for table in self.new_table_versions]
        self.insert(tables.schema_versions, versions)
        told = {each.name: getattr(made, each.name) for each in fields(made)}
        told |= {"snapshot_id": made.id, "snapshot_time": made.time}
        for source in (tables.snapshot, tables.snapshot_changes):
            self.insert(source, [{c.name: told[c.name] for c in source.c}])


@cache
def _ending(source: sa.Table, *keys: str) -> sa.Update:
    """Return the statement that ends live rows whose ``keys`` are in the lists ``in_…``.

    The snapshot is ``ended``.
    """
    chosen = [source.c[key].in_(sa.bindparam(f"in_{key}", expanding=True)) for key in keys]
    return sa.update(source).where(*chosen, live(source)).values(end_snapshot=sa.bindparam("ended"))


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """One kind of change: its classes, and how a commit carries them out.

    A commit calls only the kinds of its own changes: ``fold`` for each change, then every other
    function once.
    """

    takes: tuple[type[Change], ...]
    fold: Callable[[Work, Any], None]
    """Adds a change to the work, without I/O; the last change of a table wins."""
    write: Callable[[Draft, Work], None]
    """Writes its rows. Conflicts over the rows of a table are found here at the latest."""
    check: Callable[[Draft, Work], None] | None = None
    """Raises Conflict if another commit changed what the changes were based on."""
    asks: Questions = ()
    """What it asks the catalog in the opening of the commit, about :of_tables and :of_files."""
