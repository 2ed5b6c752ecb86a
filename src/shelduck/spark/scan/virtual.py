"""DuckLake's virtual columns: where a row comes from, for queries that name them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.text.quoting import backticked
from shelduck.spark.scan.scan_frames import Origin

ORIGINS = {
    "rowid": Origin.ROW_ID,
    "snapshot_id": Origin.SNAPSHOT_ID,
    "filename": Origin.FILE_ID,
    "file_row_number": Origin.POSITION,
}
"""The origin that each virtual column is made of."""

_MARK = "shelduck.virtual"
_FILE, _PATH = "__shelduck_virtual_file", "__shelduck_virtual_path"


def with_virtual(
    rows: DataFrame, columns: Collection[str], names: Collection[str], paths: Mapping[int, str]
) -> DataFrame:
    """Return rows with their columns and virtual ones; ``rows`` has the origins of these.

    ``paths`` are those of files by id. A row that is in no file has no file name and no number.
    """
    if "filename" in names:
        known = rows.sparkSession.createDataFrame(
            [*paths.items()], f"{_FILE} bigint, {_PATH} string"
        )
        same = F.col(Origin.FILE_ID) == F.col(_FILE)
        rows = rows.join(F.broadcast(known), same, "left")
    made = [
        F.col(_PATH if name == "filename" else ORIGINS[name]).alias(name, metadata={_MARK: True})
        for name in names
    ]
    return rows.select(*[backticked(c) for c in columns], *made)


def virtual_columns(rows: DataFrame) -> list[str]:
    """Return the names of the virtual columns among those of a DataFrame."""
    return [f.name for f in rows.schema.fields if f.metadata.get(_MARK)]
