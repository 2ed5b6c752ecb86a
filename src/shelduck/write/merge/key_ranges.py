"""The ranges of a load's keys, as a condition that skips files of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import reduce
from heapq import nlargest
from itertools import pairwise
from typing import Any

from pyarrow import compute
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.write.parquet.kept import FEW, MOST_SHARED, Kept, few_rows, keep

# The first key is cut into this many ranges, and each of them once more.
_RANGES = 16
_MOST_RANGES = 2 * _RANGES
# More digits than Spark's decimals and sums of two have; Python's own arithmetic has 28.
_EXACT = 80
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType)
# Between two of their values, others may lie halfway.
_COUNTED = (*_WHOLE, T.DecimalType, T.TimestampType)
_BYTES = (T.StringType, T.BinaryType)
# Python sorts their values as Spark does.
_IN_ORDER = (*_COUNTED, *_BYTES, T.BooleanType)
_IN_TEXTS = (*_IN_ORDER, T.FloatType, T.DoubleType, T.TimestampNTZType)
# By Spark's estimate; the source is counted when it is kept.
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class _Key:
    """A key column, and how its values come to Python and back unchanged.

    Dates and instants come as numbers: Python supports fewer of them, and instants in one time
    zone.
    """

    name: str
    kind: T.DataType

    @property
    def column(self) -> Column:
        """Return the column."""
        return F.col(self.name)

    @property
    def plain(self) -> Column:
        """Return the values in Python's form."""
        return self.as_plain(self.column)

    @property
    def is_counted(self) -> bool:
        """True if there are values halfway between two others."""
        return isinstance(self.kind, _COUNTED)

    def as_plain(self, value: Column) -> Column:
        """Return a value of the column in Python's form."""
        if isinstance(self.kind, T.DateType):
            return F.unix_date(value)
        if isinstance(self.kind, T.TimestampType):
            return F.unix_micros(value)
        return value.cast("string") if isinstance(self.kind, T.TimestampNTZType) else value

    def fitting(self, value: Any) -> Any:
        """Return a value with no more digits than the column's type has.

        Spark's estimates have more; so do small decimals after their conversion to Python.
        """
        if not isinstance(self.kind, T.DecimalType):
            return value
        with localcontext(prec=_EXACT, rounding=ROUND_FLOOR):
            return value.quantize(Decimal(1).scaleb(-self.kind.scale))

    def middle(self, low: Any, high: Any) -> Any:
        """Return a value between two ends, None if there is none."""
        if low is None or low == high:
            return None
        if isinstance(low, int):
            return (low + high) // 2
        with localcontext(prec=_EXACT):
            return self.fitting((low + high) / 2)

    def within(self, low: Any, high: Any) -> str:
        """Return whether a value lies between two others, as SQL that every session reads alike."""
        if low == high:
            return f"{self.name} = {self._text(low)}"
        return f"{self.name} BETWEEN {self._text(low)} AND {self._text(high)}"

    def _text(self, value: Any) -> str:
        if isinstance(self.kind, T.DateType):
            return f"date_from_unix_date({value})"
        if isinstance(self.kind, T.TimestampType):
            return f"timestamp_micros({value}L)"
        if isinstance(self.kind, _BYTES):
            content = value.encode() if isinstance(value, str) else value
            return f"CAST(X'{content.hex()}' AS {self.kind.simpleString()})"
        return f"CAST('{self.fitting(value)}' AS {self.kind.simpleString()})"


@dataclass(frozen=True)
class _Ends:
    """The ranges of some keys: ranges of the first key, and the two ends of each other key.

    ``nulls`` says for each key whether it is NULL in some row.
    """

    ranges: list[tuple[Any, Any]]
    others: list[tuple[Any, Any]]
    nulls: list[bool]


@dataclass(frozen=True)
class KeyEnds:
    """The ranges of some keys, whatever the names of the columns that are compared with them."""

    _ends: _Ends
    _kinds: tuple[T.DataType, ...]

    def near(self, keys: Sequence[Field]) -> Column:
        """Return a condition that is true if these columns have one of the keys."""
        first, *rest = _keys(keys, self._kinds)
        ranges, whole = self._ends.ranges, []
        if isinstance(first.kind, _IN_TEXTS):
            parts = [first.within(low, high) for low, high in ranges]
            parts += [f"{first.name} IS NULL"] if self._ends.nulls[0] else []
            whole = [f"({' OR '.join(parts)})"] if parts else []
        ends = zip(rest, self._ends.others, self._ends.nulls[1:], strict=True)
        for key, (low, high), has_null in ends:
            if isinstance(key.kind, _IN_ORDER) and low is not None and not has_null:
                whole.append(key.within(low, high))
        # One text costs one call into the JVM, and a column of its parts hundreds.
        return F.expr(" AND ".join(whole) or "TRUE")


def near_keys(rows: DataFrame, keys: Sequence[Field], count: int | None = None) -> Column:
    """Return a condition that is true for every key of ``rows``, and for few others.

    It has ranges of the first key, and one range of each other key. ``rows`` are kept, and
    ``count`` is their number. It takes one small job over them if there are up to a thousand, or up
    to half a million keys that are whole numbers or dates, and four jobs otherwise.
    """
    return key_ends(rows, keys, count).near(keys)


