"""Writes through the bridge: Spark's own Parquet writer, with ids at every level."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame

from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import FieldId
from shelduck.spark.bridge import Bridge, Named, Reports, select_named
from shelduck.spark.files.physical import ROW_ID_COLUMN, PhysicalSchema
from shelduck.spark.write.changes import MARKS
from shelduck.spark.write.clustering import Clustering
from shelduck.spark.write.encoding import spark_settings


def write_by_bridge(
    bridge: Bridge,
    rows: DataFrame,
    physical: PhysicalSchema,
    clustering: Clustering,
    *,
    place: str,
    reports: Reports,
    options: TableOptions,
    changes: bool = False,
    moved: Collection[FieldId] = (),
) -> None:
    """Write the rows below ``place``, or each partition where it stays; see `Bridge.save`.

    ``changes``: the rows are those of `shelduck.spark.write.changes`. Columns that are
    ``moved`` are written unchecked.
    """
    marks = [Named(name, name) for name in MARKS] if changes else []
    columns = [*physical.columns(with_ids=False), *marks, *clustering.named]
    writer = select_named(rows, columns).write.format(bridge.write_format)
    writer = writer.options(**spark_settings(options), **bridge.id_options(physical.ids))
    if changes:
        writer = writer.options(**bridge.change_options)
    if moved:
        writer = writer.options(**bridge.moved_options(moved))
    # Every row has another id, so a search for repetitions takes time and finds none.
    writer = writer.option(f"parquet.enable.dictionary#{ROW_ID_COLUMN}", "false")
    keys = clustering.directory_keys() if clustering.keys else None
    bridge.save(writer.partitionBy(*clustering.columns), place, reports, keys=keys)
