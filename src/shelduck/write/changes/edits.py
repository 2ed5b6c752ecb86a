"""DELETE, UPDATE and MERGE: deleted rows as delete files, changed ones as new versions.

MERGE updates, deletes and inserts rows of a table by those of a source, at once. New versions are
in new files, and keep their row ids.
Statements that change rows ask `row_rules` what a subject says about the rows of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from shelduck.engine.bridge import engine_for
from shelduck.engine.rows.assignments import Assignments, SetValue, updated_rows
from shelduck.engine.session import DataFrame, SparkSession, with_values
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import Counts, Done, Loaded, discard
from shelduck.model.changes.change import AppendFiles, DeleteRows, FileDeletes, InlineRows
from shelduck.model.files.data_file import ROW_ID_COLUMN, NewDataFile, deletes_seen
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.schema import Path, is_reserved
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.model.text.names import quote_name
from shelduck.read.scan.matching import Where, row_ids
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.read.table_rows import TableRows
from shelduck.write.changes.append import Placing, moved_to_catalog, with_numbers, write_rows
from shelduck.write.deletes.delete_files import DeadRows, write_delete_files
from shelduck.write.merge.key_ranges import near_source, small_source
from shelduck.write.merge.merge_clauses import Merge, MergeAction, When
from shelduck.write.merge.merge_scopes import by_action, columns_of_match, merged_rows, tally
from shelduck.write.parquet import kept
from shelduck.write.parquet.kept import DELETED, UPDATED, Origins, distinct, keep, marked
from shelduck.write.parquet.small import collected_rows
from shelduck.write.parquet.write import Register, Writing
from shelduck.write.progress import write_progress

_TASK_BYTES = 128 * 1024 * 1024
# A scan of less than this is as quick in one task, and one task writes one file.
_ONE_TASK = 16 * 1024 * 1024
# Up to this many tasks write their own files; the rows of more are brought together.
_MOST_TASKS = 8


class DeleteChoice(Protocol):
    """Says which rows of a frame to change."""

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return these rows, at least with the columns of their origins."""


def delete_rows(
    spark: SparkSession,
    rows: TableRows,
    where: DeleteChoice,
    *,
    few: int = 0,
    register: Register | None = None,
) -> Done:
    """Return the deletion of the rows that match; nothing is committed.

    Up to ``few`` rows of files go to the catalog instead of delete files. Files of which statistics
    or partitions show that all rows match are not read. ``register`` is called before files are
    written.
    """
    dead: dict[int, DeadRows] = {}
    inlined: tuple[int, ...] = ()
    if rows.files:
        stored = replace(rows, inlined=())
        found = where.rows(stored.frame(spark, origins=ORIGINS))
        decided = stored.decided(found)
        if decided is not None:
            dead = {f.id: DeadRows(f.live_rows or 0) for f in decided.whole}
            stored = replace(stored, files=decided.partly)
            if stored.files and (dead or rows.large is not None):
                found = where.rows(stored.frame(spark, origins=ORIGINS))
            rows = replace(rows, files=(*decided.whole, *decided.partly))
        if stored.files:
            dead |= write_delete_files(spark, found, stored, rows.table, few=few, register=register)
    if any(part.rows for part in rows.inlined):
        inlined = row_ids(where.rows(replace(rows, files=()).frame(spark, origins=ORIGINS)))
    return deleted(rows, dead, inlined)


def truncate_rows(spark: SparkSession, rows: TableRows) -> Done:
    """Return the deletion of all rows; no row is read, and no file written."""
    inlined = tuple(sorted(number for part in rows.inlined for number in part.row_ids))
    count = rows.live_rows()
    if count is None:
        count = replace(rows, inlined=()).frame(spark).count()
    files = tuple(FileDeletes(number, seen) for number, seen in rows.seen())
    counts = Counts(deleted=count + len(inlined))
    return Done(rows.table, (DeleteRows(rows.table, files, inlined),), counts=counts)


def deleted(rows: TableRows, dead: Mapping[int, DeadRows], inlined: tuple[int, ...]) -> Done:
    """Return the deletes as a change, which says that rows were chosen even if there are none."""
    files = file_deletes(rows, dead)
    counts = Counts(deleted=sum(d.rows for d in dead.values()) + len(inlined))
    change = DeleteRows(rows.table, files, inlined)
    return Done(rows.table, (change,), tuple(_paths(dead.values())), counts)


def file_deletes(rows: TableRows, dead: Mapping[int, DeadRows]) -> tuple[FileDeletes, ...]:
    """Return what happens to each file with deleted rows, by id."""
    by_id = rows.files_of(dead.keys())
    return tuple(
        FileDeletes(
            number,
            deletes_seen(by_id[number]),
            found.delete_file,
            found.positions,
            found.takes_inlined,
        )
        for number, found in sorted(dead.items())
    )


