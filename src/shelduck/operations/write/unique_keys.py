"""Ensuring that after a statement each key of a table with a key model exists only once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.change import AppendFiles, DeleteRows, InlineRows
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.files.inlined_batch import InlinedBatch
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.operations.done import Counts, Done, discard
from shelduck.operations.progress import write_progress
from shelduck.operations.read.table_rows import TableRows
from shelduck.operations.write.append import write_rows
from shelduck.operations.write.delete import ORIGINS, deleted
from shelduck.operations.write.inlining import NOTHING_INLINED, Limits
from shelduck.spark.deletes.delete_files import DeadRows, write_delete_files
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.merge.folding import Folding
from shelduck.spark.merge.key_ranges import near_keys
from shelduck.spark.merge.load_rows import ordered, some_of_keys, some_twice, without_rows
from shelduck.spark.query import with_values
from shelduck.spark.scan.matching import Where, row_ids
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write import kept
from shelduck.spark.write.kept import keep, shared
from shelduck.spark.write.small import collected_rows
from shelduck.spark.write.write import Writing


def folding_of(table: TableVersion) -> Folding | None:
    """Return how rows of a table are folded, None for a table that keeps all of them.

    Raises Unsupported if another writer has dropped a key, because rows of several keys would be
    combined.
    """
    keys = table_keys(table)
    if keys is None or not keys.folds:
        return None
    if len(keys.key_fields(table.columns)) < len(keys.columns):
        raise Unsupported(
            f"another writer dropped a key column of {table.full_name}, so rows with different"
            " keys look the same; use RESTORE TABLE with a version that has the column, or make"
            " a new table with CREATE TABLE ... AS SELECT"
        )
    return Folding(table, keys)


def sets_keys(table: TableVersion, paths: Iterable[Path]) -> bool:
    """Return whether one of the assigned columns is a key that only one row may have."""
    folding = folding_of(table)
    names = {path[0].lower() for path in paths}
    return folding is not None and any(f.name.lower() in names for f in folding.key_fields)


def require_unique(spark: SparkSession, rows: TableRows, versions: Versions, what: str) -> None:
    """Raise InvalidRequest if rows of a statement have a key that another row has afterwards."""
    folding = folding_of(rows.table)
    parts = [part for part in (versions.updated, versions.inserted) if part is not None]
    if folding is None or not parts:
        return
    keys = folding.key_fields
    names = [f.name for f in keys]
    new = reduce(DataFrame.unionAll, [folding.only_keys(part) for part in parts])
    counts = versions.counts
    found = some_twice(new, keys)
    if not found:
        left = rows.frame(spark, names, ORIGINS).where(near_keys(new, keys))
        if versions.dead is not None:
            left = without_rows(left, shared(versions.dead, counts.updated + counts.deleted))
        found = some_of_keys(left, shared(new, counts.updated + counts.inserted), keys)
    _refuse(found, rows.table, what)


def folded_rows(rows: TableRows, fitting: DataFrame) -> DataFrame:
    """Return assigned rows as the table stores them: with a key model, each key once."""
    folding = folding_of(rows.table)
    if folding is None:
        return fitting
    return folding.without_sign(folding.folded(ordered(fitting)))


def require_apart(spark: SparkSession, rows: TableRows, new: DataFrame, where: Where) -> DataFrame:
    """Return new rows, kept, whose keys no row has that the condition keeps.

    Raises InvalidRequest if a row has such a key. Rows of a table without a key model are returned
    unchanged.
    """
    folding = folding_of(rows.table)
    if folding is None:
        return new
    kept = keep(new)
    keys = folding.key_fields
    frame = rows.frame(spark, None, ORIGINS)
    left = without_rows(frame, where.rows(frame))
    found = some_of_keys(left, shared(kept.rows, kept.count), keys)
    _refuse(found, rows.table, "INSERT … REPLACE WHERE")
    return kept.rows


def _refuse(found: tuple[object, ...], table: TableVersion, what: str) -> None:
    if found:
        told = ", ".join(map(str, found))
        raise InvalidRequest(
            f"{what} would leave several rows with the key ({told}) in {table.full_name}, where"
            " keys are unique; load the rows with INSERT INTO instead, which replaces the old"
            " ones"
        )


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
