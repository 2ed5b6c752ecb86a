"""Differences between the files and rows of two snapshots, by table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection, and_, case, or_, select

from shelduck.catalog.read.queries import total, visible
from shelduck.catalog.read.row_counts import inlined_changes
from shelduck.ducklake import tables

_file, _delete = tables.data_file, tables.delete_file


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
    connection: Connection, ids: Collection[int], first: int, second: int
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


def _file_changes(connection: Connection, first: int, second: int) -> dict[int, FileChanges]:
    found: dict[int, FileChanges] = {}
    for source, count in ((_file, _file.c.record_count), (_delete, _delete.c.delete_count)):
        one, other = visible(source, first), visible(source, second)
        sign = case((and_(other, ~one), 1), (and_(one, ~other), -1), else_=0)
        later = or_(
            and_(one, source.c.partial_max > first), and_(other, source.c.partial_max > second)
        )
        query = (
            select(
                *(source.c.table_id, total(sign), total(sign * count)),
                *(total(sign * source.c.file_size_bytes), total(case((later, 1), else_=0))),
            )
            .where(or_(and_(other, ~one), and_(one, ~other), later))
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
