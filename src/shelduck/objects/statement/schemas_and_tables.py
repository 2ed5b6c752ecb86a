"""Schemas, and tables as a whole: CREATE, DROP, UNDROP, LIKE and CLONE, ANALYZE, and USE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.read.read import dropped_at
from shelduck.catalog.read.twins import keeps_rows, why_not_shared
from shelduck.catalog.running.identity_numbers import copy_numbers
from shelduck.engine.session import DataFrame
from shelduck.engine.types import members_of
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.lake.done import Done, Loaded
from shelduck.lake.evolution.arrangement import arrangement_of
from shelduck.lake.lookup import rows_of, version_at
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result, TableName, Unchanged
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.change import alteration
from shelduck.model.tables.keys import folds
from shelduck.model.tables.properties import (
    AnalyzedColumn,
    SetProperties,
    apply_properties,
    copied_properties,
    refuse_doris,
    with_analyzed,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import ShareFiles
from shelduck.model.types.data_types import Member
from shelduck.objects.statement.create_table import (
    CopyTableStatement,
    CreateTableStatement,
    creating,
    read_create_table,
    read_replace,
)
from shelduck.read.scan.column_values import count_values, countable
from shelduck.read.table_rows import table_rows
from shelduck.rollups.following import create_with_rollups, drop_with_rollups
from shelduck.rollups.rollup_plan import spec_of
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import OfSchema, OfTable
from shelduck.write.appending import load
from shelduck.write.changes.append import append_rows, placing
from shelduck.write.hooks import carry_out_rows
from shelduck.write.row_verbs import RowVerbs
from shelduck.write.statement.row_sources import read_partition_spec

SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement(OfSchema):
    """CREATE SCHEMA."""

    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropSchemaStatement(OfSchema):
    """DROP SCHEMA; ``cascade`` drops its tables too."""

    if_exists: bool = False
    cascade: bool = False


class UseSchema(OfSchema):
    """USE: the schema in which names without one are looked up from now on."""


@dataclass(frozen=True, slots=True)
class DropTableStatement(OfTable):
    """DROP TABLE."""

    if_exists: bool = False


class UndropTable(OfTable):
    """UNDROP TABLE: the table as it was in the last snapshot that had it."""


@dataclass(frozen=True, slots=True)
class Analyze(OfTable):
    """ANALYZE TABLE: every write keeps all but the distinct values of columns.

    ``columns`` are those to look at, None for all of them.
    """

    columns: tuple[str, ...] | None = ()


def read_create_schema(cursor: Cursor) -> CreateSchemaStatement:
    """Read the statement behind ``CREATE SCHEMA``."""
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    name = cursor.schema_name()
    if cursor.peek().key in ("COMMENT", "LOCATION", "WITH", "MANAGED"):
        raise cursor.refusal(f"CREATE SCHEMA ... {cursor.peek().key}", "leave it out")
    return CreateSchemaStatement(name, if_not_exists)


def read_drop_schema(cursor: Cursor) -> DropSchemaStatement:
    """Read the statement behind ``DROP SCHEMA``."""
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.schema_name()
    cascade = cursor.accept_any("CASCADE", "RESTRICT") == "CASCADE"
    return DropSchemaStatement(name, if_exists, cascade)


def read_use(cursor: Cursor) -> UseSchema:
    """Read the statement behind ``USE``."""
    if cursor.peek(1).may_name:
        cursor.accept_any(*SCHEMA_WORDS)
    return UseSchema(cursor.schema_name())


def read_drop_table(cursor: Cursor) -> DropTableStatement:
    """Read the statement behind ``DROP TABLE``."""
    if_exists = cursor.accept_if("EXISTS")
    table = cursor.table_name()
    if cursor.sees("PURGE"):
        raise cursor.refusal("DROP TABLE ... PURGE", "files are kept for time travel; leave it out")
    # Views of a table stay, as they do in DuckDB: they are read by name.
    cursor.accept_any("CASCADE", "RESTRICT")
    return DropTableStatement(table, if_exists)


def read_undrop_table(cursor: Cursor) -> UndropTable:
    """Read the statement behind ``UNDROP TABLE``."""
    return UndropTable(cursor.table_name())


def read_analyze(cursor: Cursor) -> Analyze:
    """Read the statement behind ``ANALYZE TABLE``."""
    name = cursor.table_name()
    of_partition = cursor.sees("PARTITION")
    if of_partition:
        read_partition_spec(cursor)
    cursor.expect("COMPUTE", "STATISTICS")
    if of_partition and cursor.sees("FOR"):
        raise cursor.refusal(
            "ANALYZE TABLE ... PARTITION ... FOR COLUMNS",
            "values are counted for the whole table; leave PARTITION out",
        )
    columns: tuple[str, ...] | None = ()
    if cursor.accept("FOR", "COLUMNS"):
        columns = tuple(cursor.listed(lambda c: c.name("a column")))
    elif cursor.accept("FOR", "ALL", "COLUMNS"):
        columns = None
    else:
        cursor.accept("NOSCAN")
    return Analyze(name, columns)


def create_schema(runner: Runner, statement: CreateSchemaStatement) -> Result:
    """CREATE SCHEMA."""

    def stage(unit: UnitOfWork) -> None:
        name = statement.name.schema
        unit.workspace.create_schema(name, if_not_exists=statement.if_not_exists)

    return carry_out(runner.state, runner.unit, stage)


def drop_schema(runner: Runner, statement: DropSchemaStatement) -> Result:
    """DROP SCHEMA."""

    def stage(unit: UnitOfWork) -> None:
        unit.workspace.drop_schema(
            statement.name.schema, if_exists=statement.if_exists, cascade=statement.cascade
        )

    return carry_out(runner.state, runner.unit, stage)


def use_schema(runner: Runner, statement: UseSchema) -> Result:
    """USE: names without a schema mean this one from now on."""
    workspace = runner.view().workspace
    runner.state.current.schema = workspace.schema(statement.name.schema).name
    return Unchanged(workspace.base.id)


def create_table(runner: Runner, statement: CreateTableStatement) -> Result:
    """CREATE TABLE, also OR REPLACE and AS SELECT; always one snapshot."""
    name = runner.name(statement.name)
    view = runner.view().workspace
    if statement.if_not_exists and view.has_table(name):
        return Unchanged(view.base.id)
    rows = runner.query(statement.as_query) if statement.as_query else None
    create = creating(runner.state, statement, name, _members(statement, rows))
    return _created(runner, statement, create, rows)


def copy_table(runner: Runner, statement: CopyTableStatement, *, undrops: bool = False) -> Result:
    """CREATE TABLE … LIKE and CLONE: all that the source is, and its rows as they are.

    A shallow clone shares its files, unless rows of it are elsewhere or it has rollups.
    """
    name, source = runner.name(statement.name), runner.name(statement.source)
    view, state = runner.view(), runner.state
    if statement.if_not_exists and view.workspace.has_table(name):
        return Unchanged(view.workspace.base.id)
    at = statement.version, statement.timestamp
    is_now = at == (None, None)
    find = view.workspace.table if is_now else lambda each: version_at(state, each, *at)
    found = find(source)
    rollups = rollups_of(view, found, find)
    specs = [spec for each in rollups if (spec := spec_of(found, each)) is not None]
    shares = statement.shares and not specs and _can_share(runner, found, name)
    rows = None
    if statement.has_rows and not shares:
        whole = rows_of(view, source) if is_now else table_rows(state.store, found, state.layouts)
        rows = whole.frame(state.spark)
    given = SetProperties(tuple(statement.properties.items()))
    properties = apply_properties(
        copied_properties(found.properties), given, found.columns, str(name)
    )

    def create(unit: UnitOfWork) -> None:
        if statement.or_replace and unit.workspace.has_table(name):
            drop_with_rollups(unit, unit.workspace.table(name))
        made = unit.workspace.create_table(
            *(name, found.columns, found.comments),
            arrangement=arrangement_of(found),
            properties=properties,
            beside=found if shares else None,
        )
        if shares:
            unit.workspace.share(ShareFiles(made.id, found, undrops=undrops))
        copy_numbers(state.store, found, made)
        create_with_rollups(unit, name, specs)

    return _created(runner, statement, create, rows, is_copy=True)


def _can_share(runner: Runner, source: TableVersion, name: TableName) -> bool:
    """Return whether a copy can name the files of its source: nothing else has rows of it."""
    schema = runner.view().workspace.schema(name.home)
    if runner.unit is not None or not source.path.startswith(schema.path):
        return False
    at = source.snapshot.id
    with runner.state.store.read() as connection:
        return not (keeps_rows(connection, source.id, at) or why_not_shared(connection, source, at))


def _created(
    runner: Runner,
    statement: CreateTableStatement | CopyTableStatement,
    create: Callable[[UnitOfWork], None],
    rows: DataFrame | None,
    *,
    is_copy: bool = False,
) -> Result:
    """Create a table, and add rows; one snapshot."""
    name = runner.name(statement.name)

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        create(unit)
        made = unit.workspace.table(name)
        assert rows is not None
        if folds(made) and not is_copy:
            return load(unit, name, rows)
        how = placing(runner.state, made)
        return append_rows(runner.state.spark, rows, made, how, is_copy=is_copy)

    try:
        if rows is None:
            return carry_out(runner.state, runner.unit, create)
        return carry_out_rows(runner.state, runner.unit, prepare)
    except (AlreadyExists, Conflict):
        # Another CREATE TABLE of the same name was faster.
        now = runner.view().workspace
        if runner.unit is None and statement.if_not_exists and now.has_table(name):
            return Unchanged(now.base.id)
        raise


def _members(statement: CreateTableStatement, rows: DataFrame | None) -> list[Member]:
    refuse_doris(statement.doris_properties, str(statement.name))
    if rows is not None and statement.columns:
        raise InvalidRequest(
            f"CREATE TABLE {statement.name} has both columns and AS SELECT; leave out one of them"
        )
    if rows is not None:
        return members_of(rows.schema)
    return [Member(c.name, c.type, c.nullable, c.comment) for c in statement.columns]


def drop_table(runner: Runner, statement: DropTableStatement) -> Result:
    """DROP TABLE."""
    name = runner.name(statement.name)
    return dropped_table(runner.state, runner.unit, name, if_exists=statement.if_exists)


def dropped_table(
    state: LakeState, unit: UnitOfWork | None, name: TableName, *, if_exists: bool
) -> Result:
    """Drop a table and its rollups; NotFound if there is none, unless it may be missing."""

    def stage(unit: UnitOfWork) -> None:
        if if_exists and not unit.workspace.has_table(name):
            return
        drop_with_rollups(unit, unit.workspace.table(name))

    return carry_out(state, unit, stage)


def undrop_table(runner: Runner, statement: UndropTable) -> Result:
    """UNDROP TABLE: a copy of the table as it was before it was dropped."""
    name = runner.name(statement.name)
    if runner.view().workspace.has_table(name):
        raise AlreadyExists(f"table {name} exists; UNDROP TABLE brings back one that was dropped")
    end = runner.state.store.ask(dropped_at, name.home, name.name)
    if end is None:
        raise NotFound(
            f"no table {name} was dropped, or its snapshots expired; see SHOW TABLES", about="table"
        )
    copied = CopyTableStatement(statement.name, statement.name, True, True, version=end - 1)
    return copy_table(runner, copied, undrops=True)


def analyze(runner: Runner, statement: Analyze) -> Result:
    """ANALYZE TABLE: count values of columns; without FOR COLUMNS nothing is left to compute."""
    table = runner.version(statement.name)
    if statement.columns == ():
        return Unchanged(table.snapshot.id)
    found = _counted(table, runner.verbs(RowVerbs, statement.name).read(), statement.columns)

    def stage(unit: UnitOfWork) -> None:
        now = unit.workspace.table(runner.name(statement.name))
        properties = with_analyzed(now.properties, now.columns, found if now.id == table.id else ())
        if properties != now.properties:
            unit.workspace.alter_table(alteration(now, replace(now, properties=properties)))

    return carry_out(runner.state, runner.unit, stage)


def _counted(
    table: TableVersion, rows: DataFrame, names: Sequence[str] | None
) -> list[AnalyzedColumn]:
    """Return the counts of columns; Unsupported for one whose values Spark does not count."""
    able = countable(rows)
    fields = [f for f in table.columns if f.name in able]
    if names is not None:
        fields = [table.columns.get((name,), table.full_name) for name in names]
    for field in fields:
        if field.name not in able:
            raise Unsupported(
                f"cannot count the values of column {field.name!r} of {table.full_name}, which are"
                f" of type {field.type}; name other columns, or use FOR ALL COLUMNS"
            )
    count, counted = count_values(rows, [f.name for f in fields])
    return [
        AnalyzedColumn(field.id, str(field.type), table.snapshot.id, count, *one)
        for field, one in zip(fields, counted, strict=True)
    ]


OPERATIONS = (
    Operation(
        *("CREATE SCHEMA", CreateSchemaStatement, create_schema, read_create_schema),
        words="CREATE SCHEMA|DATABASE|NAMESPACE",
    ),
    Operation(
        *("DROP SCHEMA", DropSchemaStatement, drop_schema, read_drop_schema),
        words="DROP SCHEMA|DATABASE|NAMESPACE",
    ),
    Operation("USE SCHEMA", UseSchema, use_schema, read_use, "USE", sparks=True),
    Operation(
        *("CREATE TABLE", CreateTableStatement, create_table, read_create_table),
        words="CREATE [OR REPLACE] TABLE",
        also={"REPLACE TABLE": read_replace},
        makes=True,
    ),
    Operation("COPY TABLE", CopyTableStatement, copy_table, makes=True),
    Operation("DROP TABLE", DropTableStatement, drop_table, read_drop_table),
    Operation("UNDROP TABLE", UndropTable, undrop_table, read_undrop_table, makes=True),
    Operation("ANALYZE TABLE", Analyze, analyze, read_analyze),
)
