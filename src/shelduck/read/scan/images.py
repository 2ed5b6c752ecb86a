"""Which changes of a feed are the two images of an updated row.

A row that one snapshot deletes and inserts under one row id was updated. Where the driver can know
the ids, it labels whole snapshots; for the others, Spark compares the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import compute
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.files.footers import read_columns
from shelduck.engine.files.storage import in_threads
from shelduck.errors import CorruptLake, InvalidRequest, StorageUnavailable
from shelduck.model.changes.feed_plan import ChangePlan, has_snapshots
from shelduck.model.files.data_file import ROW_ID_FIELD, DataFile, InlinedRows
from shelduck.model.text.names import backticked
from shelduck.read.scan.deaths import FILE, MOST, POSITION, SNAPSHOT

# More snapshots than this make a label longer than a comparison of rows is slow.
_MOST_SNAPSHOTS = 50
CAME = ("insert", "update_postimage")
WENT = ("delete", "update_preimage")
_KIND = "_change_type"
_ABOUT = (_KIND, "_commit_version", "_commit_timestamp", "_row_id")
_DUCKLAKES = {"_commit_version": "snapshot_id", "_row_id": "rowid", _KIND: "change_type"}


@dataclass
class _Ids:
    """The row ids that one snapshot deleted and inserted; new ids are not listed."""

    gone: list[pa.Array] = field(default_factory=list)
    came: list[pa.Array] = field(default_factory=list)


def updated_up_to(
    plan: ChangePlan, deaths: pa.Table, came: Sequence[InlinedRows], went: Sequence[InlinedRows]
) -> Mapping[int, int | None]:
    """Return, by snapshot that deleted and inserted rows, the highest id of an updated row.

    All of its deleted rows, and its inserted ones with ids up to this, were updated; with None, no
    row was. Snapshots for which that is not so, or not known, are left out.
    """
    mixed = plan.snapshots.mixed
    wanted = sorted(mixed - _unknown(plan))
    if not wanted or len(wanted) > _MOST_SNAPSHOTS:
        return {}
    ids = {snapshot: _Ids() for snapshot in wanted}
    if not _add_gone(plan, deaths, ids) or not _add_came(plan, ids):
        return {}
    _add_inlined(went, {n: found.gone for n, found in ids.items()})
    _add_inlined(came, {n: found.came for n, found in ids.items()})
    labels: dict[int, int | None] = {}
    for snapshot, found in ids.items():
        gone = pa.concat_arrays([pa.array([], pa.int64()), *found.gone])
        kept = pa.concat_arrays([pa.array([], pa.int64()), *found.came])
        if compute.all(compute.is_in(gone, value_set=kept), min_count=0).as_py():
            highest = compute.max(gone).as_py()
            others = kept.filter(compute.invert(compute.is_in(kept, value_set=gone)))
            lowest = compute.min(others).as_py()
            if highest is None or lowest is None or lowest > highest:
                labels[snapshot] = highest
        elif not compute.any(compute.is_in(gone, value_set=kept), min_count=0).as_py():
            labels[snapshot] = None
    return labels


def _unknown(plan: ChangePlan) -> set[int]:
    """Return snapshots about whose rows the files say less than the rows themselves."""
    span = range(plan.span.first, plan.span.last + 1)
    found: set[int] = set()
    for file in (*plan.born, *plan.born_partly):
        if has_snapshots(file):
            newest = plan.span.last if file.partial_max is None else file.partial_max
            found.update(n for n in span if file.begin_snapshot <= n <= newest)
    found.update(file.begin_snapshot for file in plan.born_partly)
    return found


def _add_gone(plan: ChangePlan, deaths: pa.Table, ids: Mapping[int, _Ids]) -> bool:
    """Add the ids of rows that files lost; False if a file does not number its rows in order."""
    for file, end in [*((f, None) for f in plan.thinned), *plan.ended]:
        mine = deaths.filter(compute.equal(deaths[FILE], file.id))
        for snapshot, found in ids.items():
            if end == snapshot:
                if file.record_count is None or file.record_count > MOST:
                    return False
                every = pa.array(range(file.record_count), pa.int64())
                before = mine.filter(compute.less(mine[SNAPSHOT], end))[POSITION]
                live = compute.invert(compute.is_in(every, value_set=before))
                places = every.filter(live)
            elif end is None:
                places = mine.filter(compute.equal(mine[SNAPSHOT], snapshot))[POSITION]
                places = places.combine_chunks()
            else:
                continue
            if len(places) and _keeps_ids(file):
                return False
            found.gone.append(compute.add(places, file.row_id_start or 0))
    return True


def _add_came(plan: ChangePlan, ids: Mapping[int, _Ids]) -> bool:
    """Add the ids that new files keep; False if they are too many or cannot be read."""
    files = [f for f in plan.born if f.begin_snapshot in ids and _keeps_ids(f)]
    if sum(f.record_count or MOST for f in files) > MOST:
        return False
    for file, found in zip(files, in_threads(_kept_ids, files), strict=True):
        if found is None:
            return False
        ids[file.begin_snapshot].came.append(found)
    return True


def _keeps_ids(file: DataFile) -> bool:
    assert file.layout is not None
    return file.layout.has_field(ROW_ID_FIELD)


def _kept_ids(file: DataFile) -> pa.Array | None:
    """Return the row ids that a file stores, without those of its new rows."""
    assert file.layout is not None
    [column] = [f.name for f in file.layout.fields if f.id == ROW_ID_FIELD]
    try:
        found = read_columns(file.path, [column], "data file")
    except (CorruptLake, StorageUnavailable):
        # The scan says what is wrong.
        return None
    return found[column].cast(pa.int64()).drop_null().combine_chunks()


def _add_inlined(parts: Sequence[InlinedRows], ids: Mapping[int, list[pa.Array]]) -> None:
    for part in parts:
        for number, snapshot in zip(part.row_ids, part.begin_snapshots, strict=True):
            if snapshot in ids and number is not None:
                ids[snapshot].append(pa.array([number], pa.int64()))


def rows_of(feed: DataFrame, kinds: Collection[str]) -> DataFrame:
    """Return the rows of some kinds of changes, with only the table's columns."""
    return feed.where(F.col(_KIND).isin(*kinds)).drop(*_ABOUT)


