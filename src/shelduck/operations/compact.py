"""COMPACT and REWRITE: files of a table replaced by fewer or smaller ones with the same rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from shelduck.catalog import read_upkeep
from shelduck.catalog.store import Store
from shelduck.model.change import RewriteFiles, RewrittenFile
from shelduck.model.files import DataFile, NewDataFile, deletes_seen
from shelduck.model.layout import ROW_ID_FIELD, SNAPSHOT_FIELD
from shelduck.model.table import TableVersion
from shelduck.operations.done import Counts, Done, discard
from shelduck.operations.layouts import LayoutMemory
from shelduck.operations.rows import TableRows, table_rows
from shelduck.planning.compaction import (
    MIN_FILES,
    Bin,
    History,
    Partition,
    chosen_bins,
    dead_row_bins,
    small_file_bins,
)
from shelduck.spark.matching import Where
from shelduck.spark.placing import directory_beside, place_files
from shelduck.spark.read import Origin
from shelduck.spark.rewrite import at_once, file_ids, write_arranged, write_together
from shelduck.spark.session import DataFrame, SparkSession

Report = Callable[[Bin], None]
WriteBin = Callable[[SparkSession, TableRows, Bin], tuple[NewDataFile, ...]]


@dataclass(frozen=True)
class Derived:
    """Columns that are written besides those of the table: ``table`` has them, ``frame`` adds them.

    They are behind the table's own, of whose rows they are made.
    """

    table: TableVersion
    frame: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Survey:
    """The files of a table that may be written anew, and what has to be known of them.

    Those of ``without_ids`` may not: their rows have no ids to keep.
    """

    rows: TableRows
    partitions: dict[int, Partition]
    history: History
    without_ids: tuple[DataFile, ...] = ()

    @property
    def table(self) -> TableVersion:
        """The version that was looked at."""
        return self.rows.table

    def small(
        self,
        target: int,
        *,
        min_files: int = MIN_FILES,
        max_files: int | None = None,
        among: Collection[int] | None = None,
    ) -> list[Bin]:
        """Return what to do about small files, ``among`` those with these ids."""
        files = [f for f in self.rows.files if among is None or f.id in among]
        return small_file_bins(
            files,
            self.partitions,
            self.history,
            target,
            min_files=min_files,
            max_files=max_files,
        )

    def dead(self, threshold: float, target: int) -> list[Bin]:
        """Return what to do about files with many deleted rows."""
        return dead_row_bins(self.rows.files, self.partitions, threshold, target)

    def chosen(self, among: Collection[int], target: int) -> list[Bin]:
        """Return what to do about the files with these ids, whatever is in them."""
        return chosen_bins([f for f in self.rows.files if f.id in among], self.partitions, target)

    def holding(self, spark: SparkSession, where: Where) -> set[int]:
        """Return the files in which the condition is true for a row; reads its columns."""
        frame = replace(self.rows, inlined=()).frame(spark, origins=(Origin.FILE_ID,))
        return file_ids(where.rows(frame))


@dataclass(frozen=True, slots=True)
class RewrittenBin:
    """One bin whose rows were written, and the change that puts the result in its place."""

    bin: Bin
    done: Done


def survey(store: Store, table: TableVersion, layouts: LayoutMemory) -> Survey:
    """Look up the files of a table; a few statements, and the footers of files of others."""
    rows = table_rows(store, table, layouts)
    with store.read() as connection:
        history = History(
            read_upkeep.column_versions(connection, table.id),
            read_upkeep.snapshot_ids(connection),
            read_upkeep.deleted_from(connection, table.id),
            rows.mappings,
        )
        partitions = read_upkeep.partitions(connection, table)
    files = tuple(f for f in rows.files if _knows_row_ids(f))
    others = tuple(f for f in rows.files if not _knows_row_ids(f))
    return Survey(replace(rows, files=files, inlined=()), partitions, history, others)


def write_bins(
    spark: SparkSession,
    rows: TableRows,
    bins: Sequence[Bin],
    *,
    report: Report | None = None,
    derived: Derived | None = None,
    arranges: bool = False,
) -> list[RewrittenBin]:
    """Write each bin into a file, several side by side; nothing is committed.

    With ``arranges`` a bin becomes as many files as the table's partitions ask for now. ``report``
    is told of each that is written. When one fails all that was written is removed.
    """
    write = _write_arranged if arranges else partial(_write_together, derived=derived)
    with ThreadPoolExecutor(at_once(spark)) as pool:
        running = [pool.submit(_write, spark, rows, one, write, report) for one in bins]
        try:
            return [future.result() for future in running]
        except BaseException:
            for future in running:
                future.cancel()
            for future in running:
                if not future.cancelled() and future.exception() is None:
                    discard(rows.table, future.result().done.paths)
            raise


def _write(
    spark: SparkSession, rows: TableRows, one: Bin, write: WriteBin, report: Report | None
) -> RewrittenBin:
    results = write(spark, rows, one)
    sources = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in one.files)
    change = RewriteFiles(rows.table, sources, results, one.keeps_history)
    counts = Counts(files=len(results), bytes=sum(f.file_size_bytes for f in results))
    done = Done(rows.table, (change,), tuple(f.path for f in results), counts)
    if report is not None:
        report(one)
    return RewrittenBin(one, done)


def _write_together(
    spark: SparkSession, rows: TableRows, one: Bin, *, derived: Derived | None
) -> tuple[NewDataFile, ...]:
    snapshots = one.keeps_history and _has_several_snapshots(one.files)
    origins = (Origin.ROW_ID, Origin.SNAPSHOT_ID) if snapshots else (Origin.ROW_ID,)
    frame = replace(rows, files=one.files).frame(spark, origins=origins)
    target = rows.table
    if derived is not None:
        frame, target = derived.frame(frame), derived.table
    written = write_together(spark, frame, target, snapshots=snapshots)
    if one.partition.id is not None:
        written = replace(written, files=_beside(written.files, one.files[0], rows.table))
    return tuple(_result(file, one, snapshots, rows.table) for file in written.files)


def _write_arranged(spark: SparkSession, rows: TableRows, one: Bin) -> tuple[NewDataFile, ...]:
    frame = replace(rows, files=one.files).frame(spark, origins=(Origin.ROW_ID,))
    return write_arranged(spark, frame, rows.table).files


def _beside(
    files: Sequence[NewDataFile], source: DataFile, table: TableVersion
) -> tuple[NewDataFile, ...]:
    """Move written files to the directory in which the files of their partition lie."""
    write = files[0].path.partition("/")[0] if files else ""
    where = directory_beside(table.path, source.path)
    return place_files(table.path, write, files, [where] * len(files))


def _result(file: NewDataFile, one: Bin, snapshots: bool, table: TableVersion) -> NewDataFile:
    placed = replace(file, partition_id=one.partition.id, partition_values=one.partition.values)
    if not one.keeps_history:
        return placed
    first = min(f.begin_snapshot for f in one.files)
    last = max(_last_snapshot(f, table) for f in one.files) if snapshots else None
    return replace(placed, begin_snapshot=first, partial_max=last)


def _has_several_snapshots(files: Sequence[DataFile]) -> bool:
    begins = {f.begin_snapshot for f in files}
    return len(begins) > 1 or any(embeds(f, SNAPSHOT_FIELD) for f in files)


def _last_snapshot(file: DataFile, table: TableVersion) -> int:
    if file.partial_max is not None:
        return file.partial_max
    return table.snapshot.id if embeds(file, SNAPSHOT_FIELD) else file.begin_snapshot


def _knows_row_ids(file: DataFile) -> bool:
    return file.row_id_start is not None or embeds(file, ROW_ID_FIELD)


def embeds(file: DataFile, field_id: int) -> bool:
    """Tell whether a file has a top-level column of this id, by what its footer tells."""
    if file.mapping_id is not None or file.layout is None:
        return False
    return file.layout.has_field(field_id)
