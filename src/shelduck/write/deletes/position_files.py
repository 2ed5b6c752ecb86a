"""Files of positions: for each data file, one Parquet file of its deleted rows or row versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.codec import Report
from shelduck.engine.files.footers import encrypted_file, read_columns
from shelduck.engine.files.physical import FIELD_ID
from shelduck.engine.files.storage import delete_directory, in_threads, write_bytes
from shelduck.engine.files.task_results import results
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import (
    ROW_ID_COLUMN,
    SNAPSHOT_COLUMN,
    SNAPSHOT_FIELD,
    DataFile,
    NewDeleteFile,
)
from shelduck.model.files.place import Place
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.deaths import deleted_rows, plain_deletes
from shelduck.write.parquet.plain_write import write_plain_parts

PATH, POSITION, FILE = "file_path", "pos", "file"
_COMPRESSION = "snappy"
_DELETES = [
    pa.field(name, kind, metadata={"PARQUET:field_id": number})
    for name, kind, number in (
        (PATH, pa.dictionary(pa.int32(), pa.string()), "2147483646"),
        (POSITION, pa.int64(), "2147483645"),
        (SNAPSHOT_COLUMN, pa.int64(), str(SNAPSHOT_FIELD)),
    )
]
_STEPS = dict.fromkeys((POSITION, SNAPSHOT_COLUMN), "DELTA_BINARY_PACKED")


def write_position_files(
    spark: SparkSession,
    positions: DataFrame,
    paths: Iterable[tuple[int, str]],
    directory: Place,
    ids: Mapping[str, int],
    *,
    encrypted: bool = False,
) -> dict[int, NewDeleteFile]:
    """Write columns ``file`` and ``pos`` into a fresh directory; return the files by data file id.

    Each file has the columns `PATH` and `POSITION` under the given field ids, positions in order.
    ``paths`` are the paths of data files in these files. Those of the returned files are below the
    directory. If nothing was written, it is removed again.
    """
    place = str(directory)
    named = spark.createDataFrame(list(paths), f"{FILE} bigint, {PATH} string")
    rows = positions.join(F.broadcast(named), FILE).select(
        *[F.col(name).alias(name, metadata={FIELD_ID: ids[name]}) for name in (PATH, POSITION)],
        FILE,
    )
    sorted_rows = rows.repartition(FILE).sortWithinPartitions(FILE, POSITION)
    written = results(place, _save(spark, sorted_rows, place, ids, encrypted=encrypted))
    found: dict[int, NewDeleteFile] = {}
    for file, footer in written.with_footers(spark):
        number = int(file.name.partition("/")[0].removeprefix(f"{FILE}="))
        if number in found:
            raise CorruptLake(f"{place} has two delete files for data file {number}")
        told = footer.metadata
        made = (file.name, told.num_rows, file.size, footer.size)
        found[number] = NewDeleteFile(*made, row_group_count=told.num_row_groups)
    if not found:
        delete_directory(directory)
    return found


def stored_positions(
    spark: SparkSession, files: Sequence[DataFile], table: TableVersion
) -> DataFrame:
    """Return what the delete files of ``files`` name up to the table's snapshot: file, pos."""
    up_to = table.snapshot.id
    dead = [(f, f.delete_file, up_to, (f.id,)) for f in files if f.delete_file is not None]
    rows, index = deleted_rows(spark, dead, [FILE], table.full_name)
    return rows.select(FILE, F.col(index).alias(POSITION))


def collected_positions(
    spark: SparkSession, files: Sequence[DataFile], table: TableVersion
) -> dict[int, pa.Array]:
    """Return the same, in the driver, by data file id; some may have no position.

    Files of plain positions are read without a Spark job.
    """
    parts = in_threads(lambda f: _plain_positions(f, table), files)
    if any(part is None for part in parts):
        return by_file(stored_positions(spark, files, table).select(FILE, POSITION).toArrow())
    return {f.id: part for f, part in zip(files, parts, strict=True)}


def by_file(rows: pa.Table) -> dict[int, pa.Array]:
    """Return positions in their order, by data file id."""
    found = rows.sort_by([(FILE, "ascending"), (POSITION, "ascending")])
    parts: dict[int, pa.Array] = {}
    start = 0
    for each in found[FILE].value_counts().to_pylist():
        parts[each["values"]] = found[POSITION].slice(start, each["counts"]).combine_chunks()
        start += each["counts"]
    return parts


