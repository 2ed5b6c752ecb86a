"""COMPACT and REWRITE: files of a table replaced by fewer or smaller ones with the same rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import inf

from shelduck.catalog.read import table_facts as read_upkeep
from shelduck.catalog.read.read import Connection
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.engine.stopping import SparkJobs, stopped_on_error
from shelduck.errors import CorruptLake
from shelduck.lake.done import Counts, Done, discard
from shelduck.lake.state import LakeState
from shelduck.model.changes.change import RewriteFiles, RewrittenFile
from shelduck.model.files.compaction import (
    Bin,
    ColumnVersion,
    History,
    Partition,
    SmallFiles,
    chosen_bins,
    dead_row_bins,
    small_file_bins,
)
from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    DataFile,
    NameMapping,
    NewDataFile,
    deletes_seen,
)
from shelduck.model.shadows.copied import CopiedFile
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.write.parquet.clustering import directory_beside, place_files
from shelduck.write.parquet.write import (
    PLACE,
    at_once,
    write_arranged,
    write_copied,
    write_together,
    writes_several,
)

Report = Callable[[Bin], None]
WriteBins = Callable[[SparkSession, TableRows, Sequence[Bin]], list[tuple[NewDataFile, ...]]]


@dataclass(frozen=True)
class Derived:
    """Additional columns to write: ``table`` has them, ``frame`` adds them.

    They come after the table's own columns, from whose rows they are computed. Files whose own
    columns are copied, as far as they can be, are ``copied``, by their ids.
    """

    table: TableVersion
    frame: Callable[[TableRows, Sequence[Origin]], DataFrame]
    copied: Mapping[int, CopiedFile]

    def copy_of(self, one: Bin) -> CopiedFile | None:
        """Return what is copied of a bin's only file, None if it is written whole."""
        return self.copied.get(one.files[0].id) if len(one.files) == 1 else None


@dataclass(frozen=True)
class Survey:
    """The files of a table that may be rewritten, and what must be known about them.

    Files in ``without_ids`` may not be rewritten, because their rows have no ids to keep.
    ``in_catalog`` counts the rows in the catalog for each version of the columns. ``history`` is
    None in the survey of a job.
    """

    rows: TableRows
    partitions: dict[int, Partition]
    history: History | None
    without_ids: tuple[DataFile, ...] = ()
    in_catalog: tuple[int, ...] = ()

    @property
    def is_in_catalog(self) -> bool:
        """True if the catalog itself keeps rows of the table, or deleted positions of its files."""
        return bool(self.in_catalog) or any(f.inlined_deletes for f in self.rows.files)

    @property
    def table(self) -> TableVersion:
        """The table version of the survey."""
        return self.rows.table

    def small(self, wanted: SmallFiles) -> list[Bin]:
        """Return bins of small files."""
        assert self.history is not None
        return small_file_bins(self.rows.files, self.partitions, self.history, wanted)

    def dead(
        self, threshold: float, target: int, *, below: float = inf, max_bytes: float = inf
    ) -> list[Bin]:
        """Return bins of files with many deleted rows."""
        return dead_row_bins(
            self.rows.files, self.partitions, threshold, target, below=below, max_bytes=max_bytes
        )

    def chosen(self, among: Collection[int], target: int) -> list[Bin]:
        """Return bins of the files with these ids, whatever they contain."""
        return chosen_bins([f for f in self.rows.files if f.id in among], self.partitions, target)


@dataclass(frozen=True, slots=True)
class RewrittenBin:
    """One bin whose rows are written, and the change that replaces its files by the result."""

    bin: Bin
    done: Done


def survey(state: LakeState, table: TableVersion, *, for_job: bool = False) -> Survey:
    """Find the files of a table; a few statements, and the footers of foreign files.

    A job rewrites files whatever their history is, so ``for_job`` leaves that out.
    """
    rows = table_rows(state.store, table, state.layouts, at_once=for_job)
    history, partitions = None, {}
    has_partitions = any(f.partition_id is not None for f in rows.files)
    if has_partitions or not for_job:
        with state.store.read() as connection:
            history = None if for_job else Past.of(connection, table).history(rows.mappings)
            partitions = read_upkeep.partitions(connection, table) if has_partitions else {}
    kept = tuple(len(part.rows) for part in rows.inlined if part.rows)
    return survey_of(rows, partitions, history, kept)