def with_action(feed: DataFrame, column: str, words: Mapping[str, str]) -> DataFrame:
    """Return the feed with one more column, which has a word for each kind of change."""
    names = F.create_map(*[F.lit(part) for pair in words.items() for part in pair])
    return feed.withColumn(column, names[F.col(_KIND)])


def as_ducklakes(feed: DataFrame) -> DataFrame:
    """Return the feed with the columns of DuckDB's extension."""
    columns = [c for c in feed.columns if c not in _ABOUT]
    taken = sorted({*_DUCKLAKES.values()} & {c.lower() for c in columns})
    if taken:
        raise InvalidRequest(
            f"column {taken[0]!r} of the table has the name of a column of ducklake_table_changes;"
            " use table_changes"
        )
    about = [F.col(own).alias(name) for own, name in _DUCKLAKES.items()]
    return feed.select(*about, *[backticked(c) for c in columns])


def as_sparks(feed: DataFrame, *, net: bool, updates: bool) -> DataFrame:
    """Return the feed in the form of Spark's CHANGES, which has no row ids.

    With ``net``, a row has at most two changes: what it was before the range, and what it is at its
    end. Without ``updates``, updated rows are deleted and inserted.
    """
    if net:
        feed = _net(feed)
    if not updates:
        plain = F.when(F.col(_KIND).isin(*CAME), CAME[0]).otherwise(WENT[0])
        feed = feed.withColumn(_KIND, plain)
    return feed.drop("_row_id")


def _net(feed: DataFrame) -> DataFrame:
    came, kind, row_id = F.col(_KIND).isin(*CAME), F.col(_KIND), F.col("_row_id")
    moment = F.struct(F.col("_commit_version").alias("at"), came.alias("came"))
    of_row = Window.partitionBy(row_id)
    first, last, own = (f"__shelduck_{n}_change" for n in ("first", "last", "own"))
    feed = feed.withColumn(own, moment)
    feed = feed.withColumn(first, F.min(own).over(of_row)).withColumn(last, F.max(own).over(of_row))
    was_there, stays = ~F.col(f"{first}.came"), F.col(f"{last}.came")
    is_state = (~came & (F.col(own) == F.col(first))) | (came & (F.col(own) == F.col(last)))
    is_update = was_there & stays
    told = F.when(came, F.when(is_update, CAME[1]).otherwise(CAME[0])).otherwise(
        F.when(is_update, WENT[1]).otherwise(WENT[0])
    )
    # Rows without an id cannot be told apart.
    found = feed.where(row_id.isNull() | is_state)
    return found.withColumn(_KIND, F.when(row_id.isNull(), kind).otherwise(told)).drop(
        first, last, own
    )


def nothing(rows: DataFrame, column: str | None = None) -> DataFrame:
    """Return no rows, with the same columns and perhaps one more text column."""
    found = rows.where(F.lit(False))
    return found if column is None else found.withColumn(column, F.lit(""))
