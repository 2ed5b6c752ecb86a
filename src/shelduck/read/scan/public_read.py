"""The same scan with Spark's public API only, for sessions without access to a JVM (Connect)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.faults import DAMAGED
from shelduck.engine.bridge.relation import LISTED_FILES
from shelduck.engine.files.physical import SNAPSHOT_COLUMN
from shelduck.engine.stores.homes import spark_options, spark_path
from shelduck.engine.types import spark_type
from shelduck.errors import Unsupported
from shelduck.model.files.data_file import DataFile
from shelduck.model.types.data_types import FLOATS, DataType, Primitive, Struct
from shelduck.read.plan.scan import ScanGroup

ROW_ID_START = "__shelduck_row_id_start"
FILE_ID = "__shelduck_file_id"
BEGIN_SNAPSHOT = "__shelduck_begin_snapshot"
ROW_INDEX = "__shelduck_row_index"
DELETE_SCHEMA = T.StructType(
    [T.StructField("pos", T.LongType()), T.StructField(SNAPSHOT_COLUMN, T.LongType())]
)

_FILE = "__shelduck_file"
_NAME = "__shelduck_name"
_POSITION = "__shelduck_position"
_ROWS = "__shelduck_rows"
# A broadcast of more deleted positions than this is split into several, by files.
_BROADCAST_ROWS = 4_000_000


def public_group(
    spark: SparkSession, group: ScanGroup, schema: T.StructType, snapshot: int, *, origins: bool
) -> DataFrame:
    """Return the live rows of a group with its read columns and constants.

    ``origins`` adds row id starts, file ids, begin snapshots and row indexes. Spark reads deleted
    positions from the delete files and removes them with a join by file name and row index; a
    broadcast never holds more than some millions of them. Raises Unsupported for deletion vectors,
    which only the bridge reads.
    """
    _refuse_vectors(group.files)
    frames = [
        _batch(spark, group, batch, schema, snapshot, origins=origins) for batch in _batches(group)
    ]
    return reduce(DataFrame.unionAll, frames)


def _refuse_vectors(files: Sequence[DataFile]) -> None:
    for file in files:
        if file.delete_file is not None and file.delete_file.format != "parquet":
            raise Unsupported(
                f"data file {file.path} has its deletes in a {file.delete_file.format} file, which"
                " cannot be read over Spark Connect; use a classic session, or rewrite the file"
                " with DuckDB (CALL ducklake_rewrite_data_files)"
            )


def deleted_positions(
    spark: SparkSession, files: Sequence[DataFile], snapshot: int, file_id: str, position: str
) -> DataFrame:
    """Return what the delete files of data files name, as columns with these names.

    Deletes in the catalog are left out. Raises Unsupported as `public_group` does.
    """
    stored = [f._replace(inlined_deletes=()) for f in files]
    _refuse_vectors(stored)
    frames = []
    for numbers in _apart(stored):
        part = [stored[n] for n in numbers]
        ids = spark.createDataFrame(
            [(_name(f.path), f.id) for f in part], f"{_NAME} string, id long"
        )
        found = _deleted(spark, part, snapshot).join(F.broadcast(ids), _NAME)
        frames.append(found.select(F.col("id").alias(file_id), F.col(_POSITION).alias(position)))
    return reduce(DataFrame.unionAll, frames)


def _apart(files: Sequence[DataFile]) -> list[list[int]]:
    """Return numbers of files in batches in which no two data or delete files share a name."""
    batches: list[tuple[set[str], list[int]]] = []
    for number, file in enumerate(files):
        names = {_name(file.path)} | ({_name(file.delete_file.path)} if file.delete_file else set())
        for known, numbers in batches:
            if not known & names:
                known.update(names)
                numbers.append(number)
                break
        else:
            batches.append((names, [number]))
    return [numbers for _, numbers in batches]


def _batches(group: ScanGroup) -> Iterator[list[int]]:
    """Yield numbers of files that their names identify and that are read in the same way.

    They share their path's values, and all or none of them have deletes.
    """
    open_batches: list[tuple[set[str], object, list[int], int]] = []
    for number, (file, values) in enumerate(zip(group.files, group.values, strict=True)):
        names = {_name(file.path)} | ({_name(file.delete_file.path)} if file.delete_file else set())
        rows = file.dead_rows
        alike = (values, rows > 0)
        for at, (known, shared, numbers, total) in enumerate(open_batches):
            if shared == alike and not known & names and total + rows <= _BROADCAST_ROWS:
                open_batches[at] = (known | names, shared, [*numbers, number], total + rows)
                break
        else:
            open_batches.append((names, alike, [number], rows))
    for _, _, numbers, _ in open_batches:
        yield numbers


def _batch(
    spark: SparkSession,
    group: ScanGroup,
    numbers: Sequence[int],
    schema: T.StructType,
    snapshot: int,
    *,
    origins: bool,
) -> DataFrame:
    files = [group.files[n] for n in numbers]
    reader = spark.read.schema(schema).options(**LISTED_FILES)
    reader = reader.options(**spark_options(f.path for f in files))
    found = reader.parquet(*[spark_path(f.path) for f in files])
    for name, value in zip(group.constants, group.values[numbers[0]], strict=True):
        found = found.withColumn(name, F.lit(value).cast(T.StringType()))
    has_deletes = any(f.dead_rows for f in files)
    if has_deletes or origins:
        # As separate columns: both sides of a join have a _metadata.
        found = found.withColumns(
            {_FILE: metadata_of(found, "file_name"), ROW_INDEX: metadata_of(found, "row_index")}
        )
    if has_deletes:
        dead = F.broadcast(_deleted(spark, files, snapshot))
        same = (found[_FILE] == dead[_NAME]) & (found[ROW_INDEX] == dead[_POSITION])
        found = found.join(dead, same, "left_anti")
    if has_deletes and not origins:
        # Batches without deletes do not have them.
        found = found.drop(_FILE, ROW_INDEX)
    if origins:
        rows = [(_name(f.path), f.row_id_start, f.id, f.begin_snapshot) for f in files]
        shape = ", ".join(f"{n} bigint" for n in (ROW_ID_START, FILE_ID, BEGIN_SNAPSHOT))
        known = spark.createDataFrame(rows, f"{_NAME} string, {shape}")
        found = found.join(F.broadcast(known), found[_FILE] == known[_NAME], "left")
    return found


def _deleted(spark: SparkSession, files: Sequence[DataFile], snapshot: int) -> DataFrame:
    shape = f"{_NAME} string, {_POSITION} bigint"
    inlined = [(_name(f.path), p) for f in files for p in f.inlined_deletes]
    frames = [spark.createDataFrame(inlined, shape)] if inlined else []
    stored = {_name(f.delete_file.path): f for f in files if f.delete_file}
    if stored:
        paths = [f.delete_file.path for f in stored.values() if f.delete_file]
        owned = [(name, _name(f.path), f.record_count) for name, f in stored.items()]
        owners = spark.createDataFrame(
            owned, f"__shelduck_delete string, {_NAME} string, {_ROWS} bigint"
        )
        later = F.col(SNAPSHOT_COLUMN) > F.lit(snapshot)
        positions = (
            spark.read.schema(DELETE_SCHEMA)
            .options(**LISTED_FILES, **spark_options(paths))
            .parquet(*[spark_path(path) for path in paths])
            .where(~F.coalesce(later, F.lit(False)))
            .select(F.col("_metadata.file_name").alias(_FILE), F.col("pos").alias(_POSITION))
        )
        of_file = positions[_FILE] == owners["__shelduck_delete"]
        place = F.col(_POSITION)
        is_row = (place >= 0) & ~F.coalesce(place >= F.col(_ROWS), F.lit(False))
        told = F.concat(F.lit(f"{DAMAGED}delete file has a wrong position: "), _FILE)
        known = F.when(is_row, place).otherwise(F.raise_error(told)).alias(_POSITION)
        frames.append(positions.join(F.broadcast(owners), of_file).select(_NAME, known))
    return reduce(DataFrame.unionAll, frames)


def metadata_of(scan: DataFrame, name: str) -> Column:
    """Return Spark's metadata of each row's file, whatever the names of its columns are."""
    return scan.metadataColumn("_metadata").getField(name)


def unpushed(value: Column, kind: DataType) -> Column:
    """Return a value unchanged, but so that filters on floats skip no row group in Spark.

    Parquet orders -0.0 before 0.0, but Spark treats them as equal, and footers of some writers do
    not mention NaN.
    """
    if isinstance(kind, Primitive) and kind.name in FLOATS:
        return F.nanvl(value, F.lit(float("nan")).cast(spark_type(kind)))
    if isinstance(kind, Struct) and _holds_float(kind):
        parts = [unpushed(value.getField(m.name), m.type).alias(m.name) for m in kind.members]
        return F.when(value.isNotNull(), F.struct(*parts))
    return value


def _holds_float(kind: DataType) -> bool:
    if isinstance(kind, Struct):
        return any(_holds_float(m.type) for m in kind.members)
    return isinstance(kind, Primitive) and kind.name in FLOATS


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
