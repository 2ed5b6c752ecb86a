"""SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from shelduck.catalog.read.metadata_rows import Partition, table_rows
from shelduck.catalog.read.overview.table_files import partition_rows
from shelduck.catalog.read.read import table_history
from shelduck.engine.session import DataFrame, answer
from shelduck.engine.types import field_type
from shelduck.errors import InvalidRequest, NotFound
from shelduck.jobs.widening import WideningVerbs
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.pinned_views import pinned_shape
from shelduck.lake.results import PlainRows
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.column_storage import storage_of
from shelduck.model.tables.partition import NULL_DIRECTORY
from shelduck.model.tables.rollup import rollup_of
from shelduck.model.tables.schema import Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.names import backticked
from shelduck.objects.statement import describe as described
from shelduck.objects.statement.schemas_and_tables import SCHEMA_WORDS
from shelduck.objects.targets import history, query_frame
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.text.ddl.render import partition_texts, sort_texts
from shelduck.text.foreign_words import SPARKS
from shelduck.text.query.rewriting import begins_query
from shelduck.text.tokens.arguments import ShowObjects, is_like, listing, read_property_key
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable, OfTable, SchemaName
from shelduck.write.statement.row_sources import PartitionSpec, chosen_by, read_partition_spec

_DESCRIBED = "col_name string, data_type string, comment string"
_DETAIL = (
    "format string, id string, name string, description string, location string,"
    " createdAt timestamp, lastModified timestamp, partitionColumns array<string>,"
    " clusteringColumns array<string>, numFiles bigint, sizeInBytes bigint,"
    " properties map<string, string>"
)

_NO_TABLES = (*SCHEMA_WORDS, "FUNCTION", "PROCEDURE", "CATALOG", "QUERY")


class ShowSchemas(ShowObjects):
    """SHOW SCHEMAS of the lake, or of those in ``schema``."""


class ShowTables(ShowObjects):
    """SHOW TABLES."""


@dataclass(frozen=True, slots=True)
class ShowPartitions(OfTable):
    """SHOW PARTITIONS."""

    within: PartitionSpec | None = None


class ShowColumns(OfTable):
    """SHOW COLUMNS."""


class ShowIndex(OfTable):
    """SHOW INDEX: the Bloom filters of a table."""


class ShowCreateTable(OfTable):
    """SHOW CREATE TABLE."""


@dataclass(frozen=True, slots=True)
class ShowProperties(OfTable):
    """SHOW TBLPROPERTIES, all of a table or the one called ``key``."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class Describe(OfTable):
    """DESCRIBE a table, or one column of it; ``indexes``: with its rollups, as DESC t ALL."""

    extended: bool = False
    column: Path | None = None
    indexes: bool = False


@dataclass(frozen=True, slots=True)
class DescribeHistory(OfTable):
    """DESCRIBE HISTORY; ``limit`` is the number of snapshots, newest first."""

    limit: int | None = None


class DescribeDetail(OfTable):
    """DESCRIBE DETAIL: one row about a table."""


def read_show_partitions(cursor: Cursor) -> ShowPartitions:
    """Read the statement behind ``SHOW PARTITIONS``."""
    name = cursor.table_name()
    within = read_partition_spec(cursor) if cursor.sees("PARTITION") else None
    return ShowPartitions(name, within)


def read_show_create_table(cursor: Cursor) -> ShowCreateTable:
    """Read the statement behind ``SHOW CREATE TABLE``."""
    name = cursor.table_name()
    if cursor.sees("AS"):
        raise cursor.refusal("SHOW CREATE TABLE ... AS SERDE", "leave it out")
    return ShowCreateTable(name)


def read_show_index(cursor: Cursor) -> ShowIndex:
    """Read the statement behind ``SHOW INDEX``."""
    if not cursor.accept_any("FROM", "IN"):
        raise cursor.failure("FROM and a table")
    return ShowIndex(cursor.table_name())


def read_show_properties(cursor: Cursor) -> ShowProperties:
    """Read the statement behind ``SHOW TBLPROPERTIES``."""
    name = cursor.table_name()
    key = None
    if cursor.accept("("):
        key = read_property_key(cursor)
        cursor.expect(")")
    return ShowProperties(name, key)


