"""DELETE and TRUNCATE: the deleted rows, as delete files and ended files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from shelduck.engine.session import DataFrame, SparkSession
from shelduck.lake.done import Counts, Done
from shelduck.model.changes.change import DeleteRows, FileDeletes
from shelduck.model.files.data_file import deletes_seen
from shelduck.read.scan.matching import row_ids
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.read.table_rows import TableRows
from shelduck.write.deletes.delete_files import DeadRows, write_delete_files
from shelduck.write.parquet.write import Register


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
