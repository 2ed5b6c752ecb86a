"""Where the rows of a write go: one partition to a file, in the table's sort order.

A rebalance brings rows of a partition together. It splits large partitions and joins small ones by
Spark's own measure (``spark.sql.adaptive.advisoryPartitionSizeInBytes``). A sorted table without
partitions is cut into ranges, so that files follow each other in the sort order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, column_of
from shelduck.engine.rows.table_rules import stored
from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.tables.partition import (
    IDENTITY,
    directory_keys,
    parse_sort_key,
    partition_directory,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.text.ddl.sorting import sort_expression_for_spark
from shelduck.write.parquet.partition_keys import (
    KEY_COLUMN,
    PartitionKey,
    directory_text,
    partition_keys,
    value_of,
)

_COMPARED = ("varchar", "json")
_SURE = 256


@dataclass(frozen=True, slots=True)
class Clustering:
    """How the rows of one write are laid out."""

    table: TableVersion
    keys: tuple[PartitionKey, ...]
    order: tuple[Column, ...]

    @property
    def columns(self) -> list[str]:
        """Return the columns that `arranged` adds to a DataFrame's own: one for each key."""
        return [KEY_COLUMN.format(n) for n in range(len(self.keys))]

    @property
    def named(self) -> list[Named]:
        """Return the same columns, for a select."""
        return [Named(name, name) for name in self.columns]

    def arranged(self, spark: SparkSession, df: DataFrame, *, spreads: bool = True) -> DataFrame:
        """Return the rows brought together and sorted, followed by the directory of each key.

        Without ``spreads``, rows stay in their part, and are sorted there.
        """
        if not self.keys and spreads:
            return df.sort(*self.order) if self.order else df
        texts = [directory_text(spark, key) for key in self.keys]
        named = [text.alias(name) for text, name in zip(texts, self.columns, strict=True)]
        together = df.select("*", *named) if named else df
        if spreads:
            together = together.hint("rebalance", *self.columns)
        order = [*map(F.col, self.columns), *self.order]
        return together.sortWithinPartitions(*order) if order else together

    def directories(self, files: Sequence[NewDataFile]) -> list[str]:
        """Return where files belong: the directory of each one's partition below the table's."""
        if not self.table.options.hive_file_pattern:
            return [""] * len(files)
        keys = [key.named for key in self.keys]
        return [partition_directory(keys, file.partition_values) for file in files]

    def directory_keys(self) -> list[str]:
        """Return the texts before the ``=`` of these directories; '' for a key that has none."""
        if not self.table.options.hive_file_pattern:
            return [""] * len(self.keys)
        return [quote(name, safe="") for name in directory_keys([key.named for key in self.keys])]

    def told(self, file: NewDataFile, working: str) -> NewDataFile:
        """Return a newly written file with its partition.

        ``working`` are the directories of `columns` in which Spark puts it. Raises CorruptLake if
        the file's own statistics show another partition.
        """
        if not self.keys:
            return file
        parts = working.split("/")
        values = tuple(value_of(k, part) for k, part in zip(self.keys, parts, strict=True))
        for key, value in zip(self.keys, values, strict=True):
            self._check(file, key, value)
        return replace(file, partition_id=self.table.partition_id, partition_values=values)

    def _check(self, file: NewDataFile, key: PartitionKey, value: str | None) -> None:
        """Raise Unsupported if a file system that ignores case would mix partitions."""
        if key.transform.kind != IDENTITY or str(key.leaf) not in _COMPARED:
            return
        found = next((s for s in file.stats if s.column_id == key.field.id), None)
        if found is None or len((value or "").encode()) >= _SURE:
            return
        bounds = {found.min_value, found.max_value} - {None}
        if bounds - {value} or (value is None and found.value_count):
            raise CorruptLake(
                f"file {file.path} of {self.table.full_name} should hold only {value!r} in"
                f" {key.field.name!r}, but also holds {min(map(str, bounds - {value}))!r}: the"
                " file system does not distinguish such names"
            )


def clustering_of(table: TableVersion, *, sorts: bool | None = None) -> Clustering:
    """Return how rows of a table are laid out.

    ``sorts``: whether its sort order counts; None follows its option ``sort_on_insert``. Raises
    Unsupported for keys that Spark cannot compute.
    """
    if sorts is None:
        sorts = table.options.sort_on_insert
    order = tuple(_ordering(table, text) for text in table.sort) if sorts else ()
    return Clustering(table, partition_keys(table), order)


def _ordering(table: TableVersion, text: str) -> Column:
    key = parse_sort_key(text)
    try:
        made = sort_expression_for_spark(key.expression)
        column = column_of(stored(made, "it", "use a column"))
    except (InvalidRequest, Unsupported) as error:
        raise Unsupported(
            f"table {table.full_name} is sorted by {key.expression}: {error}; use ALTER TABLE"
            f" {table.full_name} RESET SORTED BY, or set its option sort_on_insert to false"
        ) from error
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
