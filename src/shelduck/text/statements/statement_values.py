"""Statements as values: what a text asks for, before anybody looks whether it can be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.changes.modify import TableChange
from shelduck.model.tables.computed import WrittenComputed
from shelduck.model.tables.keys import Aggregation, KeySpec
from shelduck.model.tables.partition import PartitionBy, SortKey
from shelduck.model.tables.rollup import RollupChange, RollupSpec
from shelduck.model.tables.schema import Default, Path
from shelduck.model.tables.view import MacroKind, MacroParameter
from shelduck.model.types.data_types import DataType
from shelduck.text.statements.row_statements import DefaultCell, Insert
from shelduck.text.tokens.parts import (
    NamedTable,
    OfTable,
    Query,
    Relation,
    SchemaName,
    Statement,
    Target,
)

# Names of other modules that this one stands for.
__all__ = ["DefaultCell", "Insert", "NamedTable", "Query", "Relation", "SchemaName", "Statement"]


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement(Statement):
    """CREATE SCHEMA."""

    name: SchemaName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSchemaStatement(Statement):
    """DROP SCHEMA; ``cascade`` drops its tables too."""

    name: SchemaName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class UseSchema(Statement):
    """USE: the schema in which names without one are looked up from now on."""

    name: SchemaName


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of CREATE TABLE; the statement's keys have ``key`` and ``aggregation`` too."""

    name: str
    type: DataType
    nullable: bool = True
    default: Default | None = None
    comment: str | None = None
    key: bool = False
    aggregation: Aggregation | None = None


