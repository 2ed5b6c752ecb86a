"""Numbers of an identity for new rows: reserved in the catalog, once for a statement."""

from __future__ import annotations

from itertools import accumulate

from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.operations.write.inlining import Limits
from shelduck.spark.bridge.named import held_with_numbers
from shelduck.spark.rows.computed_rows import numbered, part_sizes
from shelduck.spark.session import DataFrame
from shelduck.spark.write.kept import keep


def with_numbers(rows: DataFrame, table: TableVersion, limits: Limits) -> DataFrame:
    """Return rows of a table in which its identity has a number wherever it is NULL.

    The rows are computed once and counted, without a job if Spark's plan has them; then one
    statement reserves as many numbers. Numbers of rows that need none, and of statements that fail,
    are left out for ever.
    """
    one = computed_of(table.properties, table.full_name).identity
    field = None if one is None else table.columns.by_id(one.column)
    if one is None or one.identity is None or field is None:
        return rows
    kept = keep(rows)
    if not kept.count:
        return kept.rows
    assert limits.reserve is not None
    step = one.identity.step
    first = one.identity.start + step * limits.reserve(kept.count)
    if kept.in_plan:
        return held_with_numbers(kept.rows, field.name, first, step)
    sizes = part_sizes(kept.rows)
    before = accumulate(sizes.values(), initial=0)
    return numbered(kept.rows, field.name, first, step, dict(zip(sizes, before, strict=False)))
