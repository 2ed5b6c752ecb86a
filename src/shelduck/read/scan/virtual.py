"""DuckLake's virtual columns: where a row comes from, for queries that name them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import Origin

_FILE, _PATH = "__shelduck_virtual_file", "__shelduck_virtual_path"
_ORIGINS = {
    "rowid": (Origin.ROW_ID,),
    "snapshot_id": (Origin.SNAPSHOT_ID,),
    "filename": (Origin.FILE_ID,),
    "file_row_number": (Origin.POSITION,),
    # Iceberg's names, and the column that Spark has for files.
    "_file": (Origin.FILE_ID,),
    "_pos": (Origin.POSITION,),
    "_metadata": (Origin.FILE_ID, Origin.POSITION),
}
_MARK = "shelduck.virtual"


def origins_of(names: Iterable[str]) -> list[Origin]:
    """Return the origins that virtual columns are made of."""
    return list(dict.fromkeys(origin for name in names for origin in _ORIGINS[name]))


def with_virtual(
    rows: DataFrame, columns: Collection[str], names: Collection[str], paths: Mapping[int, str]
) -> DataFrame:
    """Return rows with their columns and virtual ones; ``rows`` has the origins of these.

    ``paths`` are those of files by id. A row that is in no file has no file name and no number.
    """
    if Origin.FILE_ID in origins_of(names):
        known = rows.sparkSession.createDataFrame(
            [*paths.items()], f"{_FILE} bigint, {_PATH} string"
        )
        same = F.col(Origin.FILE_ID) == F.col(_FILE)
        rows = rows.join(F.broadcast(known), same, "left")
    made = [_column(name).alias(name, metadata={_MARK: True}) for name in names]
    return rows.select(*[backticked(c) for c in columns], *made)


def _column(name: str) -> Column:
    path = F.col(_PATH)
    if name == "_metadata":
        parts = {
            "file_path": path,
            "file_name": F.substring_index(path, "/", -1),
            "row_index": F.col(Origin.POSITION),
        }
        return F.when(path.isNotNull(), F.struct(*[c.alias(n) for n, c in parts.items()]))
    [origin] = _ORIGINS[name]
    return path if origin == Origin.FILE_ID else F.col(origin)


def virtual_columns(rows: DataFrame) -> list[str]:
    """Return the names of the virtual columns among those of a DataFrame."""
    return [f.name for f in rows.schema.fields if f.metadata.get(_MARK)]
