"""SHOW, DESCRIBE, EXPLAIN and USE."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from shelduck.model.tables.schema import Path
from shelduck.model.text.quoting import backticked
from shelduck.text.ddl.create_clauses import SCHEMA_WORDS
from shelduck.text.ddl.partition_clauses import read_partition_spec
from shelduck.text.foreign_words import SPARKS
from shelduck.text.query.read_query import begins_query, read_query
from shelduck.text.statements import row_statements as rs
from shelduck.text.statements import statement_values as st
from shelduck.text.statements.upkeep_statements import DescribeDetail, DescribeHistory
from shelduck.text.tokens.arguments import read_property_key
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Expression, Query, Relation, Statement, Target, query_over
from shelduck.upkeep.statement import read_history

Show = (
    st.ShowSchemas
    | st.ShowTables
    | st.ShowViews
    | st.ShowMacros
    | st.ShowPartitions
    | st.ShowColumns
    | st.ShowCreateTable
    | st.ShowProperties
)
_NO_TABLES = (*SCHEMA_WORDS, "FUNCTION", "PROCEDURE", "CATALOG", "QUERY")
_SHOWN = ("SCHEMAS", "TABLES", "VIEWS", "MACROS", "COLUMNS", "PARTITIONS", "TBLPROPERTIES")
_LISTED: dict[str, type[st.ShowTables | st.ShowViews | st.ShowMacros]] = {
    "TABLES": st.ShowTables,
    "VIEWS": st.ShowViews,
    "MACROS": st.ShowMacros,
}
_SHOW_FUNCTIONS = re.compile(
    r"\s*SHOW\s+((ALL|USER|SYSTEM)\s+)?FUNCTIONS\b(?!\s+(FROM|IN)\b)", re.IGNORECASE
)
_MODES = ("EXTENDED", "FORMATTED", "COST", "CODEGEN", "LOGICAL")


def read_show(cursor: Cursor) -> Show:
    """Read the statement behind ``SHOW``."""
    if cursor.accept_any("SCHEMAS", "DATABASES", "NAMESPACES"):
        schema = cursor.schema_name() if cursor.accept_any("IN", "FROM") else None
        return st.ShowSchemas(_like(cursor), schema)
    what = cursor.accept_any(*_LISTED)
    if what:
        schema = cursor.schema_name() if cursor.accept_any("IN", "FROM") else None
        return _LISTED[what](schema, _like(cursor))
    if cursor.accept("PARTITIONS"):
        name = cursor.table_name()
        within = read_partition_spec(cursor) if cursor.sees("PARTITION") else None
        cursor.end()
        return st.ShowPartitions(name, within)
    if cursor.accept("COLUMNS"):
        return st.ShowColumns(_columns_of(cursor))
    if cursor.accept("CREATE", "TABLE"):
        name = cursor.table_name()
        if cursor.sees("AS"):
            raise cursor.refusal("SHOW CREATE TABLE ... AS SERDE", "leave it out")
        cursor.end()
        return st.ShowCreateTable(name)
    if cursor.accept("TBLPROPERTIES"):
        return _properties(cursor)
    if cursor.peek().kind is TokenKind.END:
        raise cursor.failure(f"{', '.join(_SHOWN)} or CREATE TABLE")
    raise cursor.refusal(
        f"SHOW {cursor.peek().text.upper()}", f"use SHOW {', '.join(_SHOWN)} or CREATE TABLE"
    )


def with_sparks_functions(text: str) -> str:
    """Return SHOW FUNCTIONS of Spark's own catalog, where it names none; other texts as they are.

    Spark's functions and those of the session are in every catalog, but Spark asks only its own.
    """
    found = _SHOW_FUNCTIONS.match(text)
    if found is None:
        return text
    return f"{text[: found.end()]} IN spark_catalog.default{text[found.end() :]}"


def read_describe(cursor: Cursor) -> st.Describe | DescribeHistory | DescribeDetail:
    """Read the statement behind ``DESCRIBE``."""
    if cursor.sees("DETAIL") and cursor.peek(1).may_name:
        cursor.take()
        detailed = DescribeDetail(cursor.table_name())
        cursor.end()
        return detailed
    if cursor.sees("HISTORY") and cursor.peek(1).may_name:
        cursor.take()
        return read_history(cursor)
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
    if not extended and cursor.sees("ALL") and cursor.peek(1).kind is TokenKind.END:
        # A column of that name is written in quotes.
        return st.Describe(name, indexes=True)
    column: Path | None = cursor.path() if cursor.peek().may_name else None
    cursor.end()
    return st.Describe(name, extended, column)


def read_help(cursor: Cursor) -> st.Help:
    """Read the topic behind ``HELP``: words, or a text of them."""
    if cursor.peek().kind is TokenKind.STRING:
        topic = cursor.string("a topic")
        cursor.end()
        return st.Help(topic)
    words = []
    while cursor.peek().kind is not TokenKind.END:
        words.append(cursor.take().text)
    return st.Help(" ".join(words))


def read_explain(
    cursor: Cursor, read: Callable[[Cursor], Statement]
) -> st.Explain | st.ExplainAlter:
    """Read the statement behind ``EXPLAIN``: a query, or a change of a table, by ``read``."""
    mode = cursor.accept_any(*_MODES, "ANALYZE")
    if mode == "LOGICAL":
        raise cursor.refusal("EXPLAIN LOGICAL", "use EXPLAIN EXTENDED")
    if begins_query(cursor):
        return st.Explain(read_query(cursor), mode.lower() or "simple")
    changes = cursor.peek().key in ("INSERT", "UPDATE", "DELETE", "MERGE", "ALTER")
    if changes and mode == "ANALYZE":
        raise cursor.refusal("EXPLAIN ANALYZE of a statement that changes a table", "use EXPLAIN")
    found = read(cursor) if changes else None
    if isinstance(found, st.AlterTableStatement):
        return st.ExplainAlter(found)
    if not isinstance(found, rs.Insert | rs.Update | rs.Delete | rs.MergeStatement):
        raise cursor.refusal(
            "EXPLAIN of such a statement",
            "it shows plans of queries, INSERT, UPDATE, DELETE, MERGE and ALTER TABLE",
        )
    return st.Explain(_changed_rows(found), mode.lower() or "simple", found.name, *_assigned(found))


def _assigned(
    statement: rs.Insert | rs.Update | rs.Delete | rs.MergeStatement,
) -> tuple[tuple[Path, ...], Target | None]:
    """Return the columns that a statement gives values, as written, and the table before them."""
    if isinstance(statement, rs.Insert):
        return tuple((name,) for name in statement.columns or ()), None
    if isinstance(statement, rs.Update):
        return tuple(a.path for a in statement.assignments), statement.rows.target
    if isinstance(statement, rs.Delete):
        return (), None
    changing = [*statement.matched, *statement.not_matched_by_source]
    sets = [c.action for c in changing if isinstance(c.action, rs.UpdateSet)]
    rows = [c.action for c in statement.not_matched if isinstance(c.action, rs.InsertRow)]
    paths = [a.path for each in sets for a in each.assignments]
    return (*paths, *(path for row in rows for path in row.columns)), statement.target


def _changed_rows(statement: rs.Insert | rs.Update | rs.Delete | rs.MergeStatement) -> Query:
    """Return the query that finds the rows of a statement, with the values that they get."""
    if isinstance(statement, rs.Insert):
        return statement.source
    if isinstance(statement, rs.MergeStatement):
        return _joined(statement)
    target, values = statement.rows.target, list[Expression]()
    if isinstance(statement, rs.Update):
        values = [a.value for a in statement.assignments if a.value is not None]
    columns = ", ".join(["*", *(f"({value.text})" for value in values)])
    query = statement.rows.query(columns)
    found = query_over(query.text, query, *values)
    return _with_target(found, target)


def _joined(merge: rs.MergeStatement) -> Query:
    """Return the join of a MERGE; which rows of the two sides are kept, its clauses say."""
    parts: list[Query | Expression] = [merge.source]
    kept = bool(merge.not_matched), bool(merge.not_matched_by_source)
    kind = {(True, True): "FULL", (True, False): "RIGHT", (False, True): "LEFT"}.get(kept, "INNER")
    on = merge.condition
    if isinstance(on, tuple):
        using = f"USING ({', '.join(map(backticked, on))})"
    else:
        using = f"ON ({on.text})"
        parts.append(on)
    alias = f" AS {backticked(merge.source_alias)}" if merge.source_alias else ""
    text = f"SELECT * FROM {merge.target.source} {kind} JOIN ({merge.source.text}){alias} {using}"
    return _with_target(query_over(text, *parts), merge.target)


def _with_target(query: Query, target: Target) -> Query:
    made = Relation(target.name, target.placeholder)
    return replace(query, relations=(*query.relations, made))


def read_use(cursor: Cursor) -> st.UseSchema:
    """Read the statement behind ``USE``."""
    if cursor.peek(1).may_name:
        cursor.accept_any(*SCHEMA_WORDS)
    name = cursor.schema_name()
    cursor.end()
    return st.UseSchema(name)


def _like(cursor: Cursor) -> str | None:
    pattern = None
    if cursor.accept("LIKE"):
        pattern = cursor.string("a pattern as a string")
    elif cursor.peek().kind is TokenKind.STRING:
        pattern = cursor.string()
    cursor.end()
    return pattern


def _properties(cursor: Cursor) -> st.ShowProperties:
    name = cursor.table_name()
    key = None
    if cursor.accept("("):
        key = read_property_key(cursor)
        cursor.expect(")")
    cursor.end()
    return st.ShowProperties(name, key)


def _columns_of(cursor: Cursor) -> st.NamedTable:
    if not cursor.accept_any("IN", "FROM"):
        raise cursor.failure("IN or FROM and a table")
    name = cursor.table_name()
    if cursor.accept_any("IN", "FROM"):
        start = cursor.at
        schema: st.SchemaName = cursor.schema_name()
        if name.schema is not None:
            cursor.at = start - 1
            raise cursor.failure("the end of the statement (the schema is given twice)")
        name = st.NamedTable((*schema.parts, *name.parts))
    cursor.end()
    return name
