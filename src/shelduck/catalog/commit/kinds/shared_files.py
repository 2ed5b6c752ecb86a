"""Twins: tables whose rows are in files of other tables. The database copies rows of the catalog.

Ids of files are shifted as a whole, so that statements need no list of them: what was file ``n`` of
a table is file ``n + shift`` of its twin.

DuckDB and Shelduck schedule the files of rows that they remove. In a lake with twins, the database
drops such a row if another row still names the path, or it waits already. A DuckDB file has no
triggers, so a lake in one has no twins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.rows.described import reserve_columns
from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read.queries import chunks, live, visible
from shelduck.catalog.read.read import entries_since
from shelduck.catalog.read.twins import NO_TRIGGERS, branches_at, keeps_rows, why_not_shared
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, or_null
from shelduck.ducklake.descriptions import tag_rows
from shelduck.errors import Conflict, Unsupported
from shelduck.model.changes.change import MOVES, Entry, Verb
from shelduck.model.tables.schema import Field, FieldId, TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.twin import (
    BRANCH,
    COLUMNS_OF_BLOCK,
    LAST_BLOCK,
    ROWS_OF_BLOCK,
    STORED_BRANCH,
    STORED_TWIN,
    TWIN,
    Branch,
    FollowSource,
    MarkBranch,
    ShareFiles,
    TakeFiles,
    Twin,
    read_twin,
    twin_of,
)
from shelduck.model.types.data_types import Primitive

_OF_FILES = (tables.file_column_stats, tables.file_variant_stats, tables.file_partition_value)
_tag = tables.tag.c
_TWINS = sa.select(_tag.object_id, _tag.value).where(_tag.key == TWIN)

_table = tables.table.c
_LIVE_TWINS = (
    _TWINS.add_columns(_table.schema_id)
    .join(tables.table, _table.table_id == _tag.object_id)
    .where(live(tables.tag), live(tables.table))
)

_INDEXES = {
    "shelduck_ix_path_of_data_file": tables.data_file,
    "shelduck_ix_path_of_delete_file": tables.delete_file,
    "shelduck_ix_path_of_scheduled_file": tables.files_scheduled_for_deletion,
}
# So many branches a CASE has at most.
_CASES = 500

Changed = Mapping[str, sa.ColumnElement[Any]]


def fold(work: Work, change: ShareFiles | TakeFiles | MarkBranch | FollowSource) -> None:
    """Keep the change; a table that gets files must exist."""
    if isinstance(change, TakeFiles):
        work.table_of(change.table).changes.append(change)
    else:
        work.keep(change)


def write(draft: Draft, work: Work) -> None:
    """Write the rows of all twins; about 15 statements for each, however many files it has.

    Raises Conflict if the rows of a source are no longer in the files that were looked at.
    """
    _guard(draft)
    known = {number: read_twin(text) for number, text in draft.connection.execute(_TWINS)}
    for change in work.of(ShareFiles):
        _share(draft, draft.table_ids[change.table], change, known)
    for table in work.existing():
        for taken in table.of(TakeFiles):
            _take(draft, taken, known)
    made = [draft.table_ids[c.table] for c in work.of(ShareFiles) if c.is_source]
    for each in work.of(FollowSource):
        _mark_twin(draft, each.table.id, each.known)
    for mark in work.of(MarkBranch):
        _mark(draft, mark, made)


KIND = ChangeKind((ShareFiles, TakeFiles, MarkBranch, FollowSource), fold, write)


def _mark(draft: Draft, mark: MarkBranch, made: Sequence[TableId]) -> None:
    """Write what a branch is; ``made`` are tables that come from it."""
    schema = draft.schema_id(mark.schema.id)
    since = draft.id if mark.since is None else mark.since
    branch = Branch(mark.source.id, mark.base, (), mark.is_tag, mark.until, since)
    if schema == mark.schema.id:
        known = branches_at(draft.connection, draft.head.id)[schema]
        base, since = (mark.base, known.since) if mark.stays else (draft.id, since)
        branch = replace(known, base=base, until=mark.until or known.until, since=since)
        draft.end(tables.tag, object_id=[schema], key=[BRANCH])
    begun = dict.fromkeys((*branch.tables, *mark.tables, *made))
    left = tuple(number for number in begun if number not in mark.gone)
    text = STORED_BRANCH.write(replace(branch, tables=left))
    draft.begin(tag_rows(schema, {BRANCH: text}))


def _guard(draft: Draft) -> None:
    """Create the trigger and the indexes of paths that it uses, if they are missing.

    Raises Unsupported if the database has no triggers.
    """
    dialect = dialect_of(draft.connection)
    if dialect.kept_files is None:
        raise Unsupported(f"tables cannot share files: {NO_TRIGGERS}")
    known = draft.store.index_names(draft.connection)
    for name, source in _INDEXES.items():
        if name not in known:
            draft.connection.execute(sa.text(f"CREATE INDEX {name} ON {source.name} (path)"))
    draft.connection.execute(sa.text(dialect.kept_files))


def _share(draft: Draft, table: TableId, change: ShareFiles, twins: dict[int, Twin]) -> None:
    """Write the rows of a new table's files, and which of both is the twin of the other one."""
    source, at = change.source, change.source.snapshot.id
    _require_only_files(draft, source, at)
    files, deletes = draft.format.table(tables.data_file), draft.format.table(tables.delete_file)
    seen = sa.and_(files.c.table_id == source.id, visible(files, at))
    # DuckDB lets the delete file of a file stay that it ends.
    there = deletes.c.data_file_id.in_(sa.select(files.c.data_file_id).where(seen))
    dead = sa.and_(deletes.c.table_id == source.id, visible(deletes, at), there)
    shift = _shift(draft, (files.c.data_file_id, seen), (deletes.c.delete_file_id, dead))
    if shift is not None:
        _copy_files(draft, table, source, seen, shift)
        numbers = ("delete_file_id", "data_file_id")
        begun = _begun(draft, table) | {n: deletes.c[n] + shift for n in numbers}
        _copy(draft, tables.delete_file, begun, dead)
        draft.entries.append(Entry(Verb.INSERTED_INTO_TABLE, table))
    known = twin_of(source.properties, source.full_name)
    root = source.id if known is None else known.root
    block = _next_block(draft, twins, root, source)
    _copy_totals(draft, table, source.id, block)
    ids = (table, table, draft.id) if change.is_source else (root, source.id, at)
    twin = source.id if change.is_source else table
    made = Twin(
        *ids, since=draft.id, block=block, counter=change.counter, is_tagged=change.is_tagged
    )
    if change.undrops:
        _go_on_with(draft, source, table)
        if known is not None and known.counter and _is_as_at(draft, source, known.since):
            is_there = sa.select(_table.table_id).where(
                _table.table_id == known.source, live(tables.table)
            )
            if draft.connection.execute(is_there).first() is not None:
                made = replace(known, since=draft.id, block=block)
    _mark_twin(draft, twin, made)
    twins[twin] = made
    _reserve(draft, table, block)


