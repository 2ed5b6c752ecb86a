"""Rows into new data files of a table, with their statistics, ready for a commit.

Rows of several files are written into one with their row ids and snapshots.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StructType

from shelduck import clock
from shelduck.engine.bridge import Named, engine_for, select_named
from shelduck.engine.bridge.codec import CHANGES, FileWriter, Report
from shelduck.engine.files.footers import file_stats
from shelduck.engine.files.layouts import layout_of
from shelduck.engine.files.physical import PhysicalSchema, physical_schema
from shelduck.engine.files.reaching import require_writable
from shelduck.engine.files.storage import delete_directory, delete_file
from shelduck.engine.files.task_results import Results, delete_write, placed_results, results
from shelduck.engine.rows.assign import failure_of
from shelduck.engine.rows.unheld import refusing_unheld, unheld_failure
from shelduck.engine.stopping import stopped_on_error
from shelduck.engine.stores.store_errors import storage_failure
from shelduck.engine.types import same_type, struct_type
from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.metrics import (
    BYTES_WRITTEN,
    FILES_WRITTEN,
    ROWS_WRITTEN,
    WRITE_DURATION,
    record,
    timed,
)
from shelduck.model.files.data_file import ROW_ID_COLUMN, SNAPSHOT_COLUMN, Layout, NewDataFile
from shelduck.model.files.place import place_below
from shelduck.model.shadows.copied import CopiedFile
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.tables.table_version import TableVersion, is_shadow, why_not_written
from shelduck.model.text.names import backticked, write_directory
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.parquet.clustering import Clustering, clustering_of, place_files
from shelduck.write.parquet.kept import (
    MARKS,
    Origins,
    has_row_ids,
    is_origins,
    taken_origins,
    versions,
)
from shelduck.write.parquet.plain_write import (
    codec_failure,
    spark_settings,
    spark_writes,
    write_by_arrow,
    write_plain,
)

Progress = Callable[[int, int, int], None]
_VARIANT = "variant"
_TASK = re.compile(r"(?:^|/)part-(\d+)-")

Register = Callable[[TableVersion], TableVersion]
"""Registers a writer of files in the catalog, and returns the table with its open job."""


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The result of a write: files that no snapshot has yet, their rows and their bytes.

    A write of changed rows also has the origins of those that it changed.
    """

    files: tuple[NewDataFile, ...]
    rows: int
    bytes: int
    origins: Origins | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How rows become files, where it is not as for new rows.

    ``lineage`` names the columns that follow those of the table, which are `ROW_ID_COLUMN` and
    `SNAPSHOT_COLUMN`: rows that are not new have their own row ids and, if files are merged, their
    first snapshots. With ``sorts``, rows are laid out by the table's sort order; if it is None, the
    table's option counts. Without ``arranges``, rows stay as they come, each part of them in one
    file without a partition. Without ``spreads``, the parts stay as they are: a small write is not
    worth a shuffle. ``changes``, which needs the bridge: behind the lineage are the columns of
    `shelduck.write.parquet.kept`. Columns that are ``moved`` are not checked. With ``copied``,
    which needs the bridge too, task n writes the shadow columns, and those that are renewed, beside
    a copy of the n-th file: rows have these columns and, last, their `PLACE`.
    """

    lineage: Sequence[str] = ()
    sorts: bool | None = None
    arranges: bool = True
    spreads: bool = True
    changes: bool = False
    moved: Collection[FieldId] = ()
    copied: Sequence[CopiedFile] = ()

    def makes(self, column: Field) -> bool:
        """Return whether the values of a column come from the rows, not from copied files."""
        return not self.copied or is_shadow(column) or column.id in self.copied[0].renewed


NEW_ROWS = Writing()
PLACE = (Origin.FILE_ID, Origin.POSITION)
"""The columns that say which row of an older file gets new columns."""


def write_files(
    spark: SparkSession,
    df: DataFrame,
    table: TableVersion,
    how: Writing = NEW_ROWS,
    *,
    progress: Progress | None = None,
) -> WrittenFiles:
    """Write the rows of ``df`` into files of ``table`` that no snapshot has, and return them.

    They are in a fresh directory, or in those of their partitions. ``df`` has the columns of the
    table as `shelduck.engine.rows.assign.assign` returns them, followed by those that ``how``
    names. Paths are relative to the table's directory. Without rows there are no files.
    ``progress`` is called with the rows, files and bytes so far, while finished files are read. A
    failed write deletes its files. InvalidRequest: a value does not fit. Unsupported: a type cannot
    be written.
    """
    physical = _physical(df, table, how)
    made = clustering_of(table, sorts=how.sorts) if how.arranges else Clustering(table, (), ())
    rows = made.arranged(spark, df, spreads=how.spreads)
    write = _Write(fresh_name(table), engine_for(spark).writer())
    require_writable(table.path)
    of_table = {"shelduck.table": table.full_name}
    with _removed_if_failed(spark, table, write), timed(WRITE_DURATION, of_table):
        found = _write(spark, rows, write, physical=physical, clustering=made, how=how)
        found, origins = _origins(spark, found) if how.changes else (found, None)
        written = _look_at(spark, made, found, progress, how)
        written = replace(_in_partitions(made, write.name, written), origins=origins)
    if not written.files and found.directory != table.path:
        delete_directory(place_below(table.path, write.name))
    record(ROWS_WRITTEN, written.rows, of_table)
    record(FILES_WRITTEN, len(written.files), of_table)
    record(BYTES_WRITTEN, written.bytes, of_table)
    return written


@dataclass(slots=True)
class _Write:
    """One write: the name of its directory, and what writes and tells of its files, if it does."""

    name: str
    writer: FileWriter | None
    _told: dict[str, Report] = field(default_factory=dict)

    def told(self) -> dict[str, Report]:
        """Return all that tasks have reported so far."""
        if self.writer is not None:
            self._told.update(self.writer.taken())
        return self._told


@contextmanager
def _removed_if_failed(spark: SparkSession, table: TableVersion, write: _Write) -> Iterator[None]:
    """Delete the files of a write that fails or is interrupted; say what is wrong."""
    with stopped_on_error(spark) as jobs:
        try:
            yield
        except BaseException as error:
            # Tasks that still run would write files that nobody removes.
            jobs.stop()
            told: dict[str, Report] = {}
            with suppress(Py4JError):
                told = write.told()
            # If the storage is what fails, remove_orphans finds the files later.
            with suppress(OSError):
                delete_write(table.path, write.name, told)
            what = f"write to {table.full_name}"
            failed = failure_of(error) or unheld_failure(error, table)
            failed = failed or codec_failure(error, table)
            failed = failed or storage_failure(error, table.path, what)
            if failed is None:
                raise
            raise failed from error


def _physical(df: DataFrame, table: TableVersion, how: Writing) -> PhysicalSchema:
    """Return the layout of the columns in files, after a check that these rows fit them."""
    why = why_not_written(table.columns, table.full_name)
    why = why or _why_too_old(df.sparkSession, filter(how.makes, table.columns), table.full_name)
    if why is not None:
        raise Unsupported(why)
    physical = physical_schema(table, how.lineage)
    physical = replace(physical, fields=tuple(filter(how.makes, physical.fields)))
    expected = struct_type(physical.fields)
    given = df.schema
    if how.changes and given.names[-len(MARKS) :] == [*MARKS]:
        given = StructType(given.fields[: -len(MARKS)])
    if how.copied:
        given = StructType(given.fields[: -len(PLACE)])
    if not same_type(given, expected):
        raise InvalidRequest(
            f"rows for {table.full_name} must be {expected.simpleString()}, not"
            f" {given.simpleString()}; pass them through store assignment first"
        )
    return physical


def _why_too_old(spark: SparkSession, columns: Iterable[Field], table: str) -> str | None:
    """Return why this Spark cannot write some columns that a newer one can; None if it can."""
    found = (f.name for c in columns for f in c.leaves() if str(f.shape) == _VARIANT)
    name = next(found, None)
    if name is None or not spark.version.startswith("4.0."):
        return None
    # It puts the value before the metadata, and says nowhere what they are.
    return (
        f"cannot write {table}: Spark {spark.version} writes variants, such as {name!r}, as other"
        " readers do not know them; use Spark 4.1 or newer"
    )


def _origins(spark: SparkSession, found: Results) -> tuple[Results, Origins]:
    """Read and delete the files of a write that list origins; return the others too."""
    of_origins = replace(found, files=tuple(f for f in found.files if is_origins(f)))
    rows = [f for f in found.files if not is_origins(f)]
    count = sum(footer.metadata.num_rows for _, footer in of_origins.with_footers(spark))
    names = [f.name for f in of_origins.files]
    # Inserted rows get their ids last.
    others = replace(found, files=tuple(sorted(rows, key=lambda f: not has_row_ids(f))))
    return others, taken_origins(spark, found.directory, names, count)


def _in_partitions(clustering: Clustering, write: str, written: WrittenFiles) -> WrittenFiles:
    """Move the files of a write to the directories of their partitions, if tasks could not."""
    if not clustering.keys:
        return written
    where = clustering.directories(written.files)
    placed = place_files(clustering.table.path, write, written.files, where)
    return replace(written, files=placed)


def _write(
    spark: SparkSession,
    rows: DataFrame,
    write: _Write,
    *,
    physical: PhysicalSchema,
    clustering: Clustering,
    how: Writing,
) -> Results:
    """Write the rows and return the files."""
    root = clustering.table.path
    place = root + write.name
    told = None
    if write.writer is not None:
        prepared = _prepared(write.writer, rows, physical, clustering, how)
        keys = clustering.directory_keys() if clustering.keys else None
        encrypted = clustering.table.options.encrypted
        write.writer.save(prepared, place, keys=keys, encrypted=encrypted)
        told = write.told()
        if clustering.keys:
            return placed_results(root, write.name, told)
    else:
        rows = refusing_unheld(rows, physical.fields, how.moved)
        if not spark_writes(spark, physical):
            has_rows = write_by_arrow(rows, physical, clustering, place)
            return results(place, None) if has_rows else Results(f"{place}/", (), {})
        write_plain(rows, physical, clustering, place)
    found = results(place, told)
    # Without partitions, even an empty DataFrame leaves a file.
    if not found.files and not (clustering.keys and rows.isEmpty()):
        # Spark and Shelduck do not look in the same place.
        raise CorruptLake(f"Spark wrote to {place}, but there is no file")
    return found


def _prepared(
    files: FileWriter,
    rows: DataFrame,
    physical: PhysicalSchema,
    clustering: Clustering,
    how: Writing,
) -> DataFrameWriter:
    """Return Spark's call for a write of files, with ids at every level."""
    marks = [Named(name, name) for name in MARKS] if how.changes else []
    if how.copied:
        marks = [Named(name, name) for name in PLACE]
    columns = [*physical.columns(with_ids=False), *marks, *clustering.named]
    writer = select_named(rows, columns).write.format(files.write_format)
    table = clustering.table
    settings = spark_settings(table, physical)
    writer = writer.options(**settings, **files.id_options(physical.ids))
    if how.changes:
        writer = writer.options(**CHANGES)
    if how.copied:
        sources = ((file.path, str(file.id), *file.columns) for file in how.copied)
        writer = writer.options(**files.copied_options(sources))
    if how.moved:
        writer = writer.options(**files.moved_options(how.moved))
    # Every row has another id, so a search for repetitions takes time and finds none.
    writer = writer.option(f"parquet.enable.dictionary#{ROW_ID_COLUMN}", "false")
    return writer.partitionBy(*clustering.columns)


