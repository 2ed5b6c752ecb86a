"""What differs between the files of two snapshots, by table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import Connection, and_, case, or_, select

from shelduck.catalog.read.queries import total, visible
from shelduck.catalog.schema import tables

_file, _delete = tables.data_file, tables.delete_file


@dataclass(frozen=True, slots=True)
class FileChanges:
    """By how much the files of a table, their rows without deleted ones, and bytes differ.

    ``is_certain``: the rows are exact. They are not if a file of one of the snapshots also has rows
    of later ones.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    is_certain: bool = True


def file_changes(connection: Connection, first: int, second: int) -> dict[int, FileChanges]:
    """Return what leads from the files of one snapshot to those of another; two statements.

    Tables whose files are the same are left out.
    """
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
