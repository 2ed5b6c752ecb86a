"""Where the keys of a load lie, as a condition by which files of the table are left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.quoting import backticked
from shelduck.model.schema import Field

# Into so many ranges the first key is cut: keys of a load are often few, and far apart.
_RANGES = 32
_CUTTABLE = (
    *(T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType),
)


def near_keys(rows: DataFrame, keys: Sequence[Field]) -> Column:
    """Return a condition that holds for every key of ``rows``, and for few others.

    Ranges of the first key, and one of each other; two small jobs over ``rows``, which are kept.
    """
    first, *rest = (F.col(backticked(f.name)) for f in keys)
    cuts = _cuts(rows, first)
    bucket = reduce(lambda n, cut: n + F.when(first > F.lit(cut), 1).otherwise(0), cuts, F.lit(0))
    bounds = [
        part
        for n, key in enumerate([first, *rest])
        for part in (
            F.min(key).alias(f"min{n}"),
            F.max(key).alias(f"max{n}"),
            F.count_if(key.isNull()).alias(f"nulls{n}"),
        )
    ]
    # As many rows of bounds as there are ranges.
    found = rows.groupBy(bucket.alias("bucket")).agg(*bounds).collect()
    ranges = [_within(first, row["min0"], row["max0"]) for row in found if row["min0"] is not None]
    if any(row["nulls0"] for row in found):
        ranges.append(first.isNull())
    whole = [reduce(or_, ranges)]
    for n, key in enumerate(rest, 1):
        low = [row[f"min{n}"] for row in found if row[f"min{n}"] is not None]
        high = [row[f"max{n}"] for row in found if row[f"max{n}"] is not None]
        if low and not any(row[f"nulls{n}"] for row in found):
            whole.append(_within(key, min(low), max(high)))
    return reduce(and_, whole)


def _cuts(rows: DataFrame, key: Column) -> list[object]:
    """Return values between which about as many keys lie each; none for what is not counted."""
    kind = rows.select(key).schema[0].dataType
    if not isinstance(kind, _CUTTABLE):
        return []
    parts = [n / _RANGES for n in range(1, _RANGES)]
    found = rows.select(F.percentile_approx(key, parts, 1000)).collect()[0][0]
    return sorted(set(found or []))


def _within(key: Column, low: object, high: object) -> Column:
    return key == F.lit(low) if low == high else key.between(F.lit(low), F.lit(high))
