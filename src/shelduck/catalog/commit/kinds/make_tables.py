"""CREATE, DROP and RENAME of tables."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.kept_places import keep_places
from shelduck.catalog.commit.opening import ASK_VIEWS, TableWork, Work
from shelduck.catalog.commit.rows.described import (
    begin_columns,
    begin_tags,
    reserve_columns,
    set_keys,
)
from shelduck.catalog.commit.rows.inlined_tables import add_inlined_table
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.errors import Conflict
from shelduck.model.changes.change import CreateTable, DropTable, Entry, RenameTable, Verb
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import TableId

_OF_TABLE = (
    *(tables.table, tables.partition_info, tables.column, tables.column_tag),
    *(tables.data_file, tables.delete_file, tables.sort_info),
)


def fold(work: Work, change: CreateTable | DropTable | RenameTable) -> None:
    """Create, drop or rename a table."""
    match change:
        case CreateTable():
            work.tables[change.id] = TableWork(change.id, made=change)
        case DropTable():
            work.changed(change.table).drop()
        case RenameTable():
            work.changed(change.table).new_name = change.new_name


def check(draft: Draft, work: Work) -> None:
    """Raise Conflict if another commit renamed a table too, or changed its list of rollups.

    The names of rollups begin with that of their table, so the two changes depend on each
    other. One statement for all tables that were read at an older snapshot.
    """
    stale = []
    for table in work.existing():
        if table.new_name is not None and table.old is not None:
            name = draft.found[table.id]["table_name"]
            if name != table.old.name:
                raise Conflict(
                    f"cannot rename table {table.name}: another commit renamed it to {name!r}"
                )
        is_changed = table.dropped or table.new_name is not None
        if is_changed and table.old is not None and table.old.snapshot.id != draft.head.id:
            stale.append(table.old)
    if not stale:
        return
    tag = tables.tag.c
    listed = sa.select(tag.object_id, tag.value).where(
        tag.object_id.in_([old.id for old in stale]), tag.key == ROLLUPS, live(tables.tag)
    )
    now = {row.object_id: row.value for row in draft.connection.execute(listed)}
    for old in stale:
        if now.get(old.id) != old.properties.get(ROLLUPS):
            raise Conflict(f"another commit changed the rollups of table {old.full_name}")


def write(draft: Draft, work: Work) -> None:
    """Write dropped, new and renamed tables; everything in a dropped table ends with it."""
    _drop(draft, [table.id for table in work.existing() if table.dropped])
    for table in work.tables.values():
        if table.created is not None:
            draft.table_ids[table.id] = _create(draft, table, table.created)
        elif table.new_name is not None:
            _rename(draft, table, table.new_name)


KIND = ChangeKind((CreateTable, DropTable, RenameTable), fold, write, check=check, asks=ASK_VIEWS)


def _drop(draft: Draft, ids: Sequence[TableId]) -> None:
    """End tables; eight statements, however many there are."""
    for source in _OF_TABLE if ids else ():
        draft.end(source, table_id=ids)
    draft.end(tables.tag, object_id=ids)
    draft.entries.extend(Entry(Verb.DROPPED_TABLE, i) for i in ids)
    draft.has_schema_change |= bool(ids)


def _rename(draft: Draft, work: TableWork, name: str) -> None:
    """Give a table its new name; two statements.

    DuckLake logs a rename as the creation of the new name.
    """
    assert work.old is not None
    draft.renew(tables.table, "table_id", [(draft.found[work.id], {"table_name": name})])
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(work.old.schema.name, name)))
    draft.note_version(work.id)
    draft.has_schema_change = True


def _create(draft: Draft, work: TableWork, made: CreateTable) -> TableId:
    """Write a new table with its final columns, name and comments, and return its id."""
    number = TableId(draft.catalog_id())
    name = work.new_name or made.name
    schema = draft.schema_id(made.schema.id)
    row = {"table_id": number, "table_uuid": made.uuid, "schema_id": schema, "table_name": name}
    draft.begin([(tables.table, {**row, "path": made.directory, "path_is_relative": True})])
    begin_columns(draft, number, made.columns)
    reserve_columns(draft, number, made.reserved)
    add_inlined_table(draft, number, made.columns)
    keep_places(draft, number, made.columns, is_renewed=False)
    begin_tags(draft, number, made.comments, made.properties)
    set_keys(draft, number, made)
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(made.schema.name, name)))
    draft.note_version(number)
    draft.has_schema_change = True
    return number
