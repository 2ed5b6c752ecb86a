"""CHANGES: what happened to the rows of a table, snapshot by snapshot."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.feed_files import FeedRange, feed_files, require_closed
from shelduck.catalog.read.inlined_rows import inlined_changes
from shelduck.catalog.read.read import name_mappings
from shelduck.model.tables.table_version import TableVersion
from shelduck.operations.read.kept_inlined import LayoutMemory
from shelduck.operations.read.pruning import Pruner
from shelduck.planning.feed_plan import FeedSnapshots, Span, classify, plan_changes
from shelduck.spark.files.layouts import read_layouts
from shelduck.spark.scan.change_feed import Feed, change_frame
from shelduck.spark.session import DataFrame, SparkSession


def read_changes(
    spark: SparkSession,
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    found: FeedRange,
) -> DataFrame:
    """Return the changes of a range of snapshots; ``table`` is the version of its last snapshot.

    Raises NotFound if rows that were deleted in the range have expired, and all errors of reading
    the table.
    """
    snapshots = classify(((s.id, entries) for s, entries in found.snapshots), table.id)
    require_closed(found, table)
    feed = look_up(store, table, layouts, found.span, snapshots)
    return change_frame(spark, feed, {int(s.id): s.time for s, _ in found.snapshots})


def look_up(
    store: Store,
    table: TableVersion,
    layouts: LayoutMemory,
    span: Span,
    snapshots: FeedSnapshots,
) -> Feed:
    """Return where the changes of a span are, with the columns of ``table``."""
    with store.read() as connection:
        files = feed_files(connection, table, span)
        wanted = {f.file.mapping_id for f in files if f.file.mapping_id is not None}
        mappings = name_mappings(connection, wanted)
        came, went = inlined_changes(connection, table, span.first, span.last)
    known = layouts.fill([f.file for f in files], partial(read_layouts, table=table.full_name))
    files = [replace(f, file=file) for f, file in zip(files, known, strict=True)]
    plan = plan_changes(span, snapshots, files)
    return Feed(table, plan, mappings, came, went, Pruner(store, table, knows_values=False))
