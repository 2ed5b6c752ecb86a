"""Schema evolution by written rows: the columns that they need go into the same snapshot."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shelduck.errors import InvalidRequest
from shelduck.evolution.alter import altered, plan_alter
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.schema_change import AddColumn
from shelduck.model.tables.keys import KeyModel, table_keys
from shelduck.model.tables.properties import widens_by_itself
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table import TableVersion
from shelduck.operations.read.rows import TableRows
from shelduck.spark.rows.evolving import schema_changes
from shelduck.spark.session import StructType


def evolved(table: TableVersion, given: StructType) -> tuple[TableVersion, AlterTable | None]:
    """Return a table with the columns and wider types that rows of ``given`` need, and the change.

    The change is None if the table already has them all. Raises what `plan_alter` raises, and
    InvalidRequest for a new column of an AGGREGATE table, whose aggregation is unknown.
    """
    changes = schema_changes(table.columns, given, partial(widens_by_itself, table.properties))
    keys = table_keys(table)
    if keys is not None and keys.model is KeyModel.AGGREGATE:
        for change in changes:
            if isinstance(change, AddColumn) and len(change.path) == 1:
                raise InvalidRequest(
                    f"cannot add column {path_text(change.path)} to {table.full_name}: its columns"
                    " need an aggregation type; use ALTER TABLE … ADD COLUMN first"
                )
    alter = plan_alter(table, changes).change if changes else None
    return (table, None) if alter is None else (altered(table, alter), alter)


def evolved_rows(rows: TableRows, given: StructType) -> tuple[TableRows, AlterTable | None]:
    """Return the rows of the evolved table, and the change of its columns."""
    table, change = evolved(rows.table, given)
    if change is None:
        return rows, None
    unsafe = rows.unsafe_bounds | change.unsafe_bounds
    return replace(rows, table=table, unsafe_bounds=unsafe), change
