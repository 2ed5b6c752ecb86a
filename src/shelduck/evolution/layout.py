"""What an ALTER TABLE makes of a table's partition keys and sort order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.buckets import has_same_buckets
from shelduck.model.partition import (
    BUCKET,
    PartitionBy,
    ResetPartitioning,
    SetPartitioning,
    parse_transform,
    resolve_keys,
)
from shelduck.model.schema import Field, Kind, Schema
from shelduck.model.schema_change import DropColumn, RenameColumn, SchemaChange
from shelduck.model.sorting import ResetSorting, SetSorting, SortKey, parse_sort_key
from shelduck.model.table import PartitionColumn, TableVersion
from shelduck.model.table_change import LayoutChange
from shelduck.sql.sorting import columns_of, is_column, renamed


@dataclass(frozen=True, slots=True)
class LayoutDraft:
    """Partition keys and sort order while changes are applied; ``dropped`` are columns by name."""

    partition: tuple[PartitionColumn, ...]
    sort: tuple[SortKey, ...]
    dropped: frozenset[str] = frozenset()

    @property
    def sort_texts(self) -> tuple[str, ...]:
        """The sort order as `TableVersion` has it."""
        return tuple(map(str, self.sort))


NO_LAYOUT = LayoutDraft((), ())


def layout_of(table: TableVersion) -> LayoutDraft:
    """Return the layout that a table has."""
    return LayoutDraft(table.partition, tuple(map(parse_sort_key, table.sort)))


def new_layout(
    columns: Schema,
    partitioned_by: tuple[PartitionBy, ...],
    sorted_by: tuple[SortKey, ...],
    table: str,
) -> LayoutDraft:
    """Return the layout of a new table; raises what `apply_layout` raises."""
    return LayoutDraft(
        resolve_keys(partitioned_by, columns, table) if partitioned_by else (),
        checked_sorting(sorted_by, columns, table) if sorted_by else (),
    )


def apply_layout(
    draft: LayoutDraft, change: LayoutChange, columns: Schema, table: str
) -> LayoutDraft:
    """Return the layout after a change of it; ``columns`` are those of the table at that point.

    Raises NotFound for a column that is not there, and what `resolve_keys` raises.
    """
    return _APPLY[type(change)](draft, change, columns, table)


def _set_partitioning(
    draft: LayoutDraft, change: SetPartitioning, columns: Schema, table: str
) -> LayoutDraft:
    return replace(draft, partition=resolve_keys(change.keys, columns, table))


def _set_sorting(
    draft: LayoutDraft, change: SetSorting, columns: Schema, table: str
) -> LayoutDraft:
    return replace(draft, sort=checked_sorting(change.keys, columns, table))


_APPLY: dict[type, Callable[[LayoutDraft, Any, Schema, str], LayoutDraft]] = {
    SetPartitioning: _set_partitioning,
    ResetPartitioning: lambda draft, *_: replace(draft, partition=()),
    SetSorting: _set_sorting,
    ResetSorting: lambda draft, *_: replace(draft, sort=()),
}


def checked_sorting(keys: tuple[SortKey, ...], columns: Schema, table: str) -> tuple[SortKey, ...]:
    """Return the keys after making sure that their columns are there and have an order."""
    if not keys:
        raise InvalidRequest(f"sorting {table} needs a key; RESET SORTED BY takes all")
    for key in keys:
        for name in sorted(columns_of(key.expression)):
            column = columns.get((name,), table)
            if not column.is_leaf or str(column.shape) in ("variant", "geometry"):
                raise InvalidRequest(
                    f"cannot sort {table} by {key.expression}: column {name!r} is {column.type}"
                )
    return keys


def follow(draft: LayoutDraft, change: SchemaChange, before: Schema) -> LayoutDraft:
    """Return the layout after a change of columns: sort keys go by name and follow a rename."""
    if isinstance(change, RenameColumn) and len(change.path) == 1:
        old, new = before.get(change.path).name, change.new_name
        keys = (replace(k, expression=renamed(k.expression, old, new)) for k in draft.sort)
        return replace(draft, sort=tuple(keys))
    if isinstance(change, DropColumn) and len(change.path) == 1:
        return replace(draft, dropped=draft.dropped | {change.path[0].lower()})
    return draft


def refuse_lost_keys(table: TableVersion, draft: LayoutDraft, after: Schema) -> None:
    """Raise Unsupported for keys whose column is gone, or would be found in other buckets."""
    for key in draft.partition:
        old, new = table.columns.by_id(key.column_id), after.by_id(key.column_id)
        if old is not None and new is None:
            raise Unsupported(
                f"cannot drop {old.name!r} of {table.full_name}: the table is partitioned by it;"
                " ALTER TABLE … RESET PARTITIONED BY first"
            )
        if key in table.partition and old is not None and new is not None:
            _refuse_other_buckets(table, key, old, new)
    for sort_key in draft.sort:
        if str(sort_key) in table.sort:
            _refuse_other_order(table, sort_key, after)
    lost = {name for name in draft.dropped if after.find((name,)) is None}
    for sort_key in draft.sort if lost else ():
        names = {name.lower() for name in columns_of(sort_key.expression)} & lost
        if names:
            raise Unsupported(
                f"cannot drop {min(names)!r} of {table.full_name}: the table is sorted by it;"
                " ALTER TABLE … RESET SORTED BY first"
            )


def _refuse_other_order(table: TableVersion, key: SortKey, after: Schema) -> None:
    """Wider values keep their order, but what an expression makes of them may not."""
    if is_column(key.expression):
        return
    for name in sorted(columns_of(key.expression)):
        new = after.find((name,))
        old = None if new is None else table.columns.by_id(new.id)
        if new is not None and old is not None and old.type != new.type:
            raise Unsupported(
                f"cannot change the type of {name!r} of {table.full_name} from {old.type} to"
                f" {new.type}: the table is sorted by {key.expression}, which may give wider values"
                f" another order; ALTER TABLE {table.full_name} RESET SORTED BY first"
            )


def _refuse_other_buckets(
    table: TableVersion, key: PartitionColumn, old: Field, new: Field
) -> None:
    if old.shape == new.shape or not key.transform.startswith(BUCKET):
        return
    assert not isinstance(old.shape, Kind)
    assert not isinstance(new.shape, Kind)
    if not has_same_buckets(old.shape, new.shape):
        raise Unsupported(
            f"cannot change the type of {old.name!r} of {table.full_name} from {old.type} to"
            f" {new.type}: {parse_transform(key.transform)} would look for its values in other"
            f" files; ALTER TABLE {table.full_name} RESET PARTITIONED BY first"
        )
