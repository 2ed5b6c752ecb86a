"""Deleted positions that the driver reads itself where they are few, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyarrow import compute, parquet

from shelduck.planning.changes import FeedDeletes, FeedFile
from shelduck.spark.files.file_systems import filesystem
from shelduck.spark.files.physical import SNAPSHOT_COLUMN

FILE, POSITION, SNAPSHOT = "file", "pos", "died"
MOST = 2_000_000
_THREADS = 16
_POS = "pos"


def most_deaths(source: FeedFile) -> int:
    """Return the highest number of positions that can be deleted in a file."""
    stored = max((d.file.delete_count for d in source.deletes), default=0)
    return stored + len(source.positions)


def known_deaths(sources: Sequence[FeedFile], last: int) -> pa.Table | None:
    """Return the positions deleted up to snapshot ``last``: file, position, first snapshot.

    None if there are millions of them, or only a scan can read the delete files.
    """
    stored = [(s, d) for s in sources for d in s.deletes]
    if sum(map(most_deaths, sources)) > MOST or sum(d.file.delete_count for _, d in stored) > MOST:
        return None
    if any(d.file.format != "parquet" for _, d in stored):
        return None
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = list(pool.map(lambda found: _stored(*found), stored))
    if any(part is None for part in parts):
        return None
    inlined = [(s.file.id, place, at) for s in sources for place, at in s.positions]
    columns = zip(*inlined, strict=True) if inlined else ((), (), ())
    parts.append(_table(*[pa.array(column, pa.int64()) for column in columns]))
    every = pa.concat_tables(parts)
    every = every.filter(compute.less_equal(every[SNAPSHOT], last))
    # A later delete file repeats the positions of those before it.
    first = every.group_by([FILE, POSITION]).aggregate([(SNAPSHOT, "min")])
    return first.rename_columns([FILE, POSITION, SNAPSHOT])


def _stored(source: FeedFile, deletes: FeedDeletes) -> pa.Table | None:
    """Return what a delete file says; None if it is not as the catalog describes it."""
    files, name = filesystem(deletes.file.path)
    try:
        with files.open_input_file(name) as opened:
            reader = parquet.ParquetFile(opened)
            wanted = [n for n in (_POS, SNAPSHOT_COLUMN) if n in reader.schema_arrow.names]
            found = reader.read(columns=wanted)
    except (OSError, pa.ArrowException):
        return None
    is_sound = _POS in wanted and not any(c.null_count for c in found.columns)
    if not is_sound or len(found) != deletes.file.delete_count:
        return None
    count = len(found)
    begin = pa.repeat(pa.scalar(deletes.begin_snapshot, pa.int64()), count)
    died: pa.Array | pa.ChunkedArray = begin
    if SNAPSHOT_COLUMN in wanted:
        # A file with its rows' snapshots still counts only for the snapshots that see it.
        died = compute.max_element_wise(found[SNAPSHOT_COLUMN].cast(pa.int64()), begin)
    owner = pa.repeat(pa.scalar(source.file.id, pa.int64()), count)
    return _table(owner, found[_POS].cast(pa.int64()), died)


def _table(*columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.Table.from_arrays(list(columns), names=[FILE, POSITION, SNAPSHOT])
