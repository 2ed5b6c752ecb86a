"""Which positions of data files were deleted, and in which snapshot each of them.

Of few delete files, the driver reads positions and snapshots itself, without a Spark job.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
from pyarrow import compute
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Deletes, FileEntry, FileRelation, engine_for, listed_rows
from shelduck.engine.bridge.engine import DELETE_SCHEMA
from shelduck.engine.bridge.faults import DAMAGED
from shelduck.engine.files.footers import RESTORE, metadata_of, opened, told_of_file
from shelduck.engine.files.storage import filesystem, in_threads
from shelduck.errors import CorruptLake
from shelduck.model.changes.feed_plan import FeedDeletes, FeedFile
from shelduck.model.files.data_file import SNAPSHOT_COLUMN, SNAPSHOT_FIELD, DataFile, DeleteFile
from shelduck.model.files.place import key_of

DIED_FILE = "__shelduck_died_file"
DIED_AT = "__shelduck_died_at"
DIED_IN = "__shelduck_died_in"

_BEGIN, _ROWS = "__shelduck_begin", "__shelduck_rows"
_SHAPE = f"{DIED_FILE} bigint, {DIED_AT} bigint, {DIED_IN} bigint"
FILE, POSITION, SNAPSHOT = "file", "pos", "died"
MOST = 2_000_000
_PUFFIN = b"PFA1"
_FOOTER_END = struct.Struct("<iI4s")
_POSITION_ID = b"2147483645"


_Dead = tuple[DataFile, DeleteFile, int | None, tuple[int, ...]]
"""A data file, its delete file, the last snapshot that counts, and constants."""


def deaths_of(spark: SparkSession, files: Iterable[FeedFile], last: int, table: str) -> DataFrame:
    """Return the positions deleted up to snapshot ``last``: file, position, first snapshot.

    Delete files are read by Spark. Raises Unsupported for deletion vectors over Spark Connect.
    """
    found = list(files)
    inlined = [(f.file.id, place, at) for f in found for place, at in f.positions if at <= last]
    stored = [(f, d) for f in found for d in f.deletes]
    frames = [spark.createDataFrame(inlined, _SHAPE)] if inlined else []
    plain = [(f, d) for f, d in stored if d.file.format == "parquet"]
    _require_counts([d for _, d in plain], table)
    frames += [_stored(spark, plain, table)] if plain else []
    vectors = [v for f, d in stored if d.file.format != "parquet" for v in _dated(f, d, table)]
    if vectors:
        engine_for(spark).require_vectors(vectors[0][1].path)
        rows, index = deleted_rows(spark, vectors, (DIED_FILE, DIED_IN))
        frames.append(rows.select(DIED_FILE, F.col(index).alias(DIED_AT), DIED_IN))
    if not frames:
        return spark.createDataFrame([], _SHAPE)
    every = reduce(DataFrame.unionAll, frames).where(F.col(DIED_IN) <= F.lit(last))
    parts = Counter(f.file.id for f, _ in plain) + Counter(file.id for file, *_ in vectors)
    parts.update({number for number, _, _ in inlined})
    if max(parts.values()) < 2:
        return every
    # A later delete file or vector repeats the positions of those before it.
    return every.groupBy(DIED_FILE, DIED_AT).agg(F.min(DIED_IN).alias(DIED_IN))


def _stored(
    spark: SparkSession, deletes: Sequence[tuple[FeedFile, FeedDeletes]], table: str
) -> DataFrame:
    """Return what Parquet delete files say of the rows of their data files; check it."""
    owners = T.StructType([T.StructField(n, T.LongType()) for n in (DIED_FILE, _BEGIN, _ROWS)])
    files = [(d.file.path, (f.file.id, d.begin_snapshot, f.file.record_count)) for f, d in deletes]
    place = F.col("pos")
    wrong = f"{DAMAGED}a delete file of {table} has a wrong position, of data file "
    is_row = (place >= 0) & ~F.coalesce(place >= F.col(_ROWS), F.lit(False))
    told = F.raise_error(F.concat(F.lit(wrong), F.col(DIED_FILE)))
    # A file with its rows' snapshots still counts only for the snapshots that see it.
    died = F.greatest(F.col(SNAPSHOT_COLUMN), F.col(_BEGIN))
    return listed_rows(spark, DELETE_SCHEMA, files, owners).select(
        DIED_FILE, F.when(is_row, place).otherwise(told).alias(DIED_AT), died.alias(DIED_IN)
    )


def _require_counts(deletes: Sequence[FeedDeletes], table: str) -> None:
    """Raise CorruptLake if the footer of a delete file contradicts the catalog."""
    in_threads(lambda d: require_count(d.file, table), deletes)


def _dated(found: FeedFile, deletes: FeedDeletes, table: str) -> list[_Dead]:
    """Return the vectors of a file: all that was deleted up to a snapshot, the last of it then."""
    begin = deletes.begin_snapshot
    # A file with the snapshots of its rows still counts only for the snapshots that see it.
    snapshots: list[int | None] = [*vector_snapshots(deletes.file.path, table)]
    dates = ((at, begin if at is None else max(at, begin)) for at in snapshots or [None])
    return [(found.file, deletes.file, at, (found.file.id, died)) for at, died in dates]


def deleted_rows(
    spark: SparkSession, dead: Sequence[_Dead], constants: Sequence[str], table: str | None = None
) -> tuple[DataFrame, str]:
    """Return the constants of each deleted row, and its position as SQL."""
    engine = engine_for(spark)
    asked = FileRelation(
        T.StructType([]),
        T.StructType([T.StructField(name, T.LongType()) for name in constants]),
        lambda _: (
            FileEntry(
                *(file.path, file.file_size_bytes, values),
                Deletes(stored.path, up_to, count=stored.delete_count),
                file.record_count,
            )
            for file, stored, up_to, values in dead
        ),
        with_deletes=True,
        wants_deleted=True,
        size_in_bytes=sum(file.file_size_bytes for file, *_ in dead),
        places=(path for file, stored, *_ in dead for path in (file.path, stored.path)),
        table=table,
        encrypted=any(key_of(file.path) is not None for file, *_ in dead),
    )
    return engine.row_index(engine.relation(asked))


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
    return _first_deaths(sources, last, table)


def first_deaths(source: FeedFile, table: str) -> dict[int, int]:
    """Return the deleted positions of a file, each with the snapshot that deleted it.

    Its delete files are Parquet. Raises CorruptLake if one is not as the catalog describes it.
    """
    found = _first_deaths([source], None, table)
    return dict(zip(found[POSITION].to_pylist(), found[SNAPSHOT].to_pylist(), strict=True))


def _first_deaths(sources: Sequence[FeedFile], last: int | None, table: str) -> pa.Table:
    stored = [(s, d) for s in sources for d in s.deletes]
    parts = in_threads(lambda found: _deaths_of_file(found[0], found[1], table), stored)
    inlined = [(s.file.id, place, at) for s in sources for place, at in s.positions]
    columns = zip(*inlined, strict=True) if inlined else ((), (), ())
    parts.append(_table(*[pa.array(column, pa.int64()) for column in columns]))
    every = pa.concat_tables(parts)
    if last is not None:
        every = every.filter(compute.less_equal(every[SNAPSHOT], last))
    # A later delete file repeats the positions of those before it.
    first = every.group_by([FILE, POSITION]).aggregate([(SNAPSHOT, "min")])
    return first.rename_columns([FILE, POSITION, SNAPSHOT])


def _deaths_of_file(source: FeedFile, deletes: FeedDeletes, table: str) -> pa.Table:
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


def plain_deletes(file: DataFile, stored: DeleteFile, table: str) -> pa.Table:
    """Return the positions of a Parquet delete file, and their snapshots if it has them.

    Raises CorruptLake if it cannot be read, or is not what the catalog says of it and ``file``.
    """
    with opened(stored.path, "delete file", table) as source:
        names = source.schema_arrow.names
        wanted = (_position(source.schema_arrow), SNAPSHOT_COLUMN)
        columns = [n for n in wanted if n in names]
        found = source.read(columns=columns)
    wrong = _fault(found, columns, file.record_count)
    if wrong is not None:
        raise _corrupt(stored, table, wrong)
    require_count(stored, table, len(found))
    names = [POSITION, *columns[1:]]
    return found.rename_columns(names).cast(pa.schema([(n, pa.int64()) for n in names]))


def vector_snapshots(path: str, table: str) -> list[int]:
    """Return the snapshots that a file of deletion vectors tells apart, in order; [] for one.

    Each vector has all that was deleted up to its snapshot.
    """
    with told_of_file(path, "delete file", table):
        files, name = filesystem(path)
        with files.open_input_file(name) as source:
            if source.read(len(_PUFFIN)) != _PUFFIN:
                return []
            end = source.size() - _FOOTER_END.size
            source.seek(end)
            length, _, _ = _FOOTER_END.unpack(source.read())
            source.seek(end - length)
            blobs = json.loads(source.read(length))["blobs"]
    found = [blob.get("properties", {}).get("ducklake-snapshot-id") for blob in blobs]
    return sorted(int(snapshot) for snapshot in found if snapshot is not None)


def may_be_later(stored: DeleteFile, snapshot: int, table: str) -> bool:
    """Return whether a file may have deletes of snapshots after this one."""
    if stored.format != "parquet":
        return any(at > snapshot for at in vector_snapshots(stored.path, table))
    metadata = metadata_of(stored.path, "delete file")
    columns = [n for n, c in enumerate(metadata.schema.to_arrow_schema()) if _is_snapshot(c)]
    for group in range(metadata.num_row_groups):
        for column in columns:
            known = metadata.row_group(group).column(column).statistics
            if known is None or not known.has_min_max or known.max > snapshot:
                return True
    return False


def _is_snapshot(column: object) -> bool:
    metadata = getattr(column, "metadata", None) or {}
    return bool(metadata.get(b"PARQUET:field_id") == str(SNAPSHOT_FIELD).encode())


def require_count(stored: DeleteFile, table: str, rows: int | None = None) -> None:
    """Raise CorruptLake if a delete file has other ``rows``, or its footer, than the catalog says.

    Only Parquet files have a footer that tells.
    """
    if rows is None:
        rows = int(metadata_of(stored.path, "delete file", table).num_rows)
    if rows != stored.delete_count:
        wrong = f"{rows} rows, but the catalog says {stored.delete_count}"
        raise _corrupt(stored, table, wrong, " or correct delete_count in ducklake_delete_file")


def _corrupt(stored: DeleteFile, table: str, wrong: str, otherwise: str = "") -> CorruptLake:
    comma = "," if otherwise else ""
    return CorruptLake(
        f"delete file {stored.path} of {table} has {wrong}; {RESTORE}{comma}{otherwise}"
    )


def _position(schema: pa.Schema) -> str:
    """Return the column of positions, as the scan finds it: by its id, or else by its name."""
    by_id = [f.name for f in schema if (f.metadata or {}).get(b"PARQUET:field_id") == _POSITION_ID]
    return by_id[0] if by_id else POSITION


def _fault(found: pa.Table, columns: Sequence[str], rows: int | None) -> str | None:
    if not columns or columns[0] == SNAPSHOT_COLUMN:
        return "no column of positions"
    if any(c.null_count or not pa.types.is_integer(c.type) for c in found.columns):
        return "positions that are NULL or no integers"
    positions = found[columns[0]]
    if not len(positions):
        return None
    ends = compute.min_max(positions).as_py()
    if ends["min"] < 0:
        return f"position {ends['min']}"
    if rows is not None and ends["max"] >= rows:
        return f"position {ends['max']}, but its data file has {rows} rows"
    return None if len(positions.unique()) == len(positions) else "a position twice"