def _go_on_with(draft: Draft, source: TableVersion, table: TableId) -> None:
    """Let branches of a table that comes back as ``table`` be branches of that.

    A twin keeps the dropped table as its source if that table changed after the branch began.
    """
    others = set()
    for number, text, schema in draft.connection.execute(_LIVE_TWINS).all():
        each = read_twin(text)
        if each.source != source.id or not each.counter:
            continue
        if _is_as_at(draft, source, each.base):
            _mark_twin(draft, number, replace(each, source=table, base=draft.id))
        else:
            others.add(schema)
    for schema, branch in branches_at(draft.connection, draft.head.id).items():
        if source.id in branch.tables and schema not in others:
            begun = tuple(table if n == source.id else n for n in branch.tables)
            draft.end(tables.tag, object_id=[schema], key=[BRANCH])
            draft.begin(
                tag_rows(schema, {BRANCH: STORED_BRANCH.write(replace(branch, tables=begun))})
            )


def _is_as_at(draft: Draft, table: TableVersion, base: int) -> bool:
    """Return whether nothing happened to a table that was dropped since a snapshot."""
    try:
        found = entries_since(draft.connection, base, draft.head.id)
    except Conflict:
        return False
    verbs = {entry.verb for _, entry in found if entry.id == table.id}
    return not verbs - MOVES - {Verb.DROPPED_TABLE}


def _take(draft: Draft, change: TakeFiles, twins: dict[int, Twin]) -> None:
    """Let a table have what its twin did; files that both have stay as they are."""
    table, twin = change.table, change.twin
    for each in (table, twin):
        _require_only_files(draft, each, draft.head.id)
    for ids in chunks(change.ended):
        draft.end(tables.data_file, data_file_id=ids)
        draft.end(tables.delete_file, data_file_id=ids)
    for ids in chunks(number for number, _ in change.replaced):
        draft.end(tables.delete_file, data_file_id=ids)
    _take_files(draft, change)
    now = replace(change.known, base=draft.id, since=draft.id, apart=change.apart)
    _mark_twin(draft, twin.id, now)
    block = _next_block(draft, twins, now.root, table)
    if change.is_whole:
        for source in (tables.table_stats, tables.table_column_stats):
            draft.connection.execute(sa.delete(source).where(source.c.table_id == table.id))
        _copy_totals(draft, table.id, twin.id, block)
    else:
        _add_totals(draft, change, block)
    _reserve(draft, table.id, block)
    if change.taken:
        draft.entries.append(Entry(Verb.INSERTED_INTO_TABLE, table.id))
    if change.ended or change.replaced:
        draft.entries.append(Entry(Verb.DELETED_FROM_TABLE, table.id))


