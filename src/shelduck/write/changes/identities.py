"""Numbers of an identity for new rows: reserved in the catalog, once for a statement."""

from __future__ import annotations

from itertools import accumulate

from shelduck.engine.bridge.classic import held_with_numbers
from shelduck.engine.rows.table_rules import numbered, numbers_of_parts, numbers_of_plan
from shelduck.engine.session import DataFrame
from shelduck.model.tables.computed import identity_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.write.changes.inlining import Limits
from shelduck.write.parquet.kept import keep


def with_numbers(rows: DataFrame, table: TableVersion, limits: Limits) -> DataFrame:
    """Return rows of a table in which its identity has a number wherever it is NULL.

    The rows are computed once and counted, without a job if Spark's plan has them; then one
    statement reserves as many numbers, behind those that rows have. Numbers of rows that need none,
    and of statements that fail, are left out for ever.
    """
    found = identity_of(table)
    if found is None:
        return rows
    kept = keep(rows)
    if not kept.count:
        return kept.rows
    assert limits.reserve is not None
    field, identity = found
    if kept.in_plan:
        given = [] if identity.always else numbers_of_plan(kept.rows, field.name)
        count, lacking, ends = kept.count, kept.count - len(given), given
    else:
        parts = numbers_of_parts(kept.rows, field.name)
        # A part that an executor lost while Spark counted may have other rows now.
        *before, count = accumulate((part.rows for part in parts), initial=0)
        lacking = sum(part.lacking for part in parts)
        ends = [end for part in parts for end in (part.low, part.high) if end is not None]
    first = limits.reserve(count if lacking else 0, ends)
    if not lacking:
        return kept.rows
    if kept.in_plan:
        return held_with_numbers(kept.rows, field.name, first, identity.step)
    offsets = {part.number: n for part, n in zip(parts, before, strict=True)}
    return numbered(kept.rows, field.name, first, identity.step, offsets)
