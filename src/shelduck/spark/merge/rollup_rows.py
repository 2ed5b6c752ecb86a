"""Rows of a base as rows of its rollup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import Measure, Rollup, RollupColumn, keeps_rows, rollup_of
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.spark.bridge import Named, select_named
from shelduck.spark.merge.folding import GONE, ORDER, Folding
from shelduck.spark.merge.load_rows import ordered
from shelduck.spark.types import spark_type


@dataclass(frozen=True)
class RollupRows:
    """One rollup: its ``table``, and the ``base`` from which it is computed."""

    base: TableVersion
    table: TableVersion

    @property
    def rollup(self) -> Rollup:
        """Return what it holds of its base."""
        found = rollup_of(self.table)
        assert found is not None
        return found

    @property
    def key_fields(self) -> list[Field]:
        """Return the columns that identify its rows: all rows with one key change together."""
        keys = table_keys(self.table)
        assert keys is not None
        return keys.key_fields(self.table.columns)

    def parts(self, rows: DataFrame) -> DataFrame:
        """Return a row of the rollup for each row of the base, with the measures of that row.

        Columns that a load adds to the table's columns stay after them.
        """
        also = [name for name in (ORDER, GONE) if name in rows.columns]
        named = [self._part(c) for c in self.rollup.columns]
        return select_named(rows, named + [Named(name, name) for name in also])

    def content(self, rows: DataFrame) -> DataFrame:
        """Return the content of the rollup if these are all rows of the base, or of some keys."""
        parts = self.parts(rows)
        keys = table_keys(self.table)
        if keys is None or keeps_rows(self.rollup, keys, table_keys(self.base)):
            return parts
        folding = Folding(self.table, keys)
        return folding.without_sign(folding.folded(ordered(parts)))

    def keys_of(self, rows: DataFrame) -> DataFrame:
        """Return the keys of the rollup that rows of the base have, each once."""
        ids = [f.id for f in self.key_fields]
        by_id = {c.id: c for c in self.rollup.columns}
        return select_named(rows, [self._part(by_id[i]) for i in ids]).distinct()

    def of_keys(self, rows: DataFrame, keys: DataFrame) -> DataFrame:
        """Return the rows of the base that have one of the rollup's keys."""
        by_id = {c.id: c for c in self.rollup.columns}
        own = [F.col(self._source(by_id[f.id])) for f in self.key_fields]
        return _having(rows, own, keys)

    def own_of_keys(self, rows: DataFrame, keys: DataFrame) -> DataFrame:
        """Return the rows of the rollup that have one of the keys."""
        return _having(rows, [F.col(backticked(f.name)) for f in self.key_fields], keys)

    @property
    def sources(self) -> list[Field]:
        """Return the base's columns that are the rollup's keys, in their order."""
        by_id = {c.id: c for c in self.rollup.columns}
        found = [self.base.columns.by_id(by_id[f.id].source or 0) for f in self.key_fields]
        return [f for f in found if f is not None]

    def _source(self, column: RollupColumn) -> str:
        field = self.base.columns.by_id(column.source or 0)
        assert field is not None
        return backticked(field.name)

    def _part(self, column: RollupColumn) -> Named:
        target = self.table.columns.by_id(column.id)
        assert target is not None
        if column.measure is Measure.COUNT:
            is_there = F.lit(1)
            if column.source is not None:
                is_there = F.when(F.col(self._source(column)).isNotNull(), 1).otherwise(0)
            return Named(target.name, is_there, T.LongType())
        return Named(target.name, self._source(column), spark_type(target.type, target.name))


def _having(rows: DataFrame, own: Sequence[Column], keys: DataFrame) -> DataFrame:
    names = [f"__shelduck_key_{n}" for n in range(len(own))]
    wanted = keys.toDF(*names)
    same = F.lit(True)
    for name, column in zip(names, own, strict=True):
        same = same & column.eqNullSafe(F.col(name))
    return rows.join(wanted, same, "left_semi")
