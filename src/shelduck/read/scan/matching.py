"""Rows for which a condition is true, and DuckLake's virtual columns: where a row comes from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.text.names import backticked
from shelduck.read.scan.scan_frames import Origin

__all__ = ["Column", "Condition", "Where", "as_condition", "require_condition", "row_ids"]

Condition = Column | str
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


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on rows, as a Spark column or SQL text.

    ``alias`` is the name of the rows in it, and in values that are computed from them.
    """

    condition: Condition
    alias: str | None = None

    def __post_init__(self) -> None:
        require_condition(self.condition)

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of ``frame`` for which the condition is true."""
        named = frame if self.alias is None else frame.alias(self.alias)
        return named.where(as_condition(self.condition))


def require_condition(condition: object) -> None:
    """Raise InvalidRequest for something that is not a condition."""
    if not isinstance(condition, Column | str):
        raise InvalidRequest(
            "a condition must be SQL text or a Spark column, such as \"id = 5\" or col('id') =="
            f" 5, not {condition!r}"
        )


def as_condition(condition: Condition) -> Column:
    """Return a condition as a Spark column."""
    require_condition(condition)
    return F.expr(condition) if isinstance(condition, str) else condition


def row_ids(rows: DataFrame) -> tuple[int, ...]:
    """Return the row ids of rows in the catalog itself, which are few."""
    found = rows.select(Origin.ROW_ID).collect()
    return tuple(sorted(row[0] for row in found))


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
