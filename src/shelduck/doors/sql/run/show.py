"""Statements that only read."""

from __future__ import annotations

import re
from datetime import datetime

from shelduck.catalog.read.metadata_rows import table_rows
from shelduck.doors.sql import describe as described
from shelduck.doors.sql.describe import topics
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.doors.sql.targets import query_frame
from shelduck.engine.bridge import engine_of
from shelduck.engine.session import DataFrame
from shelduck.errors import NotFound
from shelduck.lake.pinned_views import pinned_shape
from shelduck.lake.results import PlainRows
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.rollup import rollup_of
from shelduck.model.tables.schema import Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.objects.metadata_tables import history
from shelduck.read.scan.rollup_rule import collecting_choices
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.text.statements import statement_values as st
from shelduck.text.statements.upkeep_statements import DescribeDetail, DescribeHistory

_DESCRIBED = "col_name string, data_type string, comment string"
_DETAIL = (
    "format string, id string, name string, description string, location string,"
    " createdAt timestamp, lastModified timestamp, partitionColumns array<string>,"
    " clusteringColumns array<string>, numFiles bigint, sizeInBytes bigint,"
    " properties map<string, string>"
)


def query(runner: Runner, statement: st.Query) -> DataFrame:
    """SELECT, WITH, VALUES, TABLE."""
    return runner.query(statement)


def explain(runner: Runner, statement: st.Explain) -> DataFrame | PlainRows:
    """Return Spark's plan of a query as text, preceded by which rollups answer it and why.

    ANALYZE runs the query and shows what it measured.
    """
    if statement.changed is not None:
        _require_assigned(runner.version(statement.changed), statement)
    if statement.mode == "analyze":
        rows = runner.query(statement.query)
        return PlainRows("plan string", [(engine_of(rows).measured_plan(rows),)])
    # EXPLAIN would show what is wrong with a query as if it were a plan.
    runner.query(statement.query)
    mode = "" if statement.mode == "simple" else f"{statement.mode.upper()} "
    with collecting_choices(runner.state.spark) as reasons:
        plan = runner.query(statement.query, f"EXPLAIN {mode}")
    if not reasons:
        return plan
    # One row of text.
    lines = [*dict.fromkeys(reasons), *(row[0] for row in plan.collect())]
    return PlainRows("plan string", [("\n".join(lines),)])


def _require_assigned(table: TableVersion, statement: st.Explain) -> None:
    """Raise NotFound for a column that the statement gives a value and the table does not have."""
    for path in statement.assigned:
        target = statement.target
        own = path if target is None else target.column(path, table.columns.names)
        table.columns.get(own, table.full_name)


def explain_alter(runner: Runner, statement: st.ExplainAlter) -> PlainRows:
    """EXPLAIN ALTER TABLE: which changes are light, and what a job would do; nothing is changed."""
    wanted = statement.statement
    plan = runner.table(wanted.name).plan_alter(*wanted.changes)
    return PlainRows("plan string", [(str(plan),)])


def show_schemas(runner: Runner, statement: st.ShowSchemas) -> PlainRows:
    """SHOW SCHEMAS: those in no other one, or in one, with the column that Spark gives."""
    workspace = runner.view().workspace
    around = None if statement.schema is None else workspace.schema(statement.schema.schema).id
    names = [s.text for s in workspace.schemas() if s.parent == around]
    rows = [(n,) for n in sorted(names) if is_like(n, statement.like)]
    return PlainRows("namespace string", rows)


def show_tables(runner: Runner, statement: st.ShowTables) -> PlainRows:
    """SHOW TABLES, and views as Spark does, with the columns that Spark gives."""
    workspace, schema = runner.schema(statement.schema)
    names = sorted((*workspace.table_names(schema), *workspace.view_names(schema)))
    rows = [(schema.text, name, False) for name in names if is_like(name, statement.like)]
    columns = "namespace string, tableName string, isTemporary boolean"
    return PlainRows(columns, rows)


def show_columns(runner: Runner, statement: st.ShowColumns) -> PlainRows:
    """SHOW COLUMNS of a table or a view."""
    found = _table_or_view(runner, statement.name)
    if isinstance(found, ViewVersion):
        columns = shown_columns(runner.view(), found)
        return PlainRows("col_name string", [row[:1] for row in columns])
    return PlainRows("col_name string", [(n,) for n in found.columns.names])


def show_create_table(runner: Runner, statement: st.ShowCreateTable) -> PlainRows:
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


def show_properties(runner: Runner, statement: st.ShowProperties) -> PlainRows:
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


def describe(runner: Runner, statement: st.Describe) -> PlainRows:
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
    changes = runner.table(statement.name).type_changes() if statement.extended else None
    lines = described.table_rows(found, changes)
    return PlainRows(_DESCRIBED, lines)


def _table_or_view(runner: Runner, name: st.NamedTable) -> TableVersion | ViewVersion:
    """Return a table or a view; NotFound for all else."""
    try:
        return runner.version(name)
    except NotFound:
        view = runner.view().workspace.view(runner.name(name))
        if view is None:
            raise
        return view


def _described_view(runner: Runner, view: ViewVersion, statement: st.Describe) -> PlainRows:
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
    found, made = query_frame(unit, view, None, ()), view.definition
    kinds = [field.dataType.simpleString() for field in found.schema]
    names = made.columns or found.columns
    return list(zip(names, kinds, made.comments_of(found.columns), strict=True))


def _pinned(unit: UnitOfWork, view: ViewVersion) -> tuple[Schema, TableVersion]:
    assert view.definition.pin is not None
    try:
        return pinned_shape(unit, view.definition.pin)
    except NotFound as error:
        raise NotFound(f"view {view.full_name}: {error}") from error


def help_(_: Runner, statement: st.Help) -> PlainRows:
    """HELP, with the columns that MySQL's clients show."""
    rows = [(t.name, t.description, t.example) for t in topics(statement.topic)]
    return PlainRows("name string, description string, example string", rows)


def is_like(name: str, pattern: str | None) -> bool:
    """Tell whether a name matches Spark's pattern: ``*`` is anything, ``|`` separates patterns."""
    if pattern is None:
        return True
    return any(
        re.fullmatch(".*".join(map(re.escape, part.strip().split("*"))), name, re.IGNORECASE)
        for part in pattern.split("|")
    )


def describe_history(runner: Runner, statement: DescribeHistory) -> DataFrame:
    """DESCRIBE HISTORY, newest first, with the columns of Delta that apply here."""
    return history(runner.state, runner.version(statement.name), statement.limit)


def describe_detail(runner: Runner, statement: DescribeDetail) -> PlainRows:
    """DESCRIBE DETAIL, with the columns of Delta that apply here."""
    found = runner.version(statement.name)
    with runner.state.store.read() as connection:
        [row] = table_rows(connection, found.snapshot, found.id)
    history = runner.table(statement.name).history()
    times: list[datetime | None] = [s.time for s in history] or [None]
    detail = (
        *("ducklake", found.uuid, found.full_name, found.comments.get(None), found.path),
        *(times[-1], times[0]),
        *(described.partition_texts(found), described.sort_texts(found)),
        *(row[4], row[5], described.told_properties(found)),
    )
    return PlainRows(_DETAIL, [detail])


RUN = by_statement(
    *(describe_history, describe_detail, query, explain, explain_alter),
    *(show_schemas, show_tables, show_columns, show_create_table, show_properties, describe, help_),
)