def _look_at(
    spark: SparkSession,
    clustering: Clustering,
    found: Results,
    progress: Progress | None,
    how: Writing,
) -> WrittenFiles:
    table, extra = clustering.table, len(how.lineage)
    made: Sequence[Field | None] = [*Schema(tuple(filter(how.makes, table.columns))).leaves()]
    files: list[NewDataFile] = []
    layouts: dict[int, Layout] = {}
    rows = size = 0
    below = found.directory.removeprefix(table.path)
    for file, footer in found.with_footers(spark):
        metadata = footer.metadata
        if metadata.num_rows == 0:
            delete_file(place_below(found.directory, file.name))
            continue
        lineage = extra if has_row_ids(file) else 0
        kind, leaves = lineage, made
        if how.copied:
            kind = task_of(file.name)
            leaves = [*how.copied[kind].leaves, *made]
        # Every other file of one write has the schema of the first with the same lineage.
        if kind not in layouts:
            layouts[kind] = layout_of(metadata)
        new = NewDataFile(
            path=below + file.name,
            record_count=metadata.num_rows,
            file_size_bytes=file.size,
            footer_size=footer.size,
            row_group_count=metadata.num_row_groups,
            stats=file_stats(metadata, leaves, lineage),
            layout=layouts[kind],
        )
        files.append(clustering.told(new, found.working(file)))
        rows += metadata.num_rows
        size += file.size
        if progress is not None:
            progress(rows, len(files), size)
    return WrittenFiles(tuple(files), rows, size)


