"""New versions of rows: old versions are deleted, new ones are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shelduck.model.changes.change import AppendFiles, DeleteRows, InlineRows
from shelduck.model.files.data_files import NewDataFile
from shelduck.model.files.inlined import InlinedBatch
from shelduck.model.tables.table import TableVersion
from shelduck.operations.done import Counts, Done, discard
from shelduck.operations.progress import write_progress
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.append import write_rows
from shelduck.operations.write.delete import deleted
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits
from shelduck.spark.deletes.delete_files import DeadRows, write_delete_files
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.query import with_values
from shelduck.spark.scan.matching import row_ids
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write import kept
from shelduck.spark.write.small import collected_rows
from shelduck.spark.write.write import Writing


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows that were computed once, with the table's columns followed by their origins.

    ``updated`` replace rows that are among ``dead``; ``inserted`` are new. None means no rows.
    ``counts`` say how many rows were inserted, updated and deleted.
    """

    counts: Counts
    updated: DataFrame | None = None
    inserted: DataFrame | None = None
    dead: DataFrame | None = None


def write_versions(
    spark: SparkSession,
    rows: TableRows,
    versions: Versions,
    *,
    limits: Limits = NOTHING_INLINED,
    show_progress: bool | None = None,
) -> Done:
    """Write rows and deletes of one statement; nothing is committed.

    Updated rows keep their row ids, so rows with and without row ids go to separate files: at most
    two writes. Few rows go to the catalog instead, as ``limits`` say: they are computed already, so
    that no file is written first.
    """
    table = rows.table
    if 0 < versions.counts.updated + versions.counts.inserted <= limits.new:
        batch = _in_catalog(table, versions)
        if batch.can_be_kept:
            gone = _deletes(spark, rows, versions, limits.deleted)
            changes = gone.changes or (DeleteRows(table),)
            changes = (*changes, InlineRows(table.id, batch, table))
            return Done(table, changes, gone.paths, versions.counts)
    files: list[NewDataFile] = []
    with write_progress(spark, table.full_name, show=show_progress) as progress:
        try:
            for each in _writes(rows, versions):
                how = Writing(lineage=each.lineage, spreads=each.parts > 1)
                few = each.rows.coalesce(each.parts)
                written = write_rows(spark, few, table, how, progress=progress)
                files += written.files
            gone = _deletes(spark, rows, versions, limits.deleted)
        except BaseException:
            discard(table, [f.path for f in files])
            raise
    changes = gone.changes or (DeleteRows(table),)
    if files:
        changes = (*changes, AppendFiles(table.id, tuple(files), table))
    counts = replace(versions.counts, files=len(files), bytes=sum(f.file_size_bytes for f in files))
    return Done(table, changes, (*(f.path for f in files), *gone.paths), counts)


def _in_catalog(table: TableVersion, versions: Versions) -> InlinedBatch:
    """Return the new rows as the catalog keeps them; those that are updated keep their ids."""
    parts = []
    if versions.updated is not None:
        parts.append(kept.versions(versions.updated, table, with_row_ids=True))
    if versions.inserted is not None:
        fresh = kept.versions(versions.inserted, table, with_row_ids=False)
        parts.append(with_values(fresh, {ROW_ID_COLUMN: "CAST(NULL AS BIGINT)"}))
    return collected_rows(parts, table, ROW_ID_COLUMN)


@dataclass(frozen=True, slots=True)
class _Write:
    """Rows that go to separate files, with their columns of lineage."""

    rows: DataFrame
    parts: int
    lineage: tuple[str, ...]


def _writes(rows: TableRows, versions: Versions) -> Iterator[_Write]:
    table, counts = rows.table, versions.counts
    updated, inserted = versions.updated, versions.inserted
    if updated is not None:
        may_lack = kept.may_lack_row_ids(rows.examples, rows.inlined)
        own = kept.with_row_id(updated) if may_lack else updated
        parts = kept.parts_of(counts.updated, rows.examples)
        yield _Write(kept.versions(own, table, with_row_ids=True), parts, (ROW_ID_COLUMN,))
        if own is not updated:
            fresh = kept.versions(kept.without_row_id(updated), table, with_row_ids=False)
            if inserted is not None:
                fresh = fresh.unionAll(kept.versions(inserted, table, with_row_ids=False))
            inserted = fresh
    if inserted is not None:
        parts = kept.parts_of(counts.inserted + counts.updated, rows.examples)
        yield _Write(kept.versions(inserted, table, with_row_ids=False), parts, ())


def _deletes(spark: SparkSession, rows: TableRows, versions: Versions, few: int) -> Done:
    dead, most = versions.dead, versions.counts.updated + versions.counts.deleted
    if dead is None:
        return Done(rows.table)
    found: dict[int, DeadRows] = {}
    inlined: tuple[int, ...] = ()
    if rows.files:
        found = write_delete_files(spark, kept.of_files(dead), rows, rows.table, few=few, most=most)
    if any(part.rows for part in rows.inlined):
        inlined = row_ids(kept.of_catalog(dead))
    return deleted(rows, found, inlined)
