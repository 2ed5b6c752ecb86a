"""The rows of table functions about a lake: its tables, and the files of one of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    func,
    select,
)

from shelduck.catalog.read.metadata import with_deletes
from shelduck.catalog.read.paths import resolve
from shelduck.catalog.read.queries import visible
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null, sum_of
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.tables.table import Snapshot, TableVersion
from shelduck.model.text.quoting import double_quoted

_file, _delete = tables.data_file, tables.delete_file
_CALLED = {
    Verb.INSERTED_INTO_TABLE: "tables_inserted_into",
    Verb.DELETED_FROM_TABLE: "tables_deleted_from",
    Verb.INLINE_FLUSH: "flushed_inlined",
}


def change_map(entries: list[Entry]) -> dict[str, list[str]]:
    """Return what a snapshot did as in DuckDB's ``snapshots()``: names or ids by action."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        names = ".".join(n if n.isidentifier() else double_quoted(n) for n in entry.parts)
        found.setdefault(_called(entry.verb), []).append(names or str(entry.id))
    return found


def _called(verb: Verb) -> str:
    if verb in _CALLED:
        return _CALLED[verb]
    act, _, what = verb.value.partition("_")
    return f"{what}s_{act}" if act in ("created", "dropped", "altered") else verb.value


def table_rows(connection: Connection, at: Snapshot) -> list[tuple[Any, ...]]:
    """Return name, schema id, id, UUID, and the count and bytes of files and delete files.

    One row for each table of the snapshot, by id; one statement.
    """
    t = tables.table.c
    query = (
        select(t.table_name, t.schema_id, t.table_id, t.table_uuid)
        .add_columns(*_sums(_file, at), *_sums(_delete, at))
        .where(visible(tables.table, at.id))
        .order_by(t.table_id)
    )
    return [tuple(row) for row in connection.execute(query)]


def _sums(files: Table, at: Snapshot) -> list[ColumnElement[Any]]:
    mine = and_(files.c.table_id == tables.table.c.table_id, visible(files, at.id))
    counted: list[ColumnElement[Any]] = [func.count(), sum_of(files.c.file_size_bytes)]
    return [select(c).select_from(files).where(mine).scalar_subquery() for c in counted]


def listed_files(connection: Connection, table: TableVersion) -> list[tuple[Any, ...]]:
    """Return path, size, footer size and key of each data file and of its delete file.

    The table's files at its snapshot, by id; one statement.
    """
    found = []
    for row in connection.execute(_files(table.id, table.snapshot.id)):
        path, relative, *about, dead, dead_relative, size, footer, key = row
        place = None if dead is None else resolve(table.path, dead, dead_relative)
        found.append((resolve(table.path, path, relative), *about, place, size, footer, key))
    return found


def _files(table_id: int, at: int) -> Select[Any]:
    f, d = _file.c, _delete.c
    of_file = (f.path, f.path_is_relative, f.file_size_bytes, f.footer_size, f.encryption_key)
    of_deletes = (or_null(d.path), d.path_is_relative, or_null(d.file_size_bytes), d.footer_size)
    columns = select(*of_file, *of_deletes, d.encryption_key)
    return with_deletes(columns, table_id, at)