def survey_of(
    rows: TableRows,
    partitions: dict[int, Partition],
    history: History | None,
    in_catalog: tuple[int, ...] = (),
) -> Survey:
    """Return the survey of these files."""
    files = tuple(f for f in rows.files if _knows_row_ids(f))
    others = tuple(f for f in rows.files if not _knows_row_ids(f))
    return Survey(replace(rows, files=files, inlined=()), partitions, history, others, in_catalog)


@dataclass(frozen=True, slots=True)
class Past:
    """The catalog's facts about the older snapshots of a table, whatever files matter."""

    versions: Sequence[ColumnVersion]
    snapshots: Sequence[int]
    deleted_from: Collection[int]

    @classmethod
    def of(cls, connection: Connection, table: TableVersion) -> Past:
        """Read it from the catalog."""
        return cls(
            read_upkeep.column_versions(connection, table.id),
            read_upkeep.snapshot_ids(connection),
            read_upkeep.deleted_from(connection, table.id),
        )

    def history(self, mappings: Mapping[int, NameMapping]) -> History:
        """Return the history for files with these name mappings."""
        return History(self.versions, self.snapshots, self.deleted_from, mappings)


def write_bins(
    spark: SparkSession,
    rows: TableRows,
    bins: Sequence[Bin],
    *,
    report: Report | None = None,
    derived: Derived | None = None,
    arranges: bool = False,
) -> list[RewrittenBin]:
    """Write each bin into a file, several in parallel; nothing is committed.

    With ``arranges``, a bin becomes as many files as the table's current partitions need.
    ``report`` is called with each written bin. If one fails, everything that was written is
    removed.
    """
    if arranges:
        groups, write = [[one] for one in bins], _write_arranged
    else:
        groups = _groups(spark, bins, derived)
        write = partial(_write_together, derived=derived)
    with ThreadPoolExecutor(at_once(spark)) as pool, stopped_on_error(spark) as jobs:
        parts = partial(_write, spark, rows, write=write, report=report, jobs=jobs)
        running = [pool.submit(parts, group) for group in groups]
        try:
            return [done for future in running for done in future.result()]
        except BaseException:
            for future in running:
                future.cancel()
            jobs.stop([future for future in running if not future.cancelled()])
            for future in running:
                if not future.cancelled() and future.exception() is None:
                    for part in future.result():
                        discard(rows.table, part.done.paths)
            raise


def _groups(spark: SparkSession, bins: Sequence[Bin], derived: Derived | None) -> list[list[Bin]]:
    """Return the bins that one Spark job writes: more parallel jobs plan and wait longer."""
    if not writes_several(spark):
        return [[one] for one in bins]
    groups: dict[tuple[object, ...], list[Bin]] = defaultdict(list)
    for one in bins:
        copy = None if derived is None else derived.copy_of(one)
        renewed = None if copy is None else copy.renewed
        groups[_keeps_snapshots(one), one.partition.id is not None, renewed].append(one)
    return list(groups.values())


def _write(
    spark: SparkSession,
    rows: TableRows,
    group: Sequence[Bin],
    *,
    write: WriteBins,
    report: Report | None,
    jobs: SparkJobs,
) -> list[RewrittenBin]:
    found: list[RewrittenBin] = []
    with jobs.joined():
        written = write(spark, rows, group)
    for one, results in zip(group, written, strict=True):
        sources = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in one.files)
        change = RewriteFiles(rows.table, sources, results, one.keeps_history)
        counts = Counts(files=len(results), bytes=sum(f.file_size_bytes for f in results))
        done = Done(rows.table, (change,), tuple(f.path for f in results), counts)
        found.append(RewrittenBin(one, done))
        if report is not None:
            report(one)
    return found


