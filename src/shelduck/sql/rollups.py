"""Rollups, and Doris' materialized views of one table, which are rollups by another name."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.quoting import quote_name
from shelduck.model.rollup import (
    AddRollup,
    DropRollup,
    Measure,
    MeasureSpec,
    RollupChange,
    RollupSpec,
)
from shelduck.sql.cursor import Cursor
from shelduck.sql.lexer import Kind
from shelduck.sql.parts import TableName
from shelduck.sql.properties import read_job_properties
from shelduck.sql.statements import AlterRollups

_OTHER_ACTIONS = frozenset(
    "ADD ALTER CHANGE DROP MODIFY ORDER RENAME RESET REWRITE SET UNSET".split()
)
_MEASURES = {m.value: m for m in (Measure.SUM, Measure.MIN, Measure.MAX, Measure.COUNT)}
_BEHIND_SELECTED = (",", "FROM")
_BEHIND_NAMED = (",", "ORDER", "PROPERTIES")
_POSSIBLE = (
    "there are columns, and behind them SUM(c), MIN(c), MAX(c), COUNT(c) and COUNT(*), of one table"
    " with GROUP BY and ORDER BY of columns"
)


def begins_rollup_change(cursor: Cursor) -> bool:
    """Tell whether ADD ROLLUP or DROP ROLLUP stands next; columns are called so behind COLUMN."""
    return cursor.sees("ADD", "ROLLUP") or cursor.sees("DROP", "ROLLUP")


def mixed_changes(cursor: Cursor) -> InvalidRequest:
    """Return the error that one statement changes columns and rollups."""
    return InvalidRequest(
        f"cannot read {cursor.excerpt()}: column changes cannot be mixed with rollup changes;"
        " write two statements",
        about="text",
    )


def read_rollup_changes(cursor: Cursor, name: TableName, if_exists: bool) -> AlterRollups:
    """Read the statement behind the name of the table, at its first ADD or DROP ROLLUP."""
    changes: list[RollupChange] = []
    properties: dict[str, str] = {}
    adds = False
    while True:
        if begins_rollup_change(cursor):
            adds = cursor.accept_any("ADD", "DROP") == "ADD"
            cursor.expect("ROLLUP")
        elif cursor.peek().key in _OTHER_ACTIONS:
            raise mixed_changes(cursor)
        changes.append(_added(cursor) if adds else DropRollup(cursor.name("a rollup")))
        properties = read_job_properties(cursor, properties)
        if not cursor.accept(","):
            break
    cursor.end()
    return AlterRollups(name, tuple(changes), if_exists, properties)


def read_rollups(cursor: Cursor) -> tuple[RollupSpec, ...]:
    """Take the rollups of a new table in brackets."""
    cursor.expect("(")
    found = [_spec(cursor)]
    while cursor.accept(","):
        found.append(_spec(cursor))
    cursor.expect(")")
    return tuple(found)


def read_create_rollup(cursor: Cursor, or_replace: bool) -> AlterRollups:
    """Read the statement behind ``CREATE MATERIALIZED VIEW``.

    Raises Unsupported for a query that is more than the columns of one table and their groups.
    """
    if or_replace:
        raise cursor.refusal("OR REPLACE of a materialized view", "drop it before")
    if cursor.sees("IF", "NOT", "EXISTS"):
        raise cursor.refusal("IF NOT EXISTS of a materialized view", "leave it out")
    name = cursor.name("a materialized view")
    properties = read_job_properties(cursor, {})
    if not cursor.sees("AS"):
        raise cursor.failure("AS and a query (a materialized view is kept by every write)")
    cursor.expect("AS")
    if not cursor.accept("SELECT"):
        raise cursor.failure("SELECT")
    columns, measures = _selected(cursor)
    cursor.expect("FROM")
    if cursor.sees("("):
        raise _refusal(cursor, "a subquery")
    table = cursor.table_name()
    groups = _names(cursor) if cursor.accept("GROUP", "BY") else None
    order = _names(cursor) if cursor.accept("ORDER", "BY") else None
    properties = read_job_properties(cursor, properties)
    if cursor.peek().kind is not Kind.END:
        raise _refusal(cursor, repr(cursor.peek().text))
    if measures or groups is not None:
        _check_groups(cursor, columns, measures, groups)
        _check_order(cursor, columns, order)
        order = None
    spec = RollupSpec(name, tuple(columns), tuple(measures), order)
    return AlterRollups(table, (AddRollup(spec),), properties=properties)


def read_drop_rollup(cursor: Cursor) -> AlterRollups:
    """Read the statement behind ``DROP MATERIALIZED VIEW``."""
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name("a materialized view")
    if not cursor.accept("ON"):
        raise cursor.failure("ON and the table of the materialized view")
    table = cursor.table_name()
    cursor.end()
    return AlterRollups(table, (DropRollup(name),), if_exists)


def _added(cursor: Cursor) -> AddRollup:
    spec = _spec(cursor)
    return AddRollup(spec, cursor.name("a rollup") if cursor.accept("FROM") else None)


def _spec(cursor: Cursor) -> RollupSpec:
    name = cursor.name("a rollup")
    if not cursor.sees("("):
        raise cursor.failure(
            "the rollup's columns in brackets (a column called rollup has COLUMN before it)"
        )
    columns = cursor.columns()
    keys = cursor.columns() if cursor.accept("DUPLICATE", "KEY") else None
    return RollupSpec(name, columns, duplicate_keys=keys)


def _selected(cursor: Cursor) -> tuple[list[str], list[MeasureSpec]]:
    columns: list[str] = []
    measures: list[MeasureSpec] = []
    while True:
        start = cursor.at
        if cursor.peek().key in _MEASURES and cursor.peek(1).key == "(":
            measures.append(_measure(cursor))
            name = measures[-1].name
            others = [*columns, *(m.name for m in measures[:-1])]
        else:
            name, others = _column(cursor, _BEHIND_SELECTED), list(columns)
            columns.append(name)
            if measures:
                raise _refusal(cursor, "a column behind an aggregate")
        if name.lower() in (other.lower() for other in others):
            cursor.at = start
            raise cursor.failure(f"a column that is not called {name} like one before it")
        if not cursor.accept(","):
            break
    if not cursor.sees("FROM") and cursor.peek().kind is not Kind.END:
        raise _refusal(cursor, f"{cursor.peek().text!r} behind an aggregate")
    return columns, measures


def _measure(cursor: Cursor) -> MeasureSpec:
    word = cursor.take().key
    cursor.expect("(")
    column = None
    if not (word == "COUNT" and cursor.accept("*")):
        column = _column(cursor, (")",))
    cursor.expect(")")
    name = word.lower() if column is None else f"{word.lower()}_{column}"
    if cursor.accept("AS") or (cursor.peek().may_name and not cursor.sees("FROM")):
        name = cursor.name("the column's name")
    return MeasureSpec(name, _MEASURES[word], column)


def _column(cursor: Cursor, ends: Sequence[str]) -> str:
    """Take a column before one of ``ends`` or the statement's end; all that is more is refused."""
    token, behind = cursor.peek(), cursor.peek(1)
    if not token.may_name and token.kind is not Kind.END:
        raise _refusal(cursor, repr(token.text))
    if behind.key == "(":
        raise _refusal(cursor, f"{token.text.upper()}()")
    if behind.key not in ends and behind.kind is not Kind.END:
        if token.key == "DISTINCT":
            raise _refusal(cursor, "DISTINCT")
        raise _refusal(cursor, f"{behind.text!r} behind a column")
    return cursor.name("a column")


