"""Statements over schemas and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.api.jobs import SchemaChangeJob, job_properties
from shelduck.api.keyed import folds, is_plain, load
from shelduck.api.results import Result, Unchanged
from shelduck.api.rollup_shape import create_with_rollups, drop_with_rollups
from shelduck.api.row_work import carry_out_rows
from shelduck.api.runner import Answer, Runner
from shelduck.api.unit import UnitOfWork, carry_out
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.evolution.keys import keyed_table
from shelduck.evolution.layout import new_layout
from shelduck.model.properties import checked_properties, refuse_doris
from shelduck.model.schema import FieldId, Schema, new_schema
from shelduck.model.schema_change import with_default
from shelduck.model.types import Member
from shelduck.operations.append import append_rows
from shelduck.operations.done import Done
from shelduck.operations.inlining import inline_limit
from shelduck.operations.load import Loaded
from shelduck.spark.session import DataFrame
from shelduck.spark.types import members_of
from shelduck.sql import statements as st


def create_schema(runner: Runner, statement: st.CreateSchema) -> Result:
    """CREATE SCHEMA."""
    return runner.verbs.create_schema(statement.name.schema, if_not_exists=statement.if_not_exists)


def drop_schema(runner: Runner, statement: st.DropSchema) -> Result:
    """DROP SCHEMA."""
    return runner.verbs.drop_schema(
        statement.name.schema, if_exists=statement.if_exists, cascade=statement.cascade
    )


def use_schema(runner: Runner, statement: st.UseSchema) -> Result:
    """USE: names without a schema mean this one from now on."""
    workspace = runner.view().workspace
    runner.state.default_schema = workspace.schema(statement.name.schema).name
    return Unchanged(workspace.base.id)


def create_table(runner: Runner, statement: st.CreateTable) -> Result:
    """CREATE TABLE, also OR REPLACE and AS SELECT; with rows it is one snapshot too."""
    name = runner.name(statement.name)
    view = runner.view().workspace
    if statement.if_not_exists and view.has_table(name):
        return Unchanged(view.base.id)
    rows = runner.query(statement.as_query) if statement.as_query else None
    columns, comments = _columns(statement, rows)
    wanted = checked_properties(statement.properties, str(statement.name))
    refuse_doris(statement.doris_properties, str(statement.name))
    layout = new_layout(columns, statement.partitioned_by, statement.sorted_by, str(statement.name))
    properties, layout = keyed_table(columns, statement.keys, wanted, layout, str(statement.name))

    def stage(unit: UnitOfWork) -> None:
        if rows is None and statement.if_not_exists and unit.workspace.has_table(name):
            return
        if statement.or_replace and unit.workspace.has_table(name):
            drop_with_rollups(unit, unit.workspace.table(name))
        unit.workspace.create_table(name, columns, comments, layout=layout, properties=properties)
        create_with_rollups(unit, name, statement.rollups)

    if rows is None:
        return carry_out(runner.state, runner.unit, stage)

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        stage(unit)
        made = unit.workspace.table(name)
        if folds(made):
            return load(runner.state, unit, name, rows)
        return append_rows(
            runner.state.spark,
            rows,
            made,
            show_progress=runner.state.show_progress,
            inline_limit=(
                inline_limit(runner.state.store, made)
                if runner.unit is None and is_plain(made)
                else 0
            ),
        )

    try:
        return carry_out_rows(runner.state, runner.unit, prepare)
    except (AlreadyExists, Conflict):
        # Others who said IF NOT EXISTS too were first.
        now = runner.view().workspace
        if runner.unit is None and statement.if_not_exists and now.has_table(name):
            return Unchanged(now.base.id)
        raise


def drop_table(runner: Runner, statement: st.DropTable) -> Result:
    """DROP TABLE."""
    return runner.verbs.drop_table(str(runner.name(statement.name)), if_exists=statement.if_exists)


def alter_table(runner: Runner, statement: st.AlterTable) -> Result:
    """ALTER TABLE and COMMENT ON: all changes in one snapshot; what takes a job is waited for.

    ``PROPERTIES ("wait" = "false")`` leaves the job to a worker.
    """
    name = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(name):
        return Unchanged(runner.view().workspace.base.id)
    timeout, waits = job_properties(statement.properties)
    done = runner.table(statement.name).alter(*statement.changes, timeout=timeout)
    if not isinstance(done, SchemaChangeJob):
        return done
    return done.wait() if waits else Unchanged(done.look().base)


def rename_table(runner: Runner, statement: st.RenameTable) -> Result:
    """ALTER TABLE … RENAME TO, inside one schema."""
    old = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(old):
        return Unchanged(runner.view().workspace.base.id)
    new = runner.name(statement.new_name, default=old.schema)
    if new.schema.lower() != old.schema.lower():
        raise Unsupported(
            f"cannot rename {old} to {new}: DuckLake keeps a table in its schema;"
            " create it there AS SELECT and drop this one"
        )
    return runner.table(statement.name).rename(new.name)


def _columns(
    statement: st.CreateTable, rows: DataFrame | None
) -> tuple[Schema, dict[FieldId | None, str]]:
    if rows is not None and statement.columns:
        raise InvalidRequest(
            f"CREATE TABLE {statement.name} gives columns and AS SELECT; leave one out"
        )
    if rows is not None:
        columns = new_schema(members_of(rows.schema))
    else:
        columns = new_schema([Member(c.name, c.type, c.nullable) for c in statement.columns])
    comments: dict[FieldId | None, str] = {}
    if statement.comment is not None:
        comments[None] = statement.comment
    fields = []
    for made, wanted in zip(columns, statement.columns or columns.fields, strict=True):
        if isinstance(wanted, st.ColumnDefinition):
            if wanted.comment is not None:
                comments[made.id] = wanted.comment
            made = with_default(made, wanted.default, str(statement.name))  # noqa: PLW2901
        fields.append(made)
    return Schema(tuple(fields)), comments


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    st.CreateSchema: create_schema,
    st.DropSchema: drop_schema,
    st.UseSchema: use_schema,
    st.CreateTable: create_table,
    st.DropTable: drop_table,
    st.AlterTable: alter_table,
    st.RenameTable: rename_table,
}