def _plain_positions(file: DataFile, table: TableVersion) -> pa.Array | None:
    """Read a delete file as the scan does; None if only the scan knows how.

    DuckDB adds deletes of later snapshots to the file.
    """
    assert file.delete_file is not None
    if file.delete_file.format != "parquet":
        return None
    found = plain_deletes(file, file.delete_file, table.full_name)
    if SNAPSHOT_COLUMN in found.column_names:
        found = found.filter(compute.less_equal(found[SNAPSHOT_COLUMN], table.snapshot.id))
    return found[POSITION].combine_chunks()


def dead_positions(
    spark: SparkSession, files: Sequence[DataFile], table: TableVersion
) -> DataFrame | None:
    """Return every deleted position of ``files``, including those in the catalog; None without any.

    Columns ``file`` and ``pos``, each position once.
    """
    stored = [f for f in files if f.delete_file is not None]
    inlined = [(f.id, place) for f in files for place in f.inlined_deletes]
    found = stored_positions(spark, stored, table) if stored else None
    if not inlined:
        return found
    more = spark.createDataFrame(inlined, f"{FILE} bigint, {POSITION} bigint")
    return more if found is None else found.unionAll(more).distinct()


def _save(
    spark: SparkSession, rows: DataFrame, place: str, ids: Mapping[str, int], *, encrypted: bool
) -> dict[str, Report] | None:
    """Return what the writer tells of the files, if it does."""
    files = engine_for(spark).writer()
    if files is None:
        write_plain_parts(spark, rows, FILE, place, _COMPRESSION)
        return None
    options = files.id_options({(name,): number for name, number in ids.items()})
    writer = rows.write.format(files.write_format).partitionBy(FILE)
    writer = writer.options(compression=_COMPRESSION, maxRecordsPerFile=0, **options)
    try:
        files.save(writer, place, encrypted=encrypted)
    finally:
        found = files.taken()
    return found


def row_versions(path: str) -> list[tuple[int, int]]:
    """Return the row id and the first snapshot of each row of a newly written file."""
    found = read_columns(path, [ROW_ID_COLUMN, SNAPSHOT_COLUMN])
    ids, snapshots = (found.column(n).to_pylist() for n in (ROW_ID_COLUMN, SNAPSHOT_COLUMN))
    return list(zip(ids, snapshots, strict=True))


def write_deaths(
    table: TableVersion, name: str, data_file: str, deaths: Mapping[int, int]
) -> NewDeleteFile:
    """Write a delete file with the snapshot that deleted each position.

    ``name`` is its path below that of the table, ``data_file`` the absolute one of the data file.
    """
    numbers = [pa.array(each, pa.int64()) for each in zip(*sorted(deaths.items()), strict=True)]
    return write_positions(table, name, data_file, *numbers, begin=min(deaths.values()))


def write_positions(
    table: TableVersion, name: str, data_file: str, *numbers: pa.Array, begin: int | None = None
) -> NewDeleteFile:
    """Write a delete file and return it; ``name`` and ``data_file`` are as in `write_deaths`.

    ``numbers`` are all deleted positions of the data file, in order, and perhaps the snapshot that
    deleted each; they are stored as their steps.
    """
    footers: list[parquet.FileMetaData] = []
    first = pa.repeat(pa.scalar(0, pa.int32()), len(numbers[0]))
    paths = pa.DictionaryArray.from_arrays(first, pa.array([str(data_file)]))
    rows = pa.Table.from_arrays([paths, *numbers], schema=pa.schema(_DELETES[: 1 + len(numbers)]))
    told = {"use_dictionary": [PATH], "column_encoding": _STEPS, "store_schema": False}

    def written(how: Mapping[str, Any]) -> bytes:
        buffer = pa.BufferOutputStream()
        parquet.write_table(rows, buffer, metadata_collector=footers, **told, **how)
        return bytes(buffer.getvalue().to_pybytes())

    if table.options.encrypted:
        name, content = encrypted_file(name, written)
    else:
        content = written({})
    write_bytes(table.path + name, content)
    # A Parquet file ends with the length of its footer and four letters.
    footer = int.from_bytes(content[-8:-4], "little")
    groups = footers[0].num_row_groups
    return NewDeleteFile(name, len(rows), len(content), footer, begin, row_group_count=groups)
