"""The rows of the catalog that describe data files: how they are written and removed.

And the delete files of data files: checked, written, ended and merged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.schedule import GoneFile, schedule
from shelduck.catalog.read.queries import (
    IDS,
    chunks,
    inlined_delete_counts,
    inlined_delete_table,
    live,
    present_tables,
)
from shelduck.catalog.read.together import OF_FILES, Answers, Selects, Together
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.errors import Conflict, CorruptLake
from shelduck.model.changes.change import (
    DeleteRows,
    Entry,
    FlushInlined,
    MergedDeletes,
    RewriteFiles,
    Verb,
)
from shelduck.model.changes.conflict import describe
from shelduck.model.files.data_file import ColumnStats, DeletesSeen, NewDataFile, NewDeleteFile
from shelduck.model.files.place import key_of
from shelduck.model.shadows.conservation import CountedFile, named, unequal_rows
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import TableVersion

_COLUMNS: sa.BindParameter[Any] = sa.bindparam("columns", expanding=True)
_OF_COLUMNS = (tables.file_column_stats, tables.file_variant_stats)
# With as many files, this is less than the 32,766 values that SQLite takes in one statement.
_CHUNK = 10_000


def insert_files(
    draft: Draft, files: Sequence[tuple[TableId, int, NewDataFile]], rows: Sequence[dict[str, Any]]
) -> None:
    """Write the rows of new files, and what belongs to these; they come by table and id.

    Three statements, and layouts at the end of the commit.
    """
    draft.insert(tables.data_file, rows)
    stats = [
        {"data_file_id": number, "table_id": table, **s._asdict(), "extra_stats": None}
        for table, number, file in files
        for s in kept_stats(draft, table, file.stats)
    ]
    draft.insert(tables.file_column_stats, stats)
    values = [
        {
            "data_file_id": number,
            "table_id": table,
            "partition_key_index": n,
            "partition_value": value,
        }
        for table, number, file in files
        if draft.partition_id(file.partition_id) is not None
        for n, value in enumerate(file.partition_values)
    ]
    draft.insert(tables.file_partition_value, values)
    draft.layouts.update((number, file.layout) for _, number, file in files)


def insert_moved_files(
    draft: Draft, table: TableId, files: Sequence[NewDataFile]
) -> list[tuple[int, NewDeleteFile]]:
    """Write all rows that describe files of older rows; return their delete files, by their ids.

    These rows already have row ids, so none may be assigned to them. Three statements.
    """
    numbered = list(zip(draft.file_ids(len(files)), files, strict=True))
    rows = [file_row(draft, table, number, file, None) for number, file in numbered]
    insert_files(draft, [(table, number, file) for number, file in numbered], rows)
    return [(number, file.deletes) for number, file in numbered if file.deletes is not None]


def log_compaction(draft: Draft, verb: Verb, table: TableId) -> None:
    """Log a compaction so that all changes that refer to the old files yield to it.

    If DuckDB 1.5.5 deletes rows and keeps the positions in the catalog, the delete yields to a
    flush but not to a compaction. After a compaction it would delete from files that are gone, and
    the rows would stay.
    """
    draft.entries += [Entry(verb, table), Entry(Verb.INLINE_FLUSH, table)]


def columns_of(connection: sa.Connection, table: TableId) -> list[int]:
    """Return the ids of all columns that a table ever had; one statement."""
    c = tables.column.c
    query = sa.select(c.column_id).where(c.table_id == table).distinct()
    return list(connection.execute(query).scalars())


def remove_file_rows(connection: sa.Connection, table: TableId, ids: Sequence[int]) -> None:
    """Delete the rows of data files and all that belongs to them; eight statements at most.

    No statement reads rows of other files, where the indexes of Shelduck are there.
    """
    columns = columns_of(connection, table)
    inlined = inlined_delete_table(table)
    extra = present_tables(connection, [own_tables.file_layout.name, inlined])
    values = tables.file_partition_value.c
    statements = [
        sa.delete(tables.file_partition_value).where(
            values.table_id == table, values.data_file_id.in_(IDS)
        ),
        sa.delete(tables.data_file).where(tables.data_file.c.data_file_id.in_(IDS)),
    ]
    if own_tables.file_layout.name in extra:
        known = own_tables.file_layout
        statements.append(sa.delete(known).where(known.c.data_file_id.in_(IDS)))
    if inlined in extra:
        number = sa.column("file_id", BIGINT)
        statements.append(sa.delete(sa.table(inlined, number)).where(number.in_(IDS)))
    for chunk in chunks(ids):
        _remove_stats(connection, table, columns, chunk)
        for statement in statements:
            connection.execute(statement, {"ids": chunk})


def _remove_stats(
    connection: sa.Connection, table: TableId, columns: Sequence[int], ids: Sequence[int]
) -> None:
    for source in _OF_COLUMNS:
        c = source.c
        # The index begins with table and column.
        statement = sa.delete(source).where(
            c.table_id == table, c.column_id.in_(_COLUMNS), c.data_file_id.in_(IDS)
        )
        for some in chunks(columns, _CHUNK):
            connection.execute(statement, {"columns": some, "ids": ids})


def file_row(
    draft: Draft, table: TableId, number: int, file: NewDataFile, first_row: int | None
) -> dict[str, Any]:
    """Return the row of a data file; its rows are numbered from ``first_row`` on."""
    if file.record_count < 0 or file.file_size_bytes <= 0:
        raise CorruptLake(
            f"file {file.path!r} for the table with id {table} has an invalid size or row count"
        )
    return {
        **written_row(draft, table, file),
        "data_file_id": number,
        "end_snapshot": None,
        "file_order": None,
        "path_is_relative": file.names is None,
        "file_format": "parquet",
        "record_count": file.record_count,
        "row_id_start": first_row if file.row_id_start is None else file.row_id_start,
        "partition_id": draft.partition_id(file.partition_id),
        "mapping_id": None,
    }


def written_row(draft: Draft, table: TableId, file: NewDataFile | NewDeleteFile) -> dict[str, Any]:
    """Return what the rows of new data files and of new delete files have in common."""
    key = key_of(file.path) if draft.lake.encrypted else None
    if draft.lake.encrypted and key is None:
        raise CorruptLake(f"file {file.path} of an encrypted lake has no key; nothing is committed")
    return {
        "table_id": table,
        "begin_snapshot": draft.id if file.begin_snapshot is None else file.begin_snapshot,
        "path": str(file.path),
        "file_size_bytes": file.file_size_bytes,
        "footer_size": file.footer_size,
        "encryption_key": key,
        "partial_max": file.partial_max,
        "row_group_count": file.row_group_count,
    }


def kept_stats(draft: Draft, table: TableId, stats: Sequence[ColumnStats]) -> Sequence[ColumnStats]:
    """Return statistics of new rows as the options of a table want them: of some, only counts."""
    skipped = draft.skipped_columns(table)
    if not skipped:
        return stats
    return [
        s.without_bounds._replace(contains_nan=None) if s.column_id in skipped else s for s in stats
    ]


def require_same_rows(change: RewriteFiles, counted: Mapping[int, CountedFile]) -> None:
    """Raise CorruptLake unless the results of a rewrite hold the live rows of its sources."""
    sources = [counted[s.data_file_id] for s in change.sources]
    found = unequal_rows(sources, change.results)
    if found is not None:
        raise CorruptLake(
            f"cannot {describe(change)}: {found}; nothing is changed. Compare record_count in"
            " ducklake_data_file and delete_count in ducklake_delete_file with the files, and"
            " restore what is damaged"
        )


def require_flushed_rows(change: FlushInlined, seen: int, dead: int) -> None:
    """Raise CorruptLake unless flushed files hold the rows that the catalog kept.

    ``seen`` is the number of rows that some snapshot saw, and ``dead`` how many of them were
    deleted.
    """
    written = sum(f.record_count for f in change.results)
    died = sum(f.deletes.delete_count for f in change.results if f.deletes is not None)
    if (written, died) != (seen, dead):
        raise CorruptLake(
            f"cannot {describe(change)}: the catalog keeps {seen} rows, {dead} of them deleted, and"
            f" {written} rows, {died} of them deleted, were written to"
            f" {named([f.path for f in change.results]) or 'no file'}; nothing is changed"
        )


def require_dead_rows(
    doing: str, deletes: Iterable[MergedDeletes], counted: Mapping[int, CountedFile]
) -> None:
    """Raise CorruptLake unless merged delete files name what the catalog counts as deleted.

    ``doing`` follows "cannot" in the message.
    """
    for merged in deletes:
        source = counted[merged.data_file_id]
        dead = merged.delete_file.delete_count
        if dead != source.deleted:
            raise CorruptLake(
                f"cannot {doing}: the catalog counts {source.deleted} deleted rows in"
                f" {source.path}, but the delete file written for it lists {dead}; nothing was"
                " changed. Compare delete_count in ducklake_delete_file with the delete files"
            )


# Each id is a parameter of two questions.
_AT_ONCE = 5_000
_file, _delete = tables.data_file.c, tables.delete_file.c
_LIVE_FILES = sa.select(_file.data_file_id, _file.path, _file.record_count).where(
    _file.data_file_id.in_(OF_FILES), live(tables.data_file)
)
_LIVE_DELETES = sa.select(
    *(_delete.data_file_id, _delete.delete_file_id, _delete.delete_count)
).where(_delete.data_file_id.in_(OF_FILES), live(tables.delete_file))
ASK_FILES: Selects = (("files", _LIVE_FILES), ("deletes", _LIVE_DELETES))
_SEEN = Together(dict(ASK_FILES))


def require_as_seen(
    draft: Draft, table: TableId, doing: str, seen: Mapping[int, DeletesSeen]
) -> dict[int, CountedFile]:
    """Return the row counts of data files that are live and have only the deletes ``seen``.

    Raises Conflict for any others. ``doing`` follows "cannot" in the message.
    """
    deletes: dict[int, tuple[int, int]] = {}
    alive: dict[int, tuple[str, int | None]] = {}
    for answers in _looked_up(draft, seen):
        alive.update((number, (path, rows)) for number, path, rows in answers["files"])
        stored = answers["deletes"]
        deletes.update((number, (delete_id, count)) for number, delete_id, count in stored)
    inlined: dict[int, int] = {}
    source = inlined_delete_table(table)
    if source in draft.opening.present:
        found = draft.connection.execute(inlined_delete_counts(source))
        inlined = {row[0]: row[1] for row in found}
    counted: dict[int, CountedFile] = {}
    for number, then in seen.items():
        delete_id, dead = deletes.get(number, (None, 0))
        more = inlined.get(number, 0)
        if number not in alive:
            what = f"rewrote or ended data file {number}"
        elif then != DeletesSeen(delete_id, more):
            what = f"deleted rows from data file {number}"
        else:
            counted[number] = CountedFile(*alive[number], dead + more)
            continue
        raise Conflict(
            f"cannot {doing}: another commit {what}; read the table again and repeat the change"
        )
    return counted


def _looked_up(draft: Draft, ids: Collection[int]) -> Iterator[Answers]:
    """Yield what the catalog has of data files; no statement if the opening asked for them."""
    if draft.opening.take_files(ids):
        yield draft.opening.answers
        return
    for some in chunks(ids, _AT_ONCE):
        yield _SEEN.ask(draft.connection, {"of_files": some})


def end_files(draft: Draft, seen: Mapping[int, DeletesSeen]) -> None:
    """End data files and their delete files; `require_as_seen` has shown which they have."""
    for chunk in chunks(seen):
        draft.end(tables.data_file, data_file_id=chunk)
    end_delete_files(draft, [n for n, then in seen.items() if then.delete_file_id is not None])


def end_delete_files(draft: Draft, ids: Sequence[int]) -> None:
    """End the delete files of data files that stay live."""
    for chunk in chunks(ids):
        draft.end(tables.delete_file, data_file_id=chunk)


def insert_delete_files(
    draft: Draft,
    table: TableId,
    files: Sequence[tuple[int, NewDeleteFile]],
    end: SnapshotId | None = None,
) -> None:
    """Write the rows of new delete files, each given with the id of its data file.

    They are live until the snapshot ``end``.
    """
    if not files:
        return
    rows = [
        {
            **written_row(draft, table, file),
            "delete_file_id": number,
            "end_snapshot": end,
            "data_file_id": data_file_id,
            "path_is_relative": True,
            "format": "parquet",
            "delete_count": file.delete_count,
        }
        for number, (data_file_id, file) in zip(draft.file_ids(len(files)), files, strict=True)
    ]
    draft.insert(tables.delete_file, rows)


def forget_merged(draft: Draft, table: TableVersion, merged: Sequence[MergedDeletes]) -> None:
    """Remove the sources of merged delete files: positions in the catalog, older delete files.

    At most four statements.
    """
    source = sa.table(inlined_delete_table(table.id), sa.column("file_id", BIGINT))
    for part in chunks(sorted(d.data_file_id for d in merged)):
        draft.connection.execute(sa.delete(source).where(source.c.file_id.in_(part)))
    gone: list[GoneFile] = []
    for part in chunks(sorted(number for d in merged for number in d.replaced)):
        chosen = _delete.delete_file_id.in_(part)
        for row in draft.connection.execute(sa.select(*_delete).where(chosen)):
            path = resolve(table.path, row.path, row.path_is_relative)
            gone.append(GoneFile(row.delete_file_id, path))
        draft.connection.execute(sa.delete(tables.delete_file).where(chosen))
    schedule(draft.store, draft.connection, draft.lake, gone, draft.time)


def keep_past(
    draft: Draft, change: DeleteRows | RewriteFiles, counted: Mapping[int, CountedFile]
) -> None:
    """Write merged delete files, live until this snapshot, in place of older ones and positions."""
    parts = change.files if isinstance(change, DeleteRows) else change.sources
    merged = [part.past for part in parts if part.past is not None]
    if merged:
        table = change.table
        require_dead_rows(describe(change), merged, counted)
        forget_merged(draft, table, merged)
        until_now = [(d.data_file_id, d.delete_file) for d in merged]
        insert_delete_files(draft, table.id, until_now, draft.id)