def _paths(dead: Iterable[DeadRows]) -> Iterable[str]:
    return (d.delete_file.path for d in dead if d.delete_file is not None)


def update_rows(
    spark: SparkSession, rows: TableRows, values: Sequence[SetValue], where: Where, how: Placing
) -> Done:
    """Return the update of the rows that match; nothing is committed.

    The alias of ``where`` is the name of the table in the values. Rows are chosen and computed
    once, by one job. A row counts as updated even if its values stay the same.
    """
    table = rows.table
    require_free_names(table)
    assignments = Assignments(table, values)
    matches = where.rows(rows.frame(spark, origins=ORIGINS))
    changed = updated_rows(matches, assignments, keep=ORIGINS)
    if COMPUTED in table.properties:
        changed = with_numbers(changed, table, how.limits)
    rules = row_rules(table)
    if rules is not None and not rules.looks_at([value.path for value in values]):
        rules = None
    if engine_for(spark).has_jvm and rules is None:
        marks = marked(changed, table, UPDATED)
        return write_changed(spark, rows, marks, how)
    found = keep(changed)
    if not found.count:
        return deleted(rows, {}, ())
    versions = Versions(Counts(updated=found.count), updated=found.rows, dead=found.rows)
    if rules is not None:
        rules.require(spark, rows, versions, "UPDATE")
    return write_versions(spark, rows, versions, how)


def require_free_names(table: TableVersion) -> None:
    """Refuse another writer's table with column names that changes of rows reserve."""
    for field in table.columns:
        if is_reserved(field.name):
            raise Unsupported(
                f"column {quote_name(field.name)} of {table.full_name} has a reserved name, so"
                " rows cannot be changed; rename the column first"
            )


def write_changed(
    spark: SparkSession,
    rows: TableRows,
    changed: DataFrame,
    how: Placing,
    contested: Callable[[int], None] | None = None,
) -> Done:
    """Write changed rows and deletes by one Spark job; nothing is committed.

    ``changed`` has the table's columns, `ROW_ID_COLUMN` and the columns of
    `shelduck.write.parquet.kept`. ``contested`` is called with the number of rows that are
    changed more than once, if that can happen, and may refuse them.
    """
    table = rows.table
    with write_progress(spark, table.full_name, show=how.show_progress) as progress:
        both = Writing(lineage=(ROW_ID_COLUMN,), spreads=bool(table.partition), changes=True)
        few = _in_few_tasks(changed, rows.bytes)
        written = write_rows(spark, few, table, both, progress=progress)
    paths = [f.path for f in written.files]
    try:
        origins = written.origins
        assert origins is not None
        if contested is not None:
            origins, several = origins.distinct()
            contested(several)
        updated = origins.count(UPDATED)
        counts = Counts(written.rows - updated, updated, origins.count(DELETED))
        if not counts.rows:
            return deleted(rows, {}, ())
        gone = _deletes_at(spark, rows, origins, how.limits.deleted)
    except BaseException:
        discard(table, paths)
        raise
    return moved_to_catalog(with_new_files(gone, written.files, counts), how.limits.new)


def _in_few_tasks(changed: DataFrame, size: int) -> DataFrame:
    """Return rows of files of that size in so many parts that each part is worth a file."""
    if size <= _ONE_TASK:
        return changed.coalesce(1)
    return changed if size <= _MOST_TASKS * _TASK_BYTES else changed.hint("rebalance")


