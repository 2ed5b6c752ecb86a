"""How many rows of one statement go into the catalog instead of files, and how they get there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shelduck.catalog.databases.store import Store
from shelduck.catalog.running.jobs import open_job
from shelduck.catalog.schema.inlined_columns import can_inline
from shelduck.model.changes.change import AppendFiles, InlineRows
from shelduck.model.tables.rollup import is_followed
from shelduck.model.tables.schema import Kind
from shelduck.model.tables.table import TableVersion
from shelduck.model.tables.writable import is_writable
from shelduck.operations.done import Done, discard
from shelduck.spark.write.small import rows_of_files


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows a statement may leave in the catalog: deleted rows of files, and new rows."""

    deleted: int = 0
    new: int = 0


NOTHING_INLINED = Limits()


def limits_of(store: Store, table: TableVersion) -> Limits:
    """Return how many rows of one statement may go into the catalog.

    Both are the option ``data_inlining_row_limit``. Rows of a table whose types a job changes go
    into files, because they are checked there. A query is answered from a rollup only if all rows
    are in files, so new rows of a table with rollups go there too.
    """
    if not can_inline(store.kind, store.format, table.columns):
        return NOTHING_INLINED
    if table.has_reserved:
        with store.read() as connection:
            if open_job(connection, table.id) is not None:
                return NOTHING_INLINED
    most = table.options.data_inlining_row_limit
    return Limits(most, 0 if is_followed(table) or not _can_write(table) else most)


def moved_to_catalog(done: Done, limit: int) -> Done:
    """Return what a verb wrote, with its new rows in the catalog if they are at most ``limit``.

    Their files are deleted then. Rows keep the row ids that the files hold.
    """
    table = done.table
    written = [f for c in done.changes if isinstance(c, AppendFiles) for f in c.files]
    if table.conversions or not 0 < sum(f.record_count for f in written) <= limit:
        return done
    paths = [f.path for f in written]
    batch = rows_of_files([table.path + path for path in paths], table.columns)
    if not batch.can_be_kept:
        return done
    discard(table, paths)
    planned = next(c.planned for c in done.changes if isinstance(c, AppendFiles))
    others = (c for c in done.changes if not isinstance(c, AppendFiles))
    size = sum(f.file_size_bytes for f in written)
    counts = replace(
        done.counts, files=done.counts.files - len(written), bytes=done.counts.bytes - size
    )
    return replace(
        done,
        changes=(*others, InlineRows(table.id, batch, planned)),
        paths=tuple(path for path in done.paths if path not in paths),
        counts=counts,
    )


def _can_write(table: TableVersion) -> bool:
    shapes = (leaf.shape for leaf in table.columns.leaves())
    return all(isinstance(shape, Kind) or is_writable(shape) for shape in shapes)
