"""Computed columns as CREATE TABLE writes them: GENERATED … AS, with an expression or IDENTITY."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.tables.computed import Identity, WrittenComputed
from shelduck.sql.ddl.constraint_clauses import read_expression
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import TokenKind


@dataclass
class Beside:
    """What stands behind types and among columns, and is of the table.

    ``computed`` is None where a column cannot be computed, because rows are there.
    """

    constraints: list[AddConstraint] = field(default_factory=list)
    computed: list[WrittenComputed] | None = None


def read_computed(cursor: Cursor, column: str, into: list[WrittenComputed] | None) -> None:
    """Take what stands behind GENERATED, of a column that is new with its table."""
    how = "ALWAYS" if cursor.accept("ALWAYS") else "BY DEFAULT"
    if how != "ALWAYS":
        cursor.expect("BY", "DEFAULT")
    cursor.expect("AS")
    if into is None:
        raise cursor.refusal(
            "a computed column in a table that is there", "create it with the table"
        )
    if cursor.accept("IDENTITY"):
        into.append(WrittenComputed(column, identity=_identity(cursor, always=how == "ALWAYS")))
        return
    if how != "ALWAYS":
        raise cursor.failure("IDENTITY")
    made = read_expression(cursor, "a generated value", may_tell_time=False)
    into.append(WrittenComputed(column, made))


def _identity(cursor: Cursor, *, always: bool) -> Identity:
    start, step = 1, 1
    if cursor.accept("("):
        while not cursor.accept(")"):
            if cursor.accept("START"):
                cursor.expect("WITH")
                start = _number(cursor)
            else:
                cursor.expect("INCREMENT", "BY")
                step = _number(cursor)
                if step == 0:
                    cursor.at -= 1
                    raise cursor.failure("a number other than 0")
            cursor.accept(",")
    return Identity(start, step, always)


def _number(cursor: Cursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    token = cursor.peek()
    if token.kind is not TokenKind.NUMBER or not token.text.rstrip("lL").isdecimal():
        raise cursor.failure("a whole number")
    return sign * int(cursor.take().text.rstrip("lL"))
