"""CREATE, DROP and RENAME of tables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kept_places import keep_places
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.names import Names
from shelduck.catalog.commit.pins import ASK_PINS
from shelduck.catalog.commit.rows.arrangement import set_partitioning, set_sorting
from shelduck.catalog.commit.rows.described import change_comments, change_tags
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.commit.rows.inlined_tables import add_inlined_table
from shelduck.catalog.commit.rows.new_columns import insert_columns, reserve_columns
from shelduck.catalog.commit.work import TableWork, Work
from shelduck.catalog.read.column_rows import with_parents
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.errors import Conflict
from shelduck.model.changes.change import CreateTable, DropTable, Entry, RenameTable, Verb
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import TableId

_INSERT = insert(tables.table)
_END = ending(tables.table, "table_id")
_END_PARTS = tuple(
    ending(source, "table_id")
    for source in (
        tables.partition_info,
        tables.column,
        tables.column_tag,
        tables.data_file,
        tables.delete_file,
        tables.sort_info,
    )
)
_END_TAGS = ending(tables.tag, "object_id")


def fold(work: Work, change: CreateTable | DropTable | RenameTable) -> None:
    """Create, drop or rename a table; a dropped one has no columns or rows to write."""
    match change:
        case CreateTable():
            made = TableWork(change.id, created=change)
            made.columns, made.comments = change.columns, change.comments
            made.partition, made.partition_id = change.partition, change.partition_id
            made.sort, made.properties = change.sort, change.properties
            made.reserved = change.reserved
            work.tables[change.id] = made
        case DropTable():
            table = work.changed(change.table)
            table.dropped = True
            table.new_name = table.columns = table.comments = None
            table.changes = []
        case RenameTable():
            work.changed(change.table).new_name = change.new_name


def tell_names(work: Work, names: Names) -> None:
    """Report which names tables get, and which ones dropped and renamed tables free."""
    for table in work.tables.values():
        if table.created is not None:
            names.given.append((table.created.schema, table.new_name or table.created.name))
        elif table.dropped:
            names.dropped.add(("table", table.id))
        elif table.new_name is not None and table.old is not None:
            names.given.append((table.old.schema, table.new_name))
            names.renamed.add(("table", table.id))


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
    listed = select(tag.object_id, tag.value).where(
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


KIND = Kind(
    (CreateTable, DropTable, RenameTable),
    fold,
    write,
    names=tell_names,
    check=check,
    asks=ASK_PINS,
)


def _drop(draft: Draft, ids: Sequence[TableId]) -> None:
    """End tables; eight statements, however many there are."""
    if not ids:
        return
    for statement in (_END, *_END_PARTS):
        draft.connection.execute(statement, {"in_table_id": ids, "ended": draft.id})
    draft.connection.execute(_END_TAGS, {"in_object_id": ids, "ended": draft.id})
    draft.entries.extend(Entry(Verb.DROPPED_TABLE, i) for i in ids)
    draft.has_schema_change = True


def _rename(draft: Draft, work: TableWork, name: str) -> None:
    """Give a table its new name; two statements.

    DuckLake logs a rename as the creation of the new name.
    """
    assert work.old is not None
    draft.connection.execute(_END, {"in_table_id": [work.id], "ended": draft.id})
    begun = {"begin_snapshot": draft.id, "end_snapshot": None, "table_name": name}
    draft.connection.execute(_INSERT, {**draft.found[work.id], **begun})
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(work.old.schema.name, name)))
    draft.note_version(work.id)
    draft.has_schema_change = True


def _create(draft: Draft, work: TableWork, created: CreateTable) -> TableId:
    """Write a new table with its final columns, name and comments, and return its id."""
    assert work.columns is not None
    number = TableId(draft.catalog_id())
    name = work.new_name or created.name
    draft.connection.execute(
        _INSERT,
        {
            "table_id": number,
            "table_uuid": created.uuid,
            "begin_snapshot": draft.id,
            "end_snapshot": None,
            "schema_id": draft.schema_id(created.schema.id),
            "table_name": name,
            "path": created.directory,
            "path_is_relative": True,
        },
    )
    insert_columns(draft, number, with_parents(work.columns))
    reserve_columns(draft, number, work.reserved)
    add_inlined_table(draft, number, work.columns)
    keep_places(draft, number, work.columns, is_renewed=False)
    change_comments(draft, number, {}, work.comments or {})
    change_tags(draft, number, {}, work.properties or {})
    set_partitioning(draft, number, work)
    set_sorting(draft, number, work)
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(created.schema.name, name)))
    draft.note_version(number)
    draft.has_schema_change = True
    return number
