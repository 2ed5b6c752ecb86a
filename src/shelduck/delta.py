"""Delta Lake's Python API for tables of a lake: ``from shelduck.delta import DeltaTable``.

The names, arguments and meanings are those of ``delta.tables``. A name finds a table of an attached
lake (`shelduck.attach`). What a lake does not have is refused with what to write instead.
"""

# ruff: noqa: A002, N802, N803, SLF001 - the names are Delta's, and its three classes are one.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shelduck.doors.attached.attach import attached_to
from shelduck.doors.attached.attached_table import AttachedTable
from shelduck.engine.rows.assignments import Value
from shelduck.engine.session import DataFrame, SparkSession, StructType, answer
from shelduck.engine.types import data_type_of
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.model.tables.computed import Identity
from shelduck.model.text.names import backticked, quote_text, split_name
from shelduck.model.types.data_types import type_text
from shelduck.objects.catalog_verbs import Table
from shelduck.read.scan.matching import Condition, Where
from shelduck.write import edit_verbs as verbs
from shelduck.write.merge.merge_clauses import MergeClause

IdentityGenerator = Identity
"""Numbers of an identity: from ``start`` on, ``step`` apart."""
Values = Mapping[str, Value]
_MERGED = (
    "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint,"
    " num_inserted_rows bigint"
)


@dataclass(frozen=True)
class DeltaTable:
    """A table of a lake, with the methods of Delta's class; get one from `forName`."""

    _spark: SparkSession
    _found: AttachedTable
    _alias: str

    def __repr__(self) -> str:
        return f"DeltaTable({f'{self._found.catalog}.{self._found.table}'!r})"

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return a table by its name in the session, such as ``lake.main.t``.

        Raises NotFound if no attached lake has it.
        """
        found = attached_to(sparkSession).table(tableOrViewName)
        if found is None or not found.is_there:
            raise NotFound(
                f"{tableOrViewName} is not a table of a lake of this session; call shelduck.attach"
                " and use the name of a table, such as lake.main.t",
                about="table",
            )
        return cls(sparkSession, found, found.table.name)

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, *_: object) -> DeltaTable:  # noqa: ARG003
        """Refuse: tables of a lake have names, and no paths of their own."""
        raise Unsupported(
            f"a lake has no table at the path {path!r}; use DeltaTable.forName, or CALL"
            " import_delta('path', 't') to bring a table of Delta into the lake"
        )

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:  # noqa: ARG003
        """Refuse: it asks for a path, as `forPath` does."""
        raise Unsupported(
            f"a lake has no table at the path {identifier!r}; use spark.catalog.tableExists, or"
            " DeltaTable.forName"
        )

    @classmethod
    def create(cls, sparkSession: SparkSession) -> DeltaTableBuilder:
        """Begin a new table; AlreadyExists if there is one of its name."""
        return DeltaTableBuilder(sparkSession, "CREATE TABLE")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession) -> DeltaTableBuilder:
        """Begin a new table, or get the one of its name."""
        return DeltaTableBuilder(sparkSession, "CREATE TABLE IF NOT EXISTS")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession) -> DeltaTableBuilder:
        """Begin a new table in place of the one of its name, if there is one."""
        return DeltaTableBuilder(sparkSession, "CREATE OR REPLACE TABLE")

    @classmethod
    def replace(cls, sparkSession: SparkSession) -> DeltaTableBuilder:
        """Begin a new table in place of the one of its name."""
        return DeltaTableBuilder(sparkSession, "REPLACE TABLE")

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table under another name, which conditions and values use."""
        return replace(self, _alias=aliasName)

    def toDF(self) -> DataFrame:
        """Return its rows, whose columns the alias may precede."""
        return self._spark.table(self._full_name).alias(self._alias)

    def delete(self, condition: Condition | None = None) -> DataFrame:
        """Delete the rows for which a condition is true; all rows without one."""
        table, chosen = self._table, self._chosen(condition)
        done = table.truncate() if condition is None else table._delete(chosen)
        return answer(self._spark, "num_affected_rows bigint", [(done.deleted,)])

    def update(self, condition: Condition | None = None, set: Values | None = None) -> DataFrame:
        """Set columns in the rows for which a condition is true; in all rows without one."""
        done = self._table._update(self._own(set), self._chosen(condition))
        return answer(self._spark, "num_affected_rows bigint", [(done.updated,)])

    def merge(self, source: DataFrame, condition: Condition) -> DeltaMergeBuilder:
        """Begin a merge; the source has the alias that its frame has."""
        return DeltaMergeBuilder(self, source, condition)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return what DESCRIBE HISTORY says: the snapshots that changed it, newest first."""
        limited = "" if limit is None else f" LIMIT {int(limit)}"
        return self._spark.sql(f"DESCRIBE HISTORY {self._full_name}{limited}")

    def detail(self) -> DataFrame:
        """Return what DESCRIBE DETAIL says: one row."""
        return self._spark.sql(f"DESCRIBE DETAIL {self._full_name}")

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete files that no snapshot needs; return their paths."""
        retained = "" if retentionHours is None else f" RETAIN {float(retentionHours)} HOURS"
        return self._spark.sql(f"VACUUM {self._full_name}{retained}")

    def restoreToVersion(self, version: int) -> DataFrame:
        """Give the table the rows and columns of a snapshot again."""
        return self._restored(f"VERSION AS OF {int(version)}")

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Give the table the rows and columns of a time again."""
        return self._restored(f"TIMESTAMP AS OF {quote_text(timestamp)}")

    def optimize(self) -> DeltaOptimizeBuilder:
        """Begin a compaction; follow it with `DeltaOptimizeBuilder.executeCompaction`."""
        return DeltaOptimizeBuilder(self)

    @property
    def _table(self) -> Table:
        return Table(self._found.state, self._found.table)

    @property
    def _full_name(self) -> str:
        return ".".join(map(backticked, (self._found.catalog, *self._found.table.parts)))

    def _restored(self, to: str) -> DataFrame:
        return self._spark.sql(f"RESTORE TABLE {self._full_name} TO {to}")

    def _chosen(self, condition: Condition | None) -> Where:
        return Where("true" if condition is None else condition, self._alias)

    def _own(self, values: Values | None) -> Values:
        """Return values by the table's columns, before which the alias may stand."""
        if values is None:
            raise InvalidRequest("pass set={'column': value, …}")
        return {self._bare(name): value for name, value in values.items()}

    def _bare(self, name: str) -> str:
        first, *below = split_name(name)
        is_alias = below and first.lower() == self._alias.lower()
        return ".".join(map(backticked, below)) if is_alias else name


