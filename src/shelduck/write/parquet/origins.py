"""The old versions of changed rows, as one write tells them: which rows, and where they are.

The bridge's `ChangeWriter` writes new rows and origins in one pass, so they always agree, even if a
condition is random or the order of a join is not fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, engine_for, sealed_rows, select_named
from shelduck.engine.bridge.engine import EXACT_PATH
from shelduck.engine.files.footers import read_columns
from shelduck.engine.files.storage import Listed, delete_files
from shelduck.engine.stores.homes import spark_options, spark_path
from shelduck.model.files.layout import ROW_ID_COLUMN
from shelduck.model.files.place import key_of, place_below
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import Origin

ACTION = "__shelduck_action"
MARKS = (ACTION, Origin.FILE_ID, Origin.POSITION)
"""The columns of changed rows that follow those of the table and the row id."""

UPDATED, INSERTED, DELETED = 1, 2, 3
"""The values of `ACTION`; the bridge's `ChangeWriter` knows these numbers."""

_ORIGINS, _NEW = ".origins.parquet", ".new.parquet"
_ROW, _PLACE = ["file", "pos", "row"], ["file", "pos"]
# Origins that come to the driver: up to 25 bytes each.
_MOST_COLLECTED = 16_000_000
_SHAPE = "action bigint, file bigint, pos bigint, row bigint"
_NO_ORIGINS = pa.schema([(column.split()[0], pa.int64()) for column in _SHAPE.split(", ")])
_THREADS = 16


def is_origins(file: Listed) -> bool:
    """Return whether a file of a write lists origins, and no rows."""
    return file.name.endswith(_ORIGINS)


def has_row_ids(file: Listed) -> bool:
    """Return whether the rows in a file of changed rows have their row ids."""
    return not file.name.endswith(_NEW)


@dataclass(frozen=True, slots=True)
class Origins:
    """The updated and deleted rows of a write.

    ``rows`` has the columns ``action``, ``file``, ``pos`` and ``row``, which is the row id. Rows in
    the catalog itself have no file and no position.
    """

    rows: pa.Table | DataFrame

    def distinct(self) -> tuple[Origins, int]:
        """Return each row once, and how many rows are changed more than once."""
        if isinstance(self.rows, DataFrame):
            grouped = self.rows.groupBy(*_ROW)
            both = grouped.agg(F.min("action").alias("action"), F.count("*").alias("times"))
            return Origins(both), both.where("times > 1").count()
        found = self.rows.group_by(_ROW).aggregate([("action", "min"), ("action", "count")])
        found = found.rename_columns([*_ROW, "action", "times"])
        return Origins(found), _sum(compute.greater(found["times"], 1))

    def count(self, action: int) -> int:
        """Return how many rows have an action."""
        if isinstance(self.rows, DataFrame):
            return self.rows.where(F.col("action") == action).count()
        return _sum(compute.equal(self.rows["action"], action))

    @property
    def positions(self) -> pa.Table | DataFrame:
        """Return where the rows in files are, as `write_delete_files` takes it."""
        if isinstance(self.rows, DataFrame):
            named = (F.col(n).alias(o) for n, o in zip(_PLACE, MARKS[1:], strict=True))
            return self.rows.where("file IS NOT NULL").select(*named)
        return self.rows.filter(compute.is_valid(self.rows["file"])).select(_PLACE)

    @property
    def inlined(self) -> tuple[int, ...]:
        """Return the row ids of the rows in the catalog, which are few."""
        if isinstance(self.rows, DataFrame):
            found = [row[0] for row in self.rows.where("file IS NULL").select("row").collect()]
        else:
            found = self.rows.filter(compute.is_null(self.rows["file"]))["row"].to_pylist()
        return tuple(sorted(found))


def marked(rows: DataFrame, table: TableVersion, action: int | None = None) -> DataFrame:
    """Return changed rows as `write_files` takes them: columns, row id, and `MARKS`.

    ``rows`` have the table's columns, the origins ROW_ID, FILE_ID and POSITION, and `ACTION` unless
    ``action`` is that of all rows.
    """
    columns = [Named(f.name, backticked(f.name)) for f in table.columns]
    columns.append(Named(ROW_ID_COLUMN, Origin.ROW_ID))
    told = ACTION if action is None else F.lit(action).cast(T.LongType())
    columns.append(Named(ACTION, told))
    return select_named(rows, [*columns, *(Named(name, name) for name in MARKS[1:])])


def taken_origins(spark: SparkSession, root: str, files: Sequence[str], count: int) -> Origins:
    """Read the origins of a write, ``count`` in all, and delete their files below ``root``.

    A write that changes no row may leave no file: tasks without rows make none in partitions.
    """
    if not files:
        return Origins(_NO_ORIGINS.empty_table())
    try:
        if count > _MOST_COLLECTED:
            if key_of(files[0]) is not None:
                shape = T.StructType([T.StructField(n, T.LongType()) for n in _NO_ORIGINS.names])
                found = sealed_rows(spark, shape, [(root + name, ()) for name in files])
            else:
                read = spark.read.schema(_SHAPE).options(**EXACT_PATH, **spark_options([root]))
                found = read.parquet(*[spark_path(root + name) for name in files])
            return Origins(engine_for(spark).checkpoint(found, [F.count("*").alias("0")])[0])
        with ThreadPoolExecutor(_THREADS) as pool:
            tables = pool.map(lambda name: read_columns(root + name, None), files)
            return Origins(pa.concat_tables(tables))
    finally:
        delete_files(place_below(root, name) for name in files)


def _sum(flags: pa.ChunkedArray) -> int:
    return int(compute.sum(flags).as_py() or 0)
