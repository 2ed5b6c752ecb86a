"""All rows of a table, compared with what the catalog says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.spark.scan.read import Origin

_ROW_ID = str(Origin.ROW_ID)


def wrong_rows(
    rows: DataFrame, table: TableVersion, expected: int | None, keys: Sequence[Field]
) -> Iterator[str]:
    """Read every value of ``rows``, which have their row ids, and tell what is wrong with them.

    ``expected`` is how many there are; ``keys`` are columns of which each row has other values. Two
    queries, one more with keys. Raises what reading the files raises.
    """
    needed = [f for f in table.columns if not f.nullable]
    nulls = [F.count_if(F.col(backticked(f.name)).isNull()) for f in needed]
    values = [F.max(_touched(f)) for f in table.columns]
    measured = [F.count(F.lit(1)), F.count(_ROW_ID), *nulls, *values]
    found = rows.agg(*[c.alias(f"c{n}") for n, c in enumerate(measured)]).collect()[0]
    count, with_ids = found[0], found[1]
    if expected is not None and count != expected:
        yield f"it has {count} rows, and the catalog says {expected}"
    for field, missing in zip(needed, found[2:], strict=False):
        if missing:
            yield f"{field.name} is NOT NULL, and NULL in {missing} rows"
    different = rows.agg(F.count_distinct(_ROW_ID)).collect()[0][0]
    if different != with_ids:
        yield f"{with_ids - different} rows have the row id of another row"
    names = [backticked(f.name) for f in keys]
    if names:
        twice = rows.groupBy(*names).count().where("count > 1").limit(1).collect()
        if twice:
            shown = ", ".join(f"{f.name} = {twice[0][n]}" for n, f in enumerate(keys))
            yield f"{twice[0]['count']} rows have the key {shown}"


def _touched(field: Field) -> Column:
    """Return something for which Spark must read every value of a column."""
    value = F.col(backticked(field.name))
    return F.xxhash64(F.to_json(F.struct(value)) if has_no_hash(field) else value)


def has_no_hash(field: Field) -> bool:
    """Return whether Spark has no hash of a type: maps and variants, also inside others."""
    if field.shape is Kind.MAP or str(field.shape) == "variant":
        return True
    return any(has_no_hash(child) for child in field.children)
