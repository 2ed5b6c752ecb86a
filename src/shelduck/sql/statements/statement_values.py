"""Statements as values: what a text asks for, before anybody looks whether it can be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shelduck.model.changes.modify import TableChange
from shelduck.model.tables.keys import Aggregation, KeySpec
from shelduck.model.tables.partition import PartitionBy, SortKey
from shelduck.model.tables.rollup import RollupChange, RollupSpec
from shelduck.model.tables.schema import Default, Path
from shelduck.model.tables.view import MacroKind, MacroParameter
from shelduck.model.types.data_types import DataType
from shelduck.sql.statements.row_statements import (
    DefaultCell,
    Delete,
    Insert,
    Merge,
    Returning,
    Truncate,
    Update,
)
from shelduck.sql.statements.upkeep_statements import (
    BeginTransaction,
    CancelJob,
    Checkpoint,
    CommitTransaction,
    DescribeHistory,
    DropFeature,
    Optimize,
    Restore,
    RollbackTransaction,
    SetVariable,
    ShowJobs,
    Vacuum,
)
from shelduck.sql.tokens.parts import Call, Query, Relation, SchemaName, TableName

__all__ = [
    "AlterRollups",
    "AlterTable",
    "AlterView",
    "ColumnDefinition",
    "CommentView",
    "CreateSchema",
    "CreateTable",
    "CreateView",
    "DefaultCell",
    "Describe",
    "DropSchema",
    "DropTable",
    "DropView",
    "Explain",
    "Insert",
    "PinView",
    "Query",
    "Relation",
    "RenameTable",
    "RenameView",
    "SchemaName",
    "ShowColumns",
    "ShowCreateTable",
    "ShowPartitions",
    "ShowProperties",
    "ShowSchemas",
    "ShowTables",
    "ShowViews",
    "Statement",
    "TableName",
    "UseSchema",
    "ViewColumn",
]


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """CREATE SCHEMA."""

    name: SchemaName
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSchema:
    """DROP SCHEMA; ``cascade`` drops its tables too."""

    name: SchemaName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class UseSchema:
    """USE: the schema in which names without one are looked up from now on."""

    name: SchemaName


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column of CREATE TABLE; `CreateTable.keys` has ``key`` and ``aggregation`` too."""

    name: str
    type: DataType
    nullable: bool = True
    default: Default | None = None
    comment: str | None = None
    key: bool = False
    aggregation: Aggregation | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, with columns or with a query that gives them.

    ``must_exist`` says that it is REPLACE TABLE: there must be a table to replace.
    ``partitioned_by`` and ``sorted_by`` are how its files are laid out. ``doris_properties`` are
    those of PROPERTIES, but for the sequence column, which ``keys`` has.
    """

    name: TableName
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


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE."""

    name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE or COMMENT ON: the changes of one statement, in order.

    ``properties`` are those of the job that it may take, such as its timeout.
    """

    name: TableName
    changes: tuple[TableChange, ...]
    if_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterRollups:
    """ADD ROLLUP, DROP ROLLUP, and CREATE and DROP MATERIALIZED VIEW: rollups of one table.

    With ``if_exists`` neither the table nor a rollup to drop has to be there. ``properties`` are
    those of the jobs that fill rollups.
    """

    name: TableName
    changes: tuple[RollupChange, ...]
    if_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE ... RENAME TO; ``new_name`` may name a schema, which must be the table's own."""

    name: TableName
    new_name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column's name in CREATE VIEW, and its comment."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW; ``text`` is the query as it was written, ``query`` the same with placeholders.

    ``columns`` is empty when the query's own names stay.
    """

    name: TableName
    query: Query
    text: str
    columns: tuple[ViewColumn, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class PinView:
    """CREATE VIEW … AS SCHEMA VERSION n OF t: a table in its columns of that snapshot."""

    name: TableName
    table: TableName
    version: int
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class AlterView:
    """ALTER VIEW ... AS: another query for a view that is there."""

    name: TableName
    query: Query
    text: str


@dataclass(frozen=True, slots=True)
class RenameView:
    """ALTER VIEW ... RENAME TO."""

    name: TableName
    new_name: TableName


@dataclass(frozen=True, slots=True)
class CommentView:
    """COMMENT ON VIEW; None takes the comment away."""

    name: TableName
    comment: str | None


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW."""

    name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """SHOW SCHEMAS of the lake, or of those in ``schema``.

    ``like`` is Spark's pattern: ``*`` for anything, ``|`` for or.
    """

    like: str | None = None
    schema: SchemaName | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES of a schema, None for the current one."""

    schema: SchemaName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW VIEWS of a schema, None for the current one."""

    schema: SchemaName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """SHOW PARTITIONS."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """SHOW CREATE TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """SHOW TBLPROPERTIES, all of a table or the one called ``key``."""

    name: TableName
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE a table, or one column of it; ``indexes``: with its rollups, as DESC t ALL."""

    name: TableName
    extended: bool = False
    column: Path | None = None
    indexes: bool = False


@dataclass(frozen=True, slots=True)
class Help:
    """HELP and the words of a statement."""

    topic: str


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN a query; ``mode`` is simple, extended, formatted, cost, codegen or analyze."""

    query: Query
    mode: str = "simple"


@dataclass(frozen=True, slots=True)
class MacroText:
    """One form of a new macro: its parameters, and the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CreateMacro:
    """CREATE MACRO; the forms differ in their number of parameters."""

    name: TableName
    kind: MacroKind
    forms: tuple[MacroText, ...]
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropMacro:
    """DROP MACRO, or DROP MACRO TABLE."""

    name: TableName
    kind: MacroKind
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowMacros:
    """SHOW MACROS, also IN a schema and LIKE a pattern."""

    schema: SchemaName | None = None
    like: str | None = None


Statement = (
    CreateSchema
    | DropSchema
    | UseSchema
    | CreateTable
    | DropTable
    | AlterTable
    | AlterRollups
    | RenameTable
    | CreateView
    | PinView
    | AlterView
    | RenameView
    | CommentView
    | DropView
    | CreateMacro
    | DropMacro
    | Insert
    | Delete
    | Truncate
    | Update
    | Merge
    | Returning
    | Query
    | BeginTransaction
    | CommitTransaction
    | RollbackTransaction
    | Call
    | SetVariable
    | DropFeature
    | ShowJobs
    | CancelJob
    | Optimize
    | Vacuum
    | Restore
    | Checkpoint
    | ShowSchemas
    | ShowTables
    | ShowViews
    | ShowMacros
    | ShowPartitions
    | ShowColumns
    | ShowCreateTable
    | ShowProperties
    | Describe
    | Help
    | DescribeHistory
    | Explain
)
