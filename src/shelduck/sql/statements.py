"""Statements as values: what a text asks for, before anybody looks whether it can be done."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.model.quoting import quote_name
from shelduck.model.schema import Default, Path
from shelduck.model.schema_change import SchemaChange
from shelduck.model.types import DataType


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as it was written: ``table``, ``schema.table`` or ``catalog.schema.table``."""

    parts: tuple[str, ...]

    @property
    def table(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The schema, None when the text does not name one."""
        return self.parts[-2] if len(self.parts) > 1 else None

    @property
    def catalog(self) -> str | None:
        """The catalog, None when the text does not name one."""
        return self.parts[-3] if len(self.parts) > 2 else None

    def __str__(self) -> str:
        return ".".join(quote_name(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class SchemaName:
    """A schema as it was written: ``schema`` or ``catalog.schema``."""

    parts: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def catalog(self) -> str | None:
        """The catalog, None when the text does not name one."""
        return self.parts[0] if len(self.parts) > 1 else None

    def __str__(self) -> str:
        return ".".join(quote_name(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that a query reads, and the word that stands for it in the query's text.

    At most one of ``version`` (a snapshot id) and ``timestamp`` (its text as written) is set; both
    None is the newest state.
    """

    name: TableName
    placeholder: str
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Spark SQL text in which each table is replaced by the placeholder of one of ``relations``.

    The rest of the text is as it was written. No placeholder is part of another one or of any other
    word of the text, so that ``str.replace`` can put other names in their places.
    """

    text: str
    relations: tuple[Relation, ...] = ()


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
    """One column of CREATE TABLE."""

    name: str
    type: DataType
    nullable: bool = True
    default: Default | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE, with columns or with a query that gives them.

    ``partitioned_by`` holds the text of each partition expression.
    """

    name: TableName
    columns: tuple[ColumnDefinition, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None
    as_query: Query | None = None
    partitioned_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE."""

    name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE or COMMENT ON: the changes of one statement, in order."""

    name: TableName
    changes: tuple[SchemaChange, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE ... RENAME TO; ``new_name`` may name a schema, which must be the table's own."""

    name: TableName
    new_name: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DefaultCell:
    """A ``DEFAULT`` in a row of VALUES: the row's cell (from 0) and the word that stands for it."""

    position: int
    placeholder: str


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO, or with ``overwrite`` INSERT OVERWRITE.

    ``columns`` is None when the text lists none. With ``by_name`` the source's columns go to the
    columns of their names, else by position. ``defaults`` are words in ``source.text`` to replace
    by the default of the column at that position.
    """

    name: TableName
    source: Query
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    defaults: tuple[DefaultCell, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowSchemas:
    """SHOW SCHEMAS; ``like`` is Spark's pattern: ``*`` for anything, ``|`` for or."""

    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES of a schema, None for the current one."""

    schema: SchemaName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    """SHOW CREATE TABLE."""

    name: TableName


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE a table, or one column of it."""

    name: TableName
    extended: bool = False
    column: Path | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN a query; ``mode`` is one of simple, extended, formatted, cost, codegen."""

    query: Query
    mode: str = "simple"


Statement = (
    CreateSchema
    | DropSchema
    | UseSchema
    | CreateTable
    | DropTable
    | AlterTable
    | RenameTable
    | Insert
    | Query
    | ShowSchemas
    | ShowTables
    | ShowColumns
    | ShowCreateTable
    | Describe
    | Explain
)
