"""UNDROP COLUMN: a dropped column begins again under its old id, if the files still hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shelduck.catalog.read import queries, read
from shelduck.catalog.running.job_rows import jobs
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.files.compact import embeds, is_newer, next_row_id
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import AlterTable, alteration
from shelduck.model.files.data_file import ROW_ID_FIELD, DataFile, InlinedRows
from shelduck.model.tables.column_storage import Storage, storage_of, with_storage
from shelduck.model.tables.computed import (
    ComputedColumns,
    computed_of,
    follow_columns,
    with_computed,
)
from shelduck.model.tables.lengths import LENGTHS, with_lengths
from shelduck.model.tables.schema import (
    Field,
    FieldId,
    Path,
    SnapshotId,
    in_places,
    path_text,
    with_paths,
)
from shelduck.model.tables.table_version import Feature, TableVersion
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows, table_rows
from shelduck.write.parquet.write import file_ids


@dataclass(frozen=True, slots=True)
class Dropped:
    """A column or field that was dropped: where it was, its id, and the snapshot without it."""

    path: Path
    id: FieldId
    end: SnapshotId


def stage_undrop(unit: UnitOfWork, name: TableName, path: Path) -> None:
    """Stage the change that brings a dropped column back.

    Raises NotFound, naming what can be brought back, AlreadyExists if the name is taken, and
    InvalidRequest if rows have lost their values of it, or would be NULL although it is NOT NULL.
    """
    table, state = unit.workspace.table(name), unit.state
    told = f"cannot bring back {path_text(path)} of {table.full_name}"
    _require_plain(unit, table, told)
    if table.columns.find(path) is not None:
        raise AlreadyExists.named("column", path_text(path), table.full_name)
    with state.store.read() as connection:
        dropped = _newest(list(_dropped(connection, table)), path, table)
        at = replace(table.snapshot, id=SnapshotId(dropped.end - 1))
        then = read.table_by_id(connection, table.id, at, state.info)
    column = None if then is None else then.columns.by_id(dropped.id)
    if then is None or column is None:
        raise InvalidRequest(f"{told}: the catalog no longer says what it was")
    rows = table_rows(state.store, table, state.layouts)
    _refuse_copies(rows, dropped, told)
    lacking = _lacking(rows, dropped)
    is_empty = not (lacking.files or lacking.inlined)
    if not is_empty and not column.nullable and column.initial_default is None:
        raise InvalidRequest(
            f"{told}: it is NOT NULL, and rows were written since it was dropped; add a column with"
            " a DEFAULT instead"
        )
    rule = computed_of(then.properties, then.full_name).of(column.id)
    if rule is not None and not is_empty:
        raise InvalidRequest(
            f"{told}: it is computed, and rows were written since it was dropped; its values are in"
            f" {then.full_name} VERSION AS OF {then.snapshot.id}"
        )
    if not is_empty:
        _require_new_rows(state, lacking, then, told)
    unit.workspace.alter_table(_begun_again(table, then, column, path[:-1]))


def _require_plain(unit: UnitOfWork, table: TableVersion, told: str) -> None:
    staged = unit.workspace.staged_rows(table)
    if table.id < 0 or (staged is not None and staged.has_changes):
        raise InvalidRequest(
            f"{told}: the open transaction has changed rows of the table; bring it back first, or"
            " in another transaction"
        )
    if {Feature.KEYS, Feature.IS_ROLLUP}.intersection(table.features):
        raise Unsupported(
            f"{told}: the table has keys, or is a rollup; add a column, and fill it with MERGE INTO"
            " from an older snapshot"
        )


def _newest(known: list[Dropped], path: Path, table: TableVersion) -> Dropped:
    wanted = [name.lower() for name in path]
    found = [d for d in known if [name.lower() for name in d.path] == wanted]
    if not found:
        names = dict.fromkeys(path_text(d.path) for d in known)
        raise NotFound.named("dropped column", path_text(path), [*names], where=table.full_name)
    return found[-1]


def _dropped(connection: read.Connection, table: TableVersion) -> Iterator[Dropped]:
    """Yield the columns and fields that were dropped from what is there, the newest last.

    A column that a job converted was not dropped.
    """
    converted = {
        (number, job.published)
        for job in jobs(connection)
        if job.table_id == table.id and job.is_understood
        for c in job.work.conversions
        for number in (c.column_id, *c.parts)
    }
    paths: dict[int, Path] = {f.id: path for path, f in with_paths(table.columns)}
    ended = [
        row
        for row in connection.execute(queries.column_versions(table.id))
        if row.end_snapshot not in (None, row.begin_snapshot)
    ]
    last = {row.column_id: row for row in sorted(ended, key=lambda r: r.end_snapshot)}
    for row in last.values():
        is_below = row.parent_column is not None
        is_gone = row.column_id not in paths and (row.column_id, row.end_snapshot) not in converted
        if is_gone and (not is_below or row.parent_column in paths):
            above = paths[row.parent_column] if is_below else ()
            name = (*above, row.column_name)
            yield Dropped(name, FieldId(row.column_id), SnapshotId(row.end_snapshot))


def _refuse_copies(rows: TableRows, dropped: Dropped, told: str) -> None:
    """Refuse files with the column that began when nobody saw it: DuckDB compacts them without."""
    hidden = [f for f in rows.files if f.begin_snapshot >= dropped.end and _has(f, dropped.id)]
    if hidden:
        raise InvalidRequest(
            f"{told}: an undo copied {len(hidden)} file(s) with it since, which DuckDB would"
            f" compact without it; its values are in {rows.table.full_name} VERSION AS OF"
            f" {dropped.end - 1}: add a column, and fill it with MERGE INTO"
        )


def _lacking(rows: TableRows, dropped: Dropped) -> TableRows:
    """Return the rows that were written since a column was dropped, and do not have it.

    A file that was there before reads as it did.
    """
    files = [f for f in rows.files if f.begin_snapshot >= dropped.end and not _has(f, dropped.id)]
    kept = [part for part in rows.inlined if part.columns.by_id(dropped.id) is None]
    inlined = [_since(part, dropped.end) for part in kept]
    return replace(rows, files=tuple(files), inlined=tuple(part for part in inlined if part.rows))


def _has(file: DataFile, number: FieldId) -> bool:
    layout = file.layout if file.mapping_id is None else None
    return layout is not None and any(f.id == number for f in layout.walk())


def _since(part: InlinedRows, snapshot: int) -> InlinedRows:
    return part.at([n for n, begin in enumerate(part.begin_snapshots) if begin >= snapshot])


def _require_new_rows(state: LakeState, lacking: TableRows, then: TableVersion, told: str) -> None:
    """Raise InvalidRequest if rows that had the column were written again without it."""
    number, table = then.snapshot.id, then.full_name
    with state.store.read() as connection:
        try:
            at = read.snapshot(connection, version=number)
        except NotFound:
            raise InvalidRequest(
                f"{told}: snapshot {number} has expired, so nobody knows whether"
                f" {len(lacking.files)} file(s) written since hold rows that had it; add a column"
                " instead"
            ) from None
    before = table_rows(state.store, replace(then, snapshot=at), state.layouts)
    suspects = _suspects(lacking, before)
    if not (suspects.files or suspects.inlined):
        return
    rows = suspects.frame(state.spark, [], origins=(Origin.ROW_ID, Origin.FILE_ID))
    older = before.frame(state.spark, [], origins=(Origin.ROW_ID,))
    found = file_ids(rows.join(older, Origin.ROW_ID, "left_semi"))
    if found:
        # The catalog counts as one.
        raise InvalidRequest(
            f"{told}: rows that had it were written again without it, into {len(found)} file(s);"
            f" their values are in {table} VERSION AS OF {number}: add a column, and fill it with"
            " MERGE INTO"
        )


def _suspects(lacking: TableRows, before: TableRows) -> TableRows:
    """Return where rows of before may be: new rows have larger ids than all of before."""
    has_others = any(embeds(f, ROW_ID_FIELD) or f.row_id_start is None for f in before.files)
    first = next_row_id(before)
    inlined = tuple(
        part.at([n for n, number in enumerate(part.row_ids) if number < first or has_others])
        for part in lacking.inlined
    )
    files = tuple(f for f in lacking.files if not is_newer(f, first))
    return replace(lacking, files=files, inlined=tuple(p for p in inlined if p.rows))


def _begun_again(table: TableVersion, then: TableVersion, column: Field, above: Path) -> AlterTable:
    """Return the change that shows a column again, in the place among its siblings that it had."""
    parent = table.columns.find(above)
    siblings = table.columns.fields if parent is None else parent.children
    placed = in_places(sorted((*siblings, column), key=lambda f: (f.order, f.id)))
    if parent is None:
        columns = table.columns.with_fields(placed)
    else:
        columns = table.columns.replace(above, replace(parent, children=placed))
    ids = {f.id for f in column.walk()}
    comments = dict(table.comments)
    comments |= {number: text for number, text in then.comments.items() if number in ids}
    properties, told = table.properties, table.full_name
    if columns.index.limited or LENGTHS in properties:
        properties = dict(with_lengths(properties, columns))
    rules = [one for one in computed_of(then.properties, told) if one.column == column.id]
    if rules:
        kept = computed_of(properties, told)
        properties = with_computed(properties, ComputedColumns((*kept, *rules)))
        properties = follow_columns(properties, columns, then.columns, (), told)
    stored = [one for one in storage_of(then.properties, told) if one.column in ids]
    properties = with_storage(properties, Storage((*storage_of(properties, told), *stored)))
    after = replace(table, columns=columns, comments=comments, properties=properties)
    # A row that somebody writes again meanwhile would lose its value.
    change = alteration(table, after, frozenset(), excludes_inserts=True)
    return replace(change, returning=frozenset(leaf.id for leaf in column.leaves()))
