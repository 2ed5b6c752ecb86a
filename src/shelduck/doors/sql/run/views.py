"""Statements over views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shelduck.doors.sql.run.show import is_like
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.doors.sql.targets import QueryScope, frame_of, query_frame, require_harmless
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.lake.instants import Zone, instant
from shelduck.lake.pinned_views import pin_view
from shelduck.lake.results import PlainRows, Result, TableName, Unchanged, table_name
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.tables.view import ViewDefinition, ViewVersion
from shelduck.model.text.quoting import backticked, double_quoted, quote_text, schema_names
from shelduck.objects.metadata_tables import TABLES
from shelduck.text.query.translate import CATALOG, duckdb_query, refusal_query, require_columns
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.parts import SessionName


def create_view(runner: Runner, statement: st.CreateViewStatement) -> Result:
    """CREATE VIEW, also OR REPLACE and IF NOT EXISTS."""
    name = runner.name(statement.name)
    if any(column.comment is not None for column in statement.columns):
        _require_column_comments(runner, f"create view {statement.name}")
    view = runner.view()
    if statement.if_not_exists and view.workspace.view(name) is not None:
        return Unchanged(view.workspace.base.id)
    definition = _define(runner, name, statement.query, statement.columns, statement.comment)
    return _put(
        runner,
        name,
        definition,
        replaces=statement.or_replace,
        if_not_exists=statement.if_not_exists,
    )


def pin(runner: Runner, statement: st.PinView) -> Result:
    """CREATE VIEW … AS SCHEMA VERSION n OF t."""
    return pin_view(
        runner.state,
        runner.unit,
        runner.name(statement.table),
        statement.version,
        runner.name(statement.name),
        replaces=statement.or_replace,
        if_not_exists=statement.if_not_exists,
        comment=statement.comment,
    )


def alter_view(runner: Runner, statement: st.AlterView) -> Result:
    """ALTER VIEW … AS: another query, which names the columns; the comment stays."""
    name = runner.name(statement.name)
    comment = _require_view(runner.view(), name).definition.comment
    definition = _define(runner, name, statement.query, comment=comment)
    return _put(runner, name, definition, replaces=True)


def comment_view(runner: Runner, statement: st.CommentView) -> Result:
    """COMMENT ON VIEW."""
    name = runner.name(statement.name)
    found = _require_view(runner.view(), name)
    if found.dialect != "duckdb":
        raise Unsupported(
            f"view {name} is written in {found.dialect!r}, which Shelduck does not support; set"
            " its comment where it was created"
        )
    definition = replace(found.definition, comment=statement.comment)
    return _put(runner, name, definition, replaces=True)


def comment_columns(
    runner: Runner, name: TableName, comments: Sequence[tuple[str, str | None]]
) -> Result:
    """COMMENT ON COLUMN of a view: by the name that it shows, or that its query gives."""
    _require_column_comments(runner, f"comment on columns of view {name}")

    def stage(unit: UnitOfWork) -> None:
        view = _require_view(unit, name)
        columns = query_frame(unit, view, None, ()).columns
        shown = [c.lower() for c in view.definition.columns]
        inside = [c.lower() for c in columns]
        for column, text in comments:
            known = shown if column.lower() in shown else inside
            if column.lower() not in known:
                listed = view.definition.columns or columns
                raise NotFound.named("column", column, listed, where=str(name))
            found = columns[known.index(column.lower())]
            _require_single(columns, found, name)
            unit.workspace.comment_view(view, found, text)

    return carry_out(runner.state, runner.unit, stage)


def _require_column_comments(runner: Runner, what: str) -> None:
    known = runner.state.store.format
    if known.view_column_tag is None:
        told = known.lacking("comments on columns of views")
        raise Unsupported(f"cannot {what}: {told}; set a comment on the view instead")


def _require_single(columns: Sequence[str], column: str, view: TableName) -> None:
    """Raise Unsupported if a comment on a column of a query would be one on several."""
    if [c.lower() for c in columns].count(column.lower()) > 1:
        raise Unsupported(
            f"cannot comment on a column of view {view}: its query has several columns {column!r},"
            " and comments go by these names; give them different names in the query"
        )


def rename_view(runner: Runner, statement: st.RenameViewStatement) -> Result:
    """ALTER VIEW … RENAME TO, inside one schema."""
    old = runner.name(statement.name)
    new = runner.name(statement.new_name, default=old.home)
    if new.home.lower() != old.home.lower():
        raise Unsupported(
            f"cannot rename {old} to {new}: DuckLake cannot move a view to another schema; create"
            " it there"
        )

    def stage(unit: UnitOfWork) -> None:
        unit.workspace.rename_view(_require_view(unit, old), new.name)

    return carry_out(runner.state, runner.unit, stage)


def drop_view(runner: Runner, statement: st.DropViewStatement) -> Result:
    """DROP VIEW; views that read it stay, and fail."""
    name = runner.name(statement.name)

    def stage(unit: UnitOfWork) -> None:
        if statement.if_exists and unit.workspace.view(name) is None:
            return
        unit.workspace.drop_view(_require_view(unit, name))

    return carry_out(runner.state, runner.unit, stage)


def show_views(runner: Runner, statement: st.ShowViews) -> PlainRows:
    """SHOW VIEWS, with the columns that Spark gives."""
    workspace, schema = runner.schema(statement.schema)
    names = [n for n in workspace.view_names(schema) if is_like(n, statement.like)]
    columns = "namespace string, viewName string, isTemporary boolean"
    return PlainRows(columns, [(schema.text, n, False) for n in names])


def _put(
    runner: Runner,
    name: TableName,
    definition: ViewDefinition,
    *,
    replaces: bool,
    if_not_exists: bool = False,
) -> Result:
    def stage(unit: UnitOfWork) -> None:
        known = unit.workspace.view(name)
        if known is not None and if_not_exists:
            return
        if known is not None and replaces:
            unit.workspace.drop_view(known)
        unit.workspace.create_view(name, definition)

    return carry_out(runner.state, runner.unit, stage)


def _require_view(unit: UnitOfWork, name: TableName) -> ViewVersion:
    found = unit.workspace.view(name)
    if found is not None:
        return found
    if unit.workspace.has_table(name):
        raise InvalidRequest(f"{name} is a table, not a view")
    schema = unit.workspace.schema(name.home)
    known = unit.workspace.view_names(schema)
    raise NotFound.named("view", name.name, known, where=f"schema {schema.text!r}")


def _define(
    runner: Runner,
    name: TableName,
    query: st.Query,
    listed: Sequence[st.ViewColumn] = (),
    comment: str | None = None,
) -> ViewDefinition:
    """Return what the catalog stores of a view, after Spark has analyzed the query."""
    unit = runner.view()
    if unit.workspace.has_table(name):
        raise AlreadyExists(f"table {name} already exists", about="table")
    if query.functions:
        function = query.functions[0].call.procedure
        raise Unsupported(f"view {name} cannot read {function}(...); read it in a query instead")
    if any(relation.computed for relation in query.relations):
        raise Unsupported(f"view {name} cannot compute a time; write the id of a snapshot")
    for relation in query.relations:
        if isinstance(relation.name, SessionName):
            raise InvalidRequest(
                f"cannot create view {name}: it reads {relation.name}, which is not in the lake;"
                " use CREATE TEMPORARY VIEW"
            )
    schema = runner.state.current.schema
    # The view's own name counts as being read: a query that reaches it would never end.
    scope = QueryScope(schema, views=(str(name).lower(),))
    # Spark first: what it does not know may be a macro, for which its text is put in place.
    columns = frame_of(unit, query, scope).columns
    try:
        require_harmless(unit, query)
    except Unsupported as error:
        raise Unsupported(f"cannot create view {name}: {error}") from error
    shown = require_columns(columns, [column.name for column in listed], str(name))
    spark_sql = spark_text(unit, query, schema)
    sql = _duckdb_text(unit, name, query, columns, schema)
    pairs = zip(columns, listed, strict=False)
    told = sorted((c, one.comment) for c, one in pairs if one.comment is not None)
    for column, _ in told:
        _require_single(columns, column, name)
    names = shown if listed else ()
    return ViewDefinition(sql, names, spark_sql, comment, column_comments=tuple(told))


def spark_text(unit: UnitOfWork, query: st.Query, schema: str) -> str:
    """Return the text of a view's query for Spark, in which each table has its schema."""
    text = query.without({})
    for relation in query.relations:
        words = _spark_words(relation, _parts(unit, relation, schema), unit.state.time_zone)
        text = text.replace(relation.placeholder, words)
    return text


