"""A column's details in ALTER COLUMN and CHANGE: its type, default, NOT NULL, comment and place."""

from __future__ import annotations

from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.schema_change import (
    ChangeType,
    MoveColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.schema import Path
from shelduck.sql.ddl.columns import refuse_option, take_default, take_position
from shelduck.sql.query.expressions import skip_expression
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind

_BEHIND = {
    "SET": ("NOT", "DEFAULT", "TYPE", "DATA"),
    "DROP": ("NOT", "DEFAULT"),
    "FIRST": (",", "PROPERTIES"),
}
_EXPECTED = {
    "SET": "TYPE, DEFAULT or NOT NULL",
    "DROP": "DEFAULT or NOT NULL",
    "FIRST": "the end of the statement",
    "COMMENT": "the comment as a string",
}


def begins_detail(cursor: Cursor, *, or_name: bool) -> bool:
    """Tell what is said of a column from a name that stands in its place.

    Raises InvalidRequest for a word of this module that can only be a name, unless ``or_name``.
    """
    word, behind = cursor.peek().key, cursor.peek(1)
    if word in ("TYPE", "AFTER"):
        return True
    if word not in _EXPECTED:
        return False
    fits = {"COMMENT": behind.kind is Kind.STRING, "FIRST": behind.kind is Kind.END}
    if fits.get(word) or behind.key in _BEHIND.get(word, ()):
        return True
    if or_name:
        return False
    cursor.take()
    raise cursor.failure(f"{_EXPECTED[word]} (put a name that is also a keyword in quotes)")


def read_details(cursor: Cursor, path: Path) -> list[TableChange]:
    """Take all that is said of the column at a path, which may be nothing."""
    changes: list[TableChange] = []
    while cursor.peek().kind is Kind.WORD and not cursor.sees("PROPERTIES", "("):
        changes.append(_detail(cursor, path))
    return changes


def _detail(cursor: Cursor, path: Path) -> TableChange:
    if cursor.accept("SET"):
        return _set(cursor, path)
    if cursor.accept("TYPE"):
        return _type_change(cursor, path)
    if cursor.accept("DROP"):
        if cursor.accept("DEFAULT"):
            return SetDefault(path, None)
        _expect_not_null(cursor, "DEFAULT or NOT NULL")
        return SetNullable(path, nullable=True)
    if cursor.accept("COMMENT"):
        return SetComment(path, cursor.string("the comment as a string"))
    word = cursor.accept_any("FIRST", "AFTER")
    if not word:
        refuse_option(cursor)
        raise cursor.failure("TYPE, SET, DROP, COMMENT, FIRST or AFTER")
    return MoveColumn(path, take_position(cursor, word))


def _set(cursor: Cursor, path: Path) -> TableChange:
    """Read what SET gives a column."""
    if cursor.accept("DEFAULT"):
        return SetDefault(path, take_default(cursor))
    if cursor.sees("DATA") or cursor.sees("TYPE"):
        cursor.accept("DATA")
        cursor.expect("TYPE")
        return _type_change(cursor, path)
    _expect_not_null(cursor, "TYPE, DEFAULT or NOT NULL")
    return SetNullable(path, nullable=False)


def _expect_not_null(cursor: Cursor, expected: str) -> None:
    if not cursor.accept("NOT"):
        raise cursor.failure(expected)
    cursor.expect("NULL")


def _type_change(cursor: Cursor, path: Path) -> ChangeType:
    """Read the type, and how values are converted to it."""
    kind = cursor.type()
    using = None
    if cursor.accept("USING"):
        first, behind = skip_expression(cursor, ("ON", ",", "PROPERTIES"), what="an expression")
        start, end = cursor.tokens[first].start, cursor.tokens[behind - 1].end
        using = cursor.text[start:end]
    on_error_null = cursor.accept("ON", "ERROR", "NULL")
    return ChangeType(path, kind, using, on_error_null)
