"""FLUSH: moving rows and deletes from the catalog itself into files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.feed_files import deletes_of, positions_of
from shelduck.catalog.read.files.numbers import deletes_of_files
from shelduck.catalog.read.holdings import holdings_of
from shelduck.catalog.read.inlined_rows import inlined_history
from shelduck.catalog.read.queries import chunks
from shelduck.engine.session import SparkSession
from shelduck.lake.done import Counts, Done, discard
from shelduck.model.changes.change import (
    Change,
    DeleteRows,
    FileDeletes,
    FlushedRows,
    FlushInlined,
    MergedDeletes,
    RewriteFiles,
)
from shelduck.model.changes.feed_plan import FeedDeletes, FeedFile
from shelduck.model.files.data_file import (
    ROW_ID_COLUMN,
    SNAPSHOT_COLUMN,
    DataFile,
    DeletesSeen,
    InlinedHistory,
    InlinedRows,
    NewDataFile,
    deletes_seen,
    without_bounds,
)
from shelduck.model.tables.schema import Schema, retyped
from shelduck.model.tables.table_version import TableVersion, why_not_written
from shelduck.read.scan.deaths import first_deaths
from shelduck.read.scan.scan_frames import inlined_frame
from shelduck.write.deletes.position_files import row_versions, write_deaths
from shelduck.write.parquet.write import Register, Writing, fresh_name, write_files

_LINEAGE = (ROW_ID_COLUMN, SNAPSHOT_COLUMN)


def flush_table(
    spark: SparkSession, store: Store, table: TableVersion, *, register: Register
) -> Done:
    """Write the rows and deletes that the catalog keeps into files; nothing is committed.

    One file for each version of the columns that has rows: all versions of the rows with their row
    ids and snapshots, and a delete file with the snapshots of their deletion.

    Rows of columns that cannot be written stay in the catalog; a note says so. ``register`` is
    called before files are written.
    """
    with store.read() as connection:
        known = holdings_of(connection, table.id)
        found = inlined_history(connection, table, known)
        files: dict[int, DataFile] = {}
        if known.has_positions:
            deletes = deletes_of_files(connection, table, known)
            wanted = [number for number, seen in deletes.items() if seen.inlined]
            for some in chunks(sorted(wanted)):
                files |= {f.id: f for f in read.data_files(connection, table, known, some)}
        positions = positions_of(connection, table, table.snapshot.id, files) if files else {}
        stored = deletes_of(connection, table, files) if files else {}
    notes = {h.table_name: _why_left(h, table) for h in found}
    histories = [h for h in found if notes[h.table_name] is None]
    note = next((n for n in notes.values() if n is not None), "")
    if histories or files:
        register(table)
    flushing = _Flushing(spark, table)
    try:
        results = [f for history in histories for f in flushing.rows(history)]
        merged = list(merged_deletes(table, files, positions, stored, flushing.paths))
    except BaseException:
        discard(table, flushing.paths)
        raise
    if not histories and not merged:
        return Done(table, note=note)
    emptied = tuple(FlushedRows(h.table_name, len(h.rows.rows)) for h in histories)
    change = FlushInlined(table, emptied, tuple(results), tuple(merged))
    counts = Counts(files=len(results), bytes=sum(f.file_size_bytes for f in results))
    return Done(table, (change,), tuple(flushing.paths), counts, note=note)


def with_past(
    store: Store, change: Change, paths: list[str], register: Register | None = None
) -> Change:
    """Return a change with the merged delete files that keep the past of positions in the catalog.

    These are positions beside a delete file that ends. The paths of the written files, below the
    table's directory, are added to ``paths``. ``register`` is called before files are written.
    """
    match change:
        case DeleteRows():
            wanted = {f.data_file_id for f in change.files if _has_past(f)}
            found = _past(store, change.table, wanted, paths, register)
            return replace(
                change,
                files=tuple(replace(f, past=found.get(f.data_file_id)) for f in change.files),
            )
        case RewriteFiles(keeps_history=False):
            wanted = {f.data_file_id for f in change.sources if _is_mixed(f.seen)}
            found = _past(store, change.table, wanted, paths, register)
            sources = (replace(f, past=found.get(f.data_file_id)) for f in change.sources)
            return replace(change, sources=tuple(sources))
    return change


def _past(
    store: Store, table: TableVersion, wanted: set[int], paths: list[str], register: Register | None
) -> dict[int, MergedDeletes]:
    if not wanted:
        return {}
    if register is not None:
        register(table)
    with store.read() as connection:
        positions = positions_of(connection, table, table.snapshot.id, wanted)
        stored = deletes_of(connection, table, wanted)
        files = {f.id: f for f in read.data_files(connection, table, ids=positions.keys() & wanted)}
    return {m.data_file_id: m for m in merged_deletes(table, files, positions, stored, paths)}


def _has_past(deletes: FileDeletes) -> bool:
    return deletes.takes_inlined or (deletes.ends_file and _is_mixed(deletes.seen))


def _is_mixed(seen: DeletesSeen) -> bool:
    return seen.delete_file_id is not None and seen.inlined > 0


class _Flushing:
    """The files of one flush; ``paths`` are all written files, below the table's directory."""

    def __init__(self, spark: SparkSession, table: TableVersion) -> None:
        self.spark = spark
        self.table = table
        self.paths: list[str] = []

    def rows(self, history: InlinedHistory) -> list[NewDataFile]:
        """Write the rows of one version of the columns, in the columns of that version."""
        shown, deaths = _shown(history)
        if not shown.rows:
            return []
        columns = shown.columns
        version = replace(self.table, columns=columns)
        frame = inlined_frame(self.spark, columns.fields, [shown], *_LINEAGE).coalesce(1)
        how = Writing(
            lineage=_LINEAGE,
            sorts=self.table.options.sort_on_insert,
            # Keys may refer to columns that this version does not have.
            arranges=columns == self.table.columns,
        )
        written = write_files(self.spark, frame, version, how)
        self.paths += [f.path for f in written.files]
        return [self._placed(f, columns, deaths) for f in written.files]

    def _placed(
        self, file: NewDataFile, columns: Schema, deaths: Mapping[tuple[int, int], int]
    ) -> NewDataFile:
        """Return a written file with the snapshots of its rows, and its delete file."""
        rows = row_versions(self.table.path + file.path)
        dead = {place: deaths[row] for place, row in enumerate(rows) if row in deaths}
        made = None
        if dead:
            name = f"{file.path.removesuffix('.parquet')}-delete.parquet"
            self.paths.append(name)
            made = write_deaths(self.table, name, self.table.path + file.path, dead)
        begins = [begin for _, begin in rows]
        return replace(
            without_bounds(file, retyped(columns, self.table.columns)),
            deletes=made,
            begin_snapshot=min(begins),
            partial_max=max(begins),
            row_id_start=min(row_id for row_id, _ in rows),
        )


