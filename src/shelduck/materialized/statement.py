"""CREATE, REFRESH and DROP MATERIALIZED VIEW; those that rollups can be are rollups."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from shelduck.errors import AlreadyExists, InvalidRequest
from shelduck.jobs.rollup_statement import (
    AlterRollups,
    MoreThanRollupError,
    read_create_rollup,
    read_drop_rollup,
)
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows, Result, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out, carry_out_anew, refuse_in_transaction
from shelduck.materialized.verb import MaterializedVerbs, create, drop, planning_of, query_name
from shelduck.model.tables.view import materialized
from shelduck.objects.statement.views import ViewColumn, define_view, read_view_columns, taken_query
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import OfTable, Query

_FULL = ("FULL", "COMPLETE")


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(OfTable):
    """CREATE MATERIALIZED VIEW of a query that is refreshed on demand."""

    query: Query
    columns: tuple[ViewColumn, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RefreshMaterializedView(OfTable):
    """REFRESH MATERIALIZED VIEW; ``explains``: only what it would do."""

    full: bool = False
    explains: bool = False


@dataclass(frozen=True, slots=True)
class DropMaterializedView(OfTable):
    """DROP MATERIALIZED VIEW of one that is refreshed on demand."""

    if_exists: bool = False


def read_create(cursor: Cursor) -> CreateMaterializedView | AlterRollups:
    """Read the statement behind ``CREATE MATERIALIZED VIEW``.

    A query that a rollup can answer is one, which every write keeps up to date, unless the
    statement says that it is refreshed on demand.
    """
    if_not_exists, or_replace = cursor.made_how("materialized view")
    start = cursor.at
    name = cursor.table_name()
    columns = read_view_columns(cursor) if cursor.sees("(") else ()
    comment = cursor.string("the comment as a string") if cursor.accept("COMMENT") else None
    if not _on_demand(cursor) and not columns and comment is None:
        behind, cursor.at = cursor.at, start
        with suppress(MoreThanRollupError):
            rollup = read_create_rollup(cursor)
            if or_replace or if_not_exists:
                words = "OR REPLACE" if or_replace else "IF NOT EXISTS"
                raise cursor.error(
                    f"{words} of a materialized view that every write keeps up to date is not"
                    " supported; leave it out, or write REFRESH ON DEMAND before AS"
                )
            return rollup
        cursor.at = behind
    cursor.expect("AS")
    query, _ = taken_query(cursor)
    return CreateMaterializedView(name, query, columns, if_not_exists, or_replace, comment)


def read_refresh(cursor: Cursor) -> RefreshMaterializedView:
    """Read the statement behind ``REFRESH MATERIALIZED VIEW``; COMPLETE and AUTO are Doris'."""
    name = cursor.table_name()
    return RefreshMaterializedView(name, cursor.accept_any("FULL", "COMPLETE", "AUTO") in _FULL)


def read_drop(cursor: Cursor) -> DropMaterializedView | AlterRollups:
    """Read the statement behind ``DROP MATERIALIZED VIEW``; with ON, it is a rollup of a table."""
    if_exists = cursor.accept_if("EXISTS")
    start = cursor.at
    name = cursor.table_name()
    if not cursor.sees("ON"):
        return DropMaterializedView(name, if_exists)
    cursor.at = start
    return read_drop_rollup(cursor, if_exists=if_exists)


def _on_demand(cursor: Cursor) -> bool:
    if not cursor.accept("REFRESH"):
        return False
    cursor.accept("AUTO")
    if not (cursor.accept("ON", "DEMAND") or cursor.accept("ON", "MANUAL")):
        raise cursor.failure("ON DEMAND (run REFRESH MATERIALIZED VIEW whenever you want it)")
    return True


def create_view(runner: Runner, statement: CreateMaterializedView) -> Result:
    """CREATE MATERIALIZED VIEW, also OR REPLACE and IF NOT EXISTS."""
    name, state = runner.name(statement.name), runner.state
    refuse_in_transaction(runner.unit, "CREATE MATERIALIZED VIEW")
    if state.branch:
        raise InvalidRequest(f"cannot create materialized view {name} on a branch; make a view")
    view = runner.view()
    found = view.workspace.find_table(name)
    if found is not None and statement.if_not_exists:
        return Unchanged(view.workspace.base.id)
    if found is not None and not (statement.or_replace and materialized(found)):
        raise AlreadyExists(f"table {name} already exists", about="table")
    for relation in statement.query.relations:
        if runner.name(relation.name) == name:
            raise InvalidRequest(f"materialized view {name} cannot read itself")
    definition = define_view(
        runner, query_name(name), statement.query, statement.columns, statement.comment
    )
    return carry_out_anew(state, lambda unit: create(unit, name, definition))


def refresh_view(runner: Runner, statement: RefreshMaterializedView) -> Result | PlainRows:
    """REFRESH MATERIALIZED VIEW, and EXPLAIN of it: the way, and why no other one."""
    name = runner.name(statement.name)
    if statement.explains:
        plan = planning_of(runner.view(), name).plan(full=statement.full)
        changed = sorted(b.now.full_name for b in plan.bases.values() if b.verbs)
        return PlainRows(
            "way string, why string, changed string",
            [(plan.way.value, plan.why, ", ".join(changed))],
        )
    return MaterializedVerbs(runner.state, runner.unit).refresh(name, full=statement.full)


def drop_view(runner: Runner, statement: DropMaterializedView) -> Result:
    """DROP MATERIALIZED VIEW: its rows, and the view with its query."""
    name = runner.name(statement.name)

    def stage(unit: UnitOfWork) -> None:
        if not statement.if_exists or unit.workspace.has_table(name):
            drop(unit, name)

    return carry_out(runner.state, runner.unit, stage)


OPERATIONS = (
    Operation(
        *("CREATE MATERIALIZED VIEW", CreateMaterializedView, create_view, read_create),
        words="CREATE [OR REPLACE] MATERIALIZED VIEW",
        makes=True,
        only_lakes=True,
    ),
    Operation(
        *("REFRESH MATERIALIZED VIEW", RefreshMaterializedView, refresh_view, read_refresh),
        only_lakes=True,
    ),
    Operation(
        *("DROP MATERIALIZED VIEW", DropMaterializedView, drop_view, read_drop), only_lakes=True
    ),
)
