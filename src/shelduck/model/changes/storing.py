"""Changes of how columns are stored: ADD and DROP INDEX, SET ENCODING, and what they do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shelduck.errors import AlreadyExists
from shelduck.model.changes.definition import Clause, Weight
from shelduck.model.tables.column_storage import (
    Encoding,
    Properties,
    encoded,
    filtered,
    index_named,
    storage_of,
    with_storage,
)
from shelduck.model.tables.schema import FieldId, Path, Schema, path_text
from shelduck.model.text.names import quote_name


@dataclass(frozen=True, slots=True)
class AddIndex:
    """Give columns Bloom filters in new files, under the name of an index."""

    name: str
    columns: tuple[Path, ...]
    if_not_exists: bool = False

    def __str__(self) -> str:
        exists = "IF NOT EXISTS " * self.if_not_exists
        columns = ", ".join(map(path_text, self.columns))
        return f"ADD INDEX {exists}{quote_name(self.name)} ({columns}) USING BLOOMFILTER"


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Write no Bloom filters of an index any more; readers still use those in files."""

    name: str
    if_exists: bool = False

    def __str__(self) -> str:
        return f"DROP INDEX {'IF EXISTS ' * self.if_exists}{quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class SetEncoding:
    """Set how new files encode the values of a column."""

    path: Path
    encoding: Encoding

    def __str__(self) -> str:
        return f"ALTER COLUMN {path_text(self.path)} SET ENCODING ({self.encoding.value})"


StorageChange = AddIndex | DropIndex | SetEncoding


def apply_storage(
    known: Properties, change: StorageChange, columns: Schema, table: str
) -> tuple[dict[str, str], frozenset[FieldId]]:
    """Return the properties of a table after a change, and the columns that older files lack.

    Raises NotFound, AlreadyExists or InvalidRequest, naming ``table``.
    """
    before = found = storage_of(known, table)
    names = {told.lower() for told, _, c in found.named(columns) if c.index is not None}
    if isinstance(change, SetEncoding):
        found = encoded(found, columns, change.path, change.encoding, table)
    elif isinstance(change, DropIndex):
        is_there = change.name.lower() in names or not change.if_exists
        for one in index_named(found, columns, change.name, table) if is_there else ():
            found = found.put(replace(one, index=None))
        return with_storage(known, found), frozenset()
    elif change.name.lower() not in names:
        for path in change.columns:
            other = found.of(columns.get(path, table).id).index
            if other is not None:
                raise AlreadyExists(
                    f"{path_text(path)} of {table} already has the index"
                    f" {quote_name(other or path_text(path))}; drop it first",
                    about="index",
                )
            found = filtered(found, columns, path, change.name, table)
    elif not change.if_not_exists:
        raise AlreadyExists.named("index", change.name, table)
    changed = {c.column for c in (*before, *found) if before.of(c.column) != found.of(c.column)}
    tops = (top.id for top in columns if any(f.id in changed for f in top.walk()))
    return with_storage(known, found), frozenset(tops)


_NEW_FILES = Weight(False, "applies to new files; with REWRITE, a job writes these columns again")
_LIGHT = Weight(False, "applies to new files; readers still use the filters of older ones")
STORAGE_CLAUSES: dict[type, Clause] = {
    AddIndex: Clause("add_index", _NEW_FILES),
    DropIndex: Clause("drop_index", _LIGHT),
    SetEncoding: Clause("set_encoding", _NEW_FILES),
}
"""All that the code knows of each kind of change of how columns are stored."""