def read_show_columns(cursor: Cursor) -> ShowColumns:
    """Read the statement behind ``SHOW COLUMNS``."""
    if not cursor.accept_any("IN", "FROM"):
        raise cursor.failure("IN or FROM and a table")
    name = cursor.table_name()
    if cursor.accept_any("IN", "FROM"):
        start = cursor.at
        schema: SchemaName = cursor.schema_name()
        if name.schema is not None:
            raise cursor.failure("the end of the statement (the schema is given twice)", start - 1)
        name = NamedTable((*schema.parts, *name.parts))
    return ShowColumns(name)


def read_describe(cursor: Cursor) -> Describe | DescribeHistory | DescribeDetail:
    """Read the statement behind ``DESCRIBE``."""
    if cursor.sees("DETAIL") and cursor.peek(1).may_name:
        cursor.take()
        return DescribeDetail(cursor.table_name())
    if cursor.sees("HISTORY") and cursor.peek(1).may_name:
        cursor.take()
        name = cursor.table_name()
        return DescribeHistory(name, cursor.whole() if cursor.accept("LIMIT") else None)
    if cursor.peek().key in _NO_TABLES and cursor.peek(1).may_name:
        told = cursor.refusal(f"DESCRIBE {cursor.peek().key}", "use DESCRIBE [EXTENDED] t")
        told.about = SPARKS if cursor.peek().key in (*SCHEMA_WORDS, "QUERY") else ""
        raise told
    if begins_query(cursor) and not cursor.sees("TABLE"):
        told = cursor.refusal("DESCRIBE of a query", "use the schema of the DataFrame")
        told.about = SPARKS
        raise told
    if cursor.peek(1).may_name:
        cursor.accept("TABLE")
    extended = cursor.peek(1).may_name and bool(cursor.accept_any("EXTENDED", "FORMATTED"))
    name = cursor.table_name()
    if not extended and cursor.peek(1).kind is TokenKind.END and cursor.accept("ALL"):
        # A column of that name is written in quotes.
        return Describe(name, indexes=True)
    column: Path | None = cursor.path() if cursor.peek().may_name else None
    return Describe(name, extended, column)


def show_schemas(runner: Runner, statement: ShowSchemas) -> PlainRows:
    """SHOW SCHEMAS: those in no other one, or in one, with the column that Spark gives."""
    workspace = runner.view().workspace
    around = None if statement.schema is None else workspace.schema(statement.schema.schema).id
    names = [s.text for s in workspace.schemas() if s.parent == around]
    rows = [(n,) for n in sorted(names) if is_like(n, statement.like)]
    return PlainRows("namespace string", rows)


def show_tables(runner: Runner, statement: ShowTables) -> PlainRows:
    """SHOW TABLES, and views as Spark does, with the columns that Spark gives."""
    workspace, schema = runner.schema(statement.schema)
    names = sorted((*workspace.table_names(schema), *workspace.view_names(schema)))
    rows = [(schema.text, name, False) for name in names if is_like(name, statement.like)]
    columns = "namespace string, tableName string, isTemporary boolean"
    return PlainRows(columns, rows)


def show_columns(runner: Runner, statement: ShowColumns) -> PlainRows:
    """SHOW COLUMNS of a table or a view."""
    found = _table_or_view(runner, statement.name)
    if isinstance(found, ViewVersion):
        columns = shown_columns(runner.view(), found)
        return PlainRows("col_name string", [row[:1] for row in columns])
    return PlainRows("col_name string", [(n,) for n in found.columns.names])


def show_create_table(runner: Runner, statement: ShowCreateTable) -> PlainRows:
    """SHOW CREATE TABLE, also of a view."""
    found = _table_or_view(runner, statement.name)
    view = runner.view()
    if not isinstance(found, ViewVersion):
        text = described.create_statement(found, list(rollups_of(view, found)))
    else:
        columns = shown_columns(view, found) if found.definition.column_comments else None
        text = view_text(view, found, columns)
    return PlainRows("createtab_stmt string", [(text,)])


