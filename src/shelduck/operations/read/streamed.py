"""Rows of a batch of a streaming query: what a table held, and what snapshots added to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.changes import FeedRange
from shelduck.model.files.data_files import DataFile
from shelduck.model.tables.table import TableVersion
from shelduck.operations.read.changes import look_up
from shelduck.operations.read.known_layouts import LayoutMemory
from shelduck.operations.read.rows import table_rows
from shelduck.planning.changes import classify
from shelduck.planning.stream import Part, may_hold
from shelduck.spark.scan.changes import Feed, as_inserts
from shelduck.spark.scan.read import Origin
from shelduck.spark.scan.streamed import added_frame, with_ids_of
from shelduck.spark.session import DataFrame, SparkSession


def arrivals_of(
    store: Store, table: TableVersion, layouts: LayoutMemory, found: FeedRange, last: int
) -> Feed:
    """Return where the rows are that the snapshots of a range added, up to ``last``.

    Rows have the columns of ``table``, which is a version of that snapshot.
    """
    logged = ((s.id, entries) for s, entries in found.snapshots if s.id <= last)
    span = replace(found.span, last=last)
    return look_up(store, table, layouts, span, classify(logged, table.id))


def arriving_files(feed: Feed) -> list[DataFile]:
    """Return the files that hold added rows."""
    return [*feed.plan.born, *feed.plan.born_partly]


def added_rows(spark: SparkSession, feed: Feed, part: Part, skipped: Collection[int]) -> DataFrame:
    """Return the added rows of a part, without those of the snapshots ``skipped``."""
    plan = feed.plan
    needed = replace(
        plan,
        born=tuple(f for f in plan.born if _is_needed(f, part, skipped)),
        born_partly=tuple(f for f in plan.born_partly if _is_needed(f, part, skipped)),
    )
    return added_frame(spark, replace(feed, plan=needed), part, skipped)


def whole_rows(
    spark: SparkSession,
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    part: Part,
    *,
    as_feed: bool,
) -> DataFrame:
    """Return the rows of a part that the table held; ``as_feed`` makes them inserts."""
    rows = table_rows(store, table, layouts)
    kept = replace(rows, files=tuple(f for f in rows.files if may_hold(f, part)))
    if not (as_feed or part.low or part.high is not None):
        return kept.frame(spark)
    found = with_ids_of(kept.frame(spark, origins=(Origin.ROW_ID,)), part)
    if as_feed:
        return as_inserts(found, table)
    return found.drop(Origin.ROW_ID)


def _is_needed(file: DataFile, part: Part, skipped: Collection[int]) -> bool:
    # A file that began in one snapshot and has rows of others says so.
    is_skipped = file.partial_max is None and file.begin_snapshot in skipped
    return may_hold(file, part) and not is_skipped