def task_of(path: str) -> int:
    """Return the number of the task that wrote a file, by the name that Spark gave it."""
    found = _TASK.search(path)
    assert found is not None, f"{path} is not a file name of Spark"
    return int(found[1])


def fresh_name(table: TableVersion) -> str:
    """Return a new, unused name of a directory for one write to a table."""
    random = int.from_bytes(os.urandom(4), "big")
    return write_directory(table.uuid, int(clock.now().timestamp() * 1000), random)


_MOST_AT_ONCE = 16


def write_together(
    spark: SparkSession, parts: Sequence[DataFrame], table: TableVersion, *, snapshots: bool
) -> list[tuple[NewDataFile, ...]]:
    """Write the rows of each part into one file, by one task of one job; return the files of each.

    ``parts`` are rows of `shelduck.read.scan.scan_frames.read_rows` with the origin ROW_ID, and
    SNAPSHOT_ID if ``snapshots`` are kept. They are sorted by the table's sort order; without one,
    they stay in the order in which they are read. A part without rows has no file.
    """
    columns = [F.col(backticked(f.name)) for f in table.columns]
    kept = {ROW_ID_COLUMN: Origin.ROW_ID}
    if snapshots:
        kept[SNAPSHOT_COLUMN] = Origin.SNAPSHOT_ID
    columns += [F.col(origin).alias(name) for name, origin in kept.items()]
    order = _order(table)
    alone = [rows.select(*columns).coalesce(1) for rows in parts]
    alone = [rows.sortWithinPartitions(*order) for rows in alone] if order else alone
    how = Writing(lineage=tuple(kept), arranges=False, moved=_moved(table))
    return _written(spark, alone, table, how)


