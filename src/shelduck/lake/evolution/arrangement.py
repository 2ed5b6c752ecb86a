"""How an ALTER TABLE changes a table's partition keys and sort order, and what subjects allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.modify import ArrangementChange, TableChange
from shelduck.model.changes.schema_change import DropColumn, RenameColumn, SchemaChange, SchemaDraft
from shelduck.model.shadows.shadows import Shadow, keeps_order
from shelduck.model.tables.partition import (
    BUCKET,
    PartitionBy,
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
    SortKey,
    named_keys,
    parse_sort_key,
    parse_transform,
    resolve_keys,
)
from shelduck.model.tables.schema import Field, FieldId, Schema, path_text
from shelduck.model.tables.table_version import Feature, PartitionColumn, TableVersion, shadow_name
from shelduck.model.text.names import split_list
from shelduck.model.types.buckets import has_same_buckets
from shelduck.text.ddl.sorting import columns_of, is_column, renamed


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Partition keys and sort order while changes are applied; ``dropped`` are columns by name.

    ``is_set``: a change has set the partition keys, which then follow their columns.
    """

    partition: tuple[PartitionColumn, ...]
    sort: tuple[SortKey, ...]
    dropped: frozenset[str] = frozenset()
    is_set: bool = False

    def replaced(self, old: FieldId, new: FieldId) -> Arrangement:
        """Return the arrangement after a column got another id, and so another type."""
        keys = (replace(k, column_id=new) if k.column_id == old else k for k in self.partition)
        return replace(self, partition=tuple(keys))

    @property
    def sort_texts(self) -> tuple[str, ...]:
        """The sort order in the form of `TableVersion`."""
        return tuple(map(str, self.sort))


NO_ARRANGEMENT = Arrangement((), ())

Partition = tuple[PartitionColumn, ...]


