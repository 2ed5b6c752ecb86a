"""The data files of a table at a snapshot, for sums by SQL: with their deletes and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    and_,
    func,
    select,
)
from sqlalchemy.sql.expression import Alias, Join

from shelduck.catalog.read import queries
from shelduck.catalog.read.queries import visible
from shelduck.ducklake import tables
from shelduck.model.tables.table import TableVersion

_file, _delete, _value = tables.data_file, tables.delete_file, tables.file_partition_value


@dataclass(frozen=True, slots=True)
class FilesAt:
    """A source of files to select from; ``dead`` is how many rows of a file are deleted.

    ``values`` are the tables with the partition values of a file, one for each key.
    """

    source: FromClause
    is_there: ColumnElement[bool]
    dead: ColumnElement[int]
    values: tuple[Alias, ...] = ()


def files_at(
    connection: Connection,
    table: TableVersion,
    specs: Mapping[int, Mapping[int, str]] | None = None,
) -> FilesAt:
    """Return the files of a table version, with the values of the partition keys of ``specs``.

    One statement.
    """
    at = table.snapshot.id
    source = _file.outerjoin(_delete, queries.deletes_of_file(at))
    dead: ColumnElement[int] = func.coalesce(_delete.c.delete_count, 0)
    name = queries.inlined_delete_table(table.id)
    if queries.present_tables(connection, [name]):
        # A position may be there twice: two processes may have written it.
        each = queries.inlined_deletes_at(name, at).order_by(None).subquery()
        counted = func.count(each.c.row_id.distinct()).label("dead")
        kept = select(each.c.file_id, counted).group_by(each.c.file_id).subquery()
        source = source.outerjoin(kept, kept.c.file_id == _file.c.data_file_id)
        dead = dead + func.coalesce(kept.c.dead, 0)
    places = {place for keys in (specs or {}).values() for place in keys}
    source, values = with_values(source, sorted(places))
    return FilesAt(source, and_(_file.c.table_id == table.id, visible(_file, at)), dead, values)


def with_values(source: Join, places: Iterable[int]) -> tuple[Join, tuple[Alias, ...]]:
    """Return data files joined with their partition values, and a table for each place of a key."""
    values: list[Any] = []
    for place in places:
        value = _value.alias()
        same_file = value.c.data_file_id == _file.c.data_file_id
        same_table = value.c.table_id == _file.c.table_id
        source = source.outerjoin(
            value, and_(same_table, same_file, value.c.partition_key_index == place)
        )
        values.append(value)
    return source, tuple(values)