def _mark_twin(draft: Draft, twin: TableId, known: Twin) -> None:
    draft.end(tables.tag, object_id=[twin], key=[TWIN])
    draft.begin(tag_rows(twin, {TWIN: STORED_TWIN.write(known)}))
    # Processes that keep the table must learn it.
    draft.has_schema_change = draft.has_stats_change = True


def _take_files(draft: Draft, change: TakeFiles) -> None:
    """Write the twin's new data files and delete files once more, as files of the table."""
    table, twin = change.table, change.twin
    new = {dead: number for number, dead in change.replaced if dead is not None}
    known = [*change.taken, *change.deletes, *new]
    if not known:
        return
    shift = draft.file_ids(max(known) - min(known) + 1).start - min(known)
    files, deletes = draft.format.table(tables.data_file), draft.format.table(tables.delete_file)
    for ids in chunks(change.taken):
        _copy_files(draft, table.id, twin, files.c.data_file_id.in_(ids), shift)
    begun = _begun(draft, table.id) | {"delete_file_id": deletes.c.delete_file_id + shift}
    for ids in chunks(change.deletes):
        of_taken = begun | {"data_file_id": deletes.c.data_file_id + shift}
        _copy(draft, tables.delete_file, of_taken, deletes.c.delete_file_id.in_(ids))
    for ids in chunks(new, _CASES):
        owners = sa.case(
            {n: sa.literal(new[n], BIGINT) for n in ids}, value=deletes.c.delete_file_id
        )
        chosen = deletes.c.delete_file_id.in_(ids)
        _copy(draft, tables.delete_file, begun | {"data_file_id": owners}, chosen)


def _add_totals(draft: Draft, change: TakeFiles, block: int) -> None:
    """Count the rows that a table gets; the bounds of its columns are unknown from now on."""
    total, table = tables.table_stats, change.table.id
    more = {
        "record_count": total.c.record_count + change.rows,
        "file_size_bytes": total.c.file_size_bytes + change.size,
        "next_row_id": block * ROWS_OF_BLOCK,
    }
    draft.connection.execute(sa.update(total).where(total.c.table_id == table).values(more))
    bounds = tables.table_column_stats
    draft.connection.execute(sa.delete(bounds).where(bounds.c.table_id == table))


def _copy_files(
    draft: Draft, table: TableId, source: TableVersion, chosen: sa.ColumnElement[bool], shift: int
) -> None:
    """Write the rows of data files, and what else the catalog has of each, under shifted ids."""
    files = draft.format.table(tables.data_file)
    changed = _begun(draft, table) | {"data_file_id": files.c.data_file_id + shift}
    partitions = _partitions(draft, table, source, chosen)
    if partitions:
        changed["partition_id"] = sa.case(partitions, value=files.c.partition_id)
    ids = sa.select(files.c.data_file_id).where(chosen)
    for each in _OF_FILES:
        known = draft.format.table(each)
        of_table = {"table_id": sa.literal(table, BIGINT)}
        shifted = of_table | {"data_file_id": known.c.data_file_id + shift}
        chosen_rows = [known.c.table_id == source.id, known.c.data_file_id.in_(ids)]
        _copy(draft, each, shifted, *chosen_rows, *_of_columns(known, table))
    layouts = own_tables.file_layout
    shifted = {"data_file_id": layouts.c.data_file_id + shift}
    _insert(draft, layouts, shifted, layouts.c.data_file_id.in_(ids))
    _copy(draft, tables.data_file, changed, chosen)


def _begun(draft: Draft, table: TableId) -> dict[str, sa.ColumnElement[Any]]:
    return {
        "table_id": sa.literal(table, BIGINT),
        "begin_snapshot": sa.literal(draft.id, BIGINT),
        "end_snapshot": sa.null(),
    }


def _copy(
    draft: Draft, source: sa.Table, changed: Changed, *chosen: sa.ColumnElement[bool]
) -> None:
    """Insert chosen rows of a table once more, with other values of some columns."""
    _insert(draft, draft.format.table(source), changed, *chosen)


def _insert(
    draft: Draft, known: sa.Table, changed: Changed, *chosen: sa.ColumnElement[bool]
) -> None:
    rows = sa.select(*(changed.get(c.name, c) for c in known.c)).where(*chosen)
    draft.connection.execute(sa.insert(known).from_select(known.c.keys(), rows))


