"""The files of a table that hold values in older types, according to their footers."""

from __future__ import annotations

from shelduck.errors import ShelduckError
from shelduck.model.files.data_files import DataFile, NameMapping
from shelduck.operations.read.rows import TableRows
from shelduck.planning.older_types import OlderType, older_types
from shelduck.planning.resolve import resolve


def files_of_older_types(
    rows: TableRows,
) -> list[tuple[DataFile, tuple[OlderType, ...]]]:
    """Return the files that hold leaves in another type than their column's, with those leaves.

    Columns of a file that the table no longer has do not count. Raises Unsupported or CorruptLake,
    naming the file, for a column that cannot be read correctly.
    """

    def look(file: DataFile, mapping: NameMapping | None) -> tuple[OlderType, ...]:
        assert file.layout is not None
        fields = rows.table.columns.fields
        try:
            nodes = resolve(file.layout, fields, mapping, fields).nodes
        except ShelduckError as error:
            raise type(error)(
                f"data file {file.path} of {rows.table.full_name}: {error}"
            ) from error
        return older_types(nodes, file.layout.fields)

    found, layout_of = rows.by_layout(look)
    return [(file, older) for file in rows.files if (older := found[layout_of[file.id]])]
