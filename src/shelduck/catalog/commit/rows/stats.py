"""Statistics of a whole table: what one commit's files and new columns add to them; no I/O.

DuckDB answers MIN and MAX from these rows, drops filters by them and even packs values by them. For
DuckDB, a row without bounds means "no values yet", and its next insert sets them. So a row is
written only while its bounds are certain, or while all values are NULL. Otherwise there is no row
(here: None), which is always safe.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest
from shelduck.model.files.data_files import ColumnStats
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.bounds import bound, bound_text, exactness, widen
from shelduck.model.types.data_types import FLOATS, Leaf
from shelduck.model.types.literals import canonical_text


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

    def with_flags(self, low: bool | None, high: bool | None) -> TableColumnStats:
        """Return the statistics with what is known about how exact the bounds are."""
        return replace(self, min_is_exact=low, max_is_exact=high)


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
    assert not isinstance(column.shape, Kind)
    leaf, default = column.shape, column.initial_default
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
