"""The log of snapshots: per day, by table, author and kind, and two of them compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.queries import COUNT, total, visible
from shelduck.catalog.read.row_counts import inlined_changes
from shelduck.ducklake import tables
from shelduck.ducklake.format import schemas_of
from shelduck.model.changes.change import COMPACTIONS, DELETES, INSERTS, Entry, Verb
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.text.names import shown_schema

_snapshot, _changes = tables.snapshot.c, tables.snapshot_changes.c

ENTRY_KINDS: dict[str, frozenset[Verb]] = {
    "rows added": INSERTS,
    "rows deleted": DELETES,
    "columns": frozenset({Verb.ALTERED_TABLE}),
    "tables made or dropped": frozenset({Verb.CREATED_TABLE, Verb.DROPPED_TABLE}),
    "files rewritten": COMPACTIONS | {Verb.INLINE_FLUSH},
    "schemas, views, macros": frozenset(
        v
        for v in Verb
        if v.value.endswith(("_schema", "_view", "_macro")) or v is Verb.ALTERED_VIEW
    ),
}
"""The kinds of snapshots in the words of the page, each with its verbs."""
_file, _delete = tables.data_file, tables.delete_file
_AUTHORS = 200


def notes_for_programs(connection: sa.Connection, snapshots: Collection[int]) -> dict[int, str]:
    """Return the `commit_extra_info` of these snapshots, as far as there is one; one statement."""
    told = _changes.commit_extra_info
    query = sa.select(_changes.snapshot_id, told).where(_changes.snapshot_id.in_(snapshots))
    return {row[0]: row[1] for row in connection.execute(query.where(told.is_not(None)))}


def commits_between(connection: sa.Connection, edges: Sequence[datetime]) -> list[int]:
    """Return how many snapshots were committed from each edge to the next; one statement.

    The edges are in order; each span includes its beginning and not its end.
    """
    spans = list(pairwise(edges))
    if not spans:
        return []
    number = sa.case(*((_snapshot.snapshot_time < end, at) for at, (_, end) in enumerate(spans)))
    dated = (
        sa.select(number.label("span"))
        .where(_snapshot.snapshot_time >= edges[0], _snapshot.snapshot_time < edges[-1])
        .subquery()
    )
    rows = connection.execute(sa.select(dated.c.span, COUNT).group_by(dated.c.span))
    found = {row[0]: row[1] for row in rows}
    return [found.get(at, 0) for at in range(len(spans))]


def count_snapshots(connection: sa.Connection) -> int:
    """Return the number of snapshots that the lake still has; one statement."""
    return connection.execute(sa.select(COUNT).select_from(tables.snapshot)).scalar() or 0


def times_of(connection: sa.Connection, snapshots: Iterable[int]) -> dict[int, datetime]:
    """Return when snapshots were committed, without those that have expired; one statement."""
    query = sa.select(_snapshot.snapshot_id, _snapshot.snapshot_time)
    rows = connection.execute(query.where(_snapshot.snapshot_id.in_(sorted(set(snapshots)))))
    return {row[0]: row[1] for row in rows}


def authors(connection: sa.Connection) -> list[str]:
    """Return the first authors of snapshots, by name; one statement."""
    query = sa.select(_changes.author).where(_changes.author.is_not(None)).distinct()
    return list(connection.execute(query.order_by(_changes.author).limit(_AUTHORS)).scalars())


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which snapshots of the log are wanted; None and "" mean all."""

    table: int | None = None
    author: str = ""
    kind: str = ""
    before: int | None = None


