"""ALTER of tables: columns, comments, properties, and how new files are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from sqlalchemy import (
    Update,
    bindparam,
    delete,
    select,
    union_all,
    update,
)

from shelduck.catalog.commit.adoptions import refuse_other_numbers
from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kept_places import ASK_PLACES, keep_places, put_back
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.pins import ASK_PINS
from shelduck.catalog.commit.rows.arrangement import set_partitioning, set_sorting
from shelduck.catalog.commit.rows.described import (
    ASK_TAGGED,
    change_comments,
    change_tags,
    end_column_tags,
)
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.commit.rows.inlined_tables import (
    ASK_INLINED,
    ASK_OF_CONVERTED,
    needs_another,
    renew_inlined_tables,
    rows_in,
)
from shelduck.catalog.commit.rows.new_columns import insert_columns, reserve_columns
from shelduck.catalog.commit.rows.postponed import postpone
from shelduck.catalog.commit.rows.table_stats import ASK_TOTALS, add_column_stats
from shelduck.catalog.commit.work import TableWork, Work
from shelduck.catalog.read.column_rows import with_parents
from shelduck.catalog.read.inlined import AT_ONCE
from shelduck.catalog.read.queries import chunks, live
from shelduck.ducklake import tables
from shelduck.ducklake.checked import unchecked
from shelduck.ducklake.format import Format
from shelduck.errors import Conflict
from shelduck.model.changes.change import AlterTable, Entry, Verb
from shelduck.model.tables.column_index import walk
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import Field, FieldId, Schema, TableId
from shelduck.model.tables.table import TableVersion
from shelduck.model.types.data_types import FLOATS

# No data file has this id.
_IN_CATALOG = -1
_END_COLUMNS = ending(tables.column, "table_id", "column_id")
_LIVE_FILES = select(unchecked(tables.data_file.c.data_file_id)).where(
    tables.data_file.c.table_id == bindparam("of_table"), live(tables.data_file)
)

_BOUNDS = ("min_value", "max_value", "min_is_exact", "max_is_exact")
_table_stats = tables.table_column_stats
# A row without bounds would say "no values yet", and DuckDB's next insert would narrow it.
_DELETE_TABLE_BOUNDS = delete(_table_stats).where(
    _table_stats.c.table_id == bindparam("of_table"),
    _table_stats.c.column_id.in_(bindparam("ids", expanding=True)),
)


@cache
def _clear_file_bounds(of: Format) -> Update:
    known = of.table(tables.file_column_stats)
    return (
        update(known)
        .where(
            known.c.table_id == bindparam("of_table"),
            known.c.column_id.in_(bindparam("ids", expanding=True)),
        )
        .values({name: None for name in _BOUNDS if name in known.c})
    )


def fold(work: Work, change: AlterTable) -> None:
    """Give the table the columns of this change, even if the same commit creates it."""
    table = work.changed(change.table)
    table.columns = change.columns
    table.comments = change.comments
    table.unsafe_bounds |= change.unsafe_bounds
    if change.partition is not None:
        table.partition, table.partition_id = change.partition, change.partition_id
    if change.sort is not None:
        table.sort = change.sort
    if change.properties is not None:
        table.properties = change.properties
    table.reserved, table.only_files = change.reserved, change.only_files
    table.postponed = change.postponed


def check(draft: Draft, work: Work) -> None:
    """Raise Conflict if the rollups of a table change after another commit renamed it.

    The names of rollups begin with that of their table, so the two changes depend on each other.
    """
    for table in _altered(work):
        old = table.old
        if old is None or table.properties is None or old.snapshot.id == draft.head.id:
            continue
        if table.properties.get(ROLLUPS) == old.properties.get(ROLLUPS):
            continue
        name = draft.found[table.id]["table_name"]
        if name != old.name and table.new_name is None:
            raise Conflict(f"table {table.name} was renamed to {name!r} by another commit")


def write(draft: Draft, work: Work) -> None:
    """Write what changed in each table: two statements for each column version and comment."""
    altered = _altered(work)
    for table in altered:
        _alter(draft, table)
    add_column_stats(draft, altered)
    renew_inlined_tables(draft, altered)
    draft.opening.altered.update(table.id for table in altered)


KIND = Kind(
    (AlterTable,),
    fold,
    write,
    check=check,
    asks=(*ASK_TOTALS, *ASK_INLINED, *ASK_OF_CONVERTED, *ASK_PINS, *ASK_TAGGED, *ASK_PLACES),
)


def _altered(work: Work) -> list[TableWork]:
    return [table for table in work.existing() if table.columns is not None]


def _alter(draft: Draft, work: TableWork) -> None:
    old = work.old
    assert old is not None
    assert work.columns is not None
    doubled = _doubled(old.columns, work.columns)
    if doubled:
        refuse_other_numbers(draft, work, doubled)
    if work.only_files is not None:
        _require_only_files(draft, work, work.only_files)
    changed = _change_columns(draft, work.id, old, work.columns)
    keep_places(draft, work.id, work.columns, is_renewed=needs_another(work))
    change_comments(draft, work.id, old.comments, work.comments or {})
    if work.properties is not None:
        change_tags(draft, work.id, old.properties, work.properties)
    set_partitioning(draft, work.id, work)
    set_sorting(draft, work.id, work)
    reserve_columns(draft, work.id, work.reserved)
    if work.unsafe_bounds:
        for statement in (_clear_file_bounds(draft.format), _DELETE_TABLE_BOUNDS):
            draft.connection.execute(
                statement, {"of_table": work.id, "ids": sorted(work.unsafe_bounds)}
            )
        draft.has_stats_change = True
    if work.postponed is not None and work.postponed.snapshots:
        postpone(draft, work, work.postponed)
    draft.entries.append(Entry(Verb.ALTERED_TABLE, work.id))
    draft.has_schema_change = True
    if changed:
        draft.note_version(work.id)


def _doubled(old: Schema, new: Schema) -> dict[FieldId, Field]:
    """Return the old versions of the leaves that change from float to double."""
    found = {}
    for f in walk(old.changes(new)[0]):
        now = new.by_id(f.id)
        if now is not None and (str(f.shape), str(now.shape)) == FLOATS:
            found[f.id] = f
    return found


def _require_only_files(draft: Draft, work: TableWork, known: frozenset[int]) -> None:
    """Raise Conflict if a table has rows outside of the files that a change was made for.

    One statement, unless the table has more tables of inlined rows than SQLite joins.
    """
    names = [row.table_name for row in draft.opening.rows("inlined_of_converted", work.id) or ()]
    found: set[int] = set()
    for some in chunks(
        [_LIVE_FILES, *(rows_in(draft.format.inlined(n), _IN_CATALOG) for n in names)], AT_ONCE
    ):
        found.update(draft.connection.execute(union_all(*some), {"of_table": work.id}).scalars())
    if _IN_CATALOG in found:
        raise Conflict(f"another commit wrote inlined rows to {work.name}")
    if others := found - known:
        raise Conflict(f"another commit wrote {len(others)} data file(s) of {work.name}")


def _change_columns(draft: Draft, table: TableId, old: TableVersion, new: Schema) -> bool:
    # Of many columns, a change touches few.
    was, now = old.columns.changes(new)
    before = {f.id: (f, parent) for f, parent in with_parents(was)}
    after = with_parents(now)
    kept = {f.id for f, _ in after}
    begun = [(f, parent) for f, parent in after if not _has_same_row(before.get(f.id), f, parent)]
    gone = [i for i in before if i not in kept]
    _end_columns(draft, old, gone + [f.id for f, _ in begun if f.id in before])
    if begun:
        insert_columns(draft, table, begun)
        fields = [f for f, _ in begun]
        put_back(draft, table, old.columns, fields, old.max_column_id)
    end_column_tags(draft, table, gone)
    return bool(gone or begun)


def _end_columns(draft: Draft, old: TableVersion, ids: Sequence[FieldId]) -> None:
    if ids:
        ended = {"in_table_id": [old.id], "in_column_id": ids, "ended": draft.id}
        if draft.connection.execute(_END_COLUMNS, ended).rowcount != len(ids):
            raise Conflict(f"another commit changed the columns of table {old.full_name}")


def _has_same_row(
    before: tuple[Field, FieldId | None] | None, f: Field, parent: FieldId | None
) -> bool:
    """Return whether the field's own row stays, whatever its children are."""
    if before is None or before[1] != parent:
        return False
    return before[0] is f or replace(before[0], children=()) == replace(f, children=())
