"""Which files get new columns beside a copy of their own, and what of them is copied.

The column chunks of such a file go into the new one byte for byte. If the type of a column has
changed since, that column is written again beside them. A file with deleted rows, of another
writer, or with a key of its own is read and written whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from shelduck.model.files.data_file import ROW_ID_FIELD, SNAPSHOT_FIELD, DataFile, PhysicalField
from shelduck.model.files.resolve import is_own
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table_version import TableVersion


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file to copy: its id and path, its top-level columns that are copied, and their leaves.

    ``leaves`` are in the order of the file; the row id, which has no statistics, is None. The
    types of ``renewed`` columns have changed since, or their storage: they are written again, like
    added ones.
    """

    id: int
    path: str
    columns: tuple[str, ...]
    leaves: tuple[Field | None, ...]
    renewed: frozenset[FieldId] = frozenset()


def copied_file(
    table: TableVersion,
    file: DataFile,
    added: Sequence[FieldId],
    names: Mapping[FieldId, str],
    renews: Collection[FieldId] = (),
) -> CopiedFile | str:
    """Return what is copied of a file that gets the columns ``added``.

    ``names`` are those of columns in new files, ``renews`` are columns that are written again. If
    the file must be written whole, return why. Columns that the table dropped are left out.
    """
    if table.options.encrypted:
        return "encrypted"
    if not is_own(table, file.path) or file.mapping_id is not None or file.layout is None:
        return "written by others"
    if file.dead_rows:
        return "with deleted rows"
    if not file.record_count or file.partial_max is not None:
        return "with rows of several snapshots" if file.record_count else "without rows"
    live: dict[int, Field] = {f.id: f for f in table.columns}
    copied: list[str] = []
    leaves: list[Field | None] = []
    renewed: set[FieldId] = set()
    for part in file.layout.fields:
        column = None if part.id is None else live.get(part.id)
        if part.id == ROW_ID_FIELD:
            copied.append(part.name)
            leaves.append(None)
        elif part.id == SNAPSHOT_FIELD:
            return "with rows of several snapshots"
        elif column is not None and (column.id in renews or not _is_same(part, column)):
            renewed.add(column.id)
        elif column is not None:
            copied.append(part.name)
            leaves += column.leaves()
    taken = {name.lower() for name in copied}
    has_ids = file.row_id_start is not None or None in leaves
    if not copied or not has_ids or taken & {names[i].lower() for i in (*added, *renewed)}:
        return "with other names" if copied or not renewed else "with older types"
    return CopiedFile(file.id, file.path, tuple(copied), tuple(leaves), frozenset(renewed))


def _is_same(part: PhysicalField, column: Field) -> bool:
    """Return whether a node of a file is what a new file would have for a column."""
    if part.id != column.id or part.shape != column.shape or part.encoding:
        return False
    if str(part.shape) == "variant" or len(part.children) != len(column.children):
        return False
    below = zip(part.children, column.children, strict=True)
    return all(_is_same(child, field) for child, field in below)