def log(
    connection: sa.Connection, wanted: LogFilter, most: int
) -> list[tuple[Snapshot, list[Entry]]]:
    """Return the newest snapshots that match, with what they did; at most so many.

    The database compares texts; entries are compared after that, as names may contain anything.
    """
    names = {} if wanted.table is None else read.names_of(connection, wanted.table)
    verbs = ENTRY_KINDS.get(wanted.kind) if wanted.kind else None
    found: list[tuple[Snapshot, list[Entry]]] = []
    for snapshot in read.newest_first(connection, _query(wanted, list(names)), wanted.before):
        mine = entries = read.entries_of(snapshot)
        if wanted.table is not None:
            mine = read.entries_about(entries, wanted.table, names.get(snapshot.id))
        is_about = bool(mine) or wanted.table is None
        if is_about and (verbs is None or any(e.verb in verbs for e in mine)):
            found.append((snapshot, entries))
        if len(found) == most:
            break
    return found


def _query(wanted: LogFilter, names: Sequence[int]) -> sa.Select[Any]:
    query = queries.every_snapshot()
    if wanted.table is not None:
        query = queries.snapshots_naming(wanted.table, names)
    if wanted.author:
        query = query.where(_changes.author == wanted.author)
    if wanted.kind:
        verbs = ENTRY_KINDS.get(wanted.kind, frozenset())
        told = (_changes.changes_made.contains(v.value, autoescape=True) for v in verbs)
        query = query.where(sa.or_(*told))
    return query


def names_of_tables(connection: sa.Connection, ids: Collection[int]) -> dict[int, str]:
    """Return the newest name of each table, dropped ones too, with its schema; one statement."""
    schemas = schemas_of(connection)
    t, s = tables.table.c, schemas.c
    query = (
        sa.select(t.table_id, t.begin_snapshot, s.schema_name, t.table_name)
        .outerjoin_from(tables.table, schemas, t.schema_id == s.schema_id)
        .where(t.table_id.in_(sorted(ids)))
    )
    rows = sorted(
        (begin, number, f"{shown_schema(schema)}.{name}")
        for number, begin, schema, name in (connection.execute(query))
    )
    return {number: name for _, number, name in rows}


@dataclass(frozen=True, slots=True)
class FileChanges:
    """By how much the files of a table, their bytes and the rows without deleted ones differ.

    Rows are those of files and those that the catalog itself keeps. ``is_certain``: they are exact.
    They are not if a file of one of the snapshots also has rows of later ones.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    is_certain: bool = True


def row_changes(
    connection: sa.Connection, ids: Collection[int], first: int, second: int
) -> dict[int, FileChanges]:
    """Return what leads from the files and rows of one snapshot to those of another.

    ``ids`` are the tables of both. Tables in which both are the same are left out. Two statements,
    and those of `inlined_changes`.
    """
    found = _file_changes(connection, first, second)
    for number, rows in inlined_changes(connection, ids, first, second).items():
        before = found.get(number, FileChanges())
        found[number] = replace(before, rows=before.rows + rows)
    return found


def _file_changes(connection: sa.Connection, first: int, second: int) -> dict[int, FileChanges]:
    found: dict[int, FileChanges] = {}
    for source, count in ((_file, _file.c.record_count), (_delete, _delete.c.delete_count)):
        one, other = visible(source, first), visible(source, second)
        sign = sa.case((sa.and_(other, ~one), 1), (sa.and_(one, ~other), -1), else_=0)
        later = sa.or_(
            sa.and_(one, source.c.partial_max > first),
            sa.and_(other, source.c.partial_max > second),
        )
        query = (
            sa.select(
                *(source.c.table_id, total(sign), total(sign * count)),
                *(total(sign * source.c.file_size_bytes), total(sa.case((later, 1), else_=0))),
            )
            .where(sa.or_(sa.and_(other, ~one), sa.and_(one, ~other), later))
            .group_by(source.c.table_id)
        )
        for number, files, rows, size, unsure in connection.execute(query):
            before = found.get(number, FileChanges())
            is_data = source is _file
            found[number] = replace(
                before,
                files=before.files + files * is_data,
                rows=before.rows + (rows if is_data else -rows),
                bytes=before.bytes + size,
                is_certain=before.is_certain and not unsure,
            )
    return found
