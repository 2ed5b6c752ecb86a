"""TBLPROPERTIES: in CREATE TABLE, and as actions of ALTER TABLE."""

from __future__ import annotations

from shelduck.model.tables.properties import PropertyChange, SetProperties, UnsetProperties
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import Kind


def begins_property_change(cursor: Cursor, ahead: int = 0) -> bool:
    """Tell whether SET or UNSET TBLPROPERTIES stands next."""
    word, what = cursor.peek(ahead).key, cursor.peek(ahead + 1).key
    return word in ("SET", "UNSET") and what == "TBLPROPERTIES"


def read_property_change(cursor: Cursor) -> PropertyChange:
    """Read ``SET TBLPROPERTIES (…)`` or ``UNSET TBLPROPERTIES [IF EXISTS] (…)``."""
    sets = cursor.accept_any("SET", "UNSET") == "SET"
    cursor.expect("TBLPROPERTIES")
    if sets:
        return SetProperties(tuple(read_properties(cursor).items()))
    if_exists = cursor.accept_if("EXISTS")
    cursor.expect("(")
    keys = [read_property_key(cursor)]
    while cursor.accept(","):
        keys.append(read_property_key(cursor))
    cursor.expect(")")
    return UnsetProperties(tuple(keys), if_exists)


def read_properties(cursor: Cursor) -> dict[str, str]:
    """Read ``('key' = 'value', …)``; a key may be written as a dotted name."""
    cursor.expect("(")
    found: dict[str, str] = {}
    while True:
        start = cursor.at
        key = read_property_key(cursor)
        if key in found:
            cursor.at = start
            raise cursor.failure("each property only once")
        cursor.accept("=")
        if cursor.peek().kind is Kind.STRING:
            found[key] = cursor.string()
        elif cursor.peek().kind is Kind.NUMBER or cursor.peek().key in ("TRUE", "FALSE"):
            found[key] = cursor.take().text
        else:
            raise cursor.failure("the property's value")
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def read_job_properties(cursor: Cursor, before: dict[str, str]) -> dict[str, str]:
    """Take ``PROPERTIES (…)`` of a job if it stands next; ``before`` are those read already."""
    if not cursor.sees("PROPERTIES", "("):
        return before
    if before:
        raise cursor.failure("PROPERTIES only once")
    cursor.expect("PROPERTIES")
    return read_properties(cursor)


def read_property_key(cursor: Cursor) -> str:
    """Read the name of a property, as a string or a dotted name."""
    if cursor.peek().kind is Kind.STRING:
        return cursor.string()
    return ".".join(cursor.path("a property"))
