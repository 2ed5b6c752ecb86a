"""Snapshots that expire, and everything that only they could see.

The effect is that of DuckDB's ``expire_snapshots``, row by row; it makes no snapshot. If a table
still exists, its ended names, columns and partitionings stay, because older files refer to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    not_,
    or_,
    select,
    text,
)

from shelduck import clock
from shelduck.catalog.commit.rows.file_rows import remove_file_rows
from shelduck.catalog.commit.schedule import (
    GoneFile,
    directory_by_table,
    schedule,
    table_directories,
)
from shelduck.catalog.commit.settled import carry_over
from shelduck.catalog.databases.retry import with_retries
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.chunks import chunks
from shelduck.catalog.read.inlined import require_inlined_tables
from shelduck.catalog.read.paths import resolve
from shelduck.catalog.read.queries import inlined_delete_table, present_tables
from shelduck.catalog.schema import own_tables, tables
from shelduck.catalog.schema.create import LakeInfo
from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import SnapshotId, TableId

_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_snapshot, _changes = tables.snapshot, tables.snapshot_changes
_BY_TABLE = (
    tables.table,
    tables.column,
    tables.column_tag,
    tables.table_stats,
    tables.table_column_stats,
    tables.partition_info,
    tables.partition_column,
    tables.sort_info,
    tables.sort_expression,
    tables.schema_versions,
    tables.inlined_data_tables,
)


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """Which snapshots expire: those that meet all given conditions; never the newest.

    ``versions`` are ids, ``older_than`` a time, ``retain_last`` how many of the newest stay.
    """

    versions: tuple[int, ...] | None = None
    older_than: datetime | None = None
    retain_last: int | None = None


@dataclass(frozen=True, slots=True)
class Expiry:
    """The expired snapshots, and how many files wait for deletion because of this."""

    snapshots: tuple[int, ...]
    files: int


class _DryRun(Exception):
    """Rolls back a transaction that only counts."""


def expire_snapshots(
    store: Store, lake: LakeInfo, request: ExpiryRequest, *, dry_run: bool = False
) -> Expiry:
    """Expire snapshots; about forty statements, however many snapshots and files there are.

    Raises NotFound for a version that does not exist, InvalidRequest for the newest.
    """

    def attempt() -> Expiry:
        found: list[Expiry] = []
        with suppress(_DryRun), store.write() as connection:
            chosen = _chosen(connection, request)
            files = _expire(store, connection, lake, chosen) if chosen else 0
            found.append(Expiry(tuple(chosen), files))
            _stop(dry_run=dry_run)
        return found[0]

    return with_retries(attempt)


def _stop(*, dry_run: bool) -> None:
    if dry_run:
        raise _DryRun


def _chosen(connection: Connection, request: ExpiryRequest) -> list[int]:
    query = select(_snapshot.c.snapshot_id, _snapshot.c.snapshot_time).order_by(
        _snapshot.c.snapshot_id
    )
    times = {row[0]: row[1] for row in connection.execute(query)}
    newest = max(times)
    left = list(times)
    if request.versions is not None:
        missing = next((v for v in request.versions if v not in times), None)
        if missing is not None:
            raise NotFound(
                f"snapshot {missing} does not exist or has already expired", about="snapshot"
            )
        if newest in request.versions:
            raise InvalidRequest(f"snapshot {newest} is the newest one and cannot expire")
        left = sorted(set(request.versions))
    if request.older_than is not None:
        limit = request.older_than
        left = [v for v in left if times[v] < limit]
    kept = {newest}
    if request.retain_last is not None:
        kept |= set(list(times)[max(0, len(times) - request.retain_last) :])
    return [v for v in left if v not in kept]


def _expire(store: Store, connection: Connection, lake: LakeInfo, chosen: Sequence[int]) -> int:
    carry_over(connection, SnapshotId(max(chosen)))
    for ids in chunks(chosen):
        for source in (_snapshot, _changes):
            connection.execute(delete(source).where(source.c.snapshot_id.in_(ids)))
    purged = _purged_tables(connection)
    gone = _remove_files(connection, lake, purged)
    schedule(store, connection, lake, gone, clock.now())
    if purged:
        _purge_tables(connection, purged)
    _remove_objects(connection)
    _remove_layouts(connection)
    return len(gone)


def _unseen(source: Table) -> ColumnElement[bool]:
    """Return the condition that no remaining snapshot sees a versioned row."""
    c, s = source.c, _snapshot.c
    seen = exists().where(s.snapshot_id >= c.begin_snapshot, s.snapshot_id < c.end_snapshot)
    return and_(c.end_snapshot.is_not(None), not_(seen))


def _purged_tables(connection: Connection) -> list[int]:
    """Return the tables that no snapshot sees under any name."""
    t, other = tables.table, tables.table.alias()
    s = _snapshot.c
    seen_as = exists().where(
        s.snapshot_id >= other.c.begin_snapshot, s.snapshot_id < other.c.end_snapshot
    )
    seen = select(other.c.table_id).where(or_(other.c.end_snapshot.is_(None), seen_as))
    query = select(t.c.table_id).where(t.c.table_id.not_in(seen)).distinct()
    return list(connection.execute(query).scalars())


def _remove_files(connection: Connection, lake: LakeInfo, purged: Sequence[int]) -> list[GoneFile]:
    """Delete the rows of data and delete files that nobody sees, and return the files."""
    by_table = directory_by_table(table_directories(connection, lake))
    f, d = tables.data_file, tables.delete_file
    data = select(f.c.data_file_id, f.c.table_id, f.c.path, f.c.path_is_relative, f.c.mapping_id)
    rows = list(_each(connection, data, f, purged))
    dead = select(d.c.delete_file_id, d.c.table_id, d.c.path, d.c.path_is_relative)
    delete_rows = list(_each(connection, dead, d, purged))
    data_ids = [row.data_file_id for row in rows]
    for ids in chunks(data_ids):
        delete_rows += connection.execute(dead.where(d.c.data_file_id.in_(ids)))
    gone: dict[int, GoneFile] = {}
    for number, table, path, relative, mapping in rows:
        place = resolve(by_table.get(table, ""), path, relative)
        gone[number] = GoneFile(number, place, mapping is not None)
    for number, table, path, relative in delete_rows:
        gone[number] = GoneFile(number, resolve(by_table.get(table, ""), path, relative))
    for ids in chunks({row[0] for row in delete_rows}):
        connection.execute(delete(d).where(d.c.delete_file_id.in_(_IDS)), {"ids": ids})
    for table in {row.table_id for row in rows}:
        mine = [row.data_file_id for row in rows if row.table_id == table]
        remove_file_rows(connection, TableId(table), mine)
    return list(gone.values())


def _each(
    connection: Connection, query: Any, source: Table, purged: Sequence[int]
) -> Iterable[Any]:
    yield from connection.execute(query.where(_unseen(source), source.c.table_id.not_in(purged)))
    for ids in chunks(purged):
        yield from connection.execute(query.where(source.c.table_id.in_(ids)))


def _purge_tables(connection: Connection, purged: Sequence[int]) -> None:
    """Delete all rows about tables, and the tables with their inlined rows."""
    registered = tables.inlined_data_tables.c
    for ids in chunks(purged):
        query = select(registered.table_id, registered.table_name)
        names = []
        for table, name in connection.execute(query.where(registered.table_id.in_(ids))):
            require_inlined_tables(table, [name])
            names.append(name)
        names += [inlined_delete_table(TableId(n)) for n in ids]
        quote = connection.dialect.identifier_preparer.quote
        for name in sorted(present_tables(connection, names)):
            connection.execute(text(f"DROP TABLE {quote(name)}"))
        mapping = tables.column_mapping
        mappings = select(mapping.c.mapping_id).where(mapping.c.table_id.in_(ids))
        name_mapping = tables.name_mapping
        connection.execute(delete(name_mapping).where(name_mapping.c.mapping_id.in_(mappings)))
        connection.execute(delete(mapping).where(mapping.c.table_id.in_(ids)))
        connection.execute(delete(tables.tag).where(tables.tag.c.object_id.in_(ids)))
        for source in _BY_TABLE:
            connection.execute(delete(source).where(source.c.table_id.in_(ids)))


def _remove_objects(connection: Connection) -> None:
    """Delete schemas, views, macros and tags that nobody sees."""
    macro = tables.macro
    macros = list(connection.execute(select(macro.c.macro_id).where(_unseen(macro))).scalars())
    for ids in chunks(macros):
        for part in (tables.macro_impl, tables.macro_parameters):
            connection.execute(delete(part).where(part.c.macro_id.in_(ids)))
    for source in (macro, tables.schema, tables.view, tables.tag):
        connection.execute(delete(source).where(_unseen(source)))


def _remove_layouts(connection: Connection) -> None:
    """Delete layouts that no file uses any more."""
    own, of_files = own_tables.layout, own_tables.file_layout
    names = {own.name, of_files.name}
    if present_tables(connection, names) == names:
        used = select(of_files.c.layout_id)
        connection.execute(delete(own).where(own.c.layout_id.not_in(used)))
