"""Column definitions, as CREATE TABLE and ALTER TABLE ADD share them."""

from __future__ import annotations

from typing import Any

from shelduck.model.changes.constraining import AddConstraint
from shelduck.model.changes.definition import Definition, Position
from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.schema import Default
from shelduck.sql.ddl.constraint_clauses import read_column_constraint
from shelduck.sql.ddl.defaults import read_default
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.lexer import TokenKind

CONSTRAINTS = frozenset(("PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT"))
_AGGREGATIONS = frozenset(how.value for how in Aggregation)
_NO_AGGREGATIONS = frozenset(("HLL_UNION", "BITMAP_UNION", "QUANTILE_UNION", "GENERIC"))
_OPTIONS = ("NOT", "NULL", "DEFAULT", "COMMENT", "FIRST", "AFTER", "KEY", *_AGGREGATIONS)
_SAME_OPTION = {"NOT": "NULL", "AFTER": "FIRST", **dict.fromkeys(_AGGREGATIONS, "SUM")}
_NO_OPTIONS = {
    "GENERATED": ("a generated column", "compute it when you write rows"),
    "AS": ("a computed column", "compute it when you write rows, or in a view"),
    "IDENTITY": ("an identity column", "provide the values when you write rows"),
    "COLLATE": ("a collation", "DuckLake has no collations; leave it out"),
    "AUTO_INCREMENT": ("AUTO_INCREMENT", "provide the values when you write rows"),
}
_ENDS_DEFAULT = frozenset(
    ("DEFAULT", "COMMENT", "FIRST", "AFTER", "KEY", "TO", "FROM", ",", ")")
) | CONSTRAINTS.union(_AGGREGATIONS, _NO_AGGREGATIONS, _NO_OPTIONS)
# In INTERVAL '1-2' YEAR TO MONTH no rollup is meant.
_INTERVAL_UNITS = ("YEAR", "DAY", "HOUR", "MINUTE")


def read_definition(cursor: Cursor, constraints: list[AddConstraint] | None = None) -> Definition:
    """Take a column's path, its type and its options in any order.

    Constraints behind the type are added to ``constraints``, and refused without it.
    """
    path = cursor.path()
    # Types such as HLL have one aggregation, which says more of them than an unknown type does.
    _refuse_aggregation(cursor, ahead=1)
    kind = cursor.type()
    found: dict[str, Any] = {}
    seen: set[str] = set()
    while True:
        if constraints is not None and cursor.peek().key in CONSTRAINTS:
            constraint = read_column_constraint(cursor, path[-1])
            if constraint is not None:
                constraints.append(constraint)
                continue
        option = cursor.accept_any(*_OPTIONS)
        if not option:
            break
        slot = _SAME_OPTION.get(option, option)
        if slot in seen:
            cursor.at -= 1
            what = "an aggregation" if option in _AGGREGATIONS else option
            raise cursor.failure(f"{what} only once")
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
        elif option == "KEY":
            found["key"] = True
        elif option in _AGGREGATIONS:
            found["aggregation"] = Aggregation(option)
    _refuse_aggregation(cursor)
    refuse_option(cursor)
    return Definition(path, kind, **found)


def refuse_option(cursor: Cursor) -> None:
    """Raise Unsupported if an option of a column comes next that DuckLake lacks."""
    word = cursor.peek().key
    if word in CONSTRAINTS:
        raise cursor.refusal(
            f"the constraint {word} here", "use ALTER TABLE t ADD CONSTRAINT name CHECK (...)"
        )
    if word in _NO_OPTIONS:
        raise cursor.refusal(*_NO_OPTIONS[word])


def take_position(cursor: Cursor, word: str) -> Position:
    """Return the place that FIRST or AFTER, already taken, means."""
    if word == "FIRST":
        return Position()
    return Position(after=cursor.path("the column after which it is placed")[-1])


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


def _refuse_aggregation(cursor: Cursor, ahead: int = 0) -> None:
    word = cursor.peek(ahead).key
    if word in _NO_AGGREGATIONS:
        known = ", ".join(how.value for how in Aggregation)
        raise cursor.refusal(f"the aggregation {word}", f"use {known}")


def _default_ends(cursor: Cursor, start: int) -> bool:
    if cursor.peek().kind is TokenKind.END:
        return True
    if cursor.at == start:
        return cursor.peek().key in (",", ")")
    before = cursor.tokens[cursor.at - 1].key
    if cursor.sees("NOT", "NULL"):
        return before != "IS"
    if cursor.sees("NULL"):
        return before not in ("IS", "NOT")
    if cursor.peek().key in _AGGREGATIONS and cursor.peek(1).key == "(":
        # A function, such as Spark's replace().
        return False
    if cursor.sees("TO") and before in _INTERVAL_UNITS:
        return False
    return cursor.peek().key in _ENDS_DEFAULT or cursor.sees("PROPERTIES", "(")