def _duckdb_text(
    unit: UnitOfWork, name: TableName, query: st.Query, columns: Sequence[str], schema: str
) -> str:
    """Return the query for DuckDB, or one that fails there with the reason why it has none."""
    foreign = next((r for r in query.relations if _is_metadata(unit, r, schema)), None)
    if foreign is not None:
        reason = f"{foreign.name} is a metadata table of Shelduck"
        return refusal_query(columns, f"view {name} is written for Spark: {reason}")
    zone = unit.state.time_zone
    places = {
        r.placeholder: _duckdb_words(r, _parts(unit, r, schema), zone) for r in query.relations
    }
    try:
        return duckdb_query(query, places, columns)
    except Unsupported as error:
        return refusal_query(columns, f"view {name} is written for Spark: {error}")


def _is_metadata(unit: UnitOfWork, relation: st.Relation, schema: str) -> bool:
    parts = relation.name.parts
    if parts[-1].lower() not in TABLES or len(parts) == 1:
        return False
    if len(parts) > 2 and not unit.state.store.format.nests:
        return True
    name = table_name(parts, schema)
    return unit.workspace.view(name) is None and not unit.workspace.has_table(name)


def _parts(unit: UnitOfWork, relation: st.Relation, schema: str) -> tuple[str, ...]:
    """Return the name of a relation with its schema."""
    parts = relation.name.parts
    known = 2 + _is_metadata(unit, relation, schema)
    return parts if len(parts) >= known else (*schema_names(schema), *parts)


def _spark_words(relation: st.Relation, parts: tuple[str, ...], zone: Zone) -> str:
    """Return a relation in Spark's SQL, with its time."""
    name = ".".join(backticked(p) for p in parts)
    if relation.version is not None:
        return f"{name} VERSION AS OF {relation.version}"
    if relation.timestamp is not None:
        return f"{name} TIMESTAMP AS OF {quote_text(_moment(relation.timestamp, zone))}"
    return name


def _duckdb_words(relation: st.Relation, parts: tuple[str, ...], zone: Zone) -> tuple[str, str]:
    """Return a relation, and its time, in DuckDB's SQL."""
    name = ".".join([CATALOG, *(double_quoted(p) for p in parts)])
    if relation.version is not None:
        return name, f"AT (VERSION => {relation.version})"
    if relation.timestamp is not None:
        return name, f"AT (TIMESTAMP => TIMESTAMPTZ '{_moment(relation.timestamp, zone)}')"
    return name, ""


def _moment(text: str, zone: Zone) -> str:
    return instant(text, zone).isoformat(sep=" ")


RUN = by_statement(create_view, pin, alter_view, rename_view, comment_view, drop_view, show_views)
