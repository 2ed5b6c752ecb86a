"""How many rows each snapshot added to a table and deleted from it, in files and in the catalog."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.inlined_rows import AT_ONCE, rows_of_all, source_of
from shelduck.catalog.read.queries import chunks, total
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT

_file, _delete = tables.data_file, tables.delete_file
_ADDED, _DELETED = 1, -1


def inlined_counts(
    connection: sa.Connection, table: int, since: int
) -> tuple[Counter[int], Counter[int]]:
    """Return how many rows of the catalog itself each snapshot from ``since`` on added and ended.

    Rows that no snapshot ever saw are left out. Two statements, and one for each two hundred
    tables of rows.
    """
    asked = [
        s
        for name in sorted(tables_of_rows(connection, [table])[0])
        for s in _edges(source_of(connection, name), since)
    ]
    found = {_ADDED: Counter[int](), _DELETED: Counter[int]()}
    for sign, snapshot, count in rows_of_all(connection, asked):
        found[sign][snapshot] += count
    return found[_ADDED], found[_DELETED]


def tables_of_rows(
    connection: sa.Connection, ids: Collection[int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the tables with rows of these tables, and those with deleted positions of their files.

    Each with the id of its table. Two statements, and more for very many tables.
    """
    c = tables.inlined_data_tables.c
    rows: dict[str, int] = {}
    for lot in chunks(ids, AT_ONCE * 10):
        query = sa.select(c.table_name, c.table_id).where(c.table_id.in_(lot))
        rows.update((row[0], row[1]) for row in connection.execute(query))
    deletes = {queries.inlined_delete_table(number): number for number in ids}
    present: set[str] = set()
    for some in chunks([*rows, *deletes], AT_ONCE * 10):
        present |= queries.present_tables(connection, some)
    return (
        {name: number for name, number in rows.items() if name in present},
        {name: number for name, number in deletes.items() if name in present},
    )


def _edges(source: sa.TableClause, since: int) -> list[sa.Select[Any]]:
    begin, end = source.c.begin_snapshot, source.c.end_snapshot
    shown = sa.or_(end.is_(None), end > begin)
    # A snapshot begins or ends a row once, also where a damaged table has it twice.
    count = sa.func.count(source.c.row_id.distinct())
    return [
        sa.select(sa.literal(sign, BIGINT), edge, count).where(shown, edge >= since).group_by(edge)
        for sign, edge in ((_ADDED, begin), (_DELETED, end))
    ]


def deleted_from_files(connection: sa.Connection, table: int, since: int) -> Counter[int]:
    """Return how many rows of files each snapshot from ``since`` on deleted.

    A compaction, which ends files too, deletes none of the rows that it counts here. Four
    statements, and one more if the catalog itself keeps deleted positions.
    """
    found: Counter[int] = Counter()
    f, d = _file.c, _delete.c
    edges = (
        (+1, _file, f.end_snapshot, f.record_count),
        (+1, _delete, d.begin_snapshot, d.delete_count),
        # The rows that were deleted before from a file that ends, or that gets another delete file.
        (-1, _delete, d.end_snapshot, d.delete_count),
    )
    for sign, source, edge, count in edges:
        query = sa.select(edge, total(count)).where(source.c.table_id == table, edge >= since)
        for snapshot, rows in connection.execute(query.group_by(edge)):
            found[snapshot] += sign * rows
    name = queries.inlined_delete_table(table)
    if queries.present_tables(connection, [name]):
        for snapshot, rows in connection.execute(_positions(name, since)):
            found[snapshot] += rows
    return found


def _positions(name: str, since: int) -> sa.Select[Any]:
    """Count the positions that each snapshot deleted, less those of the files that it ended."""
    once = _once(name)
    ended = sa.and_(_file.c.data_file_id == once.c.file_id, once.c.begin < _file.c.end_snapshot)
    both = sa.union_all(
        sa.select(once.c.begin.label("at"), sa.literal(1, BIGINT).label("sign")),
        sa.select(_file.c.end_snapshot, sa.literal(-1, BIGINT)).join_from(_file, once, ended),
    ).subquery()
    return sa.select(both.c.at, total(both.c.sign)).where(both.c.at >= since).group_by(both.c.at)


def _once(name: str) -> sa.Subquery:
    """Select each deleted position once, with the snapshot that deleted it."""
    source = queries.inlined_deletes(name)
    # A position may be there twice: two processes may have written it.
    key = (source.c.file_id, source.c.row_id)
    return (
        sa.select(*key, sa.func.min(source.c.begin_snapshot).label("begin"))
        .group_by(*key)
        .subquery()
    )


def dead_positions(name: str) -> sa.Subquery:
    """Select when each deleted position of the catalog begins to count, and when its file ends."""
    once, begin = _once(name), _file.c.begin_snapshot
    later = sa.case((once.c.begin > begin, once.c.begin), else_=begin)
    return (
        sa.select(later.label("begin_snapshot"), _file.c.end_snapshot)
        .join_from(_file, once, _file.c.data_file_id == once.c.file_id)
        .subquery()
    )


def inlined_changes(
    connection: sa.Connection, ids: Collection[int], first: int, second: int
) -> dict[int, int]:
    """Return by how many rows tables differ between two snapshots in what the catalog keeps.

    Tables with other rows are included if they have as many. Statements of `tables_of_rows`, and
    one for each two hundred tables of rows.
    """
    rows, deletes = tables_of_rows(connection, ids)
    kept = [_spans(source_of(connection, name), number) for name, number in rows.items()]
    # A deleted row is a row less.
    kept += [_spans(dead_positions(name), number, -1) for name, number in deletes.items()]
    found: dict[int, int] = {}
    for some in chunks(kept, AT_ONCE):
        for number, count in connection.execute(_differences(some, first, second)):
            found[number] = found.get(number, 0) + count
    return found


def _spans(source: sa.FromClause, number: int, rows: int = 1) -> sa.Select[Any]:
    told = (sa.literal(number, BIGINT).label("number"), sa.literal(rows, BIGINT).label("rows"))
    return sa.select(*told, source.c.begin_snapshot, source.c.end_snapshot)


def _differences(spans: Sequence[sa.Select[Any]], first: int, second: int) -> sa.Select[Any]:
    """Select the tables that differ; with conditions in each span, Python would take longer."""
    kept = sa.union_all(*spans).subquery()
    one, other = (queries.visible(kept, at) for at in (first, second))
    rows = sa.case((other, kept.c.rows), else_=-kept.c.rows)
    return sa.select(kept.c.number, total(rows)).where(one != other).group_by(kept.c.number)


def uncertain_snapshots(connection: sa.Connection, table: int, since: int) -> Spans:
    """Return the snapshots whose rows are merged with those of others, which no number tells apart.

    Two statements.
    """
    found: list[tuple[int, int]] = []
    for source in (_file, _delete):
        begin, last = source.c.begin_snapshot, source.c.partial_max
        query = sa.select(begin, last).where(
            source.c.table_id == table, last >= since, last > begin
        )
        found += [(row[0], row[1]) for row in connection.execute(query.distinct())]
    return Spans(found)


class Spans:
    """Spans of snapshots, both ends included."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(spans):
            if self._lasts and first <= self._lasts[-1]:
                self._lasts[-1] = max(last, self._lasts[-1])
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def __contains__(self, snapshot: int) -> bool:
        place = bisect_right(self._firsts, snapshot) - 1
        return place >= 0 and snapshot <= self._lasts[place]