def view_text(
    unit: UnitOfWork, view: ViewVersion, columns: list[described.Row] | None = None
) -> str:
    """Return the statement that makes a view; ``columns`` as in `described.view_statement`.

    Raises NotFound if the table of a pinned view is gone.
    """
    if view.definition.pin is not None:
        return described.pinned_statement(view, _pinned(unit, view)[1])
    return described.view_statement(view, columns)


def show_index(runner: Runner, statement: ShowIndex) -> PlainRows:
    """SHOW INDEX: a row for each column that has a Bloom filter in new files."""
    table = runner.view().workspace.table(runner.name(statement.name))
    found = storage_of(table.properties, table.full_name).named(table.columns)
    rows = [
        (table.name, n, path_text(p), "BLOOMFILTER") for n, p, c in found if c.index is not None
    ]
    return PlainRows("Table string, Key_name string, Column_name string, Index_type string", rows)


def show_properties(runner: Runner, statement: ShowProperties) -> PlainRows:
    """SHOW TBLPROPERTIES, with the columns that Spark gives."""
    found = _table_or_view(runner, statement.name)
    # Views have none.
    properties = {} if isinstance(found, ViewVersion) else described.told_properties(found)
    rows = list(properties.items())
    if statement.key is not None:
        rows = [(k, v) for k, v in rows if k.lower() == statement.key.lower()]
        missing = f"Table {found.full_name} does not have property: {statement.key}"
        rows = rows or [(statement.key, missing)]
    return PlainRows("key string, value string", rows)


def describe(runner: Runner, statement: Describe) -> PlainRows:
    """DESCRIBE a table, a column or a view, with the columns that Spark gives."""
    found = _table_or_view(runner, statement.name)
    if isinstance(found, ViewVersion):
        return _described_view(runner, found, statement)
    if statement.indexes:
        view = runner.view()
        rollups = [(spec.name, t) for t in rollups_of(view, found) if (spec := rollup_of(t))]
        indexes = described.index_rows([(found.name, found), *rollups])
        return PlainRows(described.INDEX_COLUMNS, indexes)
    if statement.column is not None:
        rows = described.column_rows(found, statement.column)
        return PlainRows("info_name string, info_value string", rows)
    changes = (
        runner.verbs(WideningVerbs, statement.name).type_changes() if statement.extended else None
    )
    lines = described.table_rows(found, changes)
    return PlainRows(_DESCRIBED, lines)


def _table_or_view(runner: Runner, name: NamedTable) -> TableVersion | ViewVersion:
    """Return a table or a view; NotFound for all else."""
    try:
        return runner.version(name)
    except NotFound:
        view = runner.view().workspace.view(runner.name(name))
        if view is None:
            raise
        return view


def _described_view(runner: Runner, view: ViewVersion, statement: Describe) -> PlainRows:
    columns = shown_columns(runner.view(), view)
    if statement.column is not None:
        wanted = path_text(statement.column)
        found = next((row for row in columns if row[0].lower() == wanted.lower()), None)
        if found is None:
            known = [row[0] for row in columns]
            raise NotFound.named("column", wanted, known, where=view.full_name)
        rows = list(zip(("col_name", "data_type", "comment"), found, strict=True))
        return PlainRows("info_name string, info_value string", rows)
    if view.definition.pin is not None:
        shown = described.pinned_rows(view, *_pinned(runner.view(), view))
        return PlainRows(_DESCRIBED, shown)
    return PlainRows(_DESCRIBED, described.view_rows(view, columns, extended=statement.extended))


def shown_columns(unit: UnitOfWork, view: ViewVersion) -> list[described.Row]:
    """Return name, Spark type and comment of the columns that a view has now."""
    found, made = query_frame(unit, view), view.definition
    kinds = [field.dataType.simpleString() for field in found.schema]
    names = made.columns or found.columns
    return list(zip(names, kinds, made.comments_of(found.columns), strict=True))


def _pinned(unit: UnitOfWork, view: ViewVersion) -> tuple[Schema, TableVersion]:
    assert view.definition.pin is not None
    try:
        return pinned_shape(unit, view.definition.pin)
    except NotFound as error:
        raise NotFound(f"view {view.full_name}: {error}") from error