def _why_left(history: InlinedHistory, table: TableVersion) -> str | None:
    """Return why the rows of a history stay in the catalog, None if they go to files."""
    return why_not_written(history.rows.columns, table.full_name) if history.rows.rows else None


def merged_deletes(
    table: TableVersion,
    files: Mapping[int, DataFile],
    positions: Mapping[int, tuple[tuple[int, int], ...]],
    stored: Mapping[int, tuple[FeedDeletes, ...]],
    paths: list[str],
) -> Iterator[MergedDeletes]:
    """Write one delete file for each data file with deleted positions in the catalog.

    Each path is added to ``paths`` before the file is written.
    """
    directory = fresh_name(table)
    for number, file in files.items():
        older = stored.get(number, ())
        if any(one.file.format != "parquet" for one in older):
            continue
        dead = FeedFile(file, None, older, positions[number])
        deaths = first_deaths(dead, table.full_name)
        name = f"{directory}/{number}-delete.parquet"
        paths.append(name)
        made = write_deaths(table, name, file.path, deaths)
        made = replace(made, partial_max=max(deaths.values()))
        replaced = tuple(one.file.id for one in older if one.file.id is not None)
        yield MergedDeletes(number, deletes_seen(file), made, replaced)


def _shown(history: InlinedHistory) -> tuple[InlinedRows, dict[tuple[int, int], int]]:
    """Return the rows that some snapshot saw, and the snapshots in which rows were deleted."""
    rows, ends = history.rows, history.end_snapshots
    kept = [n for n, end in enumerate(ends) if end is None or end > rows.begin_snapshots[n]]
    deaths: dict[tuple[int, int], int] = {}
    for n in kept:
        end = ends[n]
        if end is not None:
            deaths[rows.row_ids[n], rows.begin_snapshots[n]] = end
    return rows.at(kept), deaths
