"""Combining rows of one key into one row, by the key model of their table.

The column `ORDER` decides which of several rows is the last; in a table with a sequence column,
that column decides first. Sums are computed in types that can hold them. If a column cannot hold
its sum, the write fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, select_named, select_names
from shelduck.engine.rows import store_rules
from shelduck.engine.types import spark_type
from shelduck.model.tables.keys import Aggregation, KeyModel, TableKeys
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name

ORDER = "__shelduck_order"
"""A number for each row: among rows with the same key, the largest is the last."""
GONE = "__shelduck_gone"
"""True if a load says that the key is deleted; only UNIQUE tables have it."""

_SMALL = (T.ByteType, T.ShortType, T.IntegerType)
_FRACTIONAL = (T.FloatType, T.DoubleType)
_KEPT_SCALE = 6
"""Fraction digits that Spark keeps when it adds decimals of 38 digits (`adjustPrecisionScale`)."""


@dataclass(frozen=True)
class Folding:
    """How rows of one table are folded."""

    table: TableVersion
    keys: TableKeys

    @property
    def columns(self) -> Schema:
        """Return the table's columns."""
        return self.table.columns

    @property
    def key_fields(self) -> list[Field]:
        """Return the key columns in their order."""
        return self.keys.key_fields(self.columns)

    @property
    def values(self) -> list[Field]:
        """Return the columns that are not keys."""
        return [f for f in self.columns if f.id not in self.keys.columns]

    @property
    def sequence(self) -> Field | None:
        """Return the column that decides which row is the last."""
        return None if self.keys.sequence is None else self.columns.by_id(self.keys.sequence)

    @property
    def is_unique(self) -> bool:
        """True if the last row replaces the others as a whole."""
        return self.keys.model is KeyModel.UNIQUE

    def folded(self, rows: DataFrame, also: Sequence[Column] = ()) -> DataFrame:
        """Return one row for each key: the table's columns, then those of ``also`` for a group.

        ``rows`` have the table's columns and `ORDER`. Those of a UNIQUE table have `GONE`, which
        then follows the columns.
        """
        keys = [backticked(f.name) for f in self.key_fields]
        names = [f"__shelduck_folded_{n}" for n in range(len(self.values))]
        if self.is_unique:
            whole = ", ".join([*(backticked(f.name) for f in self.values), GONE])
            last = F.expr(f"max_by(struct({whole}), {self._rank}) AS __shelduck_last")
            found = rows.groupBy(*keys).agg(last, *also)
            rest = found.columns[len(keys) + 1 :]
            made = [f"__shelduck_last.{backticked(f.name)}" for f in self.values]
            after = [Named(GONE, f"__shelduck_last.{GONE}")]
        else:
            parts = [self._combined(f).alias(n) for f, n in zip(self.values, names, strict=True)]
            found = rows.select(*keys).distinct()
            if parts or also:
                found = rows.groupBy(*keys).agg(*parts, *also)
            rest = found.columns[len(keys) + len(names) :]
            made, after = names, []
        value_of = {f.id: value for f, value in zip(self.values, made, strict=True)}
        columns = [Named(f.name, value_of.get(f.id, backticked(f.name))) for f in self.columns]
        after += [Named(name, backticked(name)) for name in rest]
        return select_named(found, columns + after)

    def without_sign(self, rows: DataFrame) -> DataFrame:
        """Return the table's columns of folded rows."""
        return select_names(rows, [f.name for f in self.columns])

    def only_keys(self, rows: DataFrame) -> DataFrame:
        """Return the key columns of rows."""
        return select_names(rows, [f.name for f in self.key_fields])

    def updated(self, field: Field, old: Column, new: Column) -> Column:
        """Return the new value of a row's column when a folded row of its key is loaded."""
        match self.keys.aggregation(field.id):
            case Aggregation.SUM:
                total = self._narrow(_added(_wide(old, field), _wide(new, field), field), field)
                return F.when(old.isNull(), new).when(new.isNull(), old).otherwise(total)
            case Aggregation.MIN:
                return F.least(old, new)
            case Aggregation.MAX:
                return F.greatest(old, new)
            case Aggregation.REPLACE_IF_NOT_NULL:
                return F.coalesce(new, old)
            case _:
                return new

    def is_newer(self, old: str, new: str) -> str:
        """Return whether a loaded row comes after one of the table, by their sequence values."""
        return f"{old} IS NULL OR coalesce({new} >= {old}, false)"

    @property
    def _rank(self) -> str:
        # NULL comes before all other values.
        sequence = self.sequence
        return ORDER if sequence is None else f"struct({backticked(sequence.name)}, {ORDER})"

    def _combined(self, field: Field) -> Column:
        value = F.col(backticked(field.name))
        match self.keys.aggregation(field.id):
            case Aggregation.SUM:
                total = self._narrow(F.try_sum(_wide(value, field)), field)
                return F.when(F.count(value) > 0, total)
            case Aggregation.MIN:
                return F.min(value)
            case Aggregation.MAX:
                return F.max(value)
            case Aggregation.REPLACE_IF_NOT_NULL:
                return F.max_by(value, F.when(value.isNotNull(), F.col(ORDER)))
            case _:
                return F.max_by(value, F.col(ORDER))

    def _narrow(self, total: Column, field: Field) -> Column:
        """Return a sum in the column's type; a sum that does not fit fails the query."""
        place = f"{quote_name(field.name)} of {self.table.full_name} (its sum)"
        kind = _wide_type(field)
        sure = F.coalesce(total, store_rules.fail(f"column {place} has more than 38 digits", kind))
        convert = store_rules.conversion(kind, field.leaf, place)
        return convert(sure) if convert else sure


def _wide(value: Column, field: Field) -> Column:
    return value.cast(_wide_type(field))


def _added(one: Column, other: Column, field: Field) -> Column:
    """Return the exact sum of two wide values, NULL if it has more than 38 digits.

    Spark gives the sum of two decimals of 38 digits one fraction digit less. Without their points
    they are integers, which Spark adds exactly.
    """
    kind = _wide_type(field)
    if not isinstance(kind, T.DecimalType) or kind.scale <= _KEPT_SCALE:
        return F.try_add(one, other)
    total = F.try_add(_without_point(one), _without_point(other))
    return F.concat(total.cast("string"), F.lit(f"E-{kind.scale}")).cast(kind)


def _without_point(value: Column) -> Column:
    # As text it is 0.0000000012 or, without ANSI rules, 1.2E-9; both have all of its digits.
    return F.regexp_replace(value.cast("string"), r"\.|E.*", "").cast(T.DecimalType(38, 0))


def _wide_type(field: Field) -> T.DataType:
    """Return a type that holds sums of a column."""
    kind = spark_type(field.type, field.name)
    if isinstance(kind, _SMALL):
        return T.LongType()
    if isinstance(kind, _FRACTIONAL):
        return T.DoubleType()
    return T.DecimalType(38, kind.scale if isinstance(kind, T.DecimalType) else 0)
