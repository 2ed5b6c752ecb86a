"""ALTER of tables: columns, comments, properties, and how new files are laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import sqlalchemy as sa

from shelduck.catalog.commit.adoptions import refuse_other_numbers
from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.kept_places import ASK_PLACES, keep_places
from shelduck.catalog.commit.opening import ASK_VIEWS, TableWork, Work
from shelduck.catalog.commit.rows import inlined_tables
from shelduck.catalog.commit.rows.described import (
    ASK_TAGGED,
    change_columns,
    change_tags,
    reserve_columns,
    set_keys,
)
from shelduck.catalog.commit.rows.file_rows import log_compaction, require_as_seen
from shelduck.catalog.commit.rows.table_stats import ASK_TOTALS, add_column_stats
from shelduck.catalog.read.inlined_rows import rows_of_all
from shelduck.catalog.read.queries import IDS, OF_TABLE, chunks, live
from shelduck.ducklake import tables
from shelduck.ducklake.checked import unchecked
from shelduck.ducklake.format import Format
from shelduck.errors import Conflict
from shelduck.model.changes.change import AlterTable, Entry, PostponedRewrites, Verb
from shelduck.model.files.data_file import DeletesSeen
from shelduck.model.shadows.proof import Fitting, fitting, is_narrower
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import Field, FieldId, TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import FLOATS

# No data file has this id.
_IN_CATALOG = -1
_LIVE_FILES = sa.select(unchecked(tables.data_file.c.data_file_id)).where(
    tables.data_file.c.table_id == OF_TABLE, live(tables.data_file)
)

_BOUNDS = ("min_value", "max_value", "min_is_exact", "max_is_exact")
_table_stats = tables.table_column_stats
# A row without bounds would say "no values yet", and DuckDB's next insert would narrow it.
_DELETE_TABLE_BOUNDS = sa.delete(_table_stats).where(
    _table_stats.c.table_id == OF_TABLE, _table_stats.c.column_id.in_(IDS)
)
_BEGIN_LATER = (
    sa.update(tables.data_file)
    .where(tables.data_file.c.data_file_id.in_(IDS))
    .values(begin_snapshot=sa.bindparam("moved_to"))
)


@cache
def _clear_file_bounds(of: Format) -> sa.Update:
    known = of.table(tables.file_column_stats)
    return (
        sa.update(known)
        .where(known.c.table_id == OF_TABLE, known.c.column_id.in_(IDS))
        .values({name: None for name in _BOUNDS if name in known.c})
    )


def fold(work: Work, change: AlterTable) -> None:
    """Give the table the columns of this change, even if the same commit creates it."""
    work.changed(change.table).alter(change)


def check(draft: Draft, work: Work) -> None:
    """Raise Conflict if the rollups of a table change after another commit renamed it.

    The names of rollups begin with that of their table, so the two changes depend on each other.
    """
    for table, old, made in _altered(work):
        if ROLLUPS not in made.properties or old.snapshot.id == draft.head.id:
            continue
        name = draft.found[table.id]["table_name"]
        if name != old.name and table.new_name is None:
            raise Conflict(f"table {table.name} was renamed to {name!r} by another commit")


def write(draft: Draft, work: Work) -> None:
    """Write what changed in each table: two statements for each column version and comment."""
    for each in _altered(work):
        _alter(draft, *each)
    altered = [table for table, _, _ in _altered(work)]
    add_column_stats(draft, altered)
    inlined_tables.renew_inlined_tables(draft, altered)
    draft.opening.altered.update(table.id for table in altered)


KIND = ChangeKind(
    (AlterTable,),
    fold,
    write,
    check=check,
    asks=(
        *ASK_TOTALS,
        *inlined_tables.ASK_INLINED,
        *inlined_tables.ASK_OF_CONVERTED,
        *ASK_VIEWS,
        *ASK_TAGGED,
        *ASK_PLACES,
    ),
)


def _altered(work: Work) -> list[tuple[TableWork, TableVersion, AlterTable]]:
    """Return the altered tables: the work on each, its version before, and its change."""
    return [(t, t.old, t.altered) for t in work.existing() if t.old and t.altered]


def _alter(draft: Draft, work: TableWork, old: TableVersion, made: AlterTable) -> None:
    retyped = [types for change in made.changed if (types := change.retyped) is not None]
    doubled = {f.id: f for f, now in retyped if (str(f.shape), str(now.shape)) == FLOATS}
    if doubled:
        refuse_other_numbers(draft, work, doubled)
    if made.only_files is not None:
        _require_only_files(draft, work, made.only_files)
    change_columns(draft, old, made.changed)
    keep_places(draft, old.id, made.columns, is_renewed=inlined_tables.needs_another(work))
    change_tags(draft, old.id, made.comments, made.properties)
    set_keys(draft, old.id, made)
    reserve_columns(draft, old.id, made.reserved)
    _forget_bounds(draft, old.id, made)
    narrowed = _narrowed(retyped)
    if narrowed:
        _forget_wider_totals(draft, old.id, narrowed)
    if made.postponed is not None and made.postponed.snapshots:
        postpone(draft, work, made.postponed)
    draft.entries.append(Entry(Verb.ALTERED_TABLE, old.id))
    draft.has_schema_change = True
    if made.changed:
        draft.note_version(old.id)


def _forget_bounds(draft: Draft, table: TableId, made: AlterTable) -> None:
    """Clear the bounds that the new columns make invalid; at most two statements."""
    stale = made.unsafe_bounds | made.returning
    if made.unsafe_bounds:
        told = {"of_table": table, "ids": sorted(made.unsafe_bounds)}
        draft.connection.execute(_clear_file_bounds(draft.format), told)
    if stale:
        draft.connection.execute(_DELETE_TABLE_BOUNDS, {"of_table": table, "ids": sorted(stale)})
        draft.has_stats_change = True


def _narrowed(retyped: Sequence[tuple[Field, Field]]) -> dict[FieldId, Fitting]:
    """Return the leaves that get a narrower type and keep their files, by what fits it."""
    leaves = [(f, now) for f, now in retyped if f.is_leaf and now.is_leaf]
    found = {f.id: fitting(f.type, now.type) for f, now in leaves if is_narrower(f.type, now.type)}
    return {number: fits for number, fits in found.items() if fits is not None}


def _forget_wider_totals(draft: Draft, table: TableId, narrowed: Mapping[FieldId, Fitting]) -> None:
    """Drop bounds of a table that are values of deleted rows, which its columns no longer hold."""
    query = sa.select(_table_stats.c.column_id, _table_stats.c.min_value, _table_stats.c.max_value)
    query = query.where(_table_stats.c.table_id == table, _table_stats.c.column_id.in_(narrowed))
    gone = [
        number
        for number, *ends in draft.connection.execute(query)
        if not all(text is None or narrowed[number].holds(text) for text in ends)
    ]
    if gone:
        draft.connection.execute(_DELETE_TABLE_BOUNDS, {"of_table": table, "ids": gone})
        draft.has_stats_change = True


def _require_only_files(draft: Draft, work: TableWork, known: frozenset[int]) -> None:
    """Raise Conflict if a table has rows outside of the files that a change was made for.

    One statement, unless the table has more tables of inlined rows than SQLite joins.
    """
    names = [row.table_name for row in draft.opening.rows("inlined_of_converted", work.id) or ()]
    kept = (inlined_tables.rows_in(draft.format.inlined(n), _IN_CATALOG) for n in names)
    asked = [_LIVE_FILES.params(of_table=work.id), *kept]
    found = {number for (number,) in rows_of_all(draft.connection, asked)}
    if _IN_CATALOG in found:
        raise Conflict(f"another commit wrote inlined rows to {work.name}")
    if others := found - known:
        raise Conflict(f"another commit wrote {len(others)} data file(s) of {work.name}")


def _ending_later(source: sa.Table) -> sa.Update:
    return (
        sa.update(source)
        .where(source.c.table_id == OF_TABLE, source.c.end_snapshot.in_(IDS))
        .values(end_snapshot=sa.bindparam("moved_to"))
    )


_END_LATER, _END_DELETES_LATER = map(_ending_later, (tables.data_file, tables.delete_file))


def postpone(draft: Draft, work: TableWork, postponed: PostponedRewrites) -> None:
    """Move rewrites of older snapshots to this one; about six statements.

    Raises Conflict if a result has changed or a source is gone.
    """
    seen = dict.fromkeys(postponed.results, DeletesSeen())
    require_as_seen(draft, work.id, f"alter table {work.name} (id {work.id})", seen)
    at = {"moved_to": draft.id, "of_table": work.id}
    moved = 0
    for snapshots in chunks(sorted(postponed.snapshots)):
        moved += draft.connection.execute(_END_LATER, at | {"ids": snapshots}).rowcount
        draft.connection.execute(_END_DELETES_LATER, at | {"ids": snapshots})
    if moved != postponed.sources:
        raise Conflict(
            f"the files that a rewrite of {work.name} replaced are gone: their snapshots expired"
        )
    for results in chunks(sorted(postponed.results)):
        draft.connection.execute(_BEGIN_LATER, {"moved_to": draft.id, "ids": results})
    log_compaction(draft, Verb.REWRITE_DELETE, work.id)
    draft.has_stats_change = True
