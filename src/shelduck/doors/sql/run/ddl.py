"""Statements over schemas and tables."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.catalog.running.identity_numbers import copy_numbers
from shelduck.doors.sql.run.views import comment_columns
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.session import DataFrame
from shelduck.engine.types import members_of
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.jobs.jobs import SchemaChangeJob, job_properties
from shelduck.lake.done import Done, Loaded
from shelduck.lake.evolution.arrangement import arrangement_of
from shelduck.lake.lookup import rows_of, version_at
from shelduck.lake.results import Result, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.changes.schema_change import SetComment
from shelduck.model.tables.keys import folds
from shelduck.model.tables.partition import (
    ResetPartitioning,
    SetPartitioning,
    field_name,
    named_keys,
)
from shelduck.model.tables.properties import (
    SetProperties,
    apply_properties,
    copied_properties,
    refuse_doris,
)
from shelduck.model.types.data_types import Member
from shelduck.objects.catalog_verbs import creating
from shelduck.read.table_rows import table_rows
from shelduck.rollups.rollup_plan import spec_of
from shelduck.rollups.rollup_shape import create_with_rollups, drop_with_rollups
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.text.statements import statement_values as st
from shelduck.write.appending import load
from shelduck.write.changes.append import append_rows
from shelduck.write.changes.inlining import limits_of
from shelduck.write.hooks import carry_out_rows


def create_schema(runner: Runner, statement: st.CreateSchemaStatement) -> Result:
    """CREATE SCHEMA."""

    def stage(unit: UnitOfWork) -> None:
        name = statement.name.schema
        unit.workspace.create_schema(name, if_not_exists=statement.if_not_exists)

    return carry_out(runner.state, runner.unit, stage)


def drop_schema(runner: Runner, statement: st.DropSchemaStatement) -> Result:
    """DROP SCHEMA."""

    def stage(unit: UnitOfWork) -> None:
        unit.workspace.drop_schema(
            statement.name.schema, if_exists=statement.if_exists, cascade=statement.cascade
        )

    return carry_out(runner.state, runner.unit, stage)


def use_schema(runner: Runner, statement: st.UseSchema) -> Result:
    """USE: names without a schema mean this one from now on."""
    workspace = runner.view().workspace
    runner.state.current.schema = workspace.schema(statement.name.schema).name
    return Unchanged(workspace.base.id)


def create_table(runner: Runner, statement: st.CreateTableStatement) -> Result:
    """CREATE TABLE, also OR REPLACE and AS SELECT; always one snapshot."""
    name = runner.name(statement.name)
    view = runner.view().workspace
    if statement.if_not_exists and view.has_table(name):
        return Unchanged(view.base.id)
    rows = runner.query(statement.as_query) if statement.as_query else None
    create = creating(runner.state, statement, name, _members(statement, rows))
    return _created(runner, statement, create, rows)


def copy_table(runner: Runner, statement: st.CopyTableStatement) -> Result:
    """CREATE TABLE … LIKE and CLONE: all that the source is, and its rows as they are."""
    name, source = runner.name(statement.name), runner.name(statement.source)
    view, state = runner.view(), runner.state
    if statement.if_not_exists and view.workspace.has_table(name):
        return Unchanged(view.workspace.base.id)
    at = statement.version, statement.timestamp
    is_now = at == (None, None)
    find = view.workspace.table if is_now else lambda each: version_at(state, each, *at)
    found = find(source)
    rollups = rollups_of(view, found, find)
    specs = [spec for each in rollups if (spec := spec_of(found, each)) is not None]
    rows = None
    if statement.has_rows:
        whole = rows_of(view, source) if is_now else table_rows(state.store, found, state.layouts)
        rows = whole.frame(state.spark)
    given = SetProperties(tuple(statement.properties.items()))
    properties = apply_properties(copied_properties(found.properties), given, str(name))

    def create(unit: UnitOfWork) -> None:
        if statement.or_replace and unit.workspace.has_table(name):
            drop_with_rollups(unit, unit.workspace.table(name))
        made = unit.workspace.create_table(
            *(name, found.columns, found.comments),
            arrangement=arrangement_of(found),
            properties=properties,
        )
        copy_numbers(state.store, found, made)
        create_with_rollups(unit, name, specs)

    return _created(runner, statement, create, rows, is_copy=True)


def _created(
    runner: Runner,
    statement: st.CreateTableStatement | st.CopyTableStatement,
    create: Callable[[UnitOfWork], None],
    rows: DataFrame | None,
    *,
    is_copy: bool = False,
) -> Result:
    """Create a table, and add rows; one snapshot."""
    name = runner.name(statement.name)

    def prepare(unit: UnitOfWork) -> Done | Loaded:
        create(unit)
        made = unit.workspace.table(name)
        assert rows is not None
        if folds(made) and not is_copy:
            return load(unit, name, rows)
        return append_rows(
            runner.state.spark,
            rows,
            made,
            show_progress=runner.state.show_progress,
            limits=limits_of(runner.state.store, made),
            is_copy=is_copy,
        )

    try:
        if rows is None:
            return carry_out(runner.state, runner.unit, create)
        return carry_out_rows(runner.state, runner.unit, prepare)
    except (AlreadyExists, Conflict):
        # Another CREATE TABLE of the same name was faster.
        now = runner.view().workspace
        if runner.unit is None and statement.if_not_exists and now.has_table(name):
            return Unchanged(now.base.id)
        raise


def drop_table(runner: Runner, statement: st.DropTableStatement) -> Result:
    """DROP TABLE."""
    return runner.verbs.drop_table(str(runner.name(statement.name)), if_exists=statement.if_exists)


def alter_table(runner: Runner, statement: st.AlterTableStatement) -> Result:
    """ALTER TABLE and COMMENT ON: all changes in one snapshot; waits for a job if one is needed.

    ``PROPERTIES ("wait" = "false")`` leaves the job to a worker.
    """
    name = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(name):
        return Unchanged(runner.view().workspace.base.id)
    timeout, waits = job_properties(statement.properties) if statement.properties else (None, True)
    try:
        done = runner.table(statement.name).alter(*statement.changes, timeout=timeout, wait=waits)
    except NotFound:
        comments = [
            (change.path[0], change.comment)
            for change in statement.changes
            if isinstance(change, SetComment) and len(change.path) == 1
        ]
        is_for_view = len(comments) == len(statement.changes)
        if not is_for_view or runner.view().workspace.view(name) is None:
            raise
        return comment_columns(runner, name, comments)
    return Unchanged(done.look().base) if isinstance(done, SchemaChangeJob) else done


def alter_partition_fields(runner: Runner, statement: st.AlterPartitionFields) -> Result:
    """Iceberg's ADD, DROP and REPLACE PARTITION FIELD: the keys of new files."""
    view = runner.view().workspace
    if statement.if_exists and not view.has_table(runner.name(statement.name)):
        return Unchanged(view.base.id)
    table = runner.version(statement.name)
    known = named_keys(table.partition, table.columns)
    gone = set(statement.gone)
    if gone and not gone <= set(known):
        gone = {key for key in known if field_name(key) == (statement.named or "").lower()}
    if statement.gone and not gone:
        told = ", ".join(map(str, known)) or "none"
        raise NotFound(
            f"table {table.full_name} has no partition field"
            f" {statement.named or ', '.join(map(str, statement.gone))}; its keys are {told}",
            about="partition",
        )
    at = min((known.index(key) for key in gone), default=len(known))
    kept = [key for key in known if key not in gone]
    keys = (*kept[:at], *(key for key in statement.added if key not in kept), *kept[at:])
    change = SetPartitioning(keys) if keys else ResetPartitioning()
    done = runner.table(statement.name).alter(change)
    assert not isinstance(done, SchemaChangeJob)
    return done