@dataclass(frozen=True, slots=True)
class CreateTableStatement(OfTable, Statement):
    """CREATE TABLE, with columns or with a query that gives them.

    ``must_exist`` says that it is REPLACE TABLE: there must be a table to replace.
    ``partitioned_by`` and ``sorted_by`` are how its files are laid out. ``doris_properties`` are
    those of PROPERTIES, but for the sequence column, which ``keys`` has.
    """

    columns: tuple[ColumnDefinition, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    must_exist: bool = False
    comment: str | None = None
    as_query: Query | None = None
    partitioned_by: tuple[PartitionBy, ...] = ()
    sorted_by: tuple[SortKey, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    keys: KeySpec | None = None
    rollups: tuple[RollupSpec, ...] = ()
    doris_properties: dict[str, str] = field(default_factory=dict)
    constraints: tuple[AddConstraint, ...] = ()
    computed: tuple[WrittenComputed, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyTableStatement(OfTable, Statement):
    """CREATE TABLE … LIKE, or DEEP CLONE, which ``has_rows``: of now, a snapshot or a time."""

    source: NamedTable
    has_rows: bool
    if_not_exists: bool = False
    or_replace: bool = False
    version: int | None = None
    timestamp: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UndropTable(OfTable, Statement):
    """UNDROP TABLE: the table as it was in the last snapshot that had it."""


@dataclass(frozen=True, slots=True)
class SyncIdentity(OfTable, Statement):
    """ALTER TABLE … SYNC IDENTITY: the next number of a column is behind those of all rows."""

    column: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceColumns(OfTable, Statement):
    """Hive's REPLACE COLUMNS: those of these names stay, others go, and the rest is new."""

    columns: tuple[ColumnDefinition, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """PARTITION (key = value, …): keys, comparisons and literals as SQL."""

    values: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return f"({', '.join(' '.join(each) for each in self.values)})"


@dataclass(frozen=True, slots=True)
class DropPartitions(OfTable, Statement):
    """Hive's DROP PARTITION and TRUNCATE … PARTITION: the rows in any of these partitions."""

    specs: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Analyze(OfTable, Statement):
    """ANALYZE TABLE: every write keeps all but the distinct values of columns.

    ``columns`` are those to look at, None for all of them.
    """

    columns: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class AlterPartitionFields(OfTable, Statement):
    """Iceberg's ADD, DROP and REPLACE PARTITION FIELD: keys that go, and keys that come.

    ``named`` is the name of the field that goes, which may be Iceberg's, such as ``ts_day``.
    """

    gone: tuple[PartitionBy, ...] = ()
    added: tuple[PartitionBy, ...] = ()
    named: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTableStatement(OfTable, Statement):
    """DROP TABLE."""

    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTableStatement(OfTable, Statement):
    """ALTER TABLE or COMMENT ON: the changes of one statement, in order.

    ``properties`` are those of the job that it may take, such as its timeout.
    """

    changes: tuple[TableChange, ...]
    if_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterRollups(OfTable, Statement):
    """ADD ROLLUP, DROP ROLLUP, and CREATE and DROP MATERIALIZED VIEW: rollups of one table.

    With ``if_exists`` neither the table nor a rollup to drop has to be there. ``properties`` are
    those of the jobs that fill rollups.
    """

    changes: tuple[RollupChange, ...]
    if_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenameTableStatement(OfTable, Statement):
    """ALTER TABLE ... RENAME TO; ``new_name`` may name a schema, which must be the table's own."""

    new_name: NamedTable
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column's name in CREATE VIEW, and its comment."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateViewStatement(OfTable, Statement):
    """CREATE VIEW; ``text`` is the query as it was written, ``query`` the same with placeholders.

    ``columns`` is empty when the query's own names stay.
    """

    query: Query
    text: str
    columns: tuple[ViewColumn, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class PinView(OfTable, Statement):
    """CREATE VIEW … AS SCHEMA VERSION n OF t: a table in its columns of that snapshot."""

    table: NamedTable
    version: int
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class AlterView(OfTable, Statement):
    """ALTER VIEW ... AS: another query for a view that is there."""

    query: Query
    text: str


@dataclass(frozen=True, slots=True)
class RenameViewStatement(OfTable, Statement):
    """ALTER VIEW ... RENAME TO."""

    new_name: NamedTable


@dataclass(frozen=True, slots=True)
class CommentView(OfTable, Statement):
    """COMMENT ON VIEW; None takes the comment away."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropViewStatement(OfTable, Statement):
    """DROP VIEW."""

    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowSchemas(Statement):
    """SHOW SCHEMAS of the lake, or of those in ``schema``.

    ``like`` is Spark's pattern: ``*`` for anything, ``|`` for or.
    """

    like: str | None = None
    schema: SchemaName | None = None


@dataclass(frozen=True, slots=True)
class ShowTables(Statement):
    """SHOW TABLES of a schema, None for the current one."""

    schema: SchemaName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowViews(Statement):
    """SHOW VIEWS of a schema, None for the current one."""

    schema: SchemaName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowPartitions(OfTable, Statement):
    """SHOW PARTITIONS."""

    within: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns(OfTable, Statement):
    """SHOW COLUMNS."""


@dataclass(frozen=True, slots=True)
class ShowCreateTable(OfTable, Statement):
    """SHOW CREATE TABLE."""


@dataclass(frozen=True, slots=True)
class ShowProperties(OfTable, Statement):
    """SHOW TBLPROPERTIES, all of a table or the one called ``key``."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(OfTable, Statement):
    """DESCRIBE a table, or one column of it; ``indexes``: with its rollups, as DESC t ALL."""

    extended: bool = False
    column: Path | None = None
    indexes: bool = False


@dataclass(frozen=True, slots=True)
class Help(Statement):
    """HELP and the words of a statement."""

    topic: str


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """EXPLAIN a query; ``mode`` is simple, extended, formatted, cost, codegen or analyze.

    Of a statement that changes rows it is the query that finds them; ``changed`` is their table,
    and ``assigned`` are columns that get a value, before which the name of ``target`` may stand.
    """

    query: Query
    mode: str = "simple"
    changed: NamedTable | None = None
    assigned: tuple[Path, ...] = ()
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class ExplainAlter(Statement):
    """EXPLAIN ALTER TABLE: what it would do, as `Table.plan_alter` says."""

    statement: AlterTableStatement


@dataclass(frozen=True, slots=True)
class MacroText:
    """One form of a new macro: its parameters, and the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CreateMacroStatement(OfTable, Statement):
    """CREATE MACRO; the forms differ in their number of parameters."""

    kind: MacroKind
    forms: tuple[MacroText, ...]
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropMacroStatement(OfTable, Statement):
    """DROP MACRO, or DROP MACRO TABLE."""

    kind: MacroKind
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowMacros(Statement):
    """SHOW MACROS, also IN a schema and LIKE a pattern."""

    schema: SchemaName | None = None
    like: str | None = None
