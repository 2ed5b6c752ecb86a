"""Rows that were computed once and are kept, in executors or the driver, until they are written.

One write tells the old versions of the rows that it changes: which rows, and where they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, engine_for, listed_rows, select_named
from shelduck.engine.files.footers import read_columns
from shelduck.engine.files.storage import Listed, delete_files, in_threads
from shelduck.engine.rows.assign import telling_failures
from shelduck.engine.session import is_local, local_size
from shelduck.model.files.data_file import ROW_ID_COLUMN, DataFile, InlinedRows
from shelduck.model.files.place import place_below
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import Origin

_FILE_BYTES = 128 * 1024 * 1024
_ROW_BYTES = 100
# More of them are too many for the memory of every executor.
MOST_SHARED = 500_000
FEW = 1000
"""Up to this many rows are read here, and kept in one part."""
NUMBER = "__shelduck_number"
"""The place of a row among those that were brought."""
# Arrow and Spark hold them in the same form, so they come back as they were. A TIMESTAMP is an
# instant in both, whatever the session's time zone.
_SAME_IN_ARROW = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
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


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that were computed once: how many, and how many of them meet conditions.

    They are in executors, or ``in_plan``.
    """

    rows: DataFrame
    count: int
    holds: tuple[int, ...]
    in_plan: bool = False


def keep(rows: DataFrame, *conditions: Column) -> Kept:
    """Compute rows only once, so that all later steps agree; count them at the same time.

    Rows that Spark's plan holds stay there, and no job runs, unless there are conditions. Up to
    `FEW` others are in one part, so that Spark shuffles nothing to sort, group or join them; if
    they are lost, later queries over them fail. A value that does not fit its column is
    InvalidRequest.
    """
    if not conditions:
        with telling_failures():
            here = engine_for(rows.sparkSession).held(rows)
        if here is not None:
            return Kept(here, local_size(here) or 0, (), in_plan=True)
    counts = [F.count(F.lit(1)), *map(F.count_if, conditions)]
    named = [c.alias(f"{n}") for n, c in enumerate(counts)]
    with telling_failures():
        found, (count, *holds) = engine_for(rows.sparkSession).checkpoint(rows, named)
    return Kept(found.coalesce(1) if count <= FEW else found, count, tuple(holds))


def shared(rows: DataFrame, count: int) -> DataFrame:
    """Return ``count`` rows for a join; each executor gets all of them if they fit."""
    return F.broadcast(rows) if count <= MOST_SHARED else rows


def few_rows(rows: DataFrame) -> list[Row] | None:
    """Collect up to `FEW` kept rows by one small job; None if there are more.

    No job runs if the plan holds the rows itself.
    """
    found = (rows if is_local(rows) else rows.coalesce(1)).limit(FEW + 1).collect()
    return found if len(found) <= FEW else None


def versions(rows: DataFrame, table: TableVersion, *, with_row_ids: bool) -> DataFrame:
    """Return rows as they are written: the table's columns, followed by their row ids."""
    columns = [Named(f.name, backticked(f.name)) for f in table.columns]
    if with_row_ids:
        columns.append(Named(ROW_ID_COLUMN, Origin.ROW_ID))
    return select_named(rows, columns)


def parts_of(count: int, files: Sequence[DataFile]) -> int:
    """Return how many files ``count`` rows need, with the row size of ``files``.

    Without this, rows from many files would be written to as many files.
    """
    counted = [(f.file_size_bytes, f.record_count) for f in files if f.record_count]
    bytes_per_row = _ROW_BYTES
    if counted:
        bytes_per_row = math.ceil(sum(b for b, _ in counted) / sum(n for _, n in counted))
    return parts_of_bytes(count * bytes_per_row)


def parts_of_bytes(size: int) -> int:
    """Return how many files of a usual size hold ``size`` bytes."""
    return max(1, math.ceil(size / _FILE_BYTES))


def of_files(rows: DataFrame) -> DataFrame:
    """Return the rows that are in files, not in the catalog."""
    return rows.where(f"{Origin.FILE_ID} IS NOT NULL")


def of_catalog(rows: DataFrame) -> DataFrame:
    """Return the rows in the catalog itself."""
    return rows.where(f"{Origin.FILE_ID} IS NULL")


def with_row_id(rows: DataFrame) -> DataFrame:
    """Return the rows that have a row id."""
    return rows.where(f"{Origin.ROW_ID} >= 0")


def without_row_id(rows: DataFrame) -> DataFrame:
    """Return the rows that have no row id yet; a negative one is a transaction's own number."""
    return rows.where(f"coalesce({Origin.ROW_ID}, -1) < 0")


def may_lack_row_ids(files: Iterable[DataFile], inlined: Iterable[InlinedRows]) -> bool:
    """Return whether rows of these files, or inlined rows, may have no row id yet."""
    own = any(number < 0 for part in inlined for number in part.row_ids)
    return own or any(f.row_id_start is None for f in files)


def distinct(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return these columns of the rows, each combination of values once."""
    return rows.select(*columns).distinct()


@dataclass(frozen=True, slots=True)
class Brought:
    """Rows in the driver."""

    spark: SparkSession
    shape: T.StructType
    table: pa.Table

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return int(self.table.num_rows)

    @property
    def rows(self) -> DataFrame:
        """Return the rows as a DataFrame whose plan holds them."""
        return self.spark.createDataFrame(self.table, self.shape)

    def values(self, name: str) -> list[object]:
        """Return the values of a column."""
        return list(self.table[name].to_pylist())

    @property
    def numbered(self) -> Brought:
        """Return the rows followed by `NUMBER`."""
        numbers = pa.array(range(self.count), pa.int64())
        shape = T.StructType([*self.shape.fields, T.StructField(NUMBER, T.LongType())])
        return Brought(self.spark, shape, self.table.append_column(NUMBER, numbers))

    def without(self, name: str, values: Iterable[object]) -> Brought:
        """Return the rows that have none of these values in a column."""
        gone = set(values)
        left = pa.array([value not in gone for value in self.values(name)], pa.bool_())
        return Brought(self.spark, self.shape, self.table.filter(left))


def can_bring(rows: DataFrame) -> bool:
    """Return whether a plan holds all of its rows, they are few, and they come back unchanged.

    A value that does not fit its column is InvalidRequest.
    """
    if not engine_for(rows.sparkSession).has_its_rows(rows):
        return False
    if not all(isinstance(f.dataType, _SAME_IN_ARROW) for f in rows.schema):
        return False
    with telling_failures():
        size = local_size(rows)
    return size is not None and size <= FEW


def bring(rows: DataFrame) -> Brought:
    """Compute few rows only once, and bring them here by one job.

    A value that does not fit its column is InvalidRequest.
    """
    with telling_failures():
        return Brought(rows.sparkSession, rows.schema, rows.toArrow())


_NO_ORIGINS = pa.schema([(column.split()[0], pa.int64()) for column in _SHAPE.split(", ")])


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
            shape = T.StructType([T.StructField(n, T.LongType()) for n in _NO_ORIGINS.names])
            found = listed_rows(spark, shape, [(root + name, ()) for name in files])
            return Origins(engine_for(spark).checkpoint(found, [F.count("*").alias("0")])[0])
        return Origins(pa.concat_tables(in_threads(lambda n: read_columns(root + n, None), files)))
    finally:
        delete_files(place_below(root, name) for name in files)


def _sum(flags: pa.ChunkedArray) -> int:
    return int(compute.sum(flags).as_py() or 0)
