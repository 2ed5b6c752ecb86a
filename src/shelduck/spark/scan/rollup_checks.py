"""A rollup, compared with what Spark makes of all rows of its base."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.rollup import Measure, RollupColumn, rollup_of
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.model.types.data_types import FLOATS
from shelduck.spark.scan.row_checks import has_no_hash
from shelduck.spark.types import spark_type

_FROM, _KEY = "__shelduck_from_base", "__shelduck_{}"


def wrong_rollup(
    held: DataFrame, rows: DataFrame, table: TableVersion, base: TableVersion
) -> str | None:
    """Return how a rollup differs from its base, None if it does not; one query.

    ``held`` are the rows of the rollup ``table``, ``rows`` those of the ``base``. Spark groups and
    combines them; no code that keeps rollups is used. Sums of floating point numbers are left out:
    they depend on the order. So are maps and variants.
    """
    fields = [f for f in table.columns if not _is_inexact(f, table)]
    own = [F.col(backticked(f.name)) for f in fields]
    wanted = _wanted(rows, fields, table, base)
    # All columns are alike then, whatever their names and their NULLs are.
    names = [_KEY.format(n) for n in range(len(fields))]
    both = (
        held.select(*own, F.lit(-1))
        .toDF(*names, _FROM)
        .unionAll(wanted.select("*", F.lit(1)).toDF(*names, _FROM))
    )
    apart = both.groupBy(*names).agg(F.sum(_FROM).alias(_FROM)).where(f"{_FROM} != 0")
    found = apart.agg(
        F.count_if(F.col(_FROM) < 0), F.count_if(F.col(_FROM) > 0), F.first(F.struct(*names))
    ).collect()[0]
    if not found[0] and not found[1]:
        return None
    shown = ", ".join(f"{f.name} = {v}" for f, v in zip(fields, found[2], strict=True))
    return (
        f"{found[0]} of its rows do not follow from {base.full_name}, and {found[1]} rows are"
        f" missing, such as {shown}"
    )


def _wanted(
    rows: DataFrame, fields: list[Field], table: TableVersion, base: TableVersion
) -> DataFrame:
    rollup, keys = rollup_of(table), table_keys(table)
    assert rollup is not None
    by_id = {c.id: c for c in rollup.columns}
    if keys is None or not keys.folds or _keeps_all(rollup.columns, table, base):
        made = [_source(by_id[f.id], base).cast(spark_type(f.type, f.name)) for f in fields]
        return rows.select(*made)
    grouped, combined = [], []
    for number, field in enumerate(fields):
        column, name = by_id[field.id], _KEY.format(number)
        if field.id in keys.columns:
            grouped.append(_source(column, base).alias(name))
        else:
            combined.append(_all(column, field, base).alias(name))
    groups = rows.groupBy(*grouped)
    found = groups.agg(*combined) if combined else rows.select(*grouped).distinct()
    return found.select(*[_KEY.format(n) for n in range(len(fields))])


def _keeps_all(columns: tuple[RollupColumn, ...], table: TableVersion, base: TableVersion) -> bool:
    """Return whether each row of the base, one of its key, is a row of the rollup."""
    keys, own = table_keys(base), table_keys(table)
    if keys is None or own is None or not keys.folds:
        return False
    return {c.source for c in columns if c.id in own.columns} >= {*keys.columns}


def _source(column: RollupColumn, base: TableVersion) -> Column:
    field = base.columns.by_id(column.source or 0)
    assert field is not None
    return F.col(backticked(field.name))


def _all(column: RollupColumn, field: Field, base: TableVersion) -> Column:
    kind = spark_type(field.type, field.name)
    match column.measure:
        case Measure.COUNT if column.source is None:
            return F.count(F.lit(1))
        case Measure.COUNT:
            return F.count(_source(column, base))
        case Measure.SUM:
            return F.sum(_source(column, base).cast(kind)).cast(kind)
        case Measure.MIN:
            return F.min(_source(column, base))
        case Measure.MAX:
            return F.max(_source(column, base))
    raise AssertionError(f"{column.measure} needs all keys of the base")


def _is_inexact(field: Field, table: TableVersion) -> bool:
    """Return whether equal rows may have another value: a sum of floats, or no way to compare."""
    rollup = rollup_of(table)
    assert rollup is not None
    measures = {c.id: c.measure for c in rollup.columns}
    is_rounded = measures[field.id] is Measure.SUM and str(field.shape) in FLOATS
    return is_rounded or has_no_hash(field)
