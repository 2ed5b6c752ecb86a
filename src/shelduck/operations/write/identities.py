"""Numbers of an identity for new rows: reserved in the catalog, once for a statement."""

from __future__ import annotations

from itertools import accumulate

from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.operations.write.inlining import Limits
from shelduck.spark.bridge.named import held, held_with_numbers
from shelduck.spark.query import local_size
from shelduck.spark.rows.assign import telling_failures
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
    identity = one.identity

    def reserved(count: int) -> int:
        assert limits.reserve is not None
        return identity.start + identity.step * limits.reserve(count)

    with telling_failures():
        found = held(rows)
        count = local_size(found)
    if count is not None:
        if not count:
            return found
        return held_with_numbers(found, field.name, reserved(count), identity.step)
    kept = keep(rows)
    if not kept.count:
        return kept.rows
    sizes = part_sizes(kept.rows)
    before = accumulate(sizes.values(), initial=0)
    offsets = dict(zip(sizes, before, strict=False))
    return numbered(kept.rows, field.name, reserved(kept.count), identity.step, offsets)
