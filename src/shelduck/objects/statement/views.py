"""Views: CREATE, ALTER, COMMENT ON, DROP and SHOW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.alter.statement import require_column_comments, require_single
from shelduck.errors import AlreadyExists, InvalidRequest, Unsupported
from shelduck.lake.lookup import Zone, instant, view_named
from shelduck.lake.operation import Operation, QueryScope, Runner
from shelduck.lake.pinned_views import pin_view
from shelduck.lake.results import PlainRows, Result, TableName, Unchanged, table_name
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.tables.view import ViewDefinition
from shelduck.model.text.names import backticked, double_quoted, quote_text, schema_names
from shelduck.objects.targets import TABLES, frame_of, require_harmless
from shelduck.text.query.rewriting import read_query
from shelduck.text.query.translate import CATALOG, duckdb_query, refusal_query, require_columns
from shelduck.text.query.travel import read_version
from shelduck.text.tokens.arguments import ShowObjects, is_like, listing, take_comment
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import NamedTable, OfTable, Query, Relation, SessionName

_CLAUSES = {
    "TBLPROPERTIES": "views have no properties; leave it out",
    "WITH": "leave it out",
    "PARTITIONED": "leave it out",
    "USING": "a view is a query; leave it out",
}
_ACTIONS = {
    "SET": "views have no properties",
    "UNSET": "views have no properties; leave it out",
    "WITH": "leave it out",
    "ALTER": "use CREATE OR REPLACE VIEW",
}


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column's name in CREATE VIEW, and its comment."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateViewStatement(OfTable):
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
class PinView(OfTable):
    """CREATE VIEW … AS SCHEMA VERSION n OF t: a table in its columns of that snapshot."""

    table: NamedTable
    version: int
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class AlterView(OfTable):
    """ALTER VIEW ... AS: another query for a view that is there."""

    query: Query
    text: str


@dataclass(frozen=True, slots=True)
class RenameViewStatement(OfTable):
    """ALTER VIEW ... RENAME TO."""

    new_name: NamedTable


@dataclass(frozen=True, slots=True)
class CommentView(OfTable):
    """COMMENT ON VIEW; None takes the comment away."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropViewStatement(OfTable):
    """DROP VIEW."""

    if_exists: bool = False


class ShowViews(ShowObjects):
    """SHOW VIEWS."""


def read_create_view(cursor: Cursor) -> CreateViewStatement | PinView:
    """Read the statement behind ``CREATE VIEW``."""
    if_not_exists, or_replace = cursor.made_how("view")
    name = cursor.table_name()
    columns = read_view_columns(cursor) if cursor.sees("(") else ()
    comment = cursor.string("the comment as a string") if cursor.accept("COMMENT") else None
    word = cursor.peek().key
    if word in _CLAUSES:
        raise cursor.refusal(f"CREATE VIEW ... {word}", _CLAUSES[word])
    cursor.expect("AS")
    if cursor.accept("SCHEMA", "VERSION"):
        if columns:
            raise cursor.refusal(
                f"a list of columns for pinned view {name}",
                "leave it out: the columns are those of the table at that snapshot",
            )
        version = read_version(cursor)
        cursor.expect("OF")
        table = cursor.table_name()
        return PinView(name, table, version, if_not_exists, or_replace, comment)
    query, text = taken_query(cursor)
    return CreateViewStatement(name, query, text, columns, if_not_exists, or_replace, comment)


def read_alter_view(cursor: Cursor) -> AlterView | RenameViewStatement:
    """Read the statement behind ``ALTER VIEW``."""
    name = cursor.table_name()
    if cursor.accept("RENAME", "TO"):
        new_name = cursor.table_name()
        return RenameViewStatement(name, new_name)
    if cursor.accept("AS"):
        return AlterView(name, *taken_query(cursor))
    word = cursor.peek().key
    if word in _ACTIONS:
        raise cursor.refusal(f"ALTER VIEW ... {word}", _ACTIONS[word])
    raise cursor.failure("RENAME TO and a name, or AS and a query")


def read_comment_view(cursor: Cursor) -> CommentView:
    """Read the statement behind ``COMMENT ON VIEW``."""
    return CommentView(cursor.table_name(), take_comment(cursor))


def read_drop_view(cursor: Cursor) -> DropViewStatement:
    """Read the statement behind ``DROP VIEW``."""
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.table_name()
    return DropViewStatement(name, if_exists)


def taken_query(cursor: Cursor) -> tuple[Query, str]:
    """Take a query; return it with placeholders, and its text as written."""
    start = cursor.peek().start
    query = read_query(cursor)
    return query, cursor.text[start : cursor.tokens[-2].end]


def read_view_columns(cursor: Cursor) -> tuple[ViewColumn, ...]:
    """Take the names of a view's columns, with comments, in brackets."""
    taken: set[str] = set()

    def column(cursor: Cursor) -> ViewColumn:
        name = cursor.new_column(taken)
        comment = cursor.string("the comment as a string") if cursor.accept("COMMENT") else None
        return ViewColumn(name, comment)

    return cursor.in_brackets(column)


def create_view(runner: Runner, statement: CreateViewStatement) -> Result:
    """CREATE VIEW, also OR REPLACE and IF NOT EXISTS."""
    name = runner.name(statement.name)
    if any(column.comment is not None for column in statement.columns):
        require_column_comments(runner, f"create view {statement.name}")
    view = runner.view()
    if statement.if_not_exists and view.workspace.view(name) is not None:
        return Unchanged(view.workspace.base.id)
    definition = define_view(runner, name, statement.query, statement.columns, statement.comment)
    how = {"replaces": statement.or_replace, "if_not_exists": statement.if_not_exists}
    return _put(runner, name, definition, **how)


