"""Rows that the catalog holds at a snapshot, given those that it held at an older one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from shelduck.catalog.databases.known import dialect_of
from shelduck.catalog.read import inlined_rows
from shelduck.catalog.read.holdings import Holdings
from shelduck.catalog.read.queries import chunks
from shelduck.ducklake.checked import is_broken
from shelduck.model.files.data_file import InlinedRows
from shelduck.model.tables.schema import Schema
from shelduck.model.tables.table_version import TableVersion


def inlined_since(
    connection: sa.Connection,
    table: TableVersion,
    known: Holdings,
    before: Sequence[InlinedRows],
    since: int,
) -> list[InlinedRows] | None:
    """Return the rows that the catalog holds at a table's snapshot, given those at an older one.

    Two statements if no rows came or went; otherwise two more, and one for each schema version with
    such rows. None if the catalog no longer holds the rows of the older snapshot ``since``.
    """

    def changed(source: sa.TableClause) -> inlined_rows.Conditions:
        end = source.c.end_snapshot
        return (sa.or_(source.c.begin_snapshot > since, end > since, is_broken(source)),)

    at = table.snapshot.id
    shown = _count(connection, [name for name, _ in known.inlined], at)
    stored = inlined_rows.stored_rows(connection, table, changed, known)
    gone = {(row[0], row[1]) for _, _, rows in stored for row in rows if row[1] <= since}
    found = [_without(part, gone) for part in before] if gone else list(before)
    for _, columns, rows in stored:
        live = [r for r in rows if since < r[1] <= at and (r[2] is None or r[2] > at)]
        found.append(inlined_rows.converted(dialect_of(connection), columns, live, by_end=False))
    if shown != sum(len(part.row_ids) for part in found):
        return None
    found = [part for part in _joined(found) if part.rows]
    for part in found:
        inlined_rows.require_once(table, part.row_ids)
    return found


def _count(connection: sa.Connection, names: Sequence[str], snapshot: int) -> int:
    """Return how many rows a snapshot sees in tables of inlined rows."""
    total = 0
    for some in chunks(names, inlined_rows.AT_ONCE):
        counts = [
            sa.select(sa.func.count())
            .select_from(source)
            .where(*inlined_rows.is_shown(source, snapshot))
            for source in (inlined_rows.source_of(connection, name) for name in some)
        ]
        total += sum(connection.execute(sa.union_all(*counts)).scalars())
    return total


def _without(part: InlinedRows, gone: Collection[tuple[int, int]]) -> InlinedRows:
    versions = zip(part.row_ids, part.begin_snapshots, strict=True)
    return part.at([n for n, version in enumerate(versions) if version not in gone])


def _joined(parts: Sequence[InlinedRows]) -> list[InlinedRows]:
    """Return the rows of parts that have the same columns as one part."""
    found: dict[Schema, list[InlinedRows]] = {}
    for part in parts:
        found.setdefault(part.columns, []).append(part)
    return [
        InlinedRows(
            columns,
            tuple(row for p in each for row in p.rows),
            tuple(n for p in each for n in p.row_ids),
            tuple(n for p in each for n in p.begin_snapshots),
        )
        for columns, each in found.items()
    ]
