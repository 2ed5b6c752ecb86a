"""CREATE, ALTER and DROP of views."""

from __future__ import annotations

from shelduck.text.query.read_query import read_query
from shelduck.text.query.travel import read_version
from shelduck.text.statements import statement_values as st
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Query

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


def read_create_view(cursor: Cursor, or_replace: bool) -> st.CreateViewStatement | st.PinView:
    """Read the statement behind ``CREATE VIEW``."""
    if_not_exists = cursor.accept_if_not_exists("view", or_replace=or_replace)
    name = cursor.table_name()
    columns = _columns(cursor) if cursor.sees("(") else ()
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
        cursor.end()
        return st.PinView(name, table, version, if_not_exists, or_replace, comment)
    query, text = _query(cursor)
    return st.CreateViewStatement(name, query, text, columns, if_not_exists, or_replace, comment)


def read_alter_view(cursor: Cursor) -> st.AlterView | st.RenameViewStatement:
    """Read the statement behind ``ALTER VIEW``."""
    name = cursor.table_name()
    if cursor.accept("RENAME", "TO"):
        new_name = cursor.table_name()
        cursor.end()
        return st.RenameViewStatement(name, new_name)
    if cursor.accept("AS"):
        return st.AlterView(name, *_query(cursor))
    word = cursor.peek().key
    if word in _ACTIONS:
        raise cursor.refusal(f"ALTER VIEW ... {word}", _ACTIONS[word])
    raise cursor.failure("RENAME TO and a name, or AS and a query")


def read_drop_view(cursor: Cursor) -> st.DropViewStatement:
    """Read the statement behind ``DROP VIEW``."""
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.table_name()
    cursor.end()
    return st.DropViewStatement(name, if_exists)


def _query(cursor: Cursor) -> tuple[Query, str]:
    """Take a query; return it with placeholders, and its text as written."""
    start = cursor.peek().start
    query = read_query(cursor)
    return query, cursor.text[start : cursor.tokens[-2].end]


def _columns(cursor: Cursor) -> tuple[st.ViewColumn, ...]:
    taken: set[str] = set()

    def column(cursor: Cursor) -> st.ViewColumn:
        name = cursor.new_column(taken)
        comment = cursor.string("the comment as a string") if cursor.accept("COMMENT") else None
        return st.ViewColumn(name, comment)

    return cursor.in_brackets(column)
