"""Rollups, and Doris' materialized views of one table, which are rollups by another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest, NotFound
from shelduck.jobs.jobs import job_properties, submit_rollups
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.tables.rollup import (
    AddRollup,
    DropRollup,
    Measure,
    MeasureSpec,
    RollupChange,
    RollupSpec,
    refuse_rollup,
    rollup_names,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.rollups.rollup_tables import drop_rollup
from shelduck.text.tokens.arguments import read_job_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable, OfAltered

_OTHER_ACTIONS = frozenset(
    "ADD ALTER CHANGE DROP MODIFY ORDER RENAME RESET REWRITE SET UNSET".split()
)
_MEASURES = {m.value: m for m in (Measure.SUM, Measure.MIN, Measure.MAX, Measure.COUNT)}
_BEHIND_SELECTED = (",", "FROM")
_BEHIND_NAMED = (",", "ORDER", "PROPERTIES")


@dataclass(frozen=True, slots=True)
class AlterRollups(OfAltered):
    """ADD ROLLUP, DROP ROLLUP, and CREATE and DROP MATERIALIZED VIEW: rollups of one table.

    With ``if_exists`` neither the table nor a rollup to drop has to be there. ``properties`` are
    those of the jobs that fill rollups.
    """

    changes: tuple[RollupChange, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


def begins_rollup_change(cursor: Cursor) -> bool:
    """Tell whether ADD ROLLUP or DROP ROLLUP stands next; columns are called so behind COLUMN."""
    return cursor.sees("ADD", "ROLLUP") or cursor.sees("DROP", "ROLLUP")


def mixed_changes(cursor: Cursor) -> InvalidRequest:
    """Return the error that one statement changes columns and rollups."""
    return cursor.error(
        "changes of columns and of rollups cannot be in one statement; write two statements"
    )


def read_rollup_changes(cursor: Cursor, name: NamedTable) -> AlterRollups:
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
    return AlterRollups(name, tuple(changes), properties=properties)


def read_rollups(cursor: Cursor) -> tuple[RollupSpec, ...]:
    """Take the rollups of a new table in brackets."""
    return cursor.in_brackets(_spec)


class MoreThanRollupError(Exception):
    """A query is more than columns of one table, and SUM, MIN, MAX and COUNT of its groups."""


def read_create_rollup(cursor: Cursor) -> AlterRollups:
    """Read the statement behind ``CREATE MATERIALIZED VIEW``; MoreThanRollupError if it is more."""
    *home, name = cursor.path("a materialized view")
    properties = read_job_properties(cursor, {})
    cursor.expect("AS")
    _require(cursor.accept("SELECT"))
    columns, measures = _selected(cursor)
    _require(cursor.accept("FROM") and not cursor.sees("("))
    table = cursor.table_name()
    _require(not home or [p.lower() for p in home] == [p.lower() for p in table.parts[:-1]])
    groups = _names(cursor) if cursor.accept("GROUP", "BY") else None
    order = _names(cursor) if cursor.accept("ORDER", "BY") else None
    properties = read_job_properties(cursor, properties)
    _require(cursor.peek().kind is TokenKind.END)
    if measures or groups is not None:
        _require(bool(measures and columns))
        _require({c.lower() for c in columns} == {g.lower() for g in groups or ()})
        _check_order(cursor, columns, order)
        order = None
    spec = RollupSpec(name, tuple(columns), tuple(measures), order)
    return AlterRollups(table, (AddRollup(spec),), properties=properties)


def read_drop_rollup(cursor: Cursor, *, if_exists: bool) -> AlterRollups:
    """Read the statement behind ``DROP MATERIALIZED VIEW`` and IF EXISTS, for one of a table."""
    name = _name(cursor)
    cursor.expect("ON")
    table = cursor.table_name()
    return AlterRollups(table, (DropRollup(name),), if_exists=if_exists)


def _name(cursor: Cursor) -> str:
    name = cursor.name("a materialized view")
    if cursor.sees("."):
        raise cursor.failure(
            "one name without a schema (a materialized view is in its table's)", cursor.at - 1
        )
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
            _require(not measures)
        if name.lower() in taken:
            raise cursor.failure(f"another name than {name}, which an earlier column has", start)
        taken.add(name.lower())
        if not cursor.accept(","):
            break
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
    """Take a column before one of ``ends`` or the statement's end."""
    token, behind = cursor.peek(), cursor.peek(1)
    _require(token.may_name or token.kind is TokenKind.END)
    _require(behind.key in ends or behind.kind is TokenKind.END)
    return cursor.name("a column")


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(cursor.listed(lambda c: _column(c, _BEHIND_NAMED)))


def _check_order(cursor: Cursor, columns: Sequence[str], order: Sequence[str] | None) -> None:
    wanted = [name.lower() for name in order or ()]
    if wanted != [c.lower() for c in columns[: len(wanted)]]:
        raise cursor.error(
            "a materialized view is sorted by its columns in the order of SELECT; write ORDER BY"
            " in that order"
        )


def _require(is_rollup: bool) -> None:
    if not is_rollup:
        raise MoreThanRollupError


def alter_rollups(runner: Runner, statement: AlterRollups) -> Result:
    """ALTER TABLE … ADD ROLLUP and DROP ROLLUP, and the same of materialized views."""
    name = runner.name(statement.name)
    view = runner.view()
    table = view.workspace.table(name)
    refuse_rollup(table)
    timeout, waits = job_properties(statement.properties)
    adds = [c for c in statement.changes if isinstance(c, AddRollup)]
    gone = [c.name for c in statement.changes if isinstance(c, DropRollup)]
    if statement.if_exists:
        known = {n.lower() for n in rollup_names(table)}
        gone = [n for n in gone if n.lower() in known]

    def stage(unit: UnitOfWork) -> None:
        for found in gone:
            drop_rollup(unit, unit.workspace.table(name), found)

    done: Result = Unchanged(view.workspace.base.id)
    if gone:
        done = carry_out(runner.state, runner.unit, stage)
    if not adds:
        return done
    refuse_in_transaction(runner.unit, "making a rollup")
    _require_sources(table, adds)
    specs = [change.spec for change in adds]
    job = submit_rollups(view, table, specs, timeout)
    return job.wait() if waits else Unchanged(job.look().base)


def _require_sources(table: TableVersion, adds: Sequence[AddRollup]) -> None:
    """Raise NotFound if a new rollup is to be made from one that does not exist."""
    known = (table.name, *rollup_names(table))
    for change in adds:
        if change.source is not None and change.source.lower() not in map(str.lower, known):
            raise NotFound(
                f"Base index[{change.source}] does not exist in {table.full_name}; existing"
                f" indexes: {', '.join(known)}",
                about="rollup",
            )


OPERATIONS = (
    Operation(
        *("ALTER ROLLUPS", AlterRollups, alter_rollups),
        forms={"ADD|DROP ROLLUP": read_rollup_changes},
        only_lakes=True,
    ),
)