class ShapeRules:
    """The rules of a subject for one ALTER of its table; those of a table without any allow all.

    ``rows_fold``: rows become equal, so that a job must combine them. ``note`` says what the last
    clause does in another way than it was asked to.
    """

    rows_fold: bool = False
    note: str = ""

    @property
    def folds(self) -> bool:
        """Return whether rows whose keys become equal are folded."""
        return False

    def folds_by(self, column: Field) -> bool:  # noqa: ARG002 - a subject needs it
        """Return whether rows with equal values of a column may be folded."""
        return False

    def meeting(self, shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:  # noqa: ARG002
        """Return the shadows of keys that may become equal."""
        return ()

    def allowed(self, change: Any, columns: Schema) -> Any:  # noqa: ARG002 - a subject needs them
        """Return a clause as the subject makes it; ``columns`` are those before it."""
        return change

    def follow(self, change: Any, columns: Schema, before: Schema) -> None:
        """Follow a change of the columns, which were ``before``."""

    def replaced(self, old: FieldId, new: FieldId) -> None:
        """Follow a column that gets another id."""

    def finish(
        self, after: SchemaDraft, arrangement: Arrangement
    ) -> tuple[SchemaDraft, Arrangement]:
        """Return the table after all clauses, with what the subject makes of it."""
        return after, arrangement

    def refuse_beside(self, clauses: Sequence[TableChange], *, reads_rows: bool) -> None:
        """Raise Unsupported for clauses that cannot be in one statement."""


SHAPE_RULES: dict[Feature, Callable[[TableVersion, Partition], ShapeRules]] = {}
"""The rules of each subject that has some; `shelduck.write.hooks` puts them in."""


def arrangement_of(table: TableVersion) -> Arrangement:
    """Return the current arrangement of a table."""
    if not table.partition and not table.sort:
        return NO_ARRANGEMENT
    return Arrangement(table.partition, tuple(map(parse_sort_key, table.sort)))


def new_arrangement(
    columns: Schema,
    partitioned_by: tuple[PartitionBy, ...],
    sorted_by: tuple[SortKey, ...],
    table: str,
) -> Arrangement:
    """Return the arrangement of a new table; raises what `apply_arrangement` raises."""
    return Arrangement(
        resolve_keys(partitioned_by, columns, table) if partitioned_by else (),
        checked_sorting(sorted_by, columns, table) if sorted_by else (),
    )


def apply_arrangement(
    draft: Arrangement, change: ArrangementChange, columns: Schema, table: str
) -> Arrangement:
    """Return the arrangement after a change; ``columns`` are those of the table at that point.

    Raises NotFound for a column that does not exist, and what `resolve_keys` raises.
    """
    match change:
        case SetPartitioning(keys=keys):
            return replace(draft, partition=resolve_keys(keys, columns, table), is_set=True)
        case ResetPartitioning():
            return replace(draft, partition=())
        case SetSorting(keys=keys):
            return replace(draft, sort=checked_sorting(keys, columns, table))
        case ResetSorting():
            return replace(draft, sort=())


def checked_sorting(keys: tuple[SortKey, ...], columns: Schema, table: str) -> tuple[SortKey, ...]:
    """Return the keys, after a check that their columns exist and have an order."""
    if not keys:
        raise InvalidRequest(
            f"SET SORTED BY of {table} needs at least one key; to remove the sort order, use RESET"
            " SORTED BY"
        )
    for key in keys:
        for name in sorted(columns_of(key.expression)):
            column = columns.get((name,), table)
            if not column.is_leaf or str(column.shape) in ("variant", "geometry"):
                raise InvalidRequest(
                    f"cannot sort {table} by {key.expression}: column {name!r} is {column.type},"
                    " which has no order"
                )
    return keys


def follow(draft: Arrangement, change: SchemaChange, before: Schema) -> Arrangement:
    """Return the arrangement after a change of columns: sort keys follow a rename."""
    if isinstance(change, RenameColumn) and len(change.path) == 1:
        old, new = before.get(change.path).name, change.new_name
        keys = (replace(k, expression=renamed(k.expression, old, new)) for k in draft.sort)
        return replace(draft, sort=tuple(keys))
    if isinstance(change, DropColumn) and len(change.path) == 1:
        return replace(draft, dropped=draft.dropped | {change.path[0].lower()})
    return draft


def refuse_lost_keys(
    table: TableVersion, draft: Arrangement, after: Schema, types: Mapping[FieldId, str]
) -> None:
    """Raise Unsupported for keys whose column is gone, or whose values would change buckets.

    ``types`` are the new types of columns that a job replaces.
    """
    _refuse_skipped_keys(table, draft.partition)
    if draft.is_set:
        resolve_keys(named_keys(draft.partition, after), after, table.full_name)
    for key in draft.partition:
        old, new = table.columns.by_id(key.column_id), after.by_id(key.column_id)
        if old is not None and new is None:
            told = f"drop {old.name!r} of {table.full_name}"
            if old.id in types:
                of = f"{path_text((old.name,))} of {table.full_name}"
                told = f"change {of} from {old.type} to {types[old.id]}"
            raise Unsupported(
                f"cannot {told}: the table is partitioned by it;"
                f" use ALTER TABLE {table.full_name} RESET PARTITIONED BY first"
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
                f"cannot drop {min(names)!r} of {table.full_name}: the table is sorted by it; use"
                f" ALTER TABLE {table.full_name} RESET SORTED BY first"
            )


def keys_in_new_order(sort: Iterable[SortKey], shadows: Sequence[Shadow]) -> list[SortKey]:
    """Return the sort keys by which converted values come in another order than the old ones."""
    names = {s.old.name.lower() for s in shadows if not keeps_order(s)}
    return [k for k in sort if names & {name.lower() for name in columns_of(k.expression)}]


def sorted_by_shadows(table: TableVersion, shadows: Sequence[Shadow]) -> TableVersion:
    """Return a table `with_shadows` whose files are sorted by them, not by the older columns."""
    keys = list(map(parse_sort_key, table.sort))
    for shadow in shadows:
        old, new = shadow.old.name, shadow_name(shadow.field)
        keys = [replace(key, expression=renamed(key.expression, old, new)) for key in keys]
    return replace(table, sort=tuple(map(str, keys)))


def skipped_ids(table: TableVersion, names: str) -> str:
    """Return the ids of columns of which files get no bounds, as the catalog stores them.

    ``names`` is a list as in `option_text`. Raises NotFound for a name that is not a column, and
    InvalidRequest for a column that has other statistics, or by which the table is partitioned.
    """
    columns = [table.columns.get((name,), table.full_name) for name in split_list(names)]
    keys = {key.column_id for key in table.partition}
    for column in columns:
        inside = list(column.walk())
        what = next((str(f.shape) for f in inside if str(f.shape) in ("variant", "geometry")), None)
        if what is not None:
            raise InvalidRequest(
                f"cannot skip statistics of {column.name!r} of {table.full_name}: {what} has no"
                " bounds; leave it out"
            )
        if keys & {f.id for f in inside}:
            raise InvalidRequest(
                f"cannot skip statistics of {column.name!r} of {table.full_name}: the table is"
                f" partitioned by it; use ALTER TABLE {table.full_name} RESET PARTITIONED BY first"
            )
    return ",".join(str(column.id) for column in columns)


def _refuse_skipped_keys(table: TableVersion, keys: Sequence[PartitionColumn]) -> None:
    skipped = table.options.skip_stats_columns
    for column in (table.columns.by_id(FieldId(number)) for number in skipped):
        if column is not None and {f.id for f in column.walk()} & {k.column_id for k in keys}:
            raise InvalidRequest(
                f"cannot partition {table.full_name} by {column.name!r}: option skip_stats_columns"
                " names it; set the option without it first"
            )


def _refuse_other_order(table: TableVersion, key: SortKey, after: Schema) -> None:
    """Raise Unsupported if an expression may order the wider values differently."""
    if is_column(key.expression):
        return
    for name in sorted(columns_of(key.expression)):
        new = after.find((name,))
        old = None if new is None else table.columns.by_id(new.id)
        if new is not None and old is not None and old.type != new.type:
            raise Unsupported(
                f"cannot change the type of {name!r} of {table.full_name} from {old.type} to"
                f" {new.type}: the table is sorted by {key.expression}, which may order the wider"
                f" values differently; use ALTER TABLE {table.full_name} RESET SORTED BY first"
            )


def _refuse_other_buckets(
    table: TableVersion, key: PartitionColumn, old: Field, new: Field
) -> None:
    if old.shape == new.shape or not key.transform.startswith(BUCKET):
        return
    if not has_same_buckets(old.leaf, new.leaf):
        raise Unsupported(
            f"cannot change the type of {old.name!r} of {table.full_name} from {old.type} to"
            f" {new.type}: {parse_transform(key.transform)} would put its values into other"
            f" buckets; use ALTER TABLE {table.full_name} RESET PARTITIONED BY first"
        )
