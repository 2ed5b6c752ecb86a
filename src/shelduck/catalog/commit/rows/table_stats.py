"""Statistics of whole tables, in total and by column: what a commit adds to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.opening import TableWork
from shelduck.catalog.commit.rows.file_rows import kept_stats
from shelduck.catalog.read import queries
from shelduck.catalog.read.queries import OF_TABLE, live
from shelduck.catalog.read.together import OF_TABLES, Questions
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, sum_of
from shelduck.ducklake.format import Format
from shelduck.errors import InvalidRequest
from shelduck.model.files.data_file import ColumnStats, NewDataFile
from shelduck.model.files.fitted import InlinedBatch, batch_stats
from shelduck.model.tables.schema import Field, FieldId, Kind, TableId
from shelduck.model.types.data_types import FLOATS, Leaf, ducklake_type
from shelduck.model.types.literals import bound, bound_text, canonical_text, exactness, widen

_file, _total, _column = tables.data_file.c, tables.table_stats.c, tables.table_column_stats.c

_UPDATE_TOTALS = (
    sa.update(tables.table_stats)
    .where(_total.table_id == OF_TABLE)
    .values(
        record_count=sa.bindparam("records"),
        next_row_id=sa.bindparam("next_row"),
        file_size_bytes=sa.bindparam("size"),
    )
)
_DELETE_COLUMN_STATS = sa.delete(tables.table_column_stats).where(
    _column.table_id == OF_TABLE, _column.column_id == sa.bindparam("of_column")
)
_TOTALS = sa.select(tables.table_stats).where(_total.table_id.in_(OF_TABLES))
_LEAF_TYPES = sa.select(
    tables.column.c.table_id, tables.column.c.column_id, tables.column.c.column_type
).where(
    tables.column.c.table_id.in_(OF_TABLES),
    live(tables.column),
    sa.func.lower(tables.column.c.column_type).not_in([kind.value for kind in Kind]),
)
ASK_TOTALS: Questions = (("totals", _TOTALS),)
_TOTALS_OF_FILES = sa.select(
    sum_of(_file.record_count),
    sa.type_coerce(
        sa.func.coalesce(sa.func.max(_file.row_id_start + _file.record_count), 0), BIGINT
    ),
    sum_of(_file.file_size_bytes),
    sa.func.count(),
).where(_file.table_id == OF_TABLE)


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """One row of ``ducklake_table_column_stats`` without its keys.

    ``contains_nan`` is None for types without NaN, and for floats for which it is unknown.
    """

    contains_null: bool
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    min_is_exact: bool | None = None
    max_is_exact: bool | None = None

    @property
    def has_bounds(self) -> bool:
        """True if both bounds are known."""
        return self.min_value is not None and self.max_value is not None


_STATS = tuple(f.name for f in fields(TableColumnStats))


@cache
def _column_stats(of: Format) -> sa.Select[Any]:
    known = of.table(tables.table_column_stats)
    return sa.select(known).where(known.c.table_id.in_(OF_TABLES))


@cache
def _update_column_stats(of: Format) -> sa.Update:
    known = of.table(tables.table_column_stats)
    return (
        sa.update(known)
        .where(
            known.c.table_id == sa.bindparam("table"), known.c.column_id == sa.bindparam("column")
        )
        .values({name: sa.bindparam(f"new_{name}") for name in _STATS if name in known.c})
    )


ASK_STATS: Questions = (*ASK_TOTALS, ("column_stats", _column_stats), ("leaf_types", _LEAF_TYPES))


@dataclass(frozen=True, slots=True)
class Totals:
    """One row of ``ducklake_table_stats``; ``is_new`` if it must be inserted.

    A number that another writer does not know is None, and stays so. ``is_first_insert`` if there
    were no rows before, so that statistics begin with these.
    """

    record_count: int | None
    next_row_id: int
    file_size_bytes: int | None
    is_new: bool = False
    is_first_insert: bool = False


@dataclass(frozen=True, slots=True)
class Growth:
    """What a commit adds to one table: rows, ids for them, bytes, and statistics by part.

    ``columns`` are the leaves of the table if they are known; if None, the catalog is queried.
    """

    rows: int
    row_ids: int
    bytes: int
    parts: Sequence[Sequence[ColumnStats]]
    columns: Mapping[FieldId, Leaf] | None = None

    @classmethod
    def of(cls, files: Sequence[NewDataFile], batches: Sequence[InlinedBatch]) -> Growth:
        """Return what these files and inlined rows add."""
        in_files = sum(f.record_count for f in files)
        known = None
        if batches and not files:
            leaves = batches[0].columns.leaves()
            known = {f.id: f.shape for f in leaves if not isinstance(f.shape, Kind)}
        return cls(
            in_files + sum(len(b.rows) for b in batches),
            in_files + sum(b.new_rows for b in batches),
            sum(f.file_size_bytes for f in files),
            [f.stats for f in files if f.record_count > 0] + [batch_stats(b) for b in batches],
            known,
        )


def add_column_stats(draft: Draft, works: Sequence[TableWork]) -> None:
    """Write table statistics of columns that were added to tables with data; one statement.

    DuckDB leaves them out, and then neither SET NOT NULL nor MIN and MAX work.
    """
    added: dict[TableId, list[tuple[FieldId, TableColumnStats]]] = {}
    for work in works:
        assert work.old is not None
        assert work.altered is not None
        begun = [each.after for each in work.altered.changed if each.after is not None]
        found = [
            (f.id, stats_of_added(f, is_nested=parent is not None))
            for f, parent in begun
            # A column that RESTORE brings back has had its statistics from the beginning.
            if f.is_leaf and f.id > work.old.max_column_id
        ]
        leaves = [(number, stats) for number, stats in found if stats is not None]
        if leaves:
            added[work.id] = leaves
    if not added:
        return
    counted = {row.table_id for row in draft.opening.answers["totals"]} & added.keys()
    rows = [
        _column_stats_row(table, column, stats)
        for table in sorted(counted)
        for column, stats in added[table]
    ]
    if rows:
        draft.insert(tables.table_column_stats, rows)
        draft.has_stats_change = True


def read_totals(draft: Draft, ids: Sequence[TableId]) -> dict[TableId, Totals]:
    """Return the totals of tables; a few statements for each table without totals."""
    found = {
        TableId(row.table_id): Totals(row.record_count, row.next_row_id, row.file_size_bytes)
        for row in draft.opening.answers["totals"]
    }
    new = set(draft.table_ids.values())
    for table in ids:
        if table in new:
            found[table] = Totals(0, 0, 0, is_new=True, is_first_insert=True)
        elif table not in found:
            found[table] = _totals_of_rows(draft, table)
    return found


def grow_stats(
    draft: Draft, totals: Mapping[TableId, Totals], growth: Mapping[TableId, Growth]
) -> None:
    """Write totals and column statistics of tables that grew; at most six statements."""
    draft.has_stats_change = True
    _write_totals(draft, totals, growth)
    _write_column_stats(draft, totals, growth)


def widen_column_stats(draft: Draft, table: TableId, leaf: Leaf, found: ColumnStats) -> None:
    """Widen the statistics of a column to those that a file of the table has."""
    growth = Growth(0, 0, 0, [[found]], {found.column_id: leaf})
    draft.has_stats_change = True
    _write_column_stats(draft, {table: Totals(0, 0, 0)}, {table: growth})


def _totals_of_rows(draft: Draft, table: TableId) -> Totals:
    """Count the rows: another writer may have left the totals out, and row ids must stay unique."""
    row = draft.connection.execute(_TOTALS_OF_FILES, {"of_table": table}).one()
    records, next_row, size, files = (int(value) for value in row)
    for name, _ in draft.connection.execute(queries.inlined_tables(table)).all():
        rows = draft.format.inlined(name)
        kept = sa.select(sa.func.count(), sa.func.coalesce(sa.func.max(rows.c.row_id) + 1, 0))
        count, above = draft.connection.execute(kept.select_from(rows)).one()
        records, next_row, files = records + count, max(next_row, above), files + bool(count)
    return Totals(records, next_row, size, is_new=True, is_first_insert=files == 0)


def _leaf_types(draft: Draft, ids: Sequence[TableId]) -> Mapping[TableId, Mapping[FieldId, Leaf]]:
    types: dict[TableId, dict[FieldId, Leaf]] = defaultdict(dict)
    for table, column_id, text in draft.rows_about("leaf_types", _LEAF_TYPES, ids):
        types[table][column_id] = ducklake_type(text)
    return types


def _write_totals(
    draft: Draft, totals: Mapping[TableId, Totals], growth: Mapping[TableId, Growth]
) -> None:
    inserted, updated = [], []
    for table, added in growth.items():
        old = totals[table]
        values = (
            None if old.record_count is None else old.record_count + added.rows,
            old.next_row_id + added.row_ids,
            None if old.file_size_bytes is None else old.file_size_bytes + added.bytes,
        )
        if old.is_new:
            names = ("record_count", "next_row_id", "file_size_bytes")
            inserted.append({"table_id": table, **dict(zip(names, values, strict=True))})
        else:
            names = ("records", "next_row", "size")
            updated.append({"of_table": table, **dict(zip(names, values, strict=True))})
    draft.insert(tables.table_stats, inserted)
    if updated:
        draft.connection.execute(_UPDATE_TOTALS, updated)


def _write_column_stats(
    draft: Draft, totals: Mapping[TableId, Totals], growth: Mapping[TableId, Growth]
) -> None:
    has_flags = draft.format.has(tables.table_column_stats, "min_is_exact")
    types = _leaf_types(draft, [t for t, added in growth.items() if added.columns is None])
    known = {
        (row.table_id, row.column_id): TableColumnStats(
            row.contains_null is not False,
            *(row.contains_nan, row.min_value, row.max_value),
            *((row.min_is_exact, row.max_is_exact) if has_flags else ()),
        )
        for row in draft.rows_about("column_stats", _column_stats, growth)
    }
    inserted, updated, deleted = [], [], []
    for table, growing in growth.items():
        parts_kept = (kept_stats(draft, table, part) for part in growing.parts)
        by_part = [{s.column_id: s for s in part} for part in parts_kept]
        leaves = types[table] if growing.columns is None else growing.columns
        for column_id, leaf in leaves.items():
            old = known.get((table, column_id))
            added = stats_of_files(leaf, [parts.get(column_id) for parts in by_part])
            new = grown(leaf, old, added) if old else added
            if new is not None and not has_flags:
                new = replace(new, min_is_exact=None, max_is_exact=None)
            if old is None and new is not None and totals[table].is_first_insert:
                inserted.append(_column_stats_row(table, column_id, new))
            elif old is not None and new is None:
                deleted.append({"of_table": table, "of_column": column_id})
            elif old is not None and new is not None and new != old:
                updated.append(_column_stats_update(draft.format, table, column_id, new))
    draft.insert(tables.table_column_stats, inserted)
    if updated:
        draft.connection.execute(_update_column_stats(draft.format), updated)
    if deleted:
        draft.connection.execute(_DELETE_COLUMN_STATS, deleted)


def _column_stats_row(table: TableId, column: FieldId, stats: TableColumnStats) -> dict[str, Any]:
    return {"table_id": table, "column_id": column, **asdict(stats), "extra_stats": None}


def _column_stats_update(
    of: Format, table: TableId, column: FieldId, stats: TableColumnStats
) -> dict[str, Any]:
    new = of.fitting(tables.table_column_stats, [asdict(stats)])[0]
    return {"table": table, "column": column, **{f"new_{name}": new[name] for name in new}}


def stats_of_files(leaf: Leaf, parts: Iterable[ColumnStats | None]) -> TableColumnStats | None:
    """Return the statistics of a leaf over some files; None if its bounds are not certain.

    ``parts`` has one entry for each file with rows, None if the file does not say.
    """
    total = _no_values(leaf, contains_null=False)
    for part in parts:
        found = None if part is None else _of_file(leaf, part)
        if found is None:
            return None
        if not found.has_bounds:
            total = replace(total, contains_null=True)
        elif not total.has_bounds:
            total = replace(found, contains_null=found.contains_null or total.contains_null)
        else:
            together = _widened(leaf, total, found)
            if together is None:
                return None
            total = together
    return total


def grown(
    leaf: Leaf, old: TableColumnStats, added: TableColumnStats | None
) -> TableColumnStats | None:
    """Return a table's statistics after more rows; None if their bounds are not certain.

    An old row without bounds does not say whether there are values, so it cannot be extended.
    """
    if added is None:
        return None
    if not added.has_bounds:
        return replace(old, contains_null=old.contains_null or added.contains_null)
    return _widened(leaf, old, added) if old.has_bounds else None


def stats_of_added(column: Field, *, is_nested: bool) -> TableColumnStats | None:
    """Return the statistics of a column that was added to existing rows: all hold one value."""
    leaf, default = column.leaf, column.initial_default
    if default is None:
        return _no_values(leaf, contains_null=True)
    try:
        value = bound(leaf, canonical_text(leaf, default))
    except InvalidRequest:
        return None
    edge = None if value is None or str(leaf) == "blob" else bound_text(leaf, value)
    if edge is None:
        return None
    return TableColumnStats(is_nested, _no_nan(leaf), edge, edge, True, True)


def _of_file(leaf: Leaf, found: ColumnStats) -> TableColumnStats | None:
    if found.value_count == 0 and found.null_count > 0 and found.min_value is None:
        return _no_values(leaf, contains_null=True)
    nan = found.contains_nan if str(leaf) in FLOATS else None
    made = TableColumnStats(
        found.null_count > 0,
        nan,
        found.min_value,
        found.max_value,
        exactness(leaf, found.min_value, found.min_is_exact),
        exactness(leaf, found.max_value, found.max_is_exact),
    )
    return made if made.has_bounds and str(leaf) != "blob" else None


def _widened(leaf: Leaf, one: TableColumnStats, other: TableColumnStats) -> TableColumnStats | None:
    low, high = widen(leaf, (one.min_value, one.max_value), (other.min_value, other.max_value))
    nan = _either(one.contains_nan, other.contains_nan)
    lows = ((one.min_value, one.min_is_exact), (other.min_value, other.min_is_exact))
    highs = ((one.max_value, one.max_is_exact), (other.max_value, other.max_is_exact))
    made = TableColumnStats(
        one.contains_null or other.contains_null,
        nan,
        low,
        high,
        _is_exact(leaf, low, lows),
        _is_exact(leaf, high, highs),
    )
    return made if made.has_bounds else None


def _is_exact(
    leaf: Leaf, chosen: str | None, among: Iterable[tuple[str | None, bool | None]]
) -> bool | None:
    """Return whether the bound that was chosen is a value: each bound that equals it must be."""
    value = bound(leaf, chosen)
    flags = [exactness(leaf, text, flag) for text, flag in among if bound(leaf, text) == value]
    return exactness(leaf, chosen, all(flags))


def _no_values(leaf: Leaf, *, contains_null: bool) -> TableColumnStats:
    return TableColumnStats(contains_null, _no_nan(leaf), None, None)


def _no_nan(leaf: Leaf) -> bool | None:
    return False if str(leaf) in FLOATS else None


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False
