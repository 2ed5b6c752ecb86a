"""Writes through the bridge: Spark's own Parquet writer, with ids at every level."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.spark.bridge import Bridge
from shelduck.spark.clustering import Clustering
from shelduck.spark.physical import PhysicalSchema

_COLUMN = "__shelduck_column_{}"


def write_by_bridge(
    bridge: Bridge,
    rows: DataFrame,
    physical: PhysicalSchema,
    clustering: Clustering,
    *,
    place: str,
    compression: str,
) -> None:
    """Write the rows below ``place``, each partition in directories of its own."""
    names = [physical.names[f.id] for f in physical.fields]
    # A directory may be named like a column that is in the file: there it has another name.
    columns = [
        column.alias(_COLUMN.format(n)) for n, column in enumerate(physical.columns(with_ids=False))
    ]
    directories = clustering.directories([])
    keys = [F.col(c).alias(d) for c, d in zip(clustering.columns, directories, strict=True)]
    writer = rows.select(*columns, *keys).write.format(bridge.write_format)
    writer = writer.options(
        compression=compression, **bridge.id_options(physical.ids), **bridge.name_options(names)
    )
    writer.partitionBy(*directories).save(place)