@dataclass(frozen=True)
class DeltaMergeBuilder:
    """The clauses of a merge; `execute` runs it as one commit."""

    _target: DeltaTable
    _source: DataFrame
    _on: Condition
    _clauses: tuple[MergeClause, ...] = ()
    _evolves: bool = False

    def whenMatchedUpdate(
        self, condition: Condition | None = None, set: Values | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of a row that a row of the source matches."""
        return self._then(verbs.when_matched_update(self._target._own(set), condition=condition))

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Set every column to the source's column of its name."""
        return self._then(verbs.when_matched_update_all(condition=condition))

    def whenMatchedDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete a row that a row of the source matches."""
        return self._then(verbs.when_matched_delete(condition=condition))

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Values | None = None
    ) -> DeltaMergeBuilder:
        """Insert a row of the source that matches none."""
        given = self._target._own(values)
        return self._then(verbs.when_not_matched_insert(given, condition=condition))

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Insert such a row, each column from that of its name."""
        return self._then(verbs.when_not_matched_insert_all(condition=condition))

    def whenNotMatchedBySourceUpdate(
        self, condition: Condition | None = None, set: Values | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of a row that no row of the source matches."""
        given = self._target._own(set)
        return self._then(verbs.when_not_matched_by_source_update(given, condition=condition))

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> DeltaMergeBuilder:
        """Delete a row that no row of the source matches."""
        return self._then(verbs.when_not_matched_by_source_delete(condition=condition))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns that only the source has, in the same snapshot."""
        return replace(self, _evolves=True)

    def execute(self) -> DataFrame:
        """Run it; return one row that counts the rows."""
        done = self._target._table.merge(
            self._source,
            self._on,
            *self._clauses,
            target_alias=self._target._alias,
            source_alias=None,
            schema_evolution=self._evolves,
        )
        counts = (done.updated, done.deleted, done.inserted)
        return answer(self._target._spark, _MERGED, [(sum(counts), *counts)])

    def _then(self, clause: MergeClause) -> DeltaMergeBuilder:
        return replace(self, _clauses=(*self._clauses, clause))


@dataclass(frozen=True)
class DeltaOptimizeBuilder:
    """A compaction of a table, or of some of its files."""

    _target: DeltaTable
    _where: str | None = None

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Compact only files in which the condition can be true."""
        return replace(self, _where=partitionFilter)

    def executeCompaction(self) -> DataFrame:
        """Combine small files; return what OPTIMIZE says."""
        chosen = "" if self._where is None else f" WHERE {self._where}"
        return self._target._spark.sql(f"OPTIMIZE {self._target._full_name}{chosen}")

    def executeZOrderBy(self, *cols: object) -> DataFrame:
        """Refuse: a lake sorts by keys."""
        raise Unsupported(
            f"ZORDER BY {', '.join(map(str, cols))} is not supported; use ALTER TABLE"
            f" {self._target._full_name} SET SORTED BY (…), then OPTIMIZE"
        )


@dataclass(frozen=True)
class DeltaTableBuilder:
    """A new table; `execute` makes it."""

    _spark: SparkSession
    _begins: str
    _name: str = ""
    _columns: tuple[str, ...] = ()
    _clauses: tuple[str, ...] = ()
    _properties: tuple[str, ...] = ()

    def tableName(self, identifier: str) -> DeltaTableBuilder:
        """Give it a name, such as ``lake.main.t``."""
        return replace(self, _name=identifier)

    def location(self, location: str) -> DeltaTableBuilder:
        """Refuse: files of a table are below the lake's data path."""
        raise Unsupported(
            f"a table of a lake has no location {location!r} of its own; leave it out"
        )

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Give it a comment."""
        return self._then(f"COMMENT {quote_text(comment)}")

    def addColumn(  # noqa: PLR0917 - as Delta has it
        self,
        colName: str,
        dataType: Any,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column; its type is a text or a type of Spark.

        An expression, or the numbers of an identity, gives its values.
        """
        kind = dataType if isinstance(dataType, str) else type_text(data_type_of(dataType, colName))
        column = f"{backticked(colName)} {kind}{'' if nullable else ' NOT NULL'}"
        for given, always in ((generatedAlwaysAs, True), (generatedByDefaultAs, False)):
            if isinstance(given, str):
                column += f" GENERATED ALWAYS AS ({given})"
            elif given is not None:
                column += f" {Identity(given.start, given.step, always)}"
        column += "" if comment is None else f" COMMENT {quote_text(comment)}"
        return replace(self, _columns=(*self._columns, column))

    def addColumns(self, cols: StructType) -> DeltaTableBuilder:
        """Add the columns of a schema, or of a list of fields, with their comments."""
        made = self
        for field in cols:
            comment = field.metadata.get("comment")
            made = made.addColumn(field.name, field.dataType, field.nullable, comment=comment)
        return made

    def partitionedBy(self, *cols: str) -> DeltaTableBuilder:
        """Give each file rows of one value of these columns."""
        return self._then(f"PARTITIONED BY ({', '.join(map(backticked, cols))})")

    def clusterBy(self, *cols: str) -> DeltaTableBuilder:
        """Sort the rows of each file by these columns."""
        return self._then(f"SORTED BY ({', '.join(map(backticked, cols))})")

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Give it a table property."""
        one = f"{quote_text(key)} = {quote_text(value)}"
        return replace(self, _properties=(*self._properties, one))

    def execute(self) -> DeltaTable:
        """Make the table, and return it."""
        clauses = list(self._clauses)
        if self._properties:
            clauses.append(f"TBLPROPERTIES ({', '.join(self._properties)})")
        columns = ", ".join(self._columns)
        self._spark.sql(f"{self._begins} {self._name} ({columns}) {' '.join(clauses)}")
        return DeltaTable.forName(self._spark, self._name)

    def _then(self, clause: str) -> DeltaTableBuilder:
        return replace(self, _clauses=(*self._clauses, clause))