def _names(cursor: Cursor) -> tuple[str, ...]:
    found = [_column(cursor, _BEHIND_NAMED)]
    while cursor.accept(","):
        found.append(_column(cursor, _BEHIND_NAMED))
    return tuple(found)


def _check_groups(
    cursor: Cursor,
    columns: Sequence[str],
    measures: Sequence[MeasureSpec],
    groups: Sequence[str] | None,
) -> None:
    if not measures:
        raise _refusal(cursor, "GROUP BY without an aggregate")
    if not columns:
        raise _refusal(cursor, "an aggregate of all rows")
    if {c.lower() for c in columns} != {g.lower() for g in groups or ()}:
        raise InvalidRequest(
            f"cannot read {cursor.excerpt()}: the columns of SELECT and of GROUP BY are the same"
            f" ones; write GROUP BY {', '.join(map(quote_name, columns))}",
            about="text",
        )


def _check_order(cursor: Cursor, columns: Sequence[str], order: Sequence[str] | None) -> None:
    wanted = [name.lower() for name in order or ()]
    if wanted != [c.lower() for c in columns[: len(wanted)]]:
        raise InvalidRequest(
            f"cannot read {cursor.excerpt()}: a materialized view is sorted as its columns stand in"
            " SELECT; write ORDER BY in that order",
            about="text",
        )


def _refusal(cursor: Cursor, what: str) -> Unsupported:
    return cursor.refusal(f"{what} in a materialized view", _POSSIBLE)
