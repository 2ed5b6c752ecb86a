"""Deleted positions that the driver reads itself where they are few, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyarrow import compute

from shelduck.planning.changes import FeedDeletes, FeedFile
from shelduck.spark.files.physical import SNAPSHOT_COLUMN
from shelduck.spark.files.plain_deletes import plain_deletes

FILE, POSITION, SNAPSHOT = "file", "pos", "died"
MOST = 2_000_000
_THREADS = 16


def most_deaths(source: FeedFile) -> int:
    """Return the highest number of positions that can be deleted in a file."""
    stored = max((d.file.delete_count for d in source.deletes), default=0)
    return stored + len(source.positions)


def known_deaths(sources: Sequence[FeedFile], last: int, table: str) -> pa.Table | None:
    """Return the positions deleted up to snapshot ``last``: file, position, first snapshot.

    None if there are millions of them, or only a scan can read the delete files.
    """
    stored = [(s, d) for s in sources for d in s.deletes]
    if sum(map(most_deaths, sources)) > MOST or sum(d.file.delete_count for _, d in stored) > MOST:
        return None
    if any(d.file.format != "parquet" for _, d in stored):
        return None
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(lambda found: _stored(found[0], found[1], table), stored))
    inlined = [(s.file.id, place, at) for s in sources for place, at in s.positions]
    columns = zip(*inlined, strict=True) if inlined else ((), (), ())
    parts.append(_table(*[pa.array(column, pa.int64()) for column in columns]))
    every = pa.concat_tables(parts)
    every = every.filter(compute.less_equal(every[SNAPSHOT], last))
    # A later delete file repeats the positions of those before it.
    first = every.group_by([FILE, POSITION]).aggregate([(SNAPSHOT, "min")])
    return first.rename_columns([FILE, POSITION, SNAPSHOT])


def _stored(source: FeedFile, deletes: FeedDeletes, table: str) -> pa.Table:
    """Return what a delete file says; CorruptLake if it is not as the catalog describes it."""
    found = plain_deletes(source.file, deletes.file, table)
    count = len(found)
    begin = pa.repeat(pa.scalar(deletes.begin_snapshot, pa.int64()), count)
    died: pa.Array | pa.ChunkedArray = begin
    if SNAPSHOT_COLUMN in found.column_names:
        # A file with its rows' snapshots still counts only for the snapshots that see it.
        died = compute.max_element_wise(found[SNAPSHOT_COLUMN], begin)
    owner = pa.repeat(pa.scalar(source.file.id, pa.int64()), count)
    return _table(owner, found[POSITION], died)


def _table(*columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.Table.from_arrays(list(columns), names=[FILE, POSITION, SNAPSHOT])
