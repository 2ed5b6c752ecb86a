"""The change feed of a table as a DataFrame: a few scans, however many snapshots there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.files.data_files import DataFile, InlinedRows, NameMapping
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.planning.changes import ChangePlan, FeedFile
from shelduck.planning.scan import plan_scan
from shelduck.spark.scan.deaths import DIED_AT, DIED_FILE, DIED_IN, deaths_of
from shelduck.spark.scan.inlined import inlined_frame
from shelduck.spark.scan.read import Origin, Prune, read_rows

# Columns after those of a table with unique names, and their final names in the feed.
CHANGE_TYPE, VERSION = "__shelduck_change_type", "__shelduck_commit_version"
ROW_ID = str(Origin.ROW_ID)
_TIMESTAMP = "__shelduck_commit_timestamp"
_NAMES = {
    CHANGE_TYPE: "_change_type",
    VERSION: "_commit_version",
    _TIMESTAMP: "_commit_timestamp",
    ROW_ID: "_row_id",
}

_INSERT, _DELETE = "insert", "delete"
_ORIGINS = (Origin.ROW_ID, Origin.FILE_ID, Origin.POSITION, Origin.SNAPSHOT_ID)
_BROADCAST_ROWS = 2_000_000


@dataclass(frozen=True)
class Feed:
    """Where the changes of a range are; ``table`` gives the columns of all rows.

    ``came`` and ``went`` are rows of the catalog itself, with the snapshot that added or deleted
    them.
    """

    table: TableVersion
    plan: ChangePlan
    mappings: Mapping[int, NameMapping] = field(default_factory=dict)
    came: Sequence[InlinedRows] = ()
    went: Sequence[InlinedRows] = ()
    prune: Prune | None = None


def change_frame(spark: SparkSession, feed: Feed, times: Mapping[int, datetime]) -> DataFrame:
    """Return every change as a row: the table's columns, then what happened, when, and its row id.

    If one snapshot deletes and inserts a row under the same row id, the row was updated. Raises
    InvalidRequest if a column of the table has a name that the feed uses.
    """
    _refuse_names(feed.table)
    events = arrivals(spark, feed, _INSERT).unionAll(departures(spark, feed, _DELETE))
    snapshots = feed.plan.snapshots
    if snapshots.moved:
        events = events.where(~F.col(VERSION).isin(sorted(snapshots.moved)))
    if snapshots.mixed:
        is_mixed = F.col(VERSION).isin(sorted(snapshots.mixed))
        events = events.where(~is_mixed).unionAll(_paired(events.where(is_mixed)))
    known = spark.createDataFrame([*times.items()], f"{VERSION} bigint, {_TIMESTAMP} timestamp")
    names = [backticked(n) for n in feed.table.columns.names]
    found = events.join(F.broadcast(known), VERSION)
    return found.select(*names, *[F.col(own).alias(name) for own, name in _NAMES.items()])


def as_inserts(rows: DataFrame, table: TableVersion) -> DataFrame:
    """Return rows of a table with their row ids in the form of a feed: its snapshot inserts them.

    Raises InvalidRequest as `change_frame` does.
    """
    _refuse_names(table)
    at = table.snapshot
    told = {
        CHANGE_TYPE: F.lit(_INSERT),
        VERSION: F.lit(int(at.id)).cast("bigint"),
        _TIMESTAMP: F.lit(at.time),
        ROW_ID: F.col(ROW_ID),
    }
    names = [backticked(n) for n in table.columns.names]
    return rows.select(*names, *[told[own].alias(name) for own, name in _NAMES.items()])


def arrivals(spark: SparkSession, feed: Feed, what: str) -> DataFrame:
    """Return the inserted rows: the table's columns, ``what``, snapshot and row id."""
    plan = feed.plan
    came = F.col(Origin.SNAPSHOT_ID)
    is_inside = came.between(plan.span.first, plan.span.last)
    frames = [_rows(spark, feed, plan.born).where(is_inside)]
    if plan.born_partly:
        rows = _rows(spark, feed, plan.born_partly).where(is_inside)
        dead = _deaths(spark, feed, plan.born_partly)
        frames.append(rows.join(dead, _is_dead() & (F.col(DIED_IN) <= came), "left_anti"))
    events = [_event(feed, f, what, came) for f in frames]
    return reduce(DataFrame.unionAll, [*events, _inlined(spark, feed, feed.came, what)])