def rename_table(runner: Runner, statement: st.RenameTableStatement) -> Result:
    """ALTER TABLE … RENAME TO, inside one schema."""
    old = runner.name(statement.name)
    if statement.if_exists and not runner.view().workspace.has_table(old):
        return Unchanged(runner.view().workspace.base.id)
    new = runner.name(statement.new_name, default=old.home)
    if new.home.lower() != old.home.lower():
        raise Unsupported(
            f"cannot rename {old} to {new}: DuckLake cannot move a table to another schema; use"
            " CREATE TABLE … AS SELECT there, and drop this table"
        )
    return runner.table(statement.name).rename(new.name)


def _members(statement: st.CreateTableStatement, rows: DataFrame | None) -> list[Member]:
    refuse_doris(statement.doris_properties, str(statement.name))
    if rows is not None and statement.columns:
        raise InvalidRequest(
            f"CREATE TABLE {statement.name} has both columns and AS SELECT; leave out one of them"
        )
    if rows is not None:
        return members_of(rows.schema)
    return [Member(c.name, c.type, c.nullable, c.comment) for c in statement.columns]


RUN = by_statement(
    *(create_schema, drop_schema, use_schema, create_table, copy_table, alter_partition_fields),
    *(drop_table, alter_table, rename_table),
)