def _deletes_at(spark: SparkSession, rows: TableRows, origins: Origins, few: int) -> Done:
    dead = {}
    if rows.files:
        dead = write_delete_files(spark, origins.positions, rows, rows.table, few=few)
    return deleted(rows, dead, origins.inlined)


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


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules of a subject for the rows of one of its tables.

    A statement that ``looks_at`` the columns which it sets must let ``require`` refuse what it
    leaves. ``require_apart`` returns new rows, kept, if the table can have them beside rows that do
    not match; ``stored`` those that assigned rows become in a table without others. ``load`` puts
    rows from `shelduck.write.merge.load_rows.ordered` into the table.
    """

    looks_at: Callable[[Iterable[Path]], bool]
    require: Callable[[SparkSession, TableRows, Versions, str], None]
    require_apart: Callable[[SparkSession, TableRows, DataFrame, Where], DataFrame]
    stored: Callable[[DataFrame], DataFrame]
    load: Callable[[SparkSession, TableRows, DataFrame, Placing], Loaded]


ROW_RULES: dict[Feature, Callable[[TableVersion], RowRules | None]] = {}
"""The rules of each subject that has some; `shelduck.write.hooks` puts them in."""


def row_rules(table: TableVersion) -> RowRules | None:
    """Return the rules for the rows of a table, None for a table that can have any rows."""
    return ROW_RULES[Feature.KEYS](table) if Feature.KEYS in table.features else None


def write_versions(spark: SparkSession, rows: TableRows, versions: Versions, how: Placing) -> Done:
    """Write rows and deletes of one statement; nothing is committed.

    Updated rows keep their row ids, so rows with and without row ids go to separate files: at most
    two writes. Few rows go to the catalog instead, as ``how`` says: they are computed already, so
    that no file is written first.
    """
    table = rows.table
    if 0 < versions.counts.updated + versions.counts.inserted <= how.limits.new:
        batch = _in_catalog(table, versions)
        if batch.can_be_kept:
            gone = _deletes(spark, rows, versions, how.limits.deleted)
            done = with_new_files(gone, (), versions.counts)
            return replace(done, changes=(*done.changes, InlineRows(table.id, batch, table)))
    files: list[NewDataFile] = []
    with write_progress(spark, table.full_name, show=how.show_progress) as progress:
        try:
            for each in _writes(rows, versions):
                own = Writing(lineage=each.lineage, spreads=each.parts > 1)
                few = each.rows.coalesce(each.parts)
                written = write_rows(spark, few, table, own, progress=progress)
                files += written.files
            gone = _deletes(spark, rows, versions, how.limits.deleted)
        except BaseException:
            discard(table, [f.path for f in files])
            raise
    return with_new_files(gone, files, versions.counts)


def with_new_files(gone: Done, files: Sequence[NewDataFile], counts: Counts) -> Done:
    """Return deletes and new files as one change."""
    table, changes = gone.table, gone.changes
    if files:
        # `write_rows` left out the columns of a job that recalls older values.
        is_partial = any(c.recalls for c in table.conversions)
        planned = replace(table, conversions=()) if is_partial else table
        changes = (*changes, AppendFiles(table.id, tuple(files), planned))
    counts = replace(counts, files=len(files), bytes=sum(f.file_size_bytes for f in files))
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
        return deleted(rows, {}, ())
    found: dict[int, DeadRows] = {}
    inlined: tuple[int, ...] = ()
    if rows.files:
        found = write_delete_files(spark, kept.of_files(dead), rows, rows.table, few=few, most=most)
    if any(part.rows for part in rows.inlined):
        inlined = row_ids(kept.of_catalog(dead))
    return deleted(rows, found, inlined)


def merge_rows(
    spark: SparkSession, rows: TableRows, source: DataFrame, merge: Merge, how: Placing
) -> Done:
    """Return the merge of ``source`` into a table; nothing is committed.

    The join runs once. A small source is computed first: its keys say which files to read. Raises
    InvalidRequest if several rows of the source would change one row of the table.
    """
    table = rows.table
    require_free_names(table)
    changed = _changed(spark, rows, source, merge)
    if COMPUTED in table.properties:
        changed = with_numbers(changed, table, how.limits)
    refuse = partial(_refuse, table, merge)
    if engine_for(spark).has_jvm and row_rules(table) is None:
        contested = None if merge.only_inserts else refuse
        return write_changed(spark, rows, marked(changed, table), how, contested)
    found = keep(changed).rows
    counts, contested_rows = tally(found)
    refuse(contested_rows)
    if not counts.rows:
        return deleted(rows, {}, ())
    versions = _versions(found, counts, is_contested=bool(contested_rows))
    rules = row_rules(table)
    if rules is not None:
        rules.require(spark, rows, versions, "MERGE")
    return write_versions(spark, rows, versions, how)


def _changed(spark: SparkSession, rows: TableRows, source: DataFrame, merge: Merge) -> DataFrame:
    """Return a row for each change; of a small source, the files that can match are read."""
    target = engine_for(spark).unaliased(rows.frame(spark, origins=ORIGINS))
    kept = small_source(source)
    if kept is not None:
        source = kept.rows
        if not merge.of(When.NOT_MATCHED_BY_SOURCE) and len(rows.files) > 1:
            near = near_source(kept, rows.table, columns_of_match(target, source, merge))
            target = target if near is None else target.where(near)
    return merged_rows(target, source, rows.table, merge, shares=kept is not None)


def _refuse(table: TableVersion, merge: Merge, contested: int) -> None:
    if contested and not merge.may_match_twice:
        raise InvalidRequest(
            f"MERGE INTO {table.full_name}: {contested} row(s) of the table match several rows of"
            " the source, so the result is ambiguous; make the source unique by the columns of ON"
        )


def _versions(found: DataFrame, counts: Counts, *, is_contested: bool) -> Versions:
    """Return what a merge makes of rows, each of which has its action."""
    dead = None
    if counts.updated or counts.deleted:
        dead = by_action(found, MergeAction.UPDATE, MergeAction.DELETE)
        dead = distinct(dead, ORIGINS) if is_contested else dead
    return Versions(
        counts,
        updated=by_action(found, MergeAction.UPDATE) if counts.updated else None,
        inserted=by_action(found, MergeAction.INSERT) if counts.inserted else None,
        dead=dead,
    )
