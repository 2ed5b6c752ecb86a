"""Materialized views: made, and brought up to date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shelduck.alter.verb import ShapeVerbs
from shelduck.branches.table_clauses import column_changes
from shelduck.engine.session import DataFrame
from shelduck.engine.types import members_of
from shelduck.errors import InvalidRequest
from shelduck.lake.lookup import LakeHandle
from shelduck.lake.results import Result, TableName
from shelduck.lake.unit import UnitOfWork, carry_out_anew, refuse_in_transaction
from shelduck.materialized.planning import Planning, Way, session_of
from shelduck.materialized.refresh import stage_refresh
from shelduck.model.changes.change import alteration
from shelduck.model.changes.modify import TableChange
from shelduck.model.tables.schema import Field, FieldId, Schema, new_schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import (
    Materialized,
    ViewDefinition,
    ViewVersion,
    materialized,
    with_materialized,
)
from shelduck.model.types.promotions import promotion
from shelduck.objects.catalog_verbs import CatalogVerbs
from shelduck.objects.targets import view_frame
from shelduck.rollups.following import drop_with_rollups


class MaterializedVerbs(LakeHandle):
    """Bringing materialized views up to date."""

    def refresh(self, name: str | TableName, *, full: bool = False) -> Result:
        """Let a materialized view hold what its query gives now, in one snapshot.

        Only rows of its tables that changed are looked at if that tells all; ``EXPLAIN REFRESH
        MATERIALIZED VIEW`` says why it does not. If nothing changed, no snapshot is made.

        Args:
            name: ``"m"`` or ``"schema.m"``, or what `tables` gives.
            full: Compute all rows.

        Raises InvalidRequest for a table that is no materialized view, or one whose query is gone,
        and what its query raises.
        """
        wanted = self._name(name)
        refuse_in_transaction(self._unit, "REFRESH MATERIALIZED VIEW")
        return carry_out_anew(self._state, lambda unit: refresh(unit, wanted, full=full))


def query_name(name: TableName) -> TableName:
    """Return the name of the view that is the query of a materialized view."""
    return TableName(name.home, f"{name.name}$now")


def create(unit: UnitOfWork, name: TableName, definition: ViewDefinition) -> None:
    """Stage a materialized view with all rows of its query; one that is there gets the query."""
    query, workspace = query_name(name), unit.workspace
    table = workspace.find_table(name)
    if table is not None and (found := _query_of(unit, table)) is not None:
        query = TableName(found.schema.name, found.name)
        workspace.drop_view(found)
    workspace.create_view(query, definition)
    view = workspace.view(query)
    assert view is not None
    if table is None:
        columns = view_frame(unit, view, None, ()).schema
        CatalogVerbs(unit.state, unit).create_table(str(name), columns, comment=definition.comment)
        table = workspace.table(name)
    _record(unit, name, Materialized(table.uuid, view.uuid, (), -1, ""))
    refresh(unit, name, full=False)


def refresh(unit: UnitOfWork, name: TableName, *, full: bool) -> None:
    """Stage what REFRESH does to a materialized view."""
    planning = planning_of(unit, name)
    plan = planning.plan(full=full)
    if plan.way is Way.NOTHING:
        return
    changes = list(_changes(planning.table, plan.rows)) if plan.way is Way.ALL else []
    if changes:
        ShapeVerbs(unit.state, name, unit).alter(*changes)
    stage_refresh(unit, unit.workspace.table(name), plan)
    known = replace(
        planning.known,
        view=planning.view.uuid,
        sources=tuple(sorted(planning.sources(plan.query))),
        snapshot=int(unit.workspace.base.id),
        session=session_of(unit),
    )
    _record(unit, name, known)
    unit.settle(planning.settling())


def drop(unit: UnitOfWork, name: TableName) -> None:
    """Stage that a materialized view goes, with its query."""
    table = unit.workspace.table(name)
    if materialized(table) is None:
        raise _no_view(name)
    view = _query_of(unit, table)
    if view is not None:
        unit.workspace.drop_view(view)
    drop_with_rollups(unit, table)


def planning_of(unit: UnitOfWork, name: TableName) -> Planning:
    """Return what is known of a materialized view.

    Raises InvalidRequest if it is none, or its query is gone.
    """
    table = unit.workspace.table(name)
    known = materialized(table)
    if known is None:
        raise _no_view(name)
    if unit.state.branch:
        raise InvalidRequest(f"{name} follows its tables outside of branches; refresh it there")
    view = _query_of(unit, table)
    if view is None:
        raise InvalidRequest(
            f"the query of materialized view {name} is gone, which was the view"
            f" {query_name(name)}; use CREATE OR REPLACE MATERIALIZED VIEW {name} AS …, or DROP"
            f" MATERIALIZED VIEW {name}"
        )
    return Planning(unit, table, view, known)


def _query_of(unit: UnitOfWork, table: TableVersion) -> ViewVersion | None:
    """Return the view with the query of a materialized view: its own, or the one of its name."""
    known, workspace = materialized(table), unit.workspace
    named = workspace.view(query_name(TableName.of(table)))
    if known is None or (named is not None and named.uuid == known.view):
        return named
    others = (TableName(table.schema.name, n) for n in workspace.view_names(table.schema))
    found = (view for view in map(workspace.view, others) if view is not None)
    return next((view for view in found if view.uuid == known.view), named)


def _no_view(name: TableName) -> InvalidRequest:
    return InvalidRequest(f"{name} is not a materialized view; it is a table")


def _record(unit: UnitOfWork, name: TableName, known: Materialized) -> None:
    table = unit.workspace.table(name)
    made = replace(table, properties=with_materialized(table, known))
    unit.workspace.alter_table(alteration(table, made))


def _changes(table: TableVersion, rows: DataFrame) -> Iterator[TableChange]:
    """Yield what gives a table the columns of its query; only light changes keep a column."""
    columns = [_fitted(table, field) for field in new_schema(members_of(rows.schema))]
    return column_changes(table, replace(table, columns=Schema(tuple(columns))))


def _fitted(table: TableVersion, wanted: Field) -> Field:
    known = table.columns.find((wanted.name,))
    if known is not None and known.type == wanted.type:
        return replace(known, name=wanted.name)
    if known is not None and known.is_leaf and promotion(known.type, wanted.type).is_light:
        return replace(known, name=wanted.name, shape=wanted.shape)
    # No column has had the id yet.
    return replace(wanted, id=FieldId(table.max_column_id + int(wanted.id)))
