"""Names and snapshots resolved to tables, the same for every verb."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from shelduck.api.instants import instant
from shelduck.api.results import TableName
from shelduck.api.state import LakeState
from shelduck.api.unit import UnitOfWork
from shelduck.catalog import read as catalog_read
from shelduck.errors import InvalidRequest
from shelduck.model.table import TableVersion
from shelduck.operations.inlining import inline_limit
from shelduck.operations.read import read_table
from shelduck.operations.rows import TableRows, table_rows
from shelduck.spark.session import DataFrame


def read_version(
    state: LakeState,
    unit: UnitOfWork,
    name: TableName,
    *,
    version: int | None,
    timestamp: str | datetime | None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return a table's rows as the unit sees them, or as of a snapshot."""
    if version is None and timestamp is None:
        found = unit.workspace.table(name)
        staged = unit.workspace.staged_rows(found)
    else:
        found, staged = version_at(state, name, version, timestamp), None
    return read_table(state.spark, state.store, found, state.layouts, columns, staged=staged)


def rows_of(
    state: LakeState, unit: UnitOfWork, name: TableName, *, writes: bool = False
) -> TableRows:
    """Return where a table's rows are as the unit sees them; ``writes`` says that some will be."""
    found = unit.workspace.table(name)
    staged = unit.workspace.staged_rows(found)
    if writes:
        found = unit.writer.register(found)
    return table_rows(state.store, found, state.layouts, staged)


def few_deletes(state: LakeState, unit: UnitOfWork | None, rows: TableRows) -> int:
    """Return how many deletes a statement puts into the catalog, none in an open unit."""
    return inline_limit(state.store, rows.table) if unit is None else 0


def version_at(
    state: LakeState, name: TableName, version: int | None, timestamp: str | datetime | None
) -> TableVersion:
    """Return a table at a snapshot: an id, the last at or before an instant, or the newest."""
    when = None if timestamp is None else instant(timestamp)
    with state.store.read() as connection:
        snapshot = catalog_read.snapshot(connection, version=version, timestamp=when)
        return catalog_read.table(connection, snapshot, name.schema, name.name, state.info)


def table_name(parts: tuple[str, ...], default_schema: str) -> TableName:
    """Return the schema and name that ``table`` or ``schema.table`` means."""
    if len(parts) == 1:
        return TableName(default_schema, parts[0])
    if len(parts) == 2:
        return TableName(parts[0], parts[1])
    raise InvalidRequest(f"{'.'.join(parts)!r} has too many parts: write table or schema.table")
