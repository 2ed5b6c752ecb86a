"""The rows by which columns begin."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.read.column_rows import rows_of, with_parents
from shelduck.ducklake import tables
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId

_INSERT = insert(tables.column)


def insert_columns(
    draft: Draft, table: TableId, fields: Sequence[tuple[Field, FieldId | None]]
) -> None:
    """Write the rows of fields, each given with the id of its parent; one statement."""
    draft.connection.execute(_INSERT, rows_of(table, draft.id, fields))


def reserve_columns(draft: Draft, table: TableId, fields: Sequence[Field]) -> None:
    """Take the ids of columns that nobody sees; at most one statement."""
    if fields:
        # Nobody sees a row that begins and ends at once, and its id is never assigned again.
        rows = rows_of(table, draft.id, with_parents(Schema(tuple(fields))))
        draft.connection.execute(_INSERT, [r | {"end_snapshot": draft.id} for r in rows])