def describe_history(runner: Runner, statement: DescribeHistory) -> DataFrame:
    """DESCRIBE HISTORY, newest first, with the columns of Delta that apply here."""
    return history(runner.state, runner.version(statement.name), statement.limit)


def describe_detail(runner: Runner, statement: DescribeDetail) -> PlainRows:
    """DESCRIBE DETAIL, with the columns of Delta that apply here."""
    found = runner.version(statement.name)
    with runner.state.store.read() as connection:
        [row] = table_rows(connection, found.snapshot, found.id)
        told = table_history(connection, found)
    times: list[datetime | None] = [s.time for s in told] or [None]
    detail = (
        *("ducklake", found.uuid, found.full_name, found.comments.get(None), found.path),
        *(times[-1], times[0]),
        *(partition_texts(found), sort_texts(found)),
        *(row[4], row[5], described.told_properties(found)),
    )
    return PlainRows(_DETAIL, [detail])


def show_partitions(runner: Runner, statement: ShowPartitions) -> PlainRows:
    """SHOW PARTITIONS, with the column that Spark gives: ``key=value/key=value``."""
    table = runner.version(statement.name)
    if not table.partition:
        raise InvalidRequest(f"table {table.full_name} is not partitioned")
    rows = runner.state.store.ask(partition_rows, table)
    found = [row.partition for row in rows if row.partition]
    if statement.within is not None and found:
        found = _within(runner, table, statement.within, found)
    texts = {"/".join(_directory(key, value) for key, value in keys) for keys in found}
    return PlainRows("partition string", [(text,) for text in sorted(texts)])


def _within(
    runner: Runner, table: TableVersion, spec: PartitionSpec, found: Sequence[Partition]
) -> list[Partition]:
    """Return the partitions with the values of a PARTITION clause, as Spark compares them."""
    chosen = chosen_by(spec, table)
    fields = [table.columns.get((column,), table.full_name) for column, *_ in spec.values]
    # Those of older keys are in no partition of these.
    found = [keys for keys in found if {f.name for f in fields} <= {name for name, _ in keys}]
    texts = [tuple(dict(keys)[f.name] for f in fields) for keys in found]
    shape = ", ".join(f"{backticked(field.name)} STRING" for field in fields)
    values = [f"CAST({c} AS {field_type(f)}) AS {c}" for f in fields if (c := backticked(f.name))]
    rows = answer(runner.state.spark, shape, texts).selectExpr(*values).selectExpr(chosen)
    return [keys for keys, [is_in] in zip(found, rows.collect(), strict=True) if is_in]


def _directory(key: str, value: str | None) -> str:
    return f"{key}={NULL_DIRECTORY if value is None else quote(value, safe=' ')}"


OPERATIONS = (
    Operation(
        *("SHOW SCHEMAS", ShowSchemas, show_schemas, listing(ShowSchemas)),
        words="SHOW SCHEMAS|DATABASES|NAMESPACES",
        sparks=True,
    ),
    Operation("SHOW TABLES", ShowTables, show_tables, listing(ShowTables), sparks=True),
    Operation("SHOW PARTITIONS", ShowPartitions, show_partitions, read_show_partitions),
    Operation(
        *("SHOW INDEX", ShowIndex, show_index, read_show_index),
        words="SHOW INDEX|INDEXES|KEYS|KEY",
        only_lakes=True,
    ),
    Operation("SHOW COLUMNS", ShowColumns, show_columns, read_show_columns),
    Operation("SHOW CREATE TABLE", ShowCreateTable, show_create_table, read_show_create_table),
    Operation(
        *("SHOW PROPERTIES", ShowProperties, show_properties, read_show_properties),
        words="SHOW TBLPROPERTIES",
    ),
    Operation("DESCRIBE", Describe, describe, read_describe, "DESCRIBE|DESC"),
    Operation("DESCRIBE HISTORY", DescribeHistory, describe_history, only_lakes=True),
    Operation("DESCRIBE DETAIL", DescribeDetail, describe_detail, only_lakes=True),
)
