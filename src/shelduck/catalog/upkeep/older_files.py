"""Files that only older snapshots see."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection, select

from shelduck.catalog.commit.schedule import directory_by_table, table_directories
from shelduck.catalog.read.paths import resolve
from shelduck.catalog.schema.create import LakeInfo
from shelduck.ducklake import tables


def older_files(connection: Connection, lake: LakeInfo) -> dict[int, list[tuple[str, int]]]:
    """Return path and size of files of older snapshots, by table id, of dropped tables too."""
    by_table = directory_by_table(table_directories(connection, lake))
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for source in (tables.data_file, tables.delete_file):
        c = source.c
        columns = (c.table_id, c.path, c.path_is_relative, c.file_size_bytes)
        query = select(*columns).where(c.end_snapshot.is_not(None))
        for number, path, relative, size in connection.execute(query):
            found[number].append((resolve(by_table.get(number, ""), path, relative), size))
    return found
