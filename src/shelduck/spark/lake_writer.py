"""``df.writeTo`` and ``df.write`` of a table of a lake, where Spark's own writers do not suffice.

Partitions are replaced, and columns added (``mergeSchema``), by the lake itself: Spark asks for
writers in the JVM for the one, and compares columns before a catalog hears of rows for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2

from shelduck.errors import Unsupported
from shelduck.spark.lake_table import LakeTable
from shelduck.spark.query import replaces_partitions

_MERGE_SCHEMA = "mergeschema"
_OVERWRITE_MODE = "partitionoverwritemode"

Sparks = Callable[..., Any]


class LakeWriter(DataFrameWriterV2):
    """What ``df.writeTo`` returns for a table of a lake."""

    def __init__(self, df: DataFrame, name: str, table: LakeTable) -> None:
        super().__init__(df, name)
        self._table = table
        self._merges_schema = False

    def option(self, key: str, value: Any) -> DataFrameWriterV2:
        """Take an option; ``mergeSchema`` is for `append`."""
        self._notice(key, value)
        return super().option(key, value)

    def options(self, **options: Any) -> DataFrameWriterV2:
        """Take options, as `option` does."""
        for key, value in options.items():
            self._notice(key, value)
        return super().options(**options)

    def append(self) -> None:
        """Append the rows; with ``mergeSchema`` columns that the table lacks are added."""
        if self._merges_schema:
            self._table.append(self._df)
        else:
            super().append()

    def overwritePartitions(self) -> None:  # noqa: N802 - Spark's own name
        """Replace the partitions that rows are in, as one commit."""
        self._table.overwrite_partitions(self._df, by_position=False)

    def _notice(self, key: str, value: Any) -> None:
        if key.lower() == _MERGE_SCHEMA:
            self._merges_schema = is_true(value)


def save_as_table(
    sparks: Sparks, writer: DataFrameWriter, table: LakeTable, *how: Any, **more: Any
) -> None:
    """Save rows as a table: Spark's way, but for rows that bring new columns."""
    given = given_by_name(("format", "mode", "partitionBy"), how, more)
    writer.mode(given.pop("mode", None))
    kind, keys = given.pop("format", None), given.pop("partitionBy", None)
    writer.options(**given)
    is_there = table.is_there
    if is_there and _mode(writer) == "APPEND" and is_true(_option(writer, _MERGE_SCHEMA)):
        table.append(writer._df)  # noqa: SLF001 - Spark's, as the lake needs it
        return
    if is_there and _mode(writer) == "OVERWRITE" and _wants_partitions(writer):
        raise Unsupported(
            f"saveAsTable replaces all of {table.name}, whatever partitionOverwriteMode says:"
            " write df.writeTo(name).overwritePartitions(), or leave the option out"
        )
    sparks(kind, None, keys)


def insert_into(
    sparks: Sparks, writer: DataFrameWriter, table: LakeTable, overwrite: bool | None = None
) -> None:
    """Insert rows by the places of their columns; partitions are replaced where Spark would."""
    if overwrite is not None:
        writer.mode("overwrite" if overwrite else "append")
    mode = _option(writer, _OVERWRITE_MODE)
    dynamic = _wants_partitions(writer) if mode else replaces_partitions(writer._spark)  # noqa: SLF001
    if _mode(writer) == "OVERWRITE" and dynamic and table.is_partitioned:
        table.overwrite_partitions(writer._df, by_position=True)  # noqa: SLF001
    else:
        sparks()


def _wants_partitions(writer: DataFrameWriter) -> bool:
    return _option(writer, _OVERWRITE_MODE).upper() == "DYNAMIC"


def _mode(writer: DataFrameWriter) -> str:
    return str(writer._jwrite.curmode()).upper()  # noqa: SLF001 - nothing else tells it


def _option(writer: DataFrameWriter, key: str) -> str:
    found = writer._jwrite.extraOptions().get(key)  # noqa: SLF001 - nothing else tells it
    return str(found.get()) if found.isDefined() else ""


def given_by_name(names: Sequence[str], how: Sequence[Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return by name what a call of Spark's was given by place or by name."""
    return dict(zip(names, how, strict=False)) | more


def is_true(value: Any) -> bool:
    """Tell what an option means by its text."""
    return str(value).strip().lower() == "true"