def key_ends(rows: DataFrame, keys: Sequence[Field], count: int | None = None) -> KeyEnds:
    """Return the ranges of the keys of ``rows``, by the jobs that `near_keys` describes."""
    kinds = rows.select(*[backticked(f.name) for f in keys]).schema
    columns = _keys(keys, [f.dataType for f in kinds])
    ends = None
    if count is None or count <= FEW:
        ends = _ends_of_few(rows, columns)
    elif count <= MOST_SHARED and all(isinstance(key.kind, _WHOLE) for key in columns):
        named = [key.plain.alias(f"key{n}") for n, key in enumerate(columns)]
        found = rows.select(*named).toArrow().columns
        each = [compute.unique(values).drop_null().sort().to_pylist() for values in found]
        ends = _ends_of(each, [bool(values.null_count) for values in found], columns)
    return KeyEnds(ends or _ends_of_many(rows, columns), tuple(f.dataType for f in kinds))


def _keys(keys: Sequence[Field], kinds: Sequence[T.DataType]) -> list[_Key]:
    return [_Key(backticked(f.name), kind) for f, kind in zip(keys, kinds, strict=True)]


def _ends_of_few(rows: DataFrame, keys: Sequence[_Key]) -> _Ends | None:
    """Return the ends of up to a thousand keys, None if there are more."""
    if not all(isinstance(key.kind, _IN_ORDER) for key in keys):
        return None
    found = few_rows(rows.select(*[key.plain for key in keys]))
    if found is None:
        return None
    # Bytes come as arrays, which a set cannot contain.
    each = [
        {bytes(row[n]) if isinstance(row[n], bytearray) else row[n] for row in found}
        for n in range(len(keys))
    ]
    return _ends_of([sorted(v - {None}) for v in each], [None in v for v in each], keys)


def _ends_of(each: Sequence[list[Any]], nulls: list[bool], keys: Sequence[_Key]) -> _Ends:
    """Return the ends of keys by the different values of each, which are sorted."""
    others = [(values[0], values[-1]) if values else (None, None) for values in each[1:]]
    return _Ends(_ranges(each[0], is_counted=keys[0].is_counted), others, nulls)


def _ranges(values: Sequence[Any], *, is_counted: bool) -> list[tuple[Any, Any]]:
    """Return ranges that hold sorted values, with small gaps."""
    cuts = list(range(1, len(values)))
    if len(values) > _MOST_RANGES and is_counted:
        cuts = sorted(nlargest(_MOST_RANGES - 1, cuts, key=lambda n: values[n] - values[n - 1]))
    elif len(values) > _MOST_RANGES:
        cuts = [n * len(values) // _MOST_RANGES for n in range(1, _MOST_RANGES)]
    edges = [0, *cuts, len(values)]
    return [(values[start], values[end - 1]) for start, end in pairwise(edges) if start < end]


def _ends_of_many(rows: DataFrame, keys: Sequence[_Key]) -> _Ends:
    """Return the ends of ranges with similar numbers of keys.

    Ranges with the same number of keys are cut once more in the middle of their values, so that the
    gap between two clusters of keys is left out.
    """
    first = keys[0]
    cuts = _cuts(rows, first) if first.is_counted else []
    parts = _parts(rows, keys, cuts)
    if cuts:
        middles = {first.middle(part["low0"], part["high0"]) for part in parts} - {None}
        parts = _parts(rows, keys, sorted({*cuts, *middles}))
    ranges = [(part["low0"], part["high0"]) for part in parts if part["low0"] is not None]
    nulls = [any(part[f"nulls{n}"] for part in parts) for n in range(len(keys))]
    others = []
    for n in range(1, len(keys)):
        lows, highs = ([p[f"{end}{n}"] for p in parts] for end in ("low", "high"))
        others.append((None, None) if nulls[n] else (min(lows), max(highs)))
    return _Ends(ranges, others, nulls)


def _cuts(rows: DataFrame, key: _Key) -> list[Any]:
    """Return values that split the keys into parts of about the same number."""
    parts = [n / _RANGES for n in range(1, _RANGES)]
    found = rows.select(F.percentile_approx(key.plain, parts, 1000)).collect()[0][0]
    # Spark turns large decimals into NULL here.
    return sorted({key.fitting(cut) for cut in found or [] if cut is not None})


def _parts(rows: DataFrame, keys: Sequence[_Key], cuts: Sequence[Any]) -> list[Row]:
    """Return the ends of each key between cuts of the first one; a row for each."""
    beyond = [F.when(keys[0].plain > F.lit(cut), 1).otherwise(0) for cut in cuts]
    place = reduce(lambda n, more: n + more, beyond, F.lit(0))
    bounds = [
        part
        for n, key in enumerate(keys)
        for part in (
            key.as_plain(F.min(key.column)).alias(f"low{n}"),
            key.as_plain(F.max(key.column)).alias(f"high{n}"),
            F.count_if(key.column.isNull()).alias(f"nulls{n}"),
        )
    ]
    return rows.groupBy(place.alias("place")).agg(*bounds).collect()


def small_source(source: DataFrame) -> Kept | None:
    """Return the rows of a source, computed and kept, None if there are many."""
    plan = engine_for(source.sparkSession).optimized_plan(source)
    if plan is None or plan.stats().sizeInBytes() > _MOST_BYTES:
        return None
    found = keep(source)
    return found if found.count <= MOST_SHARED else None


def near_source(
    source: Kept, table: TableVersion, pairs: Sequence[tuple[str, str]]
) -> Column | None:
    """Return a condition that holds for every row of a table that matches a row of the source.

    ``pairs`` are columns of the table and of the source that are equal in a match. One small job
    collects the source's. None if there are no such columns.
    """
    fields = {f.name: f for f in table.columns}
    named = {ours: theirs for ours, theirs in pairs if ours in fields}
    if not named or not source.count:
        return None
    keys = [F.col(backticked(theirs)).alias(ours) for ours, theirs in named.items()]
    return near_keys(source.rows.select(*keys), [fields[ours] for ours in named], source.count)
