"""Two versions of a table as one change, and the version that a change makes."""

from __future__ import annotations

from dataclasses import replace

from shelduck.model.changes.change import AlterTable
from shelduck.model.tables.column_index import walk
from shelduck.model.tables.schema import FieldId, spent
from shelduck.model.tables.table import TableVersion, known_first

_DESCRIPTION = ("columns", "comments", "properties", "partition", "sort")


def differs(before: TableVersion, after: TableVersion) -> bool:
    """Return whether something that an AlterTable changes is not the same in two versions."""
    return any(getattr(before, name) != getattr(after, name) for name in _DESCRIPTION)


def alteration(
    before: TableVersion,
    after: TableVersion,
    unsafe_bounds: frozenset[FieldId],
    *,
    excludes_inserts: bool = False,
) -> AlterTable:
    """Return the change that makes one version of a table from another."""
    return AlterTable(
        *(before, after.columns, after.comments, unsafe_bounds, excludes_inserts),
        partition=None if after.partition == before.partition else after.partition,
        partition_id=after.partition_id,
        sort=None if after.sort == before.sort else after.sort,
        properties=None if after.properties == before.properties else after.properties,
        reserved=spent(after.columns, after.max_column_id, before.max_column_id),
    )


def altered(table: TableVersion, change: AlterTable) -> TableVersion:
    """Return the version that a change makes of a table, or of a later version of it."""
    # What is the same had a name before.
    now = table.columns.changes(change.columns)[1]
    names = {f.id: f.name for f in [*walk(now), *walk(change.reserved)]}
    after = replace(
        table,
        columns=change.columns,
        comments=dict(change.comments),
        properties=table.properties if change.properties is None else dict(change.properties),
        sort=table.sort if change.sort is None else change.sort,
        max_column_id=max([table.max_column_id, *names]),
        first_names=known_first(table.first_names, names),
    )
    if change.partition is None:
        return after
    number = change.partition_id if change.partition else None
    return replace(after, partition=change.partition, partition_id=number)