def _shift(draft: Draft, *chosen: tuple[sa.Column[Any], sa.ColumnElement[bool]]) -> int | None:
    """Return the number by which new ids are above those of chosen files, None without files."""
    ends = [
        sa.select(
            or_null(sa.func.min(number)).label("low"), or_null(sa.func.max(number)).label("high")
        ).where(which)
        for number, which in chosen
    ]
    rows = draft.connection.execute(sa.union_all(*ends)).all()
    known = [row for row in rows if row.low is not None]
    if not known:
        return None
    low, high = min(row.low for row in known), max(row.high for row in known)
    return draft.file_ids(high - low + 1).start - int(low)


def _require_only_files(draft: Draft, source: TableVersion, at: int) -> None:
    """Raise Conflict unless all rows of a table at a snapshot are in files that it alone describes.

    Raises Unsupported for files that do not tell their columns, or hold rows of newer snapshots.
    """
    if keeps_rows(draft.connection, source.id, at):
        raise Conflict(f"the catalog has rows of {source.full_name}; flush them first")
    why = why_not_shared(draft.connection, source, at)
    if why is not None:
        raise Unsupported(f"cannot share the files of {source.full_name}: {why}")


def _partitions(
    draft: Draft, table: TableId, source: TableVersion, chosen: sa.ColumnElement[bool]
) -> dict[int, int]:
    """Return the partitionings of a table by those of its source; older ones are written."""
    files = draft.format.table(tables.data_file)
    ids = sa.select(files.c.partition_id).where(chosen, files.c.partition_id.is_not(None))
    found: dict[int, int] = {}
    for number in draft.connection.execute(ids.distinct()).scalars():
        own = _present_partition(draft, table) if number == source.partition_id else None
        if own is None:
            own = draft.catalog_id()
            # Nobody sees it as the present one.
            at_once = _begun(draft, table) | {"end_snapshot": sa.literal(draft.id, BIGINT)}
            _renumber(draft, tables.partition_info, number, own, at_once)
            of_table = {"table_id": sa.literal(table, BIGINT)}
            _renumber(draft, tables.partition_column, number, own, of_table)
        found[number] = own
    return found


def _present_partition(draft: Draft, table: TableId) -> int | None:
    info = tables.partition_info
    query = sa.select(info.c.partition_id).where(info.c.table_id == table, live(info))
    return draft.connection.execute(query).scalar()


def _renumber(draft: Draft, source: sa.Table, number: int, own: int, changed: Changed) -> None:
    made = {**changed, "partition_id": sa.literal(own, BIGINT)}
    _copy(draft, source, made, draft.format.table(source).c.partition_id == number)


def _next_block(
    draft: Draft, twins: Mapping[int, Twin], root: TableId, source: TableVersion
) -> int:
    """Return the number of a block that no table of a family has, and no id of one is in.

    A merge gives a table another block, which the tag of its twin does not tell.
    """
    blocks = {number: twin.block for number, twin in twins.items() if twin.root == root}
    family = {root, source.id, *blocks}
    total, column = tables.table_stats.c, tables.column.c
    rows = sa.select(or_null(sa.func.max(total.next_row_id))).where(total.table_id.in_(family))
    columns = sa.select(or_null(sa.func.max(column.column_id)))
    columns = columns.where(column.table_id.in_(family))
    used = (
        (draft.connection.execute(rows).scalar() or 0) // ROWS_OF_BLOCK,
        (draft.connection.execute(columns).scalar() or 0) // COLUMNS_OF_BLOCK,
    )
    block = 1 + max(0, *blocks.values(), *used)
    if block > LAST_BLOCK:
        raise Unsupported(
            f"{source.full_name} has had {LAST_BLOCK} branches and merges, and no ids are left for"
            " another one; make a new table of its rows"
        )
    return block


def _copy_totals(draft: Draft, table: TableId, source: TableId, block: int) -> None:
    """Write the statistics of a table as those of another one; its row ids go on in a block."""
    of_table = {"table_id": sa.literal(table, BIGINT)}
    for each in (tables.table_stats, tables.table_column_stats):
        rows = {"next_row_id": sa.literal(block * ROWS_OF_BLOCK, BIGINT)}
        known = draft.format.table(each)
        of_source = known.c.table_id == source
        _insert(draft, known, of_table | rows, of_source, *_of_columns(known, table))


def _of_columns(source: sa.Table, table: TableId) -> Sequence[sa.ColumnElement[bool]]:
    """Return the condition that statistics are of columns that a table has or had."""
    if "column_id" not in source.c:
        return ()
    column = tables.column.c
    known = sa.select(column.column_id).where(column.table_id == table)
    return (source.c.column_id.in_(known),)


def _reserve(draft: Draft, table: TableId, block: int) -> None:
    """Let the ids of a table's new columns go on in a block."""
    first = FieldId(block * COLUMNS_OF_BLOCK)
    reserve_columns(draft, table, [Field(first, "_block", Primitive("varchar"), order=first)])
