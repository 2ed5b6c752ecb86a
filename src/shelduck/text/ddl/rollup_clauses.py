"""Rollups, and Doris' materialized views of one table, which are rollups by another name."""

from __future__ import annotations

from collections.abc import Sequence

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.rollup import (
    AddRollup,
    DropRollup,
    Measure,
    MeasureSpec,
    RollupChange,
    RollupSpec,
)
from shelduck.model.text.quoting import quote_name
from shelduck.text.statements.statement_values import AlterRollups
from shelduck.text.tokens.arguments import read_job_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable

_OTHER_ACTIONS = frozenset(
    "ADD ALTER CHANGE DROP MODIFY ORDER RENAME RESET REWRITE SET UNSET".split()
)
_MEASURES = {m.value: m for m in (Measure.SUM, Measure.MIN, Measure.MAX, Measure.COUNT)}
_BEHIND_SELECTED = (",", "FROM")
_BEHIND_NAMED = (",", "ORDER", "PROPERTIES")
_POSSIBLE = (
    "select columns, then SUM(c), MIN(c), MAX(c), COUNT(c) and COUNT(*), from one table, with"
    " GROUP BY and ORDER BY of columns"
)


def begins_rollup_change(cursor: Cursor) -> bool:
    """Tell whether ADD ROLLUP or DROP ROLLUP stands next; columns are called so behind COLUMN."""
    return cursor.sees("ADD", "ROLLUP") or cursor.sees("DROP", "ROLLUP")


def mixed_changes(cursor: Cursor) -> InvalidRequest:
    """Return the error that one statement changes columns and rollups."""
    return cursor.error(
        "changes of columns and of rollups cannot be in one statement; write two statements"
    )


def read_rollup_changes(cursor: Cursor, name: NamedTable, if_exists: bool) -> AlterRollups:
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
    return cursor.in_brackets(_spec)


def read_create_rollup(cursor: Cursor, or_replace: bool) -> AlterRollups:
    """Read the statement behind ``CREATE MATERIALIZED VIEW``.

    Raises Unsupported for a query that is more than the columns of one table and their groups.
    """
    if or_replace:
        raise cursor.refusal("OR REPLACE of a materialized view", "drop it first")
    if cursor.sees("IF", "NOT", "EXISTS"):
        raise cursor.refusal("IF NOT EXISTS of a materialized view", "leave it out")
    *home, name = cursor.path("a materialized view")
    start = cursor.at
    properties = read_job_properties(cursor, {})
    if not cursor.sees("AS"):
        raise cursor.failure("AS and a query (every write keeps a materialized view up to date)")
    cursor.expect("AS")
    if not cursor.accept("SELECT"):
        raise cursor.failure("SELECT")
    columns, measures = _selected(cursor)
    cursor.expect("FROM")
    if cursor.sees("("):
        raise _refusal(cursor, "a subquery")
    table = cursor.table_name()
    if home and [p.lower() for p in home] != [p.lower() for p in table.parts[:-1]]:
        cursor.at = start - 1
        raise cursor.failure("a name in the schema of its table, written as the table's name is")
    groups = _names(cursor) if cursor.accept("GROUP", "BY") else None
    order = _names(cursor) if cursor.accept("ORDER", "BY") else None
    properties = read_job_properties(cursor, properties)
    if cursor.peek().kind is not TokenKind.END:
        raise _refusal(cursor, repr(cursor.peek().text))
    if measures or groups is not None:
        _check_groups(cursor, columns, measures, groups)
        _check_order(cursor, columns, order)
        order = None
    spec = RollupSpec(name, tuple(columns), tuple(measures), order)
    return AlterRollups(table, (AddRollup(spec),), properties=properties)


def read_drop_rollup(cursor: Cursor) -> AlterRollups:
    """Read the statement behind ``DROP MATERIALIZED VIEW``."""
    if_exists = cursor.accept_if("EXISTS")
    name = _name(cursor)
    if not cursor.accept("ON"):
        raise cursor.failure("ON and the table of the materialized view")
    table = cursor.table_name()
    cursor.end()
    return AlterRollups(table, (DropRollup(name),), if_exists)


def _name(cursor: Cursor) -> str:
    name = cursor.name("a materialized view")
    if cursor.sees("."):
        cursor.at -= 1
        raise cursor.failure("one name without a schema (a materialized view is in its table's)")
    return name


def _added(cursor: Cursor) -> AddRollup:
    spec = _spec(cursor)
    return AddRollup(spec, cursor.name("a rollup") if cursor.accept("FROM") else None)


def _spec(cursor: Cursor) -> RollupSpec:
    name = cursor.name("a rollup")
    if not cursor.sees("("):
        raise cursor.failure(
            "the columns of the rollup in brackets (write COLUMN before a column that is called"
            " rollup)"
        )
    columns = cursor.columns()
    keys = cursor.columns() if cursor.accept("DUPLICATE", "KEY") else None
    return RollupSpec(name, columns, duplicate_keys=keys)


def _selected(cursor: Cursor) -> tuple[list[str], list[MeasureSpec]]:
    columns: list[str] = []
    measures: list[MeasureSpec] = []
    taken: set[str] = set()
    while True:
        start = cursor.at
        if cursor.peek().key in _MEASURES and cursor.peek(1).key == "(":
            measures.append(_measure(cursor))
            name = measures[-1].name
        else:
            name = _column(cursor, _BEHIND_SELECTED)
            columns.append(name)
            if measures:
                raise _refusal(cursor, "a column after an aggregate")
        if name.lower() in taken:
            cursor.at = start
            raise cursor.failure(f"another name than {name}, which an earlier column has")
        taken.add(name.lower())
        if not cursor.accept(","):
            break
    if not cursor.sees("FROM") and cursor.peek().kind is not TokenKind.END:
        raise _refusal(cursor, f"{cursor.peek().text!r} after an aggregate")
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
    if not token.may_name and token.kind is not TokenKind.END:
        raise _refusal(cursor, repr(token.text))
    if behind.key == "(":
        raise _refusal(cursor, f"{token.text.upper()}()")
    if behind.key not in ends and behind.kind is not TokenKind.END:
        if token.key == "DISTINCT":
            raise _refusal(cursor, "DISTINCT")
        raise _refusal(cursor, f"{behind.text!r} after a column")
    return cursor.name("a column")


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(cursor.listed(lambda c: _column(c, _BEHIND_NAMED)))


def _check_groups(
    cursor: Cursor,
    columns: Sequence[str],
    measures: Sequence[MeasureSpec],
    groups: Sequence[str] | None,
) -> None:
    if not measures:
        raise _refusal(cursor, "GROUP BY without an aggregate")
    if not columns:
        raise _refusal(cursor, "an aggregate without GROUP BY columns")
    if {c.lower() for c in columns} != {g.lower() for g in groups or ()}:
        raise cursor.error(
            "SELECT and GROUP BY must have the same columns; write GROUP BY"
            f" {', '.join(map(quote_name, columns))}"
        )


def _check_order(cursor: Cursor, columns: Sequence[str], order: Sequence[str] | None) -> None:
    wanted = [name.lower() for name in order or ()]
    if wanted != [c.lower() for c in columns[: len(wanted)]]:
        raise cursor.error(
            "a materialized view is sorted by its columns in the order of SELECT; write ORDER BY"
            " in that order"
        )


def _refusal(cursor: Cursor, what: str) -> Unsupported:
    return cursor.refusal(f"{what} in a materialized view", _POSSIBLE)