def departures(spark: SparkSession, feed: Feed, what: str, seen_at: int | None = None) -> DataFrame:
    """Return the deleted rows, in the form of `arrivals`.

    ``seen_at`` excludes rows that were inserted after that snapshot, in files that began until
    then.
    """
    plan = feed.plan
    died, came = F.col(DIED_IN), F.col(Origin.SNAPSHOT_ID)
    is_chosen = F.lit(True) if seen_at is None else came <= seen_at
    events = [_inlined(spark, feed, feed.went, what)]
    if plan.ended:
        ends = [(f.id, end) for f, end in plan.ended]
        known = spark.createDataFrame(ends, f"{DIED_FILE} bigint, {DIED_IN} bigint")
        rows = _rows(spark, feed, [f for f, _ in plan.ended]).where(is_chosen)
        gone = rows.join(F.broadcast(known), F.col(Origin.FILE_ID) == F.col(DIED_FILE))
        events.append(_event(feed, gone, what, died))
    if plan.thinned:
        rows = _rows(spark, feed, plan.thinned).where(is_chosen)
        dead = _deaths(spark, feed, plan.thinned)
        dead = dead.where(died.between(plan.span.first, plan.span.last))
        gone = rows.join(dead, _is_dead() & (died > came))
        events.append(_event(feed, gone, what, died))
    return reduce(DataFrame.unionAll, events)


def _rows(spark: SparkSession, feed: Feed, files: Sequence[DataFile]) -> DataFrame:
    plan = plan_scan(feed.table, files, feed.mappings, snapshots=True)
    return read_rows(spark, plan, prune=feed.prune, origins=_ORIGINS)


def _deaths(spark: SparkSession, feed: Feed, files: Sequence[DataFile]) -> DataFrame:
    sources = [feed.plan.sources[f.id] for f in files]
    found = deaths_of(spark, sources, feed.plan.span.last)
    # The few positions are broadcast; Spark cannot know how few they are, and would sort the rows.
    return F.broadcast(found) if sum(map(_most_deaths, sources)) <= _BROADCAST_ROWS else found


def _most_deaths(source: FeedFile) -> int:
    stored = max((d.file.delete_count for d in source.deletes), default=0)
    return stored + len(source.positions)


def _is_dead() -> Column:
    same_file = F.col(Origin.FILE_ID) == F.col(DIED_FILE)
    return same_file & (F.col(Origin.POSITION) == F.col(DIED_AT))


def _event(feed: Feed, rows: DataFrame, what: str, version: Column) -> DataFrame:
    names = [backticked(n) for n in feed.table.columns.names]
    return rows.select(*names, F.lit(what).alias(CHANGE_TYPE), version.alias(VERSION), ROW_ID)


def _inlined(spark: SparkSession, feed: Feed, parts: Sequence[InlinedRows], what: str) -> DataFrame:
    fields = feed.table.columns.fields
    found = inlined_frame(spark, fields, parts, Origin.ROW_ID, Origin.SNAPSHOT_ID)
    return _event(feed, found, what, F.col(Origin.SNAPSHOT_ID))


def _paired(events: DataFrame) -> DataFrame:
    """Return the events, with those of updated rows marked as updates."""
    same_row = Window.partitionBy(VERSION, ROW_ID)
    kind = F.col(CHANGE_TYPE)
    is_update = F.col(ROW_ID).isNotNull() & (
        F.min(kind).over(same_row) != F.max(kind).over(same_row)
    )
    image = F.when(kind == _DELETE, "update_preimage").otherwise("update_postimage")
    return events.withColumn(CHANGE_TYPE, F.when(is_update, image).otherwise(kind))


def _refuse_names(table: TableVersion) -> None:
    for name in table.columns.names:
        if name.lower() in _NAMES.values():
            raise InvalidRequest(
                f"column {name!r} of {table.full_name} has the name of a column of the change"
                " feed; rename it"
            )
