"""Rows of a scan plan as a DataFrame: one native scan per group, projected and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.files import DataFile, InlinedRows
from shelduck.model.quoting import backticked
from shelduck.model.types import Decimal, Primitive
from shelduck.planning.scan import ReadColumn, ScanGroup, ScanPlan
from shelduck.spark.bridge import Bridge, Deletes, FileEntry, bridge_for
from shelduck.spark.columns import to_column
from shelduck.spark.inlined import inlined_frame
from shelduck.spark.public_read import ROW_ID_START, ROW_INDEX, public_group
from shelduck.spark.types import spark_type
from shelduck.spark.values import exists_default

Prune = Callable[[ScanGroup, list[str]], set[int] | None]

ROW_ID = "_row_id"


def read_rows(
    spark: SparkSession,
    plan: ScanPlan,
    *,
    prune: Prune | None = None,
    inlined: Sequence[InlinedRows] = (),
    row_ids: bool = False,
) -> DataFrame:
    """Return the rows of a plan, and of ``inlined``, with the table's current names and types.

    ``prune`` is asked while Spark plans a query: it gets a group and Spark's filters on the group's
    read columns as SQL texts, and answers with the ids of the data files that may hold a matching
    row, or None for all. Without a bridge into the JVM (Spark Connect) it is not asked.
    ``row_ids`` adds the column ``_row_id``. Every column is nullable.
    """
    bridge = bridge_for(spark)
    frames = [
        _group(spark, bridge, plan, group, prune, row_ids=row_ids)
        for group in plan.groups
        if group.files
    ]
    if any(rows.rows for rows in inlined):
        frames.append(inlined_frame(spark, plan.columns, inlined, ROW_ID if row_ids else None))
    if not frames:
        return spark.createDataFrame([], _schema(plan, row_ids=row_ids))
    return reduce(DataFrame.unionAll, frames)


def _schema(plan: ScanPlan, *, row_ids: bool) -> T.StructType:
    fields = [T.StructField(f.name, spark_type(f.type, f.name)) for f in plan.columns]
    return T.StructType(fields + ([T.StructField(ROW_ID, T.LongType())] if row_ids else []))


def _group(
    spark: SparkSession,
    bridge: Bridge | None,
    plan: ScanPlan,
    group: ScanGroup,
    prune: Prune | None,
    *,
    row_ids: bool,
) -> DataFrame:
    schema = _read_schema(group, row_ids=row_ids)
    snapshot = plan.table.snapshot.id
    if bridge is None:
        found = public_group(spark, group, schema, snapshot, row_ids=row_ids)
    else:
        found = _bridged(bridge, group, schema, snapshot, prune)
    if group.snapshot_column is not None:
        found = found.where(F.col(backticked(group.snapshot_column)) <= F.lit(snapshot))
    # Metadata of the read schema says how files are read; it is no part of the rows.
    made = [
        to_column(e).alias(f.name, metadata={})
        for f, e in zip(plan.columns, group.outputs, strict=True)
    ]
    if row_ids:
        index = "_metadata.row_index" if bridge is not None else ROW_INDEX
        made.append(_row_id(group, index).alias(ROW_ID, metadata={}))
    return found.select(*made)


def _row_id(group: ScanGroup, index: str) -> Column:
    counted = F.col(ROW_ID_START) + F.col(index)
    if group.row_id_column is None:
        return counted
    return F.coalesce(F.col(backticked(group.row_id_column)), counted)


def _read_schema(group: ScanGroup, *, row_ids: bool) -> T.StructType:
    fields = [_read_field(c) for c in group.read]
    known = {c.name for c in group.read}
    extra = [group.snapshot_column, group.row_id_column if row_ids else None]
    fields += [T.StructField(n, T.LongType()) for n in extra if n is not None and n not in known]
    return T.StructType(fields)


def _read_field(column: ReadColumn) -> T.StructField:
    found = T.StructField(column.name, spark_type(column.type, column.name))
    if column.default is not None:
        assert isinstance(column.type, Primitive | Decimal)
        found.metadata = {"EXISTS_DEFAULT": exists_default(column.type, column.default)}
    return found


def _bridged(
    bridge: Bridge, group: ScanGroup, schema: T.StructType, snapshot: int, prune: Prune | None
) -> DataFrame:
    constants = T.StructType(
        [T.StructField(ROW_ID_START, T.LongType())]
        + [T.StructField(name, T.StringType()) for name in group.constants]
    )

    def lister(filters: list[str]) -> Iterable[FileEntry]:
        kept = prune(group, filters) if prune is not None and filters else None
        for file, values in zip(group.files, group.values, strict=True):
            if kept is None or file.id in kept:
                yield FileEntry(
                    file.path,
                    file.file_size_bytes,
                    (file.row_id_start, *values),
                    _deletes(file, snapshot) if group.with_deletes else None,
                )

    return bridge.relation(
        schema,
        constants,
        lister,
        with_deletes=group.with_deletes,
        size_in_bytes=sum(f.file_size_bytes for f in group.files),
    )


def _deletes(file: DataFile, snapshot: int) -> Deletes:
    path = file.delete_file.path if file.delete_file is not None else None
    return Deletes(path, snapshot, file.inlined_deletes)
