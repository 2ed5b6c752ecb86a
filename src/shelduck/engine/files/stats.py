"""Statistics of files that Spark wrote, from their footers, as DuckLake stores them.

Anything that a footer does not say with certainty is left out: a bound that is too narrow would
hide rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from typing import Any

import pyarrow.parquet

from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import ColumnStats
from shelduck.model.tables.schema import Field
from shelduck.model.types.bounds import BOUND_BYTES, Ends, ends
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf
from shelduck.model.types.literals import integer_range
from shelduck.model.types.temporal import MICROSECONDS

_CUT_TYPES = frozenset({"varchar", "json"})
_NUMBERS = frozenset({"date", *MICROSECONDS})


def file_stats(
    metadata: pyarrow.parquet.FileMetaData, leaves: Sequence[Field | None], extra: int = 0
) -> tuple[ColumnStats, ...]:
    """Return the statistics of each leaf column; a column without a null count has none.

    ``leaves`` are the leaves of the table for which the file was written, in the file's order;
    None, and ``extra`` columns after them, contain the origins of rows and have no statistics.
    """
    paths = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    found, at = [], 0
    for leaf in leaves:
        if leaf is not None and str(leaf.shape) == "variant":
            at += _variant_columns(paths[at:])
            continue
        if leaf is not None and at < len(paths):
            found.append(column_stats(leaf, [g.column(at) for g in groups]))
        at += 1
    if len(paths) != at + extra:
        raise CorruptLake(
            f"a file with {len(paths)} columns was written for a table with {at + extra}"
        )
    return tuple(stats for stats in found if stats is not None)


def _variant_columns(paths: Sequence[str]) -> int:
    """Return how many columns hold the variant that begins with the first of these.

    They are its metadata and value and, if it is shredded, its typed parts. A variant has no
    statistics: DuckDB counts one that is null as NULL.
    """
    variant = paths[0].rpartition(".")[0] + "." if paths else ""
    return sum(1 for path in paths if path.startswith(variant))


def column_stats(
    field: Field, chunks: list[Any], *, with_bounds: bool = True
) -> ColumnStats | None:
    """Return the statistics of a leaf from its column chunks; None if nulls are not counted.

    Without ``with_bounds``, the footer's bounds are ignored.
    """
    statistics = [c.statistics for c in chunks]
    if any(s is None or not s.has_null_count for s in statistics):
        return None
    null_count = sum(s.null_count for s in statistics)
    values = sum(c.num_values for c in chunks) - null_count
    filled = [s for c, s in zip(chunks, statistics, strict=True) if c.num_values > s.null_count]
    found, contains_nan = _bounds(field.leaf, filled) if with_bounds else (Ends(), bool(filled))
    return ColumnStats(
        column_id=field.id,
        column_size_bytes=sum(c.total_compressed_size for c in chunks),
        value_count=values,
        null_count=null_count,
        contains_nan=contains_nan if str(field.leaf) in FLOATS else None,
        **found._asdict(),
    )


def _bounds(leaf: Leaf, statistics: list[Any]) -> tuple[Ends, bool]:
    """Return the bounds over all row groups that hold values, and whether there may be a NaN."""
    known = bool(statistics) and all(s.has_min_max for s in statistics)
    if not known:
        return Ends(), bool(statistics)
    if str(leaf) in FLOATS:
        edges = [float(v) for s in statistics for v in (s.min_raw, s.max_raw)]
        # A NaN hides the values below it, and only the footer's bounds show that there is one.
        if any(math.isnan(v) for v in edges):
            return Ends(), True
    read = _reader(leaf)
    if read is None:
        return Ends(), False
    try:
        low = min(read(s.min_raw) for s in statistics)
        found = ends(leaf, low, max(read(s.max_raw) for s in statistics))
    except UnicodeDecodeError:
        return Ends(), False
    if str(leaf) == "blob" and len(found.max_value or "") > BOUND_BYTES:
        return Ends(), False
    return found, False


def _reader(leaf: Leaf) -> Callable[[Any], Any] | None:
    """Return a function that makes a comparable value from a footer's raw bound."""
    name = str(leaf)
    if isinstance(leaf, Decimal):
        scale = leaf.scale
        return lambda raw: Number(f"{_unscaled(raw)}E-{scale}")
    if integer_range(leaf) is not None:
        return _unscaled
    if name in FLOATS or name in _NUMBERS or name == "boolean":
        return lambda raw: raw
    if name in _CUT_TYPES or name in ("uuid", "time"):
        return lambda raw: raw.decode()
    return bytes if name == "blob" else None


def _unscaled(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
