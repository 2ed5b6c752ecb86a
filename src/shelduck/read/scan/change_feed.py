"""The change feed of a table as a DataFrame: a few scans, however many snapshots there are.

A batch of a streaming query is a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce

import pyarrow as pa
from pyarrow import compute
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, engine_for, select_named
from shelduck.engine.session import local_frame
from shelduck.errors import InvalidRequest
from shelduck.model.changes.feed_plan import ChangePlan, has_snapshots, seen_before
from shelduck.model.changes.stream import StreamPart
from shelduck.model.files.data_file import DataFile, InlinedRows, NameMapping
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.plan.scan import PLANNED, FileSource, plan_scan
from shelduck.read.scan.deaths import (
    DIED_AT,
    DIED_FILE,
    DIED_IN,
    FILE,
    POSITION,
    SNAPSHOT,
    deaths_of,
    known_deaths,
    most_deaths,
)
from shelduck.read.scan.images import updated_up_to
from shelduck.read.scan.scan_frames import Origin, inlined_frame, read_rows

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
_IS_DEAD = f"{Origin.FILE_ID} = {DIED_FILE} AND {Origin.POSITION} = {DIED_AT}"
_IS_GONE = f"{_IS_DEAD} AND {DIED_IN} > {Origin.SNAPSHOT_ID}"
# The positions of so many rows go to tasks with the files.
_FEW_POSITIONS = 200_000
# The times of more snapshots than this are joined to the rows.
_FEW_TIMES = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    source: FileSource = PLANNED

    @cached_property
    def deaths(self) -> pa.Table | None:
        """Return the positions that were deleted, None if only Spark should collect them."""
        return known_deaths(
            [*self.plan.sources.values()], self.plan.span.last, self.table.full_name
        )


def change_frame(spark: SparkSession, feed: Feed, times: Mapping[int, datetime]) -> DataFrame:
    """Return every change as a row: the table's columns, then what happened, when, and its row id.

    If one snapshot deletes and inserts a row under the same row id, the row was updated. Raises
    InvalidRequest if a column of the table has a name that the feed uses.
    """
    _refuse_names(feed.table)
    events = arrivals(spark, feed, _INSERT).unionAll(departures(spark, feed, _DELETE))
    snapshots = feed.plan.snapshots
    if snapshots.moved:
        events = events.where(f"{VERSION} NOT IN ({', '.join(map(str, sorted(snapshots.moved)))})")
    labels: Mapping[int, int | None] = {}
    if snapshots.mixed and feed.deaths is not None:
        labels = updated_up_to(feed.plan, feed.deaths, feed.came, feed.went)
    if snapshots.mixed - labels.keys():
        is_mixed = F.col(VERSION).isin(sorted(snapshots.mixed - labels.keys()))
        events = events.where(~is_mixed).unionAll(_paired(events.where(is_mixed)))
    told = {own: own for own in _NAMES}
    if any(highest is not None for highest in labels.values()):
        told[CHANGE_TYPE] = Sql(_label(labels))
    if len(times) <= _FEW_TIMES:
        told[_TIMESTAMP] = Sql(_time(times))
    else:
        shape = T.StructType([T.StructField(n, T.LongType()) for n in (VERSION, _TIMESTAMP)])
        known = local_frame(spark, [(n, _micros(at)) for n, at in times.items()], shape)
        events = events.join(F.broadcast(known), VERSION)
        told[_TIMESTAMP] = Sql(f"timestamp_micros({_TIMESTAMP})")
    names = [Named(n, backticked(n)) for n in feed.table.columns.names]
    return select_named(events, [*names, *[Named(_NAMES[own], c) for own, c in told.items()]])


def _label(labels: Mapping[int, int | None]) -> str:
    """Return the kind of a change as SQL, by the highest updated row id of its snapshot."""
    cases = [
        f"WHEN {VERSION} = {snapshot} AND {ROW_ID} <= {highest} THEN IF({CHANGE_TYPE} ="
        f" '{_DELETE}', 'update_preimage', 'update_postimage')"
        for snapshot, highest in labels.items()
        if highest is not None
    ]
    return f"CASE {' '.join(cases)} ELSE {CHANGE_TYPE} END"


def _time(times: Mapping[int, datetime]) -> str:
    """Return the time of a change as SQL."""
    cases = [f"WHEN {number} THEN {_micros(at)}L" for number, at in times.items()]
    return f"timestamp_micros(CASE {VERSION} {' '.join(cases)} END)"


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


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
    came = Origin.SNAPSHOT_ID
    is_inside = f"{came} BETWEEN {plan.span.first} AND {plan.span.last}"
    rows = _rows(spark, feed, plan.born, since=plan.span.first)
    # All rows of other files are of the snapshot in which the file began.
    is_merged = any(has_snapshots(f) for f in plan.born)
    frames = [rows.where(is_inside) if is_merged else rows]
    if plan.born_partly:
        rows = _rows(spark, feed, plan.born_partly, since=plan.span.first).where(is_inside)
        dead = _deaths(spark, feed, plan.born_partly)
        frames.append(rows.join(dead, F.expr(f"{_IS_DEAD} AND {DIED_IN} <= {came}"), "left_anti"))
    events = [_event(feed, f, what, came) for f in frames]
    return reduce(DataFrame.unionAll, [*events, *_inlined(spark, feed, feed.came, what)])


def departures(spark: SparkSession, feed: Feed, what: str, seen_at: int | None = None) -> DataFrame:
    """Return the deleted rows, in the form of `arrivals`.

    ``seen_at`` excludes rows that were inserted after that snapshot, in files that began until
    then.
    """
    plan = feed.plan
    events = _inlined(spark, feed, feed.went, what)
    if plan.ended:
        ends = [(f.id, end) for f, end in plan.ended]
        shape = T.StructType([T.StructField(n, T.LongType()) for n in (DIED_FILE, DIED_IN)])
        known = local_frame(spark, ends, shape)
        rows = _until(_rows(spark, feed, [f for f, _ in plan.ended]), seen_at)
        gone = rows.join(F.broadcast(known), F.col(Origin.FILE_ID) == F.col(DIED_FILE))
        events.append(_event(feed, gone, what, DIED_IN))
    if plan.thinned:
        gone, died_in = _thinned(spark, feed)
        events.append(_event(feed, _until(gone, seen_at), what, died_in))
    if not events:
        events.append(_event(feed, _rows(spark, feed, ()), what, Origin.SNAPSHOT_ID))
    return reduce(DataFrame.unionAll, events)


def _until(rows: DataFrame, seen_at: int | None) -> DataFrame:
    """Return the rows that were inserted up to a snapshot, all without one."""
    return rows if seen_at is None else rows.where(f"{Origin.SNAPSHOT_ID} <= {seen_at}")


def _rows(
    spark: SparkSession,
    feed: Feed,
    files: Sequence[DataFile],
    *,
    only_deleted: bool = False,
    since: int | None = None,
) -> DataFrame:
    plan = plan_scan(feed.table, files, feed.mappings, snapshots=True)
    return read_rows(
        *(spark, plan, feed.source), origins=_ORIGINS, only_deleted=only_deleted, since=since
    )


def _thinned(spark: SparkSession, feed: Feed) -> tuple[DataFrame, str]:
    """Return the rows that were deleted from files in the span, and the snapshot of each as SQL."""
    files, span = feed.plan.thinned, feed.plan.span
    chooses = engine_for(spark).has_jvm
    known = _of_files(feed, files) if feed.deaths is not None and chooses else None
    if known is None or len(known) > _FEW_POSITIONS:
        dead = _deaths(spark, feed, files).where(f"{DIED_IN} BETWEEN {span.first} AND {span.last}")
        if chooses:
            files = tuple(seen_before(feed.plan.sources[f.id], span.last + 1) for f in files)
        rows = _rows(spark, feed, files, only_deleted=chooses)
        return rows.join(dead, F.expr(_IS_GONE)), DIED_IN
    came = compute.field(SNAPSHOT)
    known = known.filter((came >= span.first) & (came <= span.last))
    # Tasks read only the rows at these positions, as if the file had no others.
    places: dict[int, list[int]] = {}
    for number, position in zip(known[FILE].to_pylist(), known[POSITION].to_pylist(), strict=True):
        places.setdefault(number, []).append(position)
    mine = [f._replace(inlined_deletes=tuple(places[f.id])) for f in files if f.id in places]
    rows = _rows(spark, feed, mine, only_deleted=True)
    snapshots = known[SNAPSHOT].unique().to_pylist()
    if len(snapshots) == 1:
        died = Sql(f"{snapshots[0]}L")
        may_be_new = any(has_snapshots(f) or f.begin_snapshot >= snapshots[0] for f in mine)
        return rows.where(f"{died} > {Origin.SNAPSHOT_ID}") if may_be_new else rows, died
    dead = spark.createDataFrame(known.rename_columns([DIED_FILE, DIED_AT, DIED_IN]))
    return rows.join(F.broadcast(dead), F.expr(_IS_GONE)), DIED_IN


def _of_files(feed: Feed, files: Sequence[DataFile]) -> pa.Table:
    assert feed.deaths is not None
    ids = pa.array([f.id for f in files], pa.int64())
    return feed.deaths.filter(compute.is_in(feed.deaths[FILE], value_set=ids))


def _deaths(spark: SparkSession, feed: Feed, files: Sequence[DataFile]) -> DataFrame:
    sources = [feed.plan.sources[f.id] for f in files]
    if feed.deaths is not None:
        mine = _of_files(feed, files).rename_columns([DIED_FILE, DIED_AT, DIED_IN])
        return F.broadcast(spark.createDataFrame(mine))
    found = deaths_of(spark, sources, feed.plan.span.last, feed.table.full_name)
    # The few positions are broadcast; Spark cannot know how few they are, and would sort the rows.
    return F.broadcast(found) if sum(map(most_deaths, sources)) <= _BROADCAST_ROWS else found


def _event(feed: Feed, rows: DataFrame, what: str, version: str) -> DataFrame:
    names = [Named(n, backticked(n)) for n in feed.table.columns.names]
    told = [Named(CHANGE_TYPE, Sql(f"'{what}'")), Named(VERSION, version), Named(ROW_ID, ROW_ID)]
    return select_named(rows, [*names, *told])


def _inlined(
    spark: SparkSession, feed: Feed, parts: Sequence[InlinedRows], what: str
) -> list[DataFrame]:
    if not any(part.rows for part in parts):
        return []
    fields = feed.table.columns.fields
    found = inlined_frame(spark, fields, parts, Origin.ROW_ID, Origin.SNAPSHOT_ID)
    return [_event(feed, found, what, Origin.SNAPSHOT_ID)]


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


def with_ids_of(rows: DataFrame, part: StreamPart) -> DataFrame:
    """Return the rows that the table held whose row ids are in a part."""
    row_id = F.col(ROW_ID)
    if part.low:
        rows = rows.where(row_id >= part.low)
    return rows if part.high is None else rows.where(row_id < part.high)


def added_frame(
    spark: SparkSession, feed: Feed, part: StreamPart, skipped: Collection[int]
) -> DataFrame:
    """Return the rows of a part that snapshots added, without those of ``skipped``."""
    rows = arrivals(spark, feed, "")
    version, row_id = F.col(VERSION), F.col(ROW_ID)
    unwanted = feed.plan.snapshots.moved | set(skipped)
    if unwanted:
        rows = rows.where(~version.isin(sorted(unwanted)))
    if part.low:
        rows = rows.where((version > part.first) | (row_id >= part.low))
    if part.high is not None:
        rows = rows.where((version < part.last) | (row_id < part.high))
    return rows.select(*[backticked(n) for n in feed.table.columns.names])


_QUERY_ID = "sql.streaming.queryId"
# Spark tags the jobs of a run with its id.
_RUN_ID = "spark.jobGroup.id"


def run_id_of(batch: DataFrame) -> str | None:
    """Return the id of the run of the query that passes a batch, None outside of foreachBatch.

    If a query is started again with its checkpoint, this is another run.
    """
    return engine_for(batch.sparkSession).property_of(_RUN_ID) if query_id_of(batch) else None


def query_id_of(batch: DataFrame) -> str | None:
    """Return the id of the query that passes a batch, None outside of foreachBatch.

    It belongs to the checkpoint: if a query is started again with it, the id stays.
    """
    return engine_for(batch.sparkSession).property_of(_QUERY_ID)
