"""The files of a table that hold values in older types, by what their footers tell."""

from __future__ import annotations

from shelduck.errors import ShelduckError
from shelduck.model.files import DataFile
from shelduck.operations.rows import TableRows
from shelduck.planning.older_types import OlderType, older_types
from shelduck.planning.resolve import resolve


def files_of_older_types(
    rows: TableRows,
) -> list[tuple[DataFile, tuple[OlderType, ...]]]:
    """Return the files that hold leaves in another type than their column's, with those leaves.

    Columns that a file has and the table has not any more do not count. Raises Unsupported or
    CorruptLake, naming the file, for a column that cannot be read right.
    """
    known: dict[object, tuple[OlderType, ...]] = {}
    found = []
    for file in rows.files:
        # One layout is one object in nearly all files.
        key = (id(file.layout), file.mapping_id)
        if key not in known:
            known[key] = _older(rows, file)
        if known[key]:
            found.append((file, known[key]))
    return found


def _older(rows: TableRows, file: DataFile) -> tuple[OlderType, ...]:
    assert file.layout is not None
    mapping = None if file.mapping_id is None else rows.mappings[file.mapping_id]
    fields = rows.table.columns.fields
    try:
        nodes = resolve(file.layout, fields, mapping, fields).nodes
    except ShelduckError as error:
        raise type(error)(f"data file {file.path} of {rows.table.full_name}: {error}") from error
    return older_types(nodes, file.layout.fields)