def pin(runner: Runner, statement: PinView) -> Result:
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


def alter_view(runner: Runner, statement: AlterView) -> Result:
    """ALTER VIEW … AS: another query, which names the columns; the comment stays."""
    name = runner.name(statement.name)
    comment = view_named(runner.view(), name).definition.comment
    definition = define_view(runner, name, statement.query, comment=comment)
    return _put(runner, name, definition, replaces=True)


def comment_view(runner: Runner, statement: CommentView) -> Result:
    """COMMENT ON VIEW."""
    name = runner.name(statement.name)
    found = view_named(runner.view(), name)
    if found.dialect != "duckdb":
        raise Unsupported(
            f"view {name} is written in {found.dialect!r}, which Shelduck does not support; set"
            " its comment where it was created"
        )
    definition = replace(found.definition, comment=statement.comment)
    return _put(runner, name, definition, replaces=True)


def rename_view(runner: Runner, statement: RenameViewStatement) -> Result:
    """ALTER VIEW … RENAME TO, inside one schema."""
    old = runner.name(statement.name)
    new = runner.name(statement.new_name, default=old.home)
    if new.home.lower() != old.home.lower():
        raise Unsupported(
            f"cannot rename {old} to {new}: DuckLake cannot move a view to another schema; create"
            " it there"
        )

    def stage(unit: UnitOfWork) -> None:
        unit.workspace.rename_view(view_named(unit, old), new.name)

    return carry_out(runner.state, runner.unit, stage)


def drop_view(runner: Runner, statement: DropViewStatement) -> Result:
    """DROP VIEW; views that read it stay, and fail."""
    name = runner.name(statement.name)

    def stage(unit: UnitOfWork) -> None:
        if statement.if_exists and unit.workspace.view(name) is None:
            return
        unit.workspace.drop_view(view_named(unit, name))

    return carry_out(runner.state, runner.unit, stage)


def show_views(runner: Runner, statement: ShowViews) -> PlainRows:
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


def define_view(
    runner: Runner,
    name: TableName,
    query: Query,
    listed: Sequence[ViewColumn] = (),
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
        require_single(columns, column, name)
    names = shown if listed else ()
    return ViewDefinition(sql, names, spark_sql, comment, column_comments=tuple(told))


def spark_text(unit: UnitOfWork, query: Query, schema: str) -> str:
    """Return the text of a view's query for Spark, in which each table has its schema."""
    text = query.without({})
    for relation in query.relations:
        words = _spark_words(relation, _parts(unit, relation, schema), unit.state.time_zone)
        text = text.replace(relation.placeholder, words)
    return text


def _duckdb_text(
    unit: UnitOfWork, name: TableName, query: Query, columns: Sequence[str], schema: str
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


def _is_metadata(unit: UnitOfWork, relation: Relation, schema: str) -> bool:
    parts = relation.name.parts
    if parts[-1].lower() not in TABLES or len(parts) == 1:
        return False
    if len(parts) > 2 and not unit.state.store.format.nests:
        return True
    name = table_name(parts, schema)
    return unit.workspace.view(name) is None and not unit.workspace.has_table(name)


def _parts(unit: UnitOfWork, relation: Relation, schema: str) -> tuple[str, ...]:
    """Return the name of a relation with its schema."""
    parts = relation.name.parts
    known = 2 + _is_metadata(unit, relation, schema)
    return parts if len(parts) >= known else (*schema_names(schema), *parts)


def _spark_words(relation: Relation, parts: tuple[str, ...], zone: Zone) -> str:
    """Return a relation in Spark's SQL, with its time."""
    name = ".".join(backticked(p) for p in parts)
    if relation.version is not None:
        return f"{name} VERSION AS OF {relation.version}"
    if relation.timestamp is not None:
        return f"{name} TIMESTAMP AS OF {quote_text(_moment(relation.timestamp, zone))}"
    return name


def _duckdb_words(relation: Relation, parts: tuple[str, ...], zone: Zone) -> tuple[str, str]:
    """Return a relation, and its time, in DuckDB's SQL."""
    name = ".".join([CATALOG, *(double_quoted(p) for p in parts)])
    if relation.version is not None:
        return name, f"AT (VERSION => {relation.version})"
    if relation.timestamp is not None:
        return name, f"AT (TIMESTAMP => TIMESTAMPTZ '{_moment(relation.timestamp, zone)}')"
    return name, ""


def _moment(text: str, zone: Zone) -> str:
    return instant(text, zone).isoformat(sep=" ")


OPERATIONS = (
    Operation(
        *("CREATE VIEW", CreateViewStatement, create_view, read_create_view),
        words="CREATE [OR REPLACE] VIEW",
        makes=True,
    ),
    Operation("CREATE VIEW", PinView, pin, makes=True),
    Operation("ALTER VIEW", AlterView, alter_view, read_alter_view),
    Operation("RENAME VIEW", RenameViewStatement, rename_view),
    Operation("COMMENT ON VIEW", CommentView, comment_view, read_comment_view),
    Operation("DROP VIEW", DropViewStatement, drop_view, read_drop_view),
    Operation("SHOW VIEWS", ShowViews, show_views, listing(ShowViews), of_current=True),
)