def _write_together(
    spark: SparkSession, rows: TableRows, group: Sequence[Bin], *, derived: Derived | None
) -> list[tuple[NewDataFile, ...]]:
    parts = [replace(rows, files=one.files) for one in group]
    first = None if derived is None else derived.copy_of(group[0])
    snapshots = first is None and _keeps_snapshots(group[0])
    origins = (Origin.ROW_ID, Origin.SNAPSHOT_ID) if snapshots else (Origin.ROW_ID,)
    if derived is None:
        frames = [part.frame(spark, origins=origins) for part in parts]
        written = write_together(spark, frames, rows.table, snapshots=snapshots)
    elif first is None:
        frames = [derived.frame(part, origins) for part in parts]
        written = write_together(spark, frames, derived.table, snapshots=snapshots)
    else:
        frames = [derived.frame(part, PLACE) for part in parts]
        copied = [derived.copied[one.files[0].id] for one in group]
        written = write_copied(spark, frames, derived.table, copied)
    for one, files in zip(group, written, strict=True):
        _require_file(one, files, rows.table)
    if group[0].partition.id is not None:
        written = _beside(written, [one.files[0] for one in group], rows.table)
    made = [
        tuple(_result(file, one, snapshots, rows.table) for file in files)
        for one, files in zip(group, written, strict=True)
    ]
    if first is None:
        return made
    return [
        tuple(replace(file, row_id_start=one.files[0].row_id_start) for file in files)
        for one, files in zip(group, made, strict=True)
    ]


def _require_file(one: Bin, files: Sequence[NewDataFile], table: TableVersion) -> None:
    """Raise CorruptLake if rows of a bin went into a file of another bin."""
    if not files and any((f.record_count or 0) > f.dead_rows for f in one.files):
        raise CorruptLake(
            f"no new file of {table.full_name} was written for {one.files[0].path} and others,"
            " although they have rows; nothing was changed"
        )


def _write_arranged(
    spark: SparkSession, rows: TableRows, group: Sequence[Bin]
) -> list[tuple[NewDataFile, ...]]:
    origins = (Origin.ROW_ID,)
    frames = [replace(rows, files=one.files).frame(spark, origins=origins) for one in group]
    return [write_arranged(spark, frame, rows.table).files for frame in frames]


def _beside(
    written: Sequence[tuple[NewDataFile, ...]], sources: Sequence[DataFile], table: TableVersion
) -> list[tuple[NewDataFile, ...]]:
    """Move the files of one write to the directories of their partitions."""
    every = [file for files in written for file in files]
    where = [
        directory_beside(table.path, source.path)
        for files, source in zip(written, sources, strict=True)
        for _ in files
    ]
    write = every[0].path.partition("/")[0] if every else ""
    placed = iter(place_files(table.path, write, every, where))
    return [tuple(islice(placed, len(files))) for files in written]


def _result(file: NewDataFile, one: Bin, snapshots: bool, table: TableVersion) -> NewDataFile:
    placed = replace(file, partition_id=one.partition.id, partition_values=one.partition.values)
    if not one.keeps_history:
        return placed
    first = min(f.begin_snapshot for f in one.files)
    last = max(_last_snapshot(f, table) for f in one.files) if snapshots else None
    return replace(placed, begin_snapshot=first, partial_max=last)


def _keeps_snapshots(one: Bin) -> bool:
    return one.keeps_history and _has_several_snapshots(one.files)


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
    """Return whether a file has a top-level column with this id, according to its footer."""
    if file.mapping_id is not None or file.layout is None:
        return False
    return file.layout.has_field(field_id)


def next_row_id(rows: TableRows) -> int:
    """Return the id from which newer files count their rows, if they embed no ids."""
    plain = [f for f in rows.files if f.row_id_start is not None]
    ends = [(f.row_id_start or 0) + (f.record_count or 0) for f in plain]
    kept = (number + 1 for part in rows.inlined for number in part.row_ids)
    return max((*ends, *kept), default=0)


def is_newer(file: DataFile, first: int) -> bool:
    """Return whether all rows of a file are newer than those of which ``first`` is the next id."""
    start = file.row_id_start
    return start is not None and start >= first and not embeds(file, ROW_ID_FIELD)
