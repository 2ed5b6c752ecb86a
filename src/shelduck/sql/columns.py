"""Column definitions, as CREATE TABLE and ALTER TABLE ADD share them."""

from __future__ import annotations

from typing import Any

from shelduck.model.definition import Definition, Position
from shelduck.model.schema import Default
from shelduck.sql.cursor import Cursor
from shelduck.sql.defaults import read_default
from shelduck.sql.lexer import Kind

CONSTRAINTS = frozenset(("PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT"))
_ENDS_DEFAULT = frozenset(
    ("DEFAULT", "COMMENT", "FIRST", "AFTER", "GENERATED", "COLLATE", *CONSTRAINTS, ",", ")")
)
NO_CONSTRAINTS = "DuckLake keeps NOT NULL and defaults only; leave it out"


def read_definition(cursor: Cursor) -> Definition:
    """Take a column's path, its type and its options in any order."""
    path, kind = cursor.path(), cursor.type()
    found: dict[str, Any] = {}
    seen: set[str] = set()
    while True:
        option = cursor.accept_any("NOT", "NULL", "DEFAULT", "COMMENT", "FIRST", "AFTER")
        if not option:
            break
        slot = {"NOT": "NULL", "AFTER": "FIRST"}.get(option, option)
        if slot in seen:
            cursor.at -= 1
            raise cursor.failure(f"{option} only once")
        seen.add(slot)
        if option == "NOT":
            cursor.expect("NULL")
            found["nullable"] = False
        elif option == "DEFAULT":
            found["default"] = take_default(cursor)
        elif option == "COMMENT":
            found["comment"] = cursor.string("the comment as a string")
        elif option in ("FIRST", "AFTER"):
            found["position"] = take_position(cursor, option)
    if cursor.peek().key in CONSTRAINTS:
        raise cursor.refusal(f"the constraint {cursor.peek().key}", NO_CONSTRAINTS)
    if cursor.sees("GENERATED"):
        raise cursor.refusal("a generated column", "compute it when rows are written")
    if cursor.sees("COLLATE"):
        raise cursor.refusal("a collation", "DuckLake text has none; leave it out")
    return Definition(path, kind, **found)


def take_position(cursor: Cursor, word: str) -> Position:
    """Return the place that FIRST or AFTER, already taken, means."""
    if word == "FIRST":
        return Position()
    return Position(after=cursor.path("the column to go after")[-1])


def take_default(cursor: Cursor) -> Default | None:
    """Take the expression behind DEFAULT, up to the next option of the column."""
    start = cursor.at
    while not _default_ends(cursor, start):
        if cursor.peek().key in ("(", "["):
            cursor.skip_group()
        else:
            cursor.take()
    if cursor.at == start:
        raise cursor.failure("a default")
    return read_default(cursor.text[cursor.tokens[start].start : cursor.tokens[cursor.at - 1].end])


def _default_ends(cursor: Cursor, start: int) -> bool:
    if cursor.peek().kind is Kind.END:
        return True
    if cursor.at == start:
        return cursor.peek().key in (",", ")")
    before = cursor.tokens[cursor.at - 1].key
    if cursor.sees("NOT", "NULL"):
        return before != "IS"
    if cursor.sees("NULL"):
        return before not in ("IS", "NOT")
    return cursor.peek().key in _ENDS_DEFAULT or cursor.sees("PROPERTIES", "(")
