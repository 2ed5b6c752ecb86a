"""Where the keys of a load lie, as a condition by which files of the table are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.quoting import backticked
from shelduck.model.schema import Field

# Into so many ranges the first key is cut, and each of them once more.
_RANGES = 16
# More digits than decimals of Spark have, and sums of two; Python's own arithmetic has 28.
_EXACT = 80
_COUNTED = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType)


@dataclass(frozen=True)
class _Key:
    """A key column, and how its values come to Python and back without being bent.

    Dates and instants do as numbers: Python knows fewer of them, and instants in one time zone.
    """

    column: Column
    kind: T.DataType

    @property
    def plain(self) -> Column:
        """The values as Python holds them."""
        return self.as_plain(self.column)

    @property
    def is_counted(self) -> bool:
        """True where there are values in the middle of two others."""
        return isinstance(self.kind, (*_COUNTED, T.DateType, T.TimestampType))

    def as_plain(self, value: Column) -> Column:
        """Return a value of the column as Python holds it."""
        if isinstance(self.kind, T.DateType):
            return F.unix_date(value)
        if isinstance(self.kind, T.TimestampType):
            return F.unix_micros(value)
        return value.cast("string") if isinstance(self.kind, T.TimestampNTZType) else value

    def fitting(self, value: Any) -> Any:
        """Return a value with no more digits than the column's type has.

        Spark's estimates have more; so have small decimals by the way in which they come to Python.
        """
        if not isinstance(self.kind, T.DecimalType):
            return value
        with localcontext(prec=_EXACT, rounding=ROUND_FLOOR):
            return value.quantize(Decimal(1).scaleb(-self.kind.scale))

    def middle(self, low: Any, high: Any) -> Any:
        """Return a value between two ends, None where there is none."""
        if low is None or low == high:
            return None
        if isinstance(low, int):
            return (low + high) // 2
        with localcontext(prec=_EXACT):
            return self.fitting((low + high) / 2)

    def within(self, low: Any, high: Any) -> Column:
        """Return whether a value lies between two others."""
        if low == high:
            return self.column == self._back(low)
        return self.column.between(self._back(low), self._back(high))

    def _back(self, value: Any) -> Column:
        if isinstance(self.kind, T.DateType):
            return F.date_from_unix_date(F.lit(value))
        if isinstance(self.kind, T.TimestampType):
            return F.timestamp_micros(F.lit(value))
        return F.lit(self.fitting(value)).cast(self.kind)


def near_keys(rows: DataFrame, keys: Sequence[Field]) -> Column:
    """Return a condition that holds for every key of ``rows``, and for few others.

    Ranges of the first key, and one of each other; a few small jobs over ``rows``, which are kept.
    Keys are often few, and far apart: ranges of as many keys each are cut once more in the middle
    of their values, so that what lies between two clusters of keys is left out.
    """
    names = [backticked(f.name) for f in keys]
    kinds = rows.select(*names).schema
    columns = [_Key(F.col(n), f.dataType) for n, f in zip(names, kinds, strict=True)]
    first, *rest = columns
    cuts = _cuts(rows, first) if first.is_counted else []
    parts = _parts(rows, columns, cuts)
    if cuts:
        middles = {first.middle(part["low0"], part["high0"]) for part in parts} - {None}
        parts = _parts(rows, columns, sorted({*cuts, *middles}))
    ranges = [first.within(p["low0"], p["high0"]) for p in parts if p["low0"] is not None]
    if any(part["nulls0"] for part in parts):
        ranges.append(first.column.isNull())
    whole = [reduce(or_, ranges)] if ranges else []
    for n, key in enumerate(rest, 1):
        if not isinstance(key.kind, T.TimestampNTZType) and not any(p[f"nulls{n}"] for p in parts):
            lows, highs = ([part[f"{end}{n}"] for part in parts] for end in ("low", "high"))
            whole.append(key.within(min(lows), max(highs)))
    return reduce(and_, whole, F.lit(True))


def _cuts(rows: DataFrame, key: _Key) -> list[Any]:
    """Return values between which about as many keys lie each."""
    parts = [n / _RANGES for n in range(1, _RANGES)]
    found = rows.select(F.percentile_approx(key.plain, parts, 1000)).collect()[0][0]
    # Of decimals that are great Spark makes NULL.
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
