"""A MERGE with a small source: every executor gets all of it, and no row of the table is shuffled.

Rows of the source without a match are found among the matches, which are few: each row of the
source has a number, and one shuffle brings the rows of a number together.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.spark.bridge.jvm import optimized_plan
from shelduck.spark.merge.key_ranges import near_keys
from shelduck.spark.write.kept import MOST_SHARED, Kept, keep

# By Spark's estimate; the source is counted when it is kept.
_MOST_BYTES = 64 * 1024 * 1024


def small_source(source: DataFrame) -> Kept | None:
    """Return the rows of a source, computed and kept, None if there are many."""
    plan = optimized_plan(source)
    if plan is None or plan.stats().sizeInBytes() > _MOST_BYTES:
        return None
    found = keep(source)
    return found if found.count <= MOST_SHARED else None


def near_source(
    source: Kept, table: TableVersion, pairs: Sequence[tuple[str, str]]
) -> Column | None:
    """Return a condition that holds for every row of a table that matches a row of the source.

    ``pairs`` are columns of the table and of the source that are equal in a match. One small job
    collects the source's. None if there are no such columns.
    """
    fields = {f.name: f for f in table.columns}
    named = {ours: theirs for ours, theirs in pairs if ours in fields}
    if not named or not source.count:
        return None
    keys = [F.col(backticked(theirs)).alias(ours) for ours, theirs in named.items()]
    return near_keys(source.rows.select(*keys), [fields[ours] for ours in named], source.count)