def write_copied(
    spark: SparkSession,
    parts: Sequence[DataFrame],
    table: TableVersion,
    copied: Sequence[CopiedFile],
) -> list[tuple[NewDataFile, ...]]:
    """Write the new columns of each part beside a copy of its file; return the file of each.

    ``parts`` are the rows of one file each, with the origins `PLACE`, and the columns of ``table``.
    The same columns of all files are renewed.
    """
    how = Writing(arranges=False, copied=tuple(copied), moved=_moved(table))
    made = [F.col(backticked(f.name)) for f in table.columns if how.makes(f)]
    alone = [rows.select(*made, *map(F.col, PLACE)).coalesce(1) for rows in parts]
    return _written(spark, alone, table, how)


def _written(
    spark: SparkSession, alone: Sequence[DataFrame], table: TableVersion, how: Writing
) -> list[tuple[NewDataFile, ...]]:
    """Write rows of one partition each by one task each of one job; return the files of each."""
    together = reduce(DataFrame.unionAll, alone)
    if len(alone) > 1:
        # If every part has one partition, Spark's union combines them into one partition, unless it
        # does not know the partitions of some part. This part has none, and no task.
        nothing = spark.range(0).select(
            *[F.lit(None).cast(f.dataType).alias(f.name) for f in together.schema]
        )
        together = together.unionAll(nothing)
    written = write_files(spark, together, table, how)
    if len(alone) == 1:
        return [written.files]
    return [tuple(f for f in written.files if task_of(f.path) == n) for n in range(len(alone))]


def writes_several(spark: SparkSession) -> bool:
    """Return whether `write_together` accepts several parts: names of files must identify tasks."""
    return engine_for(spark).has_jvm


def write_arranged(spark: SparkSession, rows: DataFrame, table: TableVersion) -> WrittenFiles:
    """Write rows like new rows: in files by the table's partitions, in its sort order.

    ``rows`` are those of `shelduck.read.scan.scan_frames.read_rows` with the origin ROW_ID.
    """
    own = versions(rows, table, with_row_ids=True).coalesce(1)
    how = Writing(lineage=(ROW_ID_COLUMN,), sorts=True, moved=_moved(table))
    return write_files(spark, own, table, how)


def at_once(spark: SparkSession) -> int:
    """Return how many files may be written in parallel."""
    return max(1, min(_MOST_AT_ONCE, engine_for(spark).parallelism))


def file_ids(rows: DataFrame) -> set[int]:
    """Return the ids of the data files from which rows with the origin FILE_ID come."""
    return {row[0] for row in rows.select(F.col(Origin.FILE_ID)).distinct().collect()}


def _moved(table: TableVersion) -> list[FieldId]:
    """Return the columns whose values come from files: all but those that a job makes."""
    return [f.id for f in table.columns if not is_shadow(f)]


def _order(table: TableVersion) -> tuple[Column, ...]:
    try:
        return clustering_of(table).order
    except Unsupported:
        # A sort order is not binding; an order that only DuckDB can evaluate is left to DuckDB.
        return ()
