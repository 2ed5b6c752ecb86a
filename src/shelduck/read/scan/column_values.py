"""Values of columns: counted as Spark's ANALYZE TABLE does, or those in the dictionaries of files.

Of a file with dictionaries, no other page is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Engine, FileEntry, FileRelation
from shelduck.engine.types import spark_type
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked

_COUNTED = (T.NumericType, T.BooleanType, T.StringType, T.BinaryType, T.DateType)
_TIMES = (T.TimestampType, T.TimestampNTZType)
_ERROR = "spark.sql.statistics.ndv.maxError"
OF_FILE = "__shelduck_of_file"
"""The column with the id of the file that has a value."""
_NAME = "__shelduck_name_in_file"
_CONSTANTS = T.StructType(
    [T.StructField(_NAME, T.StringType()), T.StructField(OF_FILE, T.LongType())]
)


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


class DictionaryFile(NamedTuple):
    """A file to look at. Its column has this ``name``; None is the one with the column's id."""

    id: int
    path: str
    name: str | None = None


def dictionary_values(
    engine: Engine, table: TableVersion, column: Field, files: Sequence[DictionaryFile]
) -> DataFrame:
    """Return the different values of a column of texts or floats in each file, and its id.

    Deleted rows count, and a value may come again for each row group. A file whose dictionaries are
    not certain to hold all values, or are too large, has one row, with NULL; so has one that cannot
    be read. A file in which the column has only NULL has no row.
    """

    def lister(_filters: list[str]) -> Iterable[FileEntry]:
        # As few bytes are read of a large file as of a small one, so a task gets many.
        return [FileEntry(file.path, 1, (file.name, file.id)) for file in files]

    asked = FileRelation(
        T.StructType([T.StructField(column.name, spark_type(column.type, column.name))]),
        _CONSTANTS,
        lister,
        places=[file.path for file in files],
        root=f"dictionaries of {table.full_name}",
        table=table.full_name,
        dictionary=column.id,
        encrypted=table.options.encrypted,
    )
    return engine.relation(asked).drop(_NAME)


def with_rows(values: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the values of dictionaries, and those of other rows, which are in no file."""
    [name] = rows.columns
    nowhere = F.lit(None).cast("bigint").alias(OF_FILE)
    held = rows.where(F.col(backticked(name)).isNotNull())
    return values.unionAll(held.select(backticked(name), nowhere))


def with_values(values: DataFrame) -> DataFrame:
    """Return the values without the rows that stand for files that must be read."""
    [name] = [name for name in values.columns if name != OF_FILE]
    return values.where(F.col(backticked(name)).isNotNull())
