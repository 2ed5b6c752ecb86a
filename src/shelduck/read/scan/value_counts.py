"""How many different values, NULLs and bytes columns have, as Spark's ANALYZE TABLE counts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.text.names import backticked

_COUNTED = (T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType)
_TIMES = (T.TimestampType, T.TimestampNTZType)
_ERROR = "spark.sql.statistics.ndv.maxError"


class ValueCounts(NamedTuple):
    """The counts of a column. Only texts and bytes have lengths, None if all are NULL."""

    distinct: int
    nulls: int
    average: int | None
    longest: int | None


def countable(rows: DataFrame) -> list[str]:
    """Return the columns of types whose values Spark counts."""
    return [f.name for f in rows.schema if isinstance(f.dataType, _COUNTED + _TIMES)]


def count_values(rows: DataFrame, columns: Sequence[str]) -> tuple[int, list[ValueCounts]]:
    """Return the number of rows, and the counts of each column; one job.

    Distinct values are estimated, as exactly as the session asks Spark for.
    """
    error = float(rows.sparkSession.conf.get(_ERROR, "0.05") or "0.05")
    kinds = {f.name: f.dataType for f in rows.schema}
    asked: list[Column] = [F.count(F.lit(1))]
    for name in columns:
        column = F.col(backticked(name))
        asked += [F.approx_count_distinct(column, error), F.count(column)]
        if isinstance(kinds[name], T.StringType | T.BinaryType):
            length = F.length(column)
            asked += [F.ceil(F.avg(length)), F.max(length)]
        else:
            asked += [F.lit(None), F.lit(None)]
    [(count, *values)] = rows.agg(*asked).collect()
    found = [values[at : at + 4] for at in range(0, len(values), 4)]
    return count, [ValueCounts(min(one[0], one[1]), count - one[1], *one[2:]) for one in found]
