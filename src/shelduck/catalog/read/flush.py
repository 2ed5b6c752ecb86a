"""Which deletes of data files are in the catalog itself, and the delete files beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, select

from shelduck.catalog.read.definitions import file_place
from shelduck.catalog.read.queries import chunks, inlined_delete_table, inlined_deletes
from shelduck.ducklake import tables
from shelduck.model.tables.table import TableVersion

_d = tables.delete_file.c


@dataclass(frozen=True, slots=True)
class DeleteFileVersion:
    """A delete file that some snapshot sees; ``path`` is absolute."""

    id: int
    path: str
    begin_snapshot: int
    is_plain: bool
    """True for Parquet that is not encrypted."""
    count: int
    """The number of positions that it names."""


def inlined_positions(
    connection: Connection, table: TableVersion, files: Collection[int]
) -> dict[int, dict[int, int]]:
    """Return the snapshot in which each position was deleted, by data file id.

    Only deletes of ``files`` in the catalog itself, up to the table's snapshot. At least one
    statement.
    """
    found: dict[int, dict[int, int]] = defaultdict(dict)
    source = inlined_deletes(inlined_delete_table(table.id))
    for part in chunks(sorted(files)):
        chosen = select(*source.c).where(
            source.c.file_id.in_(part), source.c.begin_snapshot <= table.snapshot.id
        )
        for number, position, snapshot in connection.execute(chosen):
            known = found[number].get(position, snapshot)
            found[number][position] = min(known, snapshot)
    return found


def delete_file_versions(
    connection: Connection, table: TableVersion, files: Collection[int]
) -> dict[int, list[DeleteFileVersion]]:
    """Return all delete files of data files, including ended ones, by data file id."""
    found: dict[int, list[DeleteFileVersion]] = defaultdict(list)
    for part in chunks(sorted(files)):
        for row in connection.execute(select(tables.delete_file).where(_d.data_file_id.in_(part))):
            found[row.data_file_id].append(
                DeleteFileVersion(
                    row.delete_file_id,
                    file_place(table, row.path, row.path_is_relative),
                    row.begin_snapshot,
                    row.format.lower() == "parquet" and row.encryption_key is None,
                    row.delete_count,
                )
            )
    return found
