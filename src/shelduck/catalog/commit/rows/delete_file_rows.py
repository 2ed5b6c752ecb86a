"""Delete files of data files: checked, written, ended and merged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.rows.file_rows import require_dead_rows, written_row
from shelduck.catalog.commit.schedule import GoneFile, schedule
from shelduck.catalog.read.queries import chunks, inlined_delete_counts, inlined_delete_table, live
from shelduck.catalog.read.together import OF_FILES, Answers, Selects, Together
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT
from shelduck.errors import Conflict
from shelduck.model.changes.change import DeleteRows, MergedDeletes, RewriteFiles
from shelduck.model.changes.conflict import describe
from shelduck.model.files.data_file import DeletesSeen, NewDeleteFile
from shelduck.model.shadows.conservation import CountedFile
from shelduck.model.tables.schema import SnapshotId, TableId
from shelduck.model.tables.table_version import TableVersion

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
